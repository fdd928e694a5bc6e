from typing import NamedTuple

from django.conf import settings
from django.utils.translation import get_language, get_language_bidi, to_locale


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


def other_languages() -> list[Language]:
    """All languages of the site but the page's."""
    return [Language(code, tag_of(code), name) for code, name in settings.LANGUAGES if code != get_language()]


def default_choices() -> list[tuple[str, str]]:
    """The choices of the site's default language, first no choice."""
    return [("" if code == settings.LANGUAGE_CODE else code, name) for code, name in settings.LANGUAGES]
