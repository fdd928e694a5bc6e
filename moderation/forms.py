from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.about.site import current
from items.pages.reading import excerpt
from moderation.decisions import Grounds
from moderation.models import APPEAL_LENGTH, GROUNDS_LENGTH, REPORT_LENGTH, ReplyTemplate, ReportReason

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
        widget=forms.Textarea(attrs={"rows": 3, "dir": "auto"}),
    )
    rule = forms.TypedChoiceField(
        label=_("Which rule does it break? (optional)"), coerce=int, empty_value=None, required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer_rules(self.fields["rule"])


def _offer_rules(field: Any) -> None:
    numbered = [(each.id, f"{each.number}. {excerpt(each.text, RULE_SHOWN)}") for each in current().rules]
    field.choices = [("", _("None of them")), *numbered]


LONGEST_SUSPENSION = timedelta(days=3650)


class GroundsForm(forms.Form):
    """What the subject of a decision reads, until when a suspension lasts, and a note for colleagues."""

    rule = forms.TypedChoiceField(
        label=_("Rule"), coerce=int, empty_value=None, required=False, help_text=_("The rule that was broken.")
    )
    template = forms.ModelChoiceField(
        label=_("Reply template"), queryset=ReplyTemplate.objects.none(), required=False, empty_label="-"
    )
    text = forms.CharField(
        label=_("Text for the user"),
        max_length=GROUNDS_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text=_("The user reads it. Leave it empty to use the template as it is."),
    )
    until = forms.DateTimeField(
        label=_("Suspend until"),
        required=False,
        widget=forms.DateTimeInput({"type": "datetime-local"}, "%Y-%m-%dT%H:%M"),
        help_text=_("Only for a suspension. Empty: no end."),
    )
    note = forms.CharField(
        label=_("Note for colleagues"),
        max_length=500,
        required=False,
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
        help_text=_("Saved in the log. The user doesn't see it."),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        _offer_rules(self.fields["rule"])
        template = self.fields["template"]
        assert isinstance(template, forms.ModelChoiceField)  # noqa: S101 (for the type checker)
        template.queryset = ReplyTemplate.objects.all()

    def clean_until(self) -> datetime | None:
        """Raise ValidationError for a time that is over, or too far."""
        until: datetime | None = self.cleaned_data["until"]
        if until is not None and not timezone.now() < until < timezone.now() + LONGEST_SUSPENSION:
            raise forms.ValidationError(gettext("Choose a time from now to ten years ahead, or none."))
        return until

    def clean(self) -> dict[str, Any]:
        """The template's text stands for a missing one."""
        fields: dict[str, Any] = self.cleaned_data
        if not fields.get("text") and fields.get("template"):
            fields["text"] = fields["template"].text
        if self.needs_text() and not fields.get("text") and "text" not in self.errors:
            self.add_error("text", gettext("Write what to tell the user."))
        return fields

    def needs_text(self) -> bool:
        """Whether the act is nothing without words."""
        return self.data.get("verb") == "warn"

    @property
    def grounds(self) -> Grounds:
        """What the user reads."""
        return Grounds(self.cleaned_data["text"], self.cleaned_data["rule"])


class AppealForm(forms.Form):
    text = forms.CharField(
        label=_("Why do you think this is a mistake?"),
        max_length=APPEAL_LENGTH,
        widget=forms.Textarea(attrs={"rows": 5, "dir": "auto"}),
        error_messages={"required": _("Write why you think this is a mistake.")},
    )
