from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User


class WelcomeForm(forms.Form):
    """A new member's interests, and their display name unless they gave it when they signed up. Both are optional."""

    display_name = forms.CharField(
        label=_("Display name"),
        required=False,
        max_length=User._meta.get_field("display_name").max_length,
        help_text=_("The name others see. You can change it anytime."),
        widget=forms.TextInput(attrs={"autocomplete": "nickname"}),
    )
    interests = forms.MultipleChoiceField(
        label=_("Pick a few things you're interested in"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, tags: Sequence[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if tags:
            self.fields["interests"].choices = [(tag, f"#{tag}") for tag in tags]  # type: ignore[attr-defined]
        else:
            del self.fields["interests"]
        if self.initial.get("display_name"):
            del self.fields["display_name"]

    def clean(self) -> dict[str, Any]:
        """Validate the form. What the form has no field for stays as it is."""
        return {"interests": [], "display_name": self.initial.get("display_name", "")} | (super().clean() or {})
