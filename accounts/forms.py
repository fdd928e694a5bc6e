"""The forms of accounts: they read and bound what people type; the verbs decide."""

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.utils.translation import gettext_lazy as _

from accounts.actions import PASSWORD_LENGTH


class SignUpForm(forms.Form):
    username = forms.CharField(
        label=_("Username"),
        max_length=30,
        strip=False,
        help_text=_("Letters, digits, hyphens and underscores."),
        widget=forms.TextInput(
            attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false", "autofocus": True}
        ),
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=PASSWORD_LENGTH,
        strip=False,
        help_text=_("At least 8 characters, not all digits, not a common one."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


class LoginForm(AuthenticationForm):
    """Django's, which answers the same whatever is wrong, with an end to the length of passwords."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs["spellcheck"] = "false"
        self.fields["password"] = forms.CharField(
            label=_("Password"),
            max_length=PASSWORD_LENGTH,
            strip=False,
            widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        )


class ProfileForm(forms.Form):
    display_name = forms.CharField(
        label=_("Display name"),
        max_length=50,
        required=False,
        help_text=_("Shown in place of your username; up to 50 characters."),
        widget=forms.TextInput(attrs={"autocomplete": "nickname"}),
    )
    bio = forms.CharField(
        label=_("About you"),
        max_length=500,
        required=False,
        help_text=_("Up to 500 characters."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
