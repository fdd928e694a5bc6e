from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts import passwords
from accounts.faces import CROPPED
from accounts.joining_models import CODE_LENGTH, REASON_LENGTH
from accounts.locale import zone_city
from accounts.models import PostedTo, QuotableBy, RepliableBy, TextSize, User
from accounts.profile_fields import LABEL_LENGTH, MOST, TEXT_LENGTH, Pair
from accounts.signing_in.second_factors import CODE_LENGTH as FACTOR_CODE_LENGTH
from accounts.signing_in.second_factors import NAME_LENGTH as PASSKEY_NAME_LENGTH
from media.models import Use
from web.languages import written_languages
from web.times import zone_names

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
"""Areas of the IANA database. Its other names are aliases."""


def password_field(label: Any, autocomplete: str, help_text: Any = "") -> forms.CharField:
    """A password field: not stripped."""
    return forms.CharField(
        label=label,
        max_length=passwords.LENGTH,
        strip=False,
        help_text=help_text,
        widget=forms.PasswordInput(attrs={"autocomplete": autocomplete}),
    )


PASSWORD_RULES = _("At least 8 characters, not only digits, and not a common password.")


class SignUpForm(forms.Form):
    """A new account."""

    username = forms.CharField(
        label=_("Username"),
        max_length=30,
        help_text=_("1 to 30 letters (a to z), digits, hyphens or underscores. You can't change it later."),
        widget=forms.TextInput(
            attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false", "autofocus": True}
        ),
    )
    display_name = forms.CharField(
        label=_("Display name"),
        max_length=50,
        required=False,
        help_text=_("Optional. The name people see, in any language. You can change it anytime."),
        widget=forms.TextInput(attrs={"autocomplete": "nickname", "dir": "auto"}),
    )
    password = password_field(_("Password"), "new-password", PASSWORD_RULES)
    field_order = ("username", "display_name", "email", "password", "reason")


EMAIL_NEEDED = _("We'll send you an email to confirm it. Nobody else sees your address.")
EMAIL_OPTIONAL = _("Optional. You need one to reset a forgotten password. Nobody else sees your address.")


class JoinForm(SignUpForm):
    """Sign-up. Templates show the reason only if an admin decides."""

    email = forms.EmailField(
        label=_("Email"),
        required=False,
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email", "dir": "ltr"}),
    )
    reason = forms.CharField(
        label=_("Why do you want to join?"),
        max_length=REASON_LENGTH,
        required=False,
        help_text=_("Only this site's admins read it."),
        widget=forms.Textarea(attrs={"rows": 3, "dir": "auto"}),
    )
    invite = forms.CharField(max_length=CODE_LENGTH, required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].required = settings.EMAIL_REQUIRED
        self.fields["email"].help_text = EMAIL_NEEDED if settings.EMAIL_REQUIRED else EMAIL_OPTIONAL


WAITING = _("Your application is still waiting for review. You can log in as soon as it's approved.")
NAME_OR_ADDRESS = {"autocapitalize": "none", "spellcheck": "false", "autofocus": True}


class LoginForm(forms.Form):
    """Name or address, and password."""

    username = forms.CharField(
        label=_("Username or email"),
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "username webauthn", **NAME_OR_ADDRESS}),
    )
    password = password_field(_("Password"), "current-password")


WRONG_LOGIN = _("Wrong username or password. Passwords are case-sensitive, usernames aren't.")
ANSWER_LENGTH = 20_000
"""Most characters of a passkey's answer."""


def code_field(label: Any, help_text: Any = "") -> forms.CharField:
    """A field for a code, with number keys and autofill."""
    attrs = {"autocomplete": "one-time-code", "inputmode": "numeric", "spellcheck": "false"}
    return forms.CharField(
        label=label, max_length=FACTOR_CODE_LENGTH, help_text=help_text, widget=forms.TextInput(attrs=attrs)
    )


class CodeForm(forms.Form):
    """A second factor's code."""

    code = code_field(
        _("Code"), _("The six digits from your app, or one of your recovery codes. Each code works once.")
    )
    code.widget.attrs["autofocus"] = True


class AddressCodeForm(forms.Form):
    """The code of a letter."""

    code = code_field(_("Code from the email"))


class AppForm(forms.Form):
    """An authenticator app's first code."""

    code = code_field(_("The six digits from the app"))


