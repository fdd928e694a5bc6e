"""Secrets of second factors, sealed by a key that is made of the secret key of the site: a copy of the database alone
makes no codes.

Texts that an earlier key sealed open while the settings name that key among `SECRET_KEY_FALLBACKS`, and texts that were
never sealed open as they are. `anew` seals both by the key of today.

See docs/decisions.md: Own sign-in flows on allauth's parts.
"""

from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac

PREFIX = "sealed:"


class SealError(ValueError):
    """Raised for a text that none of the site's keys sealed."""


def seal(text: str) -> str:
    """The text as it is stored."""
    return PREFIX + _keys()[0].encrypt(text.encode()).decode()


def unseal(stored: str) -> str:
    """The text that is stored so. Raises SealError."""
    if not stored.startswith(PREFIX):
        return stored
    try:
        return MultiFernet(_keys()).decrypt(stored.removeprefix(PREFIX).encode()).decode()
    except InvalidToken as error:
        raise SealError("sealed by another secret key") from error


def anew(stored: str) -> str:
    """A stored text sealed by the key of today, unchanged if that sealed it. Raises SealError."""
    try:
        _keys()[0].decrypt(stored.removeprefix(PREFIX).encode())
    except InvalidToken:
        return seal(unseal(stored))
    return stored


def _keys() -> list[Fernet]:
    """The key of today, then those of before."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return [
        Fernet(urlsafe_b64encode(salted_hmac("accounts.sealing", "", secret=secret, algorithm="sha256").digest()))
        for secret in secrets
    ]
