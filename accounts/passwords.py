"""Passwords in one Unicode form (NFKC), because keyboards and systems send the same letters as different characters."""

import unicodedata
from typing import NamedTuple

from django.contrib.auth.hashers import make_password, verify_password

LENGTH = 256
"""Limit in characters. Longer passwords take longer to hash."""


class Match(NamedTuple):
    """The result of a comparison."""

    is_right: bool
    is_old: bool = False
    """Whether the hash is to be renewed: made of another form, or weaker than today's."""


def normalized(password: str) -> str:
    """The form that is hashed."""
    return unicodedata.normalize("NFKC", password)


def hashed(password: str) -> str:
    """The hash to store."""
    return make_password(normalized(password))


def compare(password: str, stored: str) -> Match:
    """Compare a password with a hash, which may be of the text as it was typed before 0.2.0.

    It takes as long for a hash that nothing opens.
    """
    if len(password) > LENGTH:
        return Match(is_right=False)
    form = normalized(password)
    for text in dict.fromkeys((form, password)):
        is_right, is_weak = verify_password(text, stored)
        if is_right:
            return Match(is_right, is_weak or text != form)
    return Match(is_right=False)
