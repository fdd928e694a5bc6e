"""The form by which hosts plan and change their sessions; the verbs decide."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.locale import place_name, zone_names
from items.links import check_link
from items.templatetags.reading import offset_name
from live.actions import LONGEST_MINUTES, PLAN
from live.models import TITLE_LENGTH, LiveSession, State

FORMAT = "%Y-%m-%dT%H:%M"
"""As `datetime-local` has it."""


class LinkField(forms.URLField):
    """An https link; one that is typed without a scheme gets https."""

    default_validators = [check_link]


def _address(label: Any, help_text: Any) -> LinkField:
    return LinkField(
        label=label,
        help_text=help_text,
        required=False,
        max_length=2000,
        assume_scheme="https",
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
    )


class SessionForm(forms.Form):
    """The words and the time of a session. The time is of the zone that the form was shown in (`zone`), even if the
    reader has changed their zone since.
    """

    title = forms.CharField(
        label=_("Title"), max_length=TITLE_LENGTH, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    starts_at = forms.CharField(
        label=_("Starts at"),
        error_messages={"required": _("Enter a start time.")},
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "60"}, format=FORMAT),
    )
    url = _address(_("Link to watch"), _("Shown as soon as the session is live. It may follow later."))
    cover_url = _address(_("Cover picture"), _("The address of a picture, best 16:9."))
    automatic = forms.BooleanField(
        label=_("Start and end automatically"),
        required=False,
        help_text=_("For premieres: starts and ends at the scheduled time."),
    )
    minutes = forms.IntegerField(
        label=_("Length in minutes"),
        min_value=1,
        max_value=LONGEST_MINUTES,
        required=False,
        initial=60,
        help_text=_("How long the session lasts before it ends automatically."),
    )
    zone = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, session: LiveSession | None = None, now: datetime) -> None:
        super().__init__(data, auto_id="session-%s")
        self.clock = self._zone()
        if session is not None:
            self.initial = {
                name: getattr(session, name) for name in ("title", "url", "cover_url", "automatic", "minutes")
            }
            starts_at = session.starts_at
        else:
            starts_at = (now + timedelta(hours=1)).replace(minute=0)
        self.initial = {**self.initial} | {
            "starts_at": starts_at.astimezone(self.clock).strftime(FORMAT),
            "zone": str(self.clock),
        }
        if session is not None and session.state != State.UPCOMING:
            for name in PLAN:
                del self.fields[name]

    def _zone(self) -> tzinfo:
        named = str(self.data.get("zone") or "")
        return ZoneInfo(named) if named in zone_names() else timezone.get_current_timezone()

    def clean_starts_at(self) -> datetime:
        """The moment of the start in UTC.

        Raises ValidationError for a time that clocks of the form's zone never show.
        """
        text = str(self.cleaned_data["starts_at"]).strip()
        try:
            naive = datetime.fromisoformat(text)
            if naive.tzinfo is not None:
                raise ValueError(text)
            moment = naive.replace(tzinfo=self.clock)
            # Clocks that were put forward showed it never.
            if moment.astimezone(UTC).astimezone(self.clock).replace(tzinfo=None) != naive:
                raise ValidationError(_("Your clocks skip this time on that day."))
        except (ValueError, OverflowError):
            raise ValidationError(_("A day and a time.")) from None
        return moment

    def clean_minutes(self) -> int:
        """The planned length in minutes; 60 if the field is empty."""
        return self.cleaned_data["minutes"] or 60

    @property
    def zone_name(self) -> str:
        """The form's zone with its offset, for people."""
        return f"{place_name(str(self.clock))} ({offset_name(timezone.now().astimezone(self.clock))})"

    @property
    def fields_to_save(self) -> dict[str, Any]:
        """The cleaned fields without the zone."""
        return {name: value for name, value in self.cleaned_data.items() if name != "zone"}
