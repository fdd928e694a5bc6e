"""Drawn avatars: a letter on a colour. The address holds all data."""

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from zlib import crc32

import msgspec
from django.conf import settings
from django.utils.safestring import SafeString

from media.files import FACE_WIDTHS, size_name
from media.objects import address_from_facts
from media.sources import source_attributes

TINTS = ("#3b5bb5", "#a3386c", "#277458", "#9a5215", "#6a4bb0", "#1f7184", "#a8413a", "#576270")
"""`.tint-0` to `.tint-7` of site.css. White text has a contrast of at least 4.5 on each."""
DRAWING = 2
"""Raise it when accounts.drawing changes, because browsers cache drawings."""
LETTER = re.compile(r"[0-9a-f]{1,6}\Z")
SMALL_PIXELS = 160
LETTERS = 3
"""Most characters of a drawn letter. A single letter may have several in upper case, such as SS for ß."""


def avatar_url(avatar: Mapping[str, Any] | str | None, username: str, name: str) -> str:
    """A user's avatar, from its facts, or drawn."""
    facts = msgspec.json.decode(avatar) if isinstance(avatar, str) else avatar
    return address_from_facts(facts) if facts else drawn_url(username, name)


def banner_url(banner: Mapping[str, Any] | None, username: str) -> str:
    """A user's banner, or the drawn one."""
    return address_from_facts(banner) if banner else f"/avatars/v{DRAWING}/banner-{tint(username)}.png"


def small_avatar_url(url: str) -> str:
    """The small avatar for a large one."""
    if not url.startswith(settings.MEDIA_ADDRESS):
        return url
    name, _, extension = url.rpartition(".")
    return f"{name}.small.{extension}"


def avatar_sources(url: str, size: int) -> SafeString:
    """`src` and `srcset` of an uploaded avatar or logo that is drawn `size` pixels wide."""
    base = url.rpartition(".")[0]
    offered = [(width, size_name(base, width)) for width in FACE_WIDTHS] if base.endswith("s") else []
    offered = offered or [(SMALL_PIXELS, small_avatar_url(url))]
    found = [next((address for width, address in offered if width >= size * times), url) for times in (1, 2, 3)]
    return source_attributes(*found)


def initial(name: str) -> str:
    """The first letter or digit, else the first character."""
    return next((letter for letter in name if letter.isalnum()), name[:1]).upper()


def tint(username: str) -> int:
    """A user's colour number."""
    return crc32(username.encode()) % len(TINTS)


@lru_cache(4096)
def drawn_url(username: str, name: str) -> str:
    """Address of the drawn avatar."""
    return f"/avatars/v{DRAWING}/{tint(username)}-{_letter_code(_drawn_letter(name))}.png"


def letter_of_name(name: str) -> str:
    """The letter for CSS to draw, or "" if its upper case has several."""
    letter = _drawn_letter(name)
    return letter if len(letter) == 1 else ""


@lru_cache(4096)
def _drawn_letter(name: str) -> str:
    letter = initial(name)[:LETTERS]
    return letter if letter.isprintable() else "?"


def _letter_code(letter: str) -> str:
    return "-".join(f"{ord(character):x}" for character in letter)


def letter_of(code: str) -> str | None:
    """The letter of an address that `drawn_url` made."""
    numbers = code.split("-")
    if len(numbers) > LETTERS or not all(LETTER.match(number) for number in numbers):
        return None
    letter = "".join(chr(int(number, 16)) for number in numbers if int(number, 16) <= sys.maxunicode)
    return letter if code == _letter_code(letter) and letter.isprintable() else None
