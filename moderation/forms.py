"""The forms of moderation."""

from django import forms
from django.utils.translation import gettext_lazy as _

from moderation.models import REPORT_LENGTH, ReportReason


class ReportForm(forms.Form):
    """A reader's report of an item."""

    reason = forms.ChoiceField(
        label=_("What is wrong with it?"),
        choices=ReportReason.choices,
        widget=forms.RadioSelect,
        error_messages={"required": _("Choose what is wrong with it.")},
    )
    text = forms.CharField(
        label=_("Anything to add? (optional)"),
        max_length=REPORT_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
