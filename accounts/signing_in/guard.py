"""Limits password guessing. Every sign-in counts here before the password is checked.

Attempts count per address and name together, per address, and per name (OWASP's ASVS allows 100 an hour). So that
strangers cannot lock out the owner, browsers that the owner used have a signed cookie and count separately (OWASP,
"Slow Down Online Guessing Attacks with Device Cookies"). Unknown names count like known ones.
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
"""Characters of a name or address that count."""


def count_login_attempt(request: HttpRequest, username: str, *, typed: str = "") -> float | None:
    """Count a sign-in attempt by this name. Returns None, or seconds to wait.

    `typed`: name or address, counted per network address so as not to show that the two belong together.
    """
    name, where = _canonical(username), rates.address(request)
    callers = [("login", f"{where} {_canonical(typed) or name}"), ("login_address", where), ("login_name", name)]
    device, standing = _cookie_device(request, name)
    if device:
        user = User.objects.active().named(name).first()
        if user is not None and constant_time_compare(standing, user.get_session_auth_hash()):
            callers = [("login_devices", name)]
        callers.insert(0, ("login", f"device {device}"))
    return rates.hit_in_turn(callers)


def count_code_attempt(request: HttpRequest, user: User) -> float | None:
    """Count an attempt at a second factor. Returns None, or seconds to wait."""
    return rates.hit("login_code", f"{user.pk} {known_device(request, user)}")


def count_passkey_attempt(request: HttpRequest) -> float | None:
    """Count an attempt by passkey. Returns None, or seconds to wait."""
    return rates.hit("login_address", rates.address(request))


def known_device(request: HttpRequest, user: User) -> str:
    """This browser's name, if its cookie is valid for the user, or ""."""
    device, standing = _cookie_device(request, _canonical(user.username))
    return device if device and constant_time_compare(standing, user.get_session_auth_hash()) else ""


def set_device_cookie(response: HttpResponseBase, user: User) -> None:
    """Give the browser a cookie, which names no user."""
    response.set_cookie(
        COOKIE,
        _signer(_canonical(user.username)).sign(f"{secrets.token_urlsafe(9)}.{user.get_session_auth_hash()}"),
        max_age=COOKIE_LIFE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _cookie_device(request: HttpRequest, name: str) -> tuple[str, str]:
    """The device and session hash in the browser's cookie. Both are "" unless the cookie is for this username."""
    try:
        said = _signer(name).unsign(request.COOKIES.get(COOKIE, ""), max_age=COOKIE_LIFE)
    except signing.BadSignature:
        return "", ""
    device, _, standing = said.partition(".")
    return device, standing


def _signer(name: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"accounts.guard {name}")


def _canonical(username: str) -> str:
    """The one spelling under which attempts count, for all spellings that the login form accepts."""
    return unicodedata.normalize("NFKC", username[:NAME_LENGTH]).strip().lower()
