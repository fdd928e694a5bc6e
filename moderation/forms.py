from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.about.site import current
from items.pages.reading import excerpt
from moderation.models import REPORT_LENGTH, ReportReason

RULE_SHOWN = 80
"""Characters of a rule in the choice."""


class ReportForm(forms.Form):
    reason = forms.ChoiceField(
        label=_("What's wrong with it?"),
        choices=ReportReason.choices,
        widget=forms.RadioSelect,
        error_messages={"required": _("Choose what's wrong with it.")},
    )
    text = forms.CharField(
        label=_("Anything to add? (optional)"),
        max_length=REPORT_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    rule = forms.TypedChoiceField(
        label=_("Which rule does it break? (optional)"), coerce=int, empty_value=None, required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rule = self.fields["rule"]
        assert isinstance(rule, forms.TypedChoiceField)  # noqa: S101 (for the type checker)
        numbered = [(each.id, f"{each.number}. {excerpt(each.text, RULE_SHOWN)}") for each in current().rules]
        rule.choices = [("", _("None of them")), *numbered]
