"""Encrypts secrets of second factors, so a copy of the database alone cannot produce codes. Texts of older keys are
readable while `SECRET_KEY_FALLBACKS` names these, and plain texts always.
"""

from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.utils.crypto import salted_hmac

from storage.site_key import known_keys

PREFIX = "sealed:"


class SealError(ValueError):
    """None of the site's keys decrypts the text."""


def seal(text: str) -> str:
    """Encrypt for storage."""
    return PREFIX + _keys()[0].encrypt(text.encode()).decode()


def unseal(stored: str) -> str:
    """Decrypt. Raises SealError."""
    if not stored.startswith(PREFIX):
        return stored
    try:
        return MultiFernet(_keys()).decrypt(stored.removeprefix(PREFIX).encode()).decode()
    except InvalidToken as error:
        raise SealError("sealed by another secret key") from error


def reencrypt(stored: str) -> str:
    """The text encrypted with the current key. Raises SealError."""
    try:
        _keys()[0].decrypt(stored.removeprefix(PREFIX).encode())
    except InvalidToken:
        return seal(unseal(stored))
    return stored


def _keys() -> list[Fernet]:
    return [
        Fernet(urlsafe_b64encode(salted_hmac("accounts.sealing", "", secret=secret, algorithm="sha256").digest()))
        for secret in known_keys()
    ]
