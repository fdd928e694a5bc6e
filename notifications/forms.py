from django import forms
from django.utils.translation import gettext_lazy as _

from notifications.models import CHOOSABLE, Kind

LABELS = {
    Kind.FOLLOW: _("New followers"),
    Kind.FOLLOW_REQUEST: _("Follow requests"),
    Kind.FOLLOW_ACCEPTED: _("Accepted follow requests"),
    Kind.LIKE: _("Likes"),
    Kind.REPOST: _("Reposts"),
    Kind.QUOTE: _("Quotes"),
    Kind.REPLY: _("Replies"),
    Kind.MENTION: _("Mentions"),
    Kind.POLL: _("Ended polls you started or voted in"),
    Kind.LIVE: _("Live sessions you set a reminder for"),
    Kind.POST: _("Posts by people whose bell you turned on"),
}


class KindsForm(forms.Form):
    """The kinds to show."""

    kinds = forms.MultipleChoiceField(
        required=False,
        choices=[(kind.value, LABELS[kind]) for kind in CHOOSABLE],
        widget=forms.CheckboxSelectMultiple,
    )

    def silenced(self) -> list[str]:
        """The kinds that are not ticked."""
        return [kind.value for kind in CHOOSABLE if kind not in self.cleaned_data["kinds"]]