class ResetForm(forms.Form):
    """Asks for a reset letter."""

    username_or_email = forms.CharField(
        label=_("Username or email"),
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "username", **NAME_OR_ADDRESS}),
    )


class NewPasswordForm(forms.Form):
    """A new password, by a letter's link."""

    new = password_field(_("New password"), "new-password", PASSWORD_RULES)


class AddressForm(forms.Form):
    """An e-mail address."""

    email = forms.CharField(
        label=_("Email address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email", "spellcheck": "false"}),
    )


class ProofForm(forms.Form):
    """Confirms the user's identity."""

    password = password_field(_("Password"), "current-password")
    code = code_field(_("Code from your app, or a recovery code"))

    def __init__(self, *args: Any, asks_code: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not asks_code:
            del self.fields["code"]


class PasskeyForm(forms.Form):
    """A new passkey. A script fills in the credential."""

    name = forms.CharField(
        label=_("Name"),
        max_length=PASSKEY_NAME_LENGTH,
        help_text=_("A name you'll recognize, like “My phone”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    credential = forms.CharField(max_length=ANSWER_LENGTH, widget=forms.HiddenInput())


SPANS = [("1", _("1 day")), ("7", _("1 week")), ("30", _("1 month")), ("", _("Never"))]


class InvitationForm(forms.Form):
    """A new invitation. The action limits its size."""

    most_uses = forms.IntegerField(label=_("How many people can use it"), initial=1, min_value=1)
    days = forms.TypedChoiceField(
        label=_("Expires after"),
        coerce=int,
        empty_value=None,
        required=False,
        initial="7",
        choices=SPANS,
    )

    email = forms.EmailField(
        label=_("Send it to (optional)"),
        required=False,
        max_length=254,
        help_text=_("We'll email the link to this address."),
        widget=forms.EmailInput(attrs={"autocomplete": "off", "dir": "ltr", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, is_trusted: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        days = self.fields["days"]
        assert isinstance(days, forms.TypedChoiceField)  # noqa: S101 (for the type checker)
        if not is_trusted:
            days.required = True
            days.choices = SPANS[:-1]


class PasswordForm(forms.Form):
    """A password change."""

    current = password_field(_("Current password"), "current-password")
    new = password_field(_("New password"), "new-password", PASSWORD_RULES)


class DeleteForm(forms.Form):
    """Confirms the deletion by username and password."""

    username = forms.CharField(
        label=_("Type your username to confirm"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    password = password_field(_("Password"), "current-password")

    def __init__(self, user: User, data: Any = None) -> None:
        self.user = user
        super().__init__(data)

    def clean_username(self) -> str:
        """The typed username. Raises ValidationError if it is not the user's own."""
        username = str(self.cleaned_data["username"]).strip().removeprefix("@")
        if username.lower() != self.user.username.lower():
            raise forms.ValidationError(_("That's not your username."))
        return username


def zone_choices() -> list[Any]:
    """Time zones by continent, with UTC offsets."""
    now = timezone.now()
    areas: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(zone_names()):
        area, _slash, place = name.partition("/")
        if area in AREAS and place:
            offset = now.astimezone(ZoneInfo(name)).strftime("%z")
            areas.setdefault(area, []).append((name, f"{zone_city(name)} ({offset[:3]}:{offset[3:]})"))
    return [(AREAS[area], places) for area, places in areas.items()]


class PreferencesForm(forms.Form):
    """Preferences, some of them kept in the browser."""

    theme = forms.ChoiceField(
        label=_("Theme"),
        required=False,
        choices=[("", _("Same as my device")), ("light", _("Light")), ("dark", _("Dark"))],
        help_text=_("Saved in this browser only."),
    )
    text_size = forms.ChoiceField(label=_("Text size"), choices=TextSize.choices, required=False)
    language = forms.ChoiceField(label=_("Language"), required=False)
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)
    keys = forms.BooleanField(
        label=_("Keyboard shortcuts, like j, k and l"),
        required=False,
        help_text=_("Press ? on any page to see them. Saved in this browser only."),
    )
    is_indexable = forms.BooleanField(label=_("Let search engines show my profile and public posts"), required=False)
    quotable_by = forms.ChoiceField(label=_("Who can quote my new posts"), choices=QuotableBy.choices, required=False)
    post_visibility = forms.ChoiceField(label=_("Who can see my new posts"), choices=PostedTo.choices, required=False)
    post_repliable_by = forms.ChoiceField(
        label=_("Who can reply to my new posts"), choices=RepliableBy.choices, required=False
    )
    post_sensitive = forms.BooleanField(label=_("Blur the pictures of my new posts"), required=False)
    post_language = forms.ChoiceField(label=_("I write in"), required=False)
    plays_videos = forms.BooleanField(label=_("Play videos in view by themselves, without sound"), required=False)
    takes_requests = forms.BooleanField(
        label=_("Let people I don't follow message me. Their messages go to Requests first."),
        required=False,
    )
    enter_sends = forms.BooleanField(
        label=_("Enter sends a message on a computer. Shift+Enter starts a new line."), required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        as_browser = ("", _("Same as my browser"))
        language, time_zone, written = (self.fields[name] for name in ("language", "time_zone", "post_language"))
        assert isinstance(language, forms.ChoiceField)  # noqa: S101 (for the type checker)
        assert isinstance(time_zone, forms.ChoiceField)  # noqa: S101
        assert isinstance(written, forms.ChoiceField)  # noqa: S101
        code, names = self.initial.get("post_language"), written_languages()
        chosen_by_app = [(code, code)] if code and code not in dict(names) else []
        written.choices = [("", _("I don't say")), *chosen_by_app, *names]
        language.choices = [as_browser, *settings.LANGUAGES]
        chosen = self.initial.get("time_zone")
        listed = zone_choices()
        # A chosen zone that is not listed stays.
        known = {name for _area, places in listed for name, _label in places}
        other = [(chosen, chosen)] if chosen and chosen not in known else []
        time_zone.choices = [as_browser, ("UTC", "UTC"), *[pair for pair in other if pair[0] != "UTC"], *listed]


def _picture_input(use: Use) -> forms.FileInput:
    width, height = CROPPED[use]
    return forms.FileInput(attrs={"accept": "image/*", "data-crop": f"{width}x{height}", "hx-preserve": True})


class ProfileForm(forms.Form):
    """A user's profile."""

    display_name = forms.CharField(
        label=_("Display name"),
        max_length=50,
        required=False,
        help_text=_("Shown instead of your username. Up to 50 characters."),
        widget=forms.TextInput(attrs={"autocomplete": "nickname", "dir": "auto"}),
    )
    bio = forms.CharField(
        label=_("Bio"),
        max_length=500,
        required=False,
        help_text=_("Up to 500 characters."),
        widget=forms.Textarea(attrs={"rows": 4, "dir": "auto"}),
    )
    numbers = range(1, MOST + 1)
    is_locked = forms.BooleanField(
        label=_("Approve new followers"),
        required=False,
        help_text=_("People ask to follow you, and you accept or decline. Your current followers stay."),
    )
    avatar = forms.FileField(
        label=_("Profile picture"),
        required=False,
        widget=_picture_input(Use.AVATAR),
    )
    remove_avatar = forms.BooleanField(label=_("Remove profile picture"), required=False)
    banner = forms.FileField(
        label=_("Banner"),
        required=False,
        widget=_picture_input(Use.BANNER),
    )
    remove_banner = forms.BooleanField(label=_("Remove banner"), required=False)

    def __init__(self, data: Any = None, files: Any = None, *, reader: User) -> None:
        initial = {name: getattr(reader, name) for name in ("display_name", "bio", "is_locked")}
        for number, pair in enumerate(reader.profile_fields, 1):
            initial |= {f"label_{number}": pair["name"], f"text_{number}": pair["value"]}
        super().__init__(data, files, initial=initial)
        for number in self.numbers:
            self.fields[f"label_{number}"] = forms.CharField(
                label=_("Label"), required=False, max_length=LABEL_LENGTH, widget=_pair_input(_("Label"))
            )
            self.fields[f"text_{number}"] = forms.CharField(
                label=_("Content"), required=False, max_length=TEXT_LENGTH, widget=_pair_input(_("Content"))
            )

    @property
    def pairs(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        """Inputs of profile fields: label and text."""
        return [(self[f"label_{number}"], self[f"text_{number}"]) for number in self.numbers]

    @property
    def chosen_fields(self) -> list[Pair]:
        """The fields of a valid form."""
        return [(self.cleaned_data[label.name], self.cleaned_data[text.name]) for label, text in self.pairs]


def _pair_input(words: Any) -> forms.TextInput:
    return forms.TextInput(attrs={"placeholder": words, "autocomplete": "off", "dir": "auto"})
