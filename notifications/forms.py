"""The form of notification kinds."""

from django import forms
from django.utils.translation import gettext_lazy as _

from notifications.models import CHOOSABLE, Kind

LABELS = {
    Kind.FOLLOW: _("New followers"),
    Kind.FOLLOW_REQUEST: _("Requests to follow you"),
    Kind.FOLLOW_ACCEPTED: _("Requests of yours that were accepted"),
    Kind.LIKE: _("Likes of your posts"),
    Kind.REPOST: _("Reposts of your posts"),
    Kind.QUOTE: _("Quotes of your posts"),
    Kind.REPLY: _("Replies to you"),
    Kind.MENTION: _("Mentions of you"),
    Kind.POLL: _("The end of polls that you started or voted in"),
    Kind.LIVE: _("The start of live sessions that you asked to be told of"),
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
