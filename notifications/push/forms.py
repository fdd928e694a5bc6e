from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from notifications.forms import LABELS
from notifications.models import PUSHED, PushSubscription, PushWords
from notifications.push.actions import PushChoice


class DeviceForm(forms.Form):
    """What is pushed to one device."""

    kinds = forms.MultipleChoiceField(
        required=False,
        choices=[(kind.value, LABELS[kind]) for kind in PUSHED],
        widget=forms.CheckboxSelectMultiple,
    )
    words = forms.ChoiceField(label=_("What they show"), choices=PushWords.choices)

    @classmethod
    def of(cls, row: PushSubscription) -> "DeviceForm":
        """The form of a subscription as it is."""
        return cls(initial={"kinds": row.kinds, "words": row.words}, auto_id=f"push_{row.pk}_%s")

    def choice(self) -> PushChoice:
        """What was chosen."""
        return PushChoice(self.cleaned_data["kinds"], words=self.cleaned_data["words"])


HOURS = [("", pgettext_lazy("quiet hours", "never")), *((str(hour), f"{hour:02}:00") for hour in range(24))]


class QuietForm(forms.Form):
    """The hours in which nothing is pushed."""

    begins = forms.ChoiceField(label=pgettext_lazy("quiet hours", "From"), choices=HOURS, required=False)
    ends = forms.ChoiceField(label=pgettext_lazy("quiet hours", "until"), choices=HOURS, required=False)

    def clean(self) -> dict[str, Any]:
        """Raise ValidationError for one hour without the other."""
        cleaned: dict[str, Any] = super().clean() or {}
        if bool(cleaned.get("begins")) != bool(cleaned.get("ends")):
            raise forms.ValidationError(_("Choose both times, or neither."))
        return cleaned

    def hours(self) -> tuple[int, int] | None:
        """The hours, or None."""
        begins, ends = self.cleaned_data["begins"], self.cleaned_data["ends"]
        return (int(begins), int(ends)) if begins and ends else None
