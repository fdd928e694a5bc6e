import re
from typing import NamedTuple

from django.conf import settings
from django.conf.locale import LANG_INFO
from django.utils.translation import get_language, get_language_bidi, to_locale

CODE_LENGTH = 16
CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}", re.ASCII)
"""What people write in: en, zh-Hant, pt-BR (BCP 47)."""
FROM_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]")
"""Letters that are written from right to left."""


class Language(NamedTuple):
    """A language: Django's code, HTML's tag, and its own name."""

    code: str
    tag: str
    name: str


def tag_of(code: str) -> str:
    """The language tag (BCP 47) of Django's code: `zh-Hans` for `zh-hans`."""
    return to_locale(code).replace("_", "-")


def lang() -> str:
    """The tag of the page's language."""
    return tag_of(get_language() or settings.LANGUAGE_CODE)


def direction() -> str:
    """The writing direction for HTML's `dir`."""
    return "rtl" if get_language_bidi() else "ltr"


def admin_speaks() -> bool:
    """Whether the admin's pages are in the page's language."""
    return get_language() in settings.ADMIN_LANGUAGES


def isolate(text: str) -> str:
    """A name within a plain text that has letters from right to left, so that neither turns the other around."""
    return "\u2068" + text + "\u2069" if get_language_bidi() or FROM_RIGHT.search(text) else text


def other_languages() -> list[Language]:
    """All languages of the site but the page's."""
    return [Language(code, tag_of(code), name) for code, name in settings.LANGUAGES if code != get_language()]


def default_choices() -> list[tuple[str, str]]:
    """The choices of the site's default language, first no choice."""
    return [("" if code == settings.LANGUAGE_CODE else code, name) for code, name in settings.LANGUAGES]


def is_code(text: str) -> bool:
    """Whether a text is the code of a language."""
    return len(text) <= CODE_LENGTH and CODE.fullmatch(text) is not None


def written_languages() -> list[tuple[str, str]]:
    """The languages that a post can be in, as pairs of tag and own name."""
    known = {code: about["name_local"] for code, about in LANG_INFO.items() if "name_local" in about}
    return sorted(
        ((tag_of(code), name.capitalize()) for code, name in known.items()), key=lambda one: one[1].casefold()
    )
