"""The forms of items: what people type into the composer and the editor."""

import uuid
from typing import Any

from django import forms
from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from items.hydrate import ItemBody
from items.models import Item, Visibility
from items.text import TEXT_LENGTH, TITLE_LENGTH, ContentError, check_content
from relations.models import Follow

AUDIENCES = [
    (Visibility.PUBLIC, _("Everyone")),
    (Visibility.FOLLOWERS, _("Followers")),
    (Visibility.MUTUALS, _("Mutual follows")),
    (Visibility.SELF, _("Only me")),
]


class TextField(forms.CharField):
    """Text with the line breaks that were typed: browsers send each as CR LF. `check_content` bounds its length."""

    def to_python(self, value: Any) -> str:
        """The text with line feeds only."""
        text = super().to_python(value)
        return str(text or "").replace("\r\n", "\n").replace("\r", "\n")


def text_area(rows: int) -> forms.Textarea:
    """A text area of so many rows that knows the longest text."""
    # Browsers would put back what was typed before it was published; drafts.js knows better.
    return forms.Textarea(attrs={"rows": rows, "data-limit": TEXT_LENGTH, "autocomplete": "off"})


class ItemForm(forms.Form):
    """The composer. Its `key` names one publication, so that sending the form twice publishes once."""

    text = TextField(
        label=_("What is new?"),
        error_messages={"required": _("Write something first.")},
        widget=text_area(3),
    )
    visibility = forms.ChoiceField(label=_("Who can see it"), choices=AUDIENCES, initial=Visibility.PUBLIC)
    reply_to = forms.IntegerField(required=False, widget=forms.HiddenInput)
    key = forms.RegexField(r"^[0-9a-f]{32}\Z", required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        text = self.fields["text"]
        answered = str(self["reply_to"].value() or "")
        if answered:
            text.label = _("Your reply")
        if answered.isdecimal():  # several replies may be begun in one page
            self.auto_id = f"reply-{answered}-%s"
        text.widget.attrs["placeholder"] = text.label
        self.fields["visibility"].widget.attrs["aria-describedby"] = f"{self['text'].id_for_label}-audience"

    @classmethod
    def fresh(cls, reply_to: ItemBody | None = None, reader: User | AnonymousUser | None = None) -> "ItemForm":
        """An empty composer. A reply of `reader` begins with the audience of what it answers, if whom it answers is in
        it; else with all readers whom the thread is open to.
        """
        initial: dict[str, Any] = {"key": uuid.uuid4().hex}
        if reply_to:
            initial |= {"reply_to": reply_to.shown.id, "visibility": _audience(reply_to.shown, reader)}
        return cls(initial=initial)


def _audience(answered: ItemBody, reader: User | AnonymousUser | None) -> str:
    """Among the followers of the one is not always the other; mutual followers are each other's."""
    sender_id = int(answered.sender.id)
    if answered.visibility != Visibility.FOLLOWERS or reader is None or sender_id == reader.pk:
        return answered.visibility
    is_heard = Follow.objects.filter(follower=sender_id, followee=reader.pk).exists()
    return answered.visibility if is_heard else Visibility.PUBLIC


class EditForm(forms.Form):
    """The editor of an item: its text, its title where it has one, and who can see it; everything else stays."""

    title = forms.CharField(label=_("Title"), max_length=TITLE_LENGTH, required=False)
    text = TextField(label=_("Text"), required=False, widget=text_area(5))
    visibility = forms.ChoiceField(label=_("Who can see it"), choices=AUDIENCES, required=False)

    def __init__(self, item: Item, data: Any = None) -> None:
        self.item = item
        # Several editors may be open in one page.
        initial = {"title": item.title, "text": item.text, "visibility": item.visibility}
        super().__init__(data, auto_id=f"edit-{item.pk}-%s", initial=initial)
        self.fields["visibility"].widget.attrs["aria-describedby"] = f"{self['text'].id_for_label}-audience"
        if not item.title:
            del self.fields["title"]

    def clean(self) -> dict[str, Any]:
        """The fields; `content` is the item's new content. Raises ValidationError if it is not allowed."""
        fields = super().clean() or {}
        self.content = {**self.item.content, "text": fields.get("text", "")}
        if not self.errors:
            try:
                check_content(self.item.type, self.content)
            except ContentError as error:
                self.add_error("text", str(error))
        return fields
