"""The forms of accounts: they read and bound what people type; the verbs decide."""

from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.actions import PASSWORD_LENGTH
from accounts.locale import place_name, zone_names
from accounts.models import User

AREAS = {
    "Africa": _("Africa"),
    "America": _("America"),
    "Antarctica": _("Antarctica"),
    "Arctic": _("Arctic"),
    "Asia": _("Asia"),
    "Atlantic": _("Atlantic"),
    "Australia": _("Australia"),
    "Europe": _("Europe"),
    "Indian": _("Indian Ocean"),
    "Pacific": _("Pacific"),
}
"""The continents and oceans of the IANA data base; its other names are old ones of the same zones."""


def password_field(label: Any, autocomplete: str, help_text: Any = "") -> forms.CharField:
    """A field for a password: not stripped, at most `PASSWORD_LENGTH` characters."""
    return forms.CharField(
        label=label,
        max_length=PASSWORD_LENGTH,
        strip=False,
        help_text=help_text,
        widget=forms.PasswordInput(attrs={"autocomplete": autocomplete}),
    )


PASSWORD_RULES = _("At least 8 characters. Digits alone are not enough, nor is a password that many people use.")


class SignUpForm(forms.Form):
    """The form of a new account."""

    username = forms.CharField(
        label=_("Username"),
        max_length=30,
        strip=False,
        help_text=_("1 to 30 letters (a to z), digits, hyphens or underscores. It cannot be changed later."),
        widget=forms.TextInput(
            attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false", "autofocus": True}
        ),
    )
    display_name = forms.CharField(
        label=_("Display name"),
        max_length=50,
        required=False,
        help_text=_("Optional: the name that people read, in any language. You can change it at any time."),
        widget=forms.TextInput(attrs={"autocomplete": "nickname", "dir": "auto"}),
    )
    password = password_field(_("Password"), "new-password", PASSWORD_RULES)


class LoginForm(AuthenticationForm):
    """Django's, which answers the same whatever is wrong, with an end to the length of passwords."""

    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": _(
            "Username or password is wrong. Capital letters make a difference in passwords, not in usernames."
        ),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = _("Username")
        self.fields["username"].widget.attrs["spellcheck"] = "false"
        self.fields["password"] = password_field(_("Password"), "current-password")


class PasswordForm(forms.Form):
    """The form of another password."""

    current = password_field(_("Current password"), "current-password")
    new = password_field(_("New password"), "new-password", PASSWORD_RULES)


class DeleteForm(forms.Form):
    """Asks for what only the owner knows, and for a word that is not typed by mistake."""

    username = forms.CharField(
        label=_("Your username"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    password = password_field(_("Password"), "current-password")

    def __init__(self, user: User, data: Any = None) -> None:
        self.user = user
        super().__init__(data)

    def clean_username(self) -> str:
        """The username. Raises ValidationError if it is not the user's own."""
        username = str(self.cleaned_data["username"]).strip().removeprefix("@")
        if username.lower() != self.user.username.lower():
            raise forms.ValidationError(_("That is not your username."))
        return username


def zones() -> list[Any]:
    """The time zones that people live in, by continent, each with how far it is from UTC now."""
    now = timezone.now()
    areas: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(zone_names()):
        area, _slash, place = name.partition("/")
        if area in AREAS and place:
            offset = now.astimezone(ZoneInfo(name)).strftime("%z")
            areas.setdefault(area, []).append((name, f"{place_name(name)} ({offset[:3]}:{offset[3:]})"))
    return [(AREAS[area], places) for area, places in areas.items()]


class PreferencesForm(forms.Form):
    """Theme, language and time zone. Places have the names of `accounts.locale.place_name`."""

    theme = forms.ChoiceField(
        label=_("Theme"),
        required=False,
        choices=[("", _("As my system says")), ("light", _("Light")), ("dark", _("Dark"))],
        help_text=_("Kept in this browser."),
    )
    language = forms.ChoiceField(label=_("Language"), required=False)
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        as_browser = ("", _("As my browser says"))
        language, time_zone = self.fields["language"], self.fields["time_zone"]
        assert isinstance(language, forms.ChoiceField)  # noqa: S101 (for the type checker)
        assert isinstance(time_zone, forms.ChoiceField)  # noqa: S101
        language.choices = [as_browser, *settings.LANGUAGES]
        chosen = self.initial.get("time_zone")
        listed = zones()
        # A name that is no longer listed, or never was, stays what it is until its owner changes it.
        known = {name for _area, places in listed for name, _label in places}
        other = [(chosen, chosen)] if chosen and chosen not in known else []
        time_zone.choices = [as_browser, ("UTC", "UTC"), *[pair for pair in other if pair[0] != "UTC"], *listed]


class ProfileForm(forms.Form):
    """The form of a user's name and words on themselves."""

    display_name = forms.CharField(
        label=_("Display name"),
        max_length=50,
        required=False,
        help_text=_("Shown in place of your username; up to 50 characters."),
        widget=forms.TextInput(attrs={"autocomplete": "nickname", "dir": "auto"}),
    )
    bio = forms.CharField(
        label=_("About you"),
        max_length=500,
        required=False,
        help_text=_("Up to 500 characters."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    is_locked = forms.BooleanField(
        label=_("Decide on each follower"),
        required=False,
        help_text=_("Others ask to follow you, and follow when you accept. Those who follow you already stay."),
    )
    avatar = forms.FileField(
        label=_("Your picture"),
        required=False,
        help_text=_("It is cut to a square from its middle."),
        widget=forms.FileInput(attrs={"accept": "image/*"}),
    )
    remove_avatar = forms.BooleanField(label=_("Remove your picture"), required=False)
    banner = forms.FileField(
        label=_("Banner"),
        required=False,
        help_text=_("A wide picture at the top of your profile."),
        widget=forms.FileInput(attrs={"accept": "image/*"}),
    )
    remove_banner = forms.BooleanField(label=_("Remove the banner"), required=False)
