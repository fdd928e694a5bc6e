import re
import uuid
from datetime import datetime, timedelta
from functools import cached_property
from itertools import zip_longest
from typing import Any, Self

from django import forms
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import BadRequest
from django.core.files.uploadedfile import UploadedFile
from django.forms.utils import ErrorDict, ErrorList
from django.http import QueryDict
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from accounts.locale import LOCAL, named_zone, parse_local_time
from accounts.models import USERNAME_LENGTH, QuotableBy, RepliableBy, User, is_username
from items.bodies import ItemBody
from items.conversations.recipients import ADDRESSED_MOST
from items.filters.filters import FILTERS, Keyword, OwnedFilter
from items.filters.matching import fold
from items.models import PHRASE_LENGTH, Context, FilterAction, Item, ItemType, Visibility
from items.pages.cards import Quoted
from items.signals import writing_began
from items.text import (
    ARTICLE_LENGTH,
    MOST_OPTIONS,
    OPTION_LENGTH,
    POLL_FIELD,
    TEXT_LENGTH,
    TITLE_LENGTH,
    WARNING_LENGTH,
    ContentError,
    check_content,
)
from items.threads.chains import LONGEST
from media import actions as media
from media.actions import PICTURES_AN_ITEM
from media.decoder import DecoderBusyError
from media.files import StoreError
from media.models import MediaFile, MediaKind, Use
from media.objects import Focus, MediaObject, OwnMedium, media_objects, own_medium, parse_focus
from relations.visibility import is_following
from web.languages import CODE, CODE_LENGTH
from web.rest import parse_id

AUDIENCES = [
    (Visibility.PUBLIC, _("Everyone")),
    (Visibility.FOLLOWERS, _("Followers")),
    (Visibility.MUTUALS, _("Mutual follows")),
    (Visibility.SELF, _("Only me")),
    (Visibility.MENTIONED, _("People I mention")),
]
CHANGEABLE = [audience for audience in AUDIENCES if audience[0] != Visibility.MENTIONED]
"""The audiences that an edit may choose."""
SAME_PEOPLE = [(Visibility.MENTIONED, _("The same people"))]
"""The only audience of a reply to a private mention, and of its edit."""


KEY = re.compile(r"^[0-9a-f]{32}\Z")
"""An idempotency key."""


class MultilineField(forms.CharField):
    """Text with line feeds: browsers send CR LF."""

    def to_python(self, value: Any) -> str:
        """Convert line breaks to line feeds."""
        return _normalize_newlines(str(super().to_python(value) or ""))


def _normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def text_area(rows: int) -> forms.Textarea:
    """A text area with the length limit of posts."""
    # Otherwise browsers restore published text. writing.js handles drafts.
    return forms.Textarea(attrs={"rows": rows, "data-limit": TEXT_LENGTH, "autocomplete": "off", "dir": "auto"})


def warning_field() -> forms.CharField:
    """The warning of a post."""
    return forms.CharField(
        label=_("Content warning, shown instead of the post"), max_length=WARNING_LENGTH, required=False
    )


def sensitive_field() -> forms.BooleanField:
    """Whether the pictures are sensitive."""
    return forms.BooleanField(label=_("Sensitive: blur its pictures"), required=False)


def poll_option(place: int) -> forms.CharField:
    """One answer of a poll."""
    label = format_lazy(_("Option {number}"), number=place)
    attrs = {"autocomplete": "off", "dir": "auto", "placeholder": label, "aria-label": label}
    return forms.CharField(label=label, max_length=OPTION_LENGTH, required=False, widget=forms.TextInput(attrs=attrs))


POLL_LASTS = [
    (300, _("5 minutes")),
    (3_600, _("1 hour")),
    (6 * 3_600, _("6 hours")),
    (86_400, _("1 day")),
    (3 * 86_400, _("3 days")),
    (7 * 86_400, _("7 days")),
    (30 * 86_400, _("30 days")),
]
"""How many seconds a poll may last."""


def quotable_field(choices: list[Any]) -> forms.ChoiceField:
    """Who may quote a public post."""
    label = _("Who can quote it")
    widget = forms.Select(attrs={"aria-label": label})
    return forms.ChoiceField(label=label, choices=choices, required=False, widget=widget)


def repliable_field() -> forms.ChoiceField:
    """Who may reply in the thread of a post."""
    label = _("Who can reply")
    widget = forms.Select(attrs={"aria-label": label})
    return forms.ChoiceField(label=label, choices=RepliableBy.choices, required=False, widget=widget)


