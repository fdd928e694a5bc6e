from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.locale import LOCAL, named_zone, parse_local_time, zone_city
from accounts.models import User
from items.links import check_link
from items.pages.reading import offset_name
from live.actions import LONGEST_MINUTES, PLAN
from live.models import TITLE_LENGTH, LiveSession, State
from media import actions as media
from media.decoder import DecoderBusyError
from media.files import StoreError
from media.models import DESCRIPTION_LENGTH, MediaFile, Use
from media.objects import MediaObject, decode_medium, object_from_row
from storage.ids import MAX_ID

OF_FORM = frozenset({"zone", "cover", "picture", "description", "without_picture"})
"""Fields that are not a session's."""


class LinkField(forms.URLField):
    """An https link. A missing scheme becomes https."""

    default_validators = [check_link]


def _link_field(label: Any, help_text: Any) -> LinkField:
    return LinkField(
        label=label,
        help_text=help_text,
        required=False,
        max_length=2000,
        assume_scheme="https",
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
    )


class SessionForm(forms.Form):
    """A session. Its time is in the form's own `zone`."""

    title = forms.CharField(
        label=_("Title"), max_length=TITLE_LENGTH, widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"})
    )
    starts_at = forms.CharField(
        label=_("Starts at"),
        error_messages={"required": _("Enter a start time.")},
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "60"}, format=LOCAL),
    )
    url = _link_field(_("Link to watch"), _("Shown when you go live. You can add it later."))
    cover_url = _link_field(_("Cover picture from a link"), _("A link to a picture, 16:9 works best."))
    cover = forms.IntegerField(required=False, widget=forms.HiddenInput)
    picture = forms.FileField(
        label=_("Cover picture"),
        required=False,
        allow_empty_file=True,
        widget=forms.FileInput(attrs={"accept": "image/*"}),
        help_text=_("16:9 works best. Replaces the one from a link."),
    )
    description = forms.CharField(
        label=_("Description of the cover picture"),
        required=False,
        max_length=DESCRIPTION_LENGTH,
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "dir": "auto"}),
        help_text=_("For people who can't see it."),
    )
    without_picture = forms.BooleanField(label=_("Remove cover picture"), required=False)
    automatic = forms.BooleanField(
        label=_("Start and end automatically"),
        required=False,
        help_text=_("For premieres. Starts and ends on schedule."),
    )
    minutes = forms.IntegerField(
        label=_("Length in minutes"),
        min_value=1,
        max_value=LONGEST_MINUTES,
        required=False,
        initial=60,
        help_text=_("It ends automatically after this time."),
    )
    zone = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(
        self, data: Any = None, files: Any = None, *, session: LiveSession | None = None, now: datetime
    ) -> None:
        super().__init__(data, files, auto_id="session-%s")
        self.clock = named_zone(str(self.data.get("zone") or ""))
        self.session = session
        self.taken: MediaFile | None = None
        if session is not None:
            self.initial = {
                name: getattr(session, name) for name in ("title", "url", "cover_url", "automatic", "minutes")
            }
            self.initial["description"] = session.cover["description"] if session.cover else ""
            starts_at = session.starts_at
        else:
            starts_at = (now + timedelta(hours=1)).replace(minute=0)
        self.initial = {**self.initial} | {
            "starts_at": starts_at.astimezone(self.clock).strftime(LOCAL),
            "zone": str(self.clock),
        }
        if session is None or not session.cover:
            del self.fields["without_picture"]
        if session is not None and session.state != State.UPCOMING:
            for name in PLAN:
                del self.fields[name]

    def clean_starts_at(self) -> datetime:
        """The start in UTC. Raises ValidationError."""
        return parse_local_time(self.cleaned_data["starts_at"], self.clock)

    def clean_minutes(self) -> int:
        """The planned length, by default 60."""
        return self.cleaned_data["minutes"] or 60

    @property
    def zone_name(self) -> str:
        """The form's zone with its offset, for people."""
        return f"{zone_city(str(self.clock))} ({offset_name(timezone.now().astimezone(self.clock))})"

    def clean_description(self) -> str:
        """The description with normalized line ends."""
        return str(self.cleaned_data["description"]).replace("\r\n", "\n").replace("\r", "\n")

    def upload_cover(self, owner: User) -> None:
        """Take the picture, new or of an earlier try."""
        said = self.cleaned_data.get("description", "")
        file = self.cleaned_data.get("picture")
        try:
            if file:
                with file.open("rb") as opened:
                    self.taken = media.upload(owner_id=owner.pk, file=opened, description=said)
            elif (number := self.cleaned_data.get("cover")) is not None:
                rows = MediaFile.objects.filter(owner_id=owner.pk, use=Use.NONE, withdrawn_at=None)
                self.taken = rows.filter(pk=number).first() if 0 < number <= MAX_ID else None
                if self.taken is None:
                    self.add_error("picture", _("A picture is gone. Add it again."))
                elif self.taken.description != said:
                    self.taken = media.describe(medium=self.taken, description=said)
        except media.MediaError as error:
            self.add_error("picture", str(error))
        except (DecoderBusyError, StoreError):
            self.add_error("picture", _("We couldn't upload this file. Try again in a moment."))
        if self.taken is not None:
            self._set_cover_value(str(self.taken.pk))

    def discard_cover(self) -> None:
        """Drop a refused picture."""
        self.taken = None
        self._set_cover_value("")

    def _set_cover_value(self, number: str) -> None:
        data: Any = self.data.copy()  # type: ignore[attr-defined]  # a QueryDict
        data["cover"] = number
        self.data = data

    @property
    def cover_shown(self) -> MediaObject | None:
        """The uploaded picture, else the session's."""
        if self.taken is not None:
            return object_from_row(self.taken)
        return decode_medium(self.session.cover) if self.session else None

    @property
    def fields_to_save(self) -> dict[str, Any]:
        """The session's fields, perhaps with a picture."""
        fields = {name: value for name, value in self.cleaned_data.items() if name not in OF_FORM}
        if self.taken is not None:
            fields["cover_id"] = self.taken.pk
        elif self.cleaned_data.get("without_picture"):
            fields["cover_id"] = None
        return fields

    def describe_cover(self, owner: User) -> None:
        """Describe the session's existing picture."""
        if self.session is None or not self.session.cover or self.taken is not None:
            return
        if self.cleaned_data.get("without_picture") or "description" not in self.changed_data:
            return
        row = MediaFile.objects.filter(pk=self.session.cover_id or 0, owner_id=owner.pk, withdrawn_at=None).first()
        if row is not None:
            media.describe(medium=row, description=self.cleaned_data["description"])
