from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from relations.csv_files import CsvKind
from relations.lists import OwnedList
from relations.models import NOTE_LENGTH, TITLE_LENGTH

LASTS = {
    "": _("Until I unmute them"),
    "1": _("1 hour"),
    "24": _("1 day"),
    "168": _("7 days"),
    "720": _("30 days"),
}
"""Hours of a mute."""


class ListForm(forms.Form):
    """The title of a list, and whether it is exclusive."""

    title = forms.CharField(
        label=_("Title"),
        max_length=TITLE_LENGTH,
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"}),
    )
    exclusive = forms.BooleanField(
        label=_("Hide its members' posts from home"),
        required=False,
        help_text=_("You still follow them, and see their posts in the list."),
    )


class MembershipForm(forms.Form):
    """The reader's lists for a person."""

    lists = forms.MultipleChoiceField(label=_("Lists"), required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, there: Sequence[OwnedList], data: Any = None) -> None:
        super().__init__(data, initial={"lists": [str(one.id) for one in there if one.has_person]})
        self.fields["lists"].choices = [(str(one.id), one.title) for one in there]  # type: ignore[attr-defined]


class MuteForm(forms.Form):
    """Mute options."""

    lasts = forms.ChoiceField(label=_("For how long"), required=False, choices=list(LASTS.items()))
    notifications = forms.BooleanField(label=_("Mute their notifications, too"), required=False, initial=True)

    def clean_lasts(self) -> timedelta | None:
        """The duration. None: no end."""
        hours: str = self.cleaned_data["lasts"]
        return timedelta(hours=int(hours)) if hours else None


class NoteForm(forms.Form):
    """A note about a user."""

    text = forms.CharField(
        label=_("Your note"),
        required=False,
        max_length=NOTE_LENGTH,
        help_text=_("Only you can see it."),
        widget=forms.Textarea(attrs={"rows": 4, "dir": "auto"}),
    )


class ImportForm(forms.Form):
    """A file to import."""

    BUSY = _("Your last list is still importing. Wait until it's done.")
    kind = forms.ChoiceField(
        label=_("What's in the file"),
        choices=[
            (CsvKind.FOLLOWS.value, _("People you follow")),
            (CsvKind.MUTES.value, _("People you mute")),
            (CsvKind.BLOCKS.value, _("People you block")),
            (CsvKind.LISTS.value, _("Your lists")),
            (CsvKind.TAGS.value, _("Hashtags you follow")),
        ],
    )
    file = forms.FileField(
        label=_("File"),
        help_text=_(
            "A CSV file with Mastodon's columns and names from this site, up to 1 MB and 5,000 rows. Import the "
            "people you follow first, because lists can only have people you follow."
        ),
        widget=forms.FileInput(attrs={"accept": ".csv,text/csv"}),
    )