USUAL: dict[str, Any] = {"visibility": Visibility.PUBLIC, "repliable_by": RepliableBy.EVERYONE, "sensitive": False}
"""What the composer chooses where its author has chosen nothing in the settings."""


class ItemForm(forms.Form):
    """The composer. Pictures come as ids if attaching.js uploaded them, else as files."""

    use_required_attribute = False  # a post with pictures needs no text
    answered: str
    """The id of the answered item, or ""."""
    quoted: Quoted | None = None
    """The quoted item."""
    MOST = PICTURES_AN_ITEM
    ACCEPTED = "image/*,video/mp4,video/quicktime,video/x-matroska,.mkv,video/webm"
    numbers = range(1, PICTURES_AN_ITEM + 1)

    text = MultilineField(
        label=_("What's new?"),
        error_messages={"required": _("Write something first.")},
        widget=text_area(3),
    )
    visibility = forms.ChoiceField(
        label=_("Who can see it"), choices=AUDIENCES, initial=Visibility.PUBLIC, widget=forms.RadioSelect
    )
    reply_to = forms.IntegerField(required=False, widget=forms.HiddenInput)
    quote_of = forms.IntegerField(required=False, widget=forms.HiddenInput)
    quotable_by = quotable_field([("", _("My default")), *QuotableBy.choices])
    repliable_by = repliable_field()
    title = forms.CharField(
        label=_("Title (makes it an article, up to 20,000 characters)"),
        max_length=TITLE_LENGTH,
        required=False,
        widget=forms.TextInput(attrs={"data-limit": ARTICLE_LENGTH, "autocomplete": "off", "dir": "auto"}),
    )
    option_1, option_2, option_3, option_4, option_5, option_6 = map(poll_option, range(1, MOST_OPTIONS + 1))
    poll_lasts = forms.TypedChoiceField(
        label=_("Poll length"), choices=POLL_LASTS, coerce=int, initial=86_400, required=False
    )
    poll_multiple = forms.BooleanField(label=_("Several answers"), required=False)
    warning = warning_field()
    sensitive = sensitive_field()
    language = forms.RegexField(rf"^{CODE.pattern}\Z", required=False, max_length=CODE_LENGTH, widget=forms.HiddenInput)
    publish_at = forms.CharField(
        label=_("Publish at"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "60"}, format=LOCAL),
    )
    scheduled = forms.IntegerField(required=False, widget=forms.HiddenInput)
    message = forms.BooleanField(required=False, widget=forms.HiddenInput)
    key = forms.RegexField(KEY, required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        text = self.fields["text"]
        answered = str(self["reply_to"].value() or "") if "reply_to" in self.fields else ""
        if self.is_message:
            text.label = _("Message")
            text.widget.attrs["rows"] = 1
        elif answered:
            text.label = _("Your reply")
        if answered or self.is_message:
            self.fields.pop("repliable_by", None)
        self.answered = answered if answered.isdecimal() else ""
        if self.answered:  # a page may have several open reply forms
            self.auto_id = f"reply-{answered}-%s"
        text.widget.attrs["placeholder"] = text.label
        self.clock = named_zone(str(self.data.get("zone") or ""))
        self.author: User | AnonymousUser | None = None
        self.taken: list[MediaFile] = []
        self._media_problems: list[str] = []

    @classmethod
    def fresh(cls, reply_to: ItemBody | None = None, reader: User | AnonymousUser | None = None) -> "ItemForm":
        """An empty composer, for a reply with `_audience`."""
        initial: dict[str, Any] = {"key": uuid.uuid4().hex}
        if isinstance(reader, User):
            names = ("visibility", "repliable_by", "sensitive", "language")
            initial |= {name: getattr(reader, f"post_{name}") for name in names}
        if reply_to:
            initial["reply_to"], audience = reply_to.shown.id, _audience(reply_to.shown, reader)
            if audience != Visibility.PUBLIC:
                initial["visibility"] = audience
        form = cls(initial=initial)
        if initial.get("visibility") == Visibility.MENTIONED:
            _offer(form, SAME_PEOPLE)
        form.author = reader
        return form

    @classmethod
    def for_message(cls, reply_to: ItemBody | None, reader: User) -> Self:
        """An empty composer of a message, with few tools."""
        initial = {"key": uuid.uuid4().hex, "message": True, "visibility": Visibility.MENTIONED}
        initial |= {"language": reader.post_language, "reply_to": reply_to.shown.id if reply_to else None}
        form = cls(initial=initial)
        form.author = reader
        return form

    @property
    def is_message(self) -> bool:
        """Whether it stands below a conversation, or begins one."""
        return bool(self["message"].value())

    @property
    def enter_sends(self) -> bool:
        """Whether Enter sends it."""
        return self.is_message and isinstance(self.author, User) and self.author.enter_sends

    def refuse(self, error: ContentError) -> None:
        """Add what `publish` refuses."""
        if error.field == "content.media":
            self.refuse_media(str(error))
        else:
            self.add_error("option_1" if error.field == POLL_FIELD else "text", str(error))

    def clean_publish_at(self) -> datetime | None:
        """The time of a scheduled post. Raises ValidationError."""
        text = self.cleaned_data["publish_at"]
        return parse_local_time(text, self.clock) if text else None

    @cached_property
    def notice(self) -> str:
        """What the author should know before publishing, or ""."""
        if not isinstance(self.author, User) or self.is_message:  # messages are not reviewed
            return ""
        answers = writing_began.send(sender=type(self), author=self.author)
        return " ".join(words for _, words in answers if words)

    def store_media(self, owner: User) -> None:
        """Take pictures and descriptions. Refusals are in `media_errors`."""
        self.author = owner
        self._find_media(owner)
        key = self.key_of_files
        if not KEY.match(key):  # the form is invalid, but its files are still uploaded, without a key
            key = ""
        for number in self.numbers:
            if file := self.files.get(self.add_prefix(f"file_{number}")):
                said = _normalize_newlines(str(self.data.get(self.add_prefix(f"file_description_{number}"), "")))
                self._upload(owner, file, said, f"{key}-{number}" if key else "")
        if len(self.taken) > self.MOST or (
            len(self.taken) > 1 and any(one.kind == MediaKind.VIDEO for one in self.taken)
        ):
            words = ngettext(
                "A post can have up to %(count)d picture, or one video.",
                "A post can have up to %(count)d pictures, or one video.",
                self.MOST,
            )
            self.refuse_media(words % {"count": self.MOST})
        self.fields["text"].required = not self.taken and not self.has_poll

    def _find_media(self, owner: User) -> None:
        columns = [self._all_of(name) for name in ("media", "description", "focus")]
        kept = self._all_of("keep") if self._all_of("keeps") else columns[0]
        ids = [parse_id(one) or 0 for one in columns[0] if one in kept][: self.MOST]
        rows = MediaFile.objects.filter(owner_id=owner.pk, withdrawn_at=None).in_bulk(ids) if ids else {}
        if len(rows) < len(ids):
            self.refuse_media(gettext("A picture is gone. Add it again."))
        for number, said, focus in zip_longest(*columns, fillvalue=""):
            row = rows.get(parse_id(number) or 0)
            if row is not None and number in kept:
                self.taken.append(self._described(row, _normalize_newlines(said), focus_of(focus)))

    def _all_of(self, name: str) -> list[str]:
        values: list[str] = self.data.getlist(self.add_prefix(name))  # type: ignore[attr-defined]
        return values

    def _described(self, row: MediaFile, said: str, focus: tuple[float, float]) -> MediaFile:
        if row.use not in (Use.NONE, Use.LATER) or (row.description, row.focus_x, row.focus_y) == (said, *focus):
            return row
        try:
            return media.describe(medium=row, description=said, focus=focus)
        except media.MediaError as error:
            self.refuse_media(str(error))
        return row

    def _upload(self, owner: User, upload: "UploadedFile[Any]", said: str, key: str) -> None:
        try:
            with upload.open("rb") as file:
                self.taken.append(media.upload(owner_id=owner.pk, file=file, description=said, key=key))
        except (media.MediaError, media.VideoBudgetError) as error:
            self.refuse_media(str(error))
        except (media.KeyConflictError, DecoderBusyError, StoreError):
            self.refuse_media(gettext("We couldn't upload this file. Try again in a moment."))

    def refuse_media(self, problem: str) -> None:
        """Add an error about the pictures."""
        self._media_problems.append(problem)

    @property
    def key_of_files(self) -> str:
        """The beginning of the keys under which its files are uploaded."""
        return str(self.data.get("key", ""))

    @property
    def is_empty(self) -> bool:
        """Whether it is the plain composer of a new post, with the usual choices."""
        return self._is_plain and "reply_to" not in self.initial

    @property
    def is_empty_reply(self) -> bool:
        """Whether it is the plain composer of a reply, with the usual choices."""
        return self._is_plain and bool(self.answered)

    @property
    def _is_plain(self) -> bool:
        return (
            not (self.is_bound or self.is_message or "quote_of" in self.initial)
            and all(self.initial.get(name, usual) == usual for name, usual in USUAL.items())
            and "autofocus" not in self.fields["text"].widget.attrs
        )

    def begin_again(self) -> None:
        """Show what was sent, without checks."""
        self._errors = ErrorDict()
        self._media_problems.clear()

    @property
    def media_errors(self) -> ErrorList:
        """The errors about the pictures."""
        return ErrorList(self._media_problems)

    @property
    def media_shown(self) -> list[OwnMedium]:
        """The form's pictures."""
        return [own_medium(row) for row in self.taken]

    @property
    def image_mb(self) -> int:
        """The largest picture, in MB."""
        return int(settings.MEDIA_IMAGE_BYTES) // 2**20

    @property
    def video_mb(self) -> int:
        """The largest video, in MB."""
        return int(settings.MEDIA_VIDEO_BYTES) // 2**20

    @property
    def option_fields(self) -> list[forms.BoundField]:
        """The fields of a poll's answers."""
        return [self[f"option_{place}"] for place in range(1, MOST_OPTIONS + 1)]

    @property
    def has_poll(self) -> bool:
        """Whether an answer of a poll was written."""
        return any(str(field.value() or "").strip() for field in self.option_fields)

    @property
    def type(self) -> str:
        """The type of the new item."""
        if self.has_poll:
            return ItemType.POLL
        if not self.taken:
            return ItemType.ARTICLE if self.cleaned_data.get("title") else ItemType.TEXT
        return ItemType.VIDEO if self.taken[0].kind == MediaKind.VIDEO else ItemType.IMAGE

    @property
    def _poll(self) -> dict[str, Any]:
        answers = [self.cleaned_data[field.name] for field in self.option_fields]
        return {
            "options": [answer for answer in answers if answer],
            "multiple": self.cleaned_data["poll_multiple"],
            "closes_in": self.cleaned_data["poll_lasts"] or POLL_LASTS[3][0],
        }

    @property
    def content(self) -> dict[str, Any]:
        """The content of the new item."""
        content: dict[str, Any] = {"text": self.cleaned_data["text"]}
        if self.taken:
            content["media"] = [str(row.pk) for row in self.taken]
        if self.has_poll:
            content["poll"] = self._poll
        return content | _warned(self.cleaned_data)

    @property
    def post(self) -> dict[str, Any]:
        """The arguments of `publish` that the form has."""
        is_private = self.cleaned_data["visibility"] == Visibility.MENTIONED  # its people may reply
        return {
            "type": self.type,
            "title": self.cleaned_data["title"],
            "content": self.content,
            "visibility": self.cleaned_data["visibility"],
            "quotable_by": self.cleaned_data["quotable_by"] or None,
            "repliable_by": None if is_private else self.cleaned_data.get("repliable_by") or None,
        }


class _SharedFields(dict[str, forms.Field]):
    def __deepcopy__(self, memo: Any) -> Self:
        return self


class HomeForm(ItemForm):
    """The composer at home. All of them share their fields, which nobody may change: copies took a tenth of a page."""


HomeForm.base_fields = _SharedFields(HomeForm.base_fields)


class PartForm(ItemForm):
    """A further post of a thread. The first has the audience, and what else holds for all."""

    visibility = reply_to = quote_of = quotable_by = repliable_by = None  # type: ignore[assignment]
    title = publish_at = scheduled = key = language = None  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        text = self.fields["text"]
        text.label = text.widget.attrs["placeholder"] = _("Add another post")

    @classmethod
    def parts_of(cls, data: QueryDict, files: Any) -> "list[PartForm]":
        """The further posts of a sent form, and an empty one if it asks for it. Raises BadRequest."""
        number = parse_id(data.get("posts", "")) or 1
        if number > LONGEST:
            raise BadRequest("A thread has too many posts.")
        return [cls(data, files, prefix=str(place)) for place in range(2, number + 1)]

    @property
    def number(self) -> str:
        """Its place in the thread, from 2."""
        return str(self.prefix)

    @property
    def key_of_files(self) -> str:
        """As of the first, in half of its letters."""
        return f"{super().key_of_files[:28]}{int(self.number):04x}"

    @property
    def is_empty(self) -> bool:
        """Never: it is drawn with its place."""
        return False

    @property
    def post(self) -> dict[str, Any]:
        """The arguments of `publish` that differ from the first post's."""
        return {"type": self.type, "content": self.content}


NAME_GAPS = re.compile(r"[\s,;，、；]+")  # noqa: RUF001 (as people write lists)


class MessageForm(ItemForm):
    """A first message, with the people to whom it goes."""

    people = forms.CharField(
        label=_("To"),
        max_length=ADDRESSED_MOST * (USERNAME_LENGTH + 3),
        error_messages={"required": _("Choose who gets it.")},
        widget=forms.TextInput(
            attrs={
                "placeholder": _("@name, @name"),
                "autocomplete": "off",
                "autocapitalize": "none",
                "data-names": True,
                "role": "combobox",
                "aria-expanded": "false",
                "aria-autocomplete": "list",
            }
        ),
    )

    def clean_people(self) -> list[str]:
        """The usernames. Raises ValidationError."""
        parts = NAME_GAPS.split(self.cleaned_data["people"].replace("\uff20", "@"))
        names = list(dict.fromkeys(part.lstrip("@") for part in parts if part.lstrip("@")))
        for name in names:
            if not is_username(name):
                raise forms.ValidationError(gettext("“%(name)s” isn't a username.") % {"name": name})
        if not names or len(names) > ADDRESSED_MOST:
            words = ngettext("Choose 1 to %(count)d person.", "Choose 1 to %(count)d people.", ADDRESSED_MOST)
            raise forms.ValidationError(words % {"count": ADDRESSED_MOST})
        return names

    def refuse(self, error: ContentError) -> None:
        """Add what `publish` refuses: who cannot be written to stands with the people."""
        if error.field == "usernames":
            self.add_error("people", str(error))
        else:
            super().refuse(error)


def _warned(fields: dict[str, Any]) -> dict[str, Any]:
    given = {name: fields.get(name) for name in ("warning", "sensitive", "language")}
    return {name: value for name, value in given.items() if value}


def focus_of(text: str) -> tuple[float, float]:
    """Parse "x,y", each from -1 to 1, or the centre."""
    return parse_focus(text) or (0.0, 0.0)


def _audience(answered: ItemBody, reader: User | AnonymousUser | None) -> str:
    """The first choice for a reply: the answered item's audience, or public if its sender could not see the reply."""
    sender_id = int(answered.sender.id)
    if answered.visibility != Visibility.FOLLOWERS or reader is None or sender_id == reader.pk:
        return answered.visibility
    return answered.visibility if is_following(sender_id, reader.pk or 0) else Visibility.PUBLIC


def _offer(form: forms.Form, audiences: list[tuple[Visibility, Any]]) -> None:
    field = form.fields["visibility"]
    assert isinstance(field, forms.ChoiceField)  # noqa: S101 (for the type checker)
    field.choices = audiences


def _media_said(data: QueryDict) -> dict[str, tuple[str, tuple[float, float]]]:
    columns = zip_longest(*(data.getlist(name) for name in ("media", "description", "focus")), fillvalue="")
    return {number: (_normalize_newlines(said), focus_of(focus)) for number, said, focus in columns if number}


EDITED = ("title", "text", "visibility", "quotable_by", "repliable_by")
"""The fields of an edit that are an item's own."""


class EditForm(forms.Form):
    """The editor of an item."""

    is_message = False
    title = forms.CharField(label=_("Title"), max_length=TITLE_LENGTH, required=False)
    text = MultilineField(label=_("Text"), required=False, widget=text_area(5))
    visibility = forms.ChoiceField(
        label=_("Who can see it"), choices=AUDIENCES, required=False, widget=forms.RadioSelect
    )
    quotable_by = quotable_field(QuotableBy.choices)
    repliable_by = repliable_field()
    warning = warning_field()
    sensitive = sensitive_field()

    def __init__(self, item: Item, data: QueryDict | None = None) -> None:
        self.item = item
        self.media_said = _media_said(data) if data is not None else {}
        # A page may have several open editors.
        initial = {name: getattr(item, name) for name in EDITED}
        initial |= _warned(item.content)
        super().__init__(data, auto_id=f"edit-{item.pk}-%s", initial=initial)
        _offer(self, SAME_PEOPLE if item.is_private else CHANGEABLE)
        if item.root_id or item.is_private:
            del self.fields["repliable_by"]
        if not item.title:
            del self.fields["title"]
        if not item.media:
            del self.fields["sensitive"]

    @property
    def media_shown(self) -> list[MediaObject]:
        """The item's pictures as the form has them."""
        found = {one.id: one for one in media_objects(self.item.media)}
        for number, (said, focus) in self.media_said.items():
            if number in found:
                found[number].description, found[number].meta.focus = said, Focus(*focus)
        order = list(self.media_said) or list(found)
        return sorted(found.values(), key=lambda one: order.index(one.id) if one.id in order else len(order))

    def clean(self) -> dict[str, Any]:
        """Build and check the item's new `content`."""
        fields = super().clean() or {}
        self.content = self.item.content | {"text": fields.get("text", "")}
        if "warning" in self.data:  # a page from before an upgrade does not send it
            kept = {name: value for name, value in self.content.items() if name not in ("warning", "sensitive")}
            self.content = kept | _warned(fields)
        if self.media_said:
            if sorted(self.media_said) != sorted(one["id"] for one in self.item.media):
                self.add_error(None, _("The pictures of this post have changed. Reload the page."))
            self.content["media"] = list(self.media_said)
        if not self.errors:
            try:
                check_content(self.item.type, self.content)
            except ContentError as error:
                self.add_error("text", str(error))
        return fields


LASTS = [("0", _("Forever")), ("1", _("1 day")), ("7", _("7 days")), ("30", _("30 days"))]
"""Days until a filter expires, 0 for never."""


class FilterForm(forms.Form):
    """A filter, new or existing. Each line is a phrase."""

    phrase = forms.CharField(
        label=_("Words or phrases, one per line"),
        max_length=FILTERS * (PHRASE_LENGTH + 2),
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "autocapitalize": "none", "dir": "auto"}),
    )
    whole_word = forms.BooleanField(
        label=_("Whole words only"),
        required=False,
        help_text=_("“cat” doesn't match “category”. Text without spaces, like Chinese, matches anywhere."),
    )
    action = forms.ChoiceField(
        label=_("What happens to these posts"), choices=FilterAction.choices, widget=forms.RadioSelect
    )
    contexts = forms.MultipleChoiceField(
        label=_("Where"), choices=Context.choices, required=False, widget=forms.CheckboxSelectMultiple
    )
    lasts = forms.ChoiceField(label=_("For how long"), choices=LASTS)

    def __init__(self, data: Any = None, *, known: OwnedFilter | None = None) -> None:
        initial: dict[str, Any] = {"whole_word": True, "action": FilterAction.WARN, "lasts": "0"}
        initial["contexts"] = list(Context)
        self.known = known
        if known:
            initial = {"phrase": "\n".join(known.phrases), "action": known.action, "contexts": known.contexts}
            initial["whole_word"] = all(one.whole_word for one in known.keywords)
        super().__init__(data, initial=initial)
        if known:
            self.fields["lasts"].choices = [("keep", _("Keep as it is")), *LASTS]  # type: ignore[attr-defined]

    def clean_phrase(self) -> list[str]:
        """The phrases. Raises ValidationError for too long or empty ones."""
        lines = (line.strip() for line in _normalize_newlines(self.cleaned_data["phrase"]).split("\n"))
        phrases = list(dict.fromkeys(line for line in lines if line))
        if not phrases or not all(map(fold, phrases)):
            raise forms.ValidationError(_("Enter a word or phrase."))
        if any(len(phrase) > PHRASE_LENGTH for phrase in phrases):
            words = ngettext(
                "A phrase can have up to %(count)d character.",
                "A phrase can have up to %(count)d characters.",
                PHRASE_LENGTH,
            )
            raise forms.ValidationError(words % {"count": PHRASE_LENGTH})
        return phrases

    @property
    def chosen(self) -> dict[str, Any]:
        """The arguments for the verbs of items.filters."""
        fields = {name: self.cleaned_data[name] for name in ("action", "contexts")}
        kept = {one.phrase: one for one in self.known.keywords} if self.known else {}
        whole_word = self.cleaned_data["whole_word"]
        fields["keywords"] = [
            kept[phrase]
            if phrase in kept and "whole_word" not in self.changed_data
            # its id stays, which apps know
            else Keyword(phrase, whole_word, kept[phrase].id if phrase in kept else 0)
            for phrase in self.cleaned_data["phrase"]
        ]
        lasts = self.cleaned_data["lasts"]
        if lasts != "keep":
            fields["expires_at"] = timezone.now() + timedelta(days=int(lasts)) if lasts != "0" else None
        return fields
