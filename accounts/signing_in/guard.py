"""Against guessing passwords: every way of signing in counts its attempts here before it looks at the password.

An attempt is counted for the address and the name together, for the address whatever the name (one password tried on
many names), and for the name whatever the address (many machines, one name): OWASP's ASVS asks for no more than 100 an
hour. So that no stranger can keep the owner out by the last of these, a browser in which they have signed in before
holds a signed cookie that speaks for it, and is counted apart (OWASP, "Slow Down Online Guessing Attacks with Device
Cookies"): each cookie by itself, and all cookies of an account together. A cookie holds as long as the sessions of its
time would: another password, or logging out everywhere, ends it. Names that do not exist are counted and answered as
those that do.
"""

import secrets
import unicodedata
from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase
from django.utils.crypto import constant_time_compare

from accounts.models import User
from web import rates

COOKIE = "device"
COOKIE_LIFE = timedelta(days=180)
NAME_LENGTH = 254
"""Characters of a name or address that are looked at."""


def attempt(request: HttpRequest, username: str, *, typed: str = "") -> float | None:
    """Count one attempt to sign in by this name; None if it may be made, else the seconds to wait.

    `typed`: the name or address that stands for it. A network address has its few attempts at what was typed, so that
    the refusal of one does not tell that the other is of the same account.
    """
    name = _canonical(username)
    device, standing = _device(request, name)
    if device:
        wait = rates.hit("login", f"device {device}")
        if wait is not None:
            return wait
        user = User.objects.active().named(name).first()
        if user is not None and constant_time_compare(standing, user.get_session_auth_hash()):
            return rates.hit("login_devices", name)
    where = rates.address(request)
    for scope, who in (
        ("login", f"{where} {_canonical(typed) or name}"),
        ("login_address", where),
        ("login_name", name),
    ):
        wait = rates.hit(scope, who)
        if wait is not None:
            return wait
    return None


def attempt_code(request: HttpRequest, user: User) -> float | None:
    """Count one attempt with a second factor; None if it may be made, else the seconds to wait. A browser that the
    owner used is counted by itself.
    """
    return rates.hit("login_code", f"{user.pk} {known_device(request, user)}")


def attempt_passkey(request: HttpRequest) -> float | None:
    """Count one attempt by a passkey, which names no account; None if it may be made, else the seconds to wait."""
    return rates.hit("login_address", rates.address(request))


def known_device(request: HttpRequest, user: User) -> str:
    """The name of this browser, if the user signed in by it before and that counts still; empty for others."""
    device, standing = _device(request, _canonical(user.username))
    return device if device and constant_time_compare(standing, user.get_session_auth_hash()) else ""


def remember(response: HttpResponseBase, user: User) -> None:
    """Let the browser speak for itself the next time. The cookie names no user."""
    response.set_cookie(
        COOKIE,
        _signer(_canonical(user.username)).sign(f"{secrets.token_urlsafe(9)}.{user.get_session_auth_hash()}"),
        max_age=COOKIE_LIFE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _device(request: HttpRequest, name: str) -> tuple[str, str]:
    """The browser of the name's owner that asks, and what its session rested on at sign-in; empty for others."""
    try:
        said = _signer(name).unsign(request.COOKIES.get(COOKIE, ""), max_age=COOKIE_LIFE)
    except signing.BadSignature:
        return "", ""
    device, _, standing = said.partition(".")
    return device, standing


def _signer(name: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"accounts.guard {name}")


def _canonical(username: str) -> str:
    """The one spelling of a name for all that the login form takes for it."""
    return unicodedata.normalize("NFKC", username[:NAME_LENGTH]).strip().lower()
