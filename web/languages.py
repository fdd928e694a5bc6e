"""The language of a page, as HTML names it, and the ones that it could be in instead."""

from typing import NamedTuple

from django.conf import settings
from django.utils.translation import get_language, get_language_bidi, to_locale


class Language(NamedTuple):
    """A language of the switch: Django's code, the HTML tag and its own name."""

    code: str
    tag: str
    name: str


def tag_of(code: str) -> str:
    """The BCP 47 tag of a language code of Django's: `zh-hans` is `zh-Hans`."""
    return to_locale(code).replace("_", "-")


def lang() -> str:
    """The tag of the language that the page is written in."""
    return tag_of(get_language() or settings.LANGUAGE_CODE)


def direction() -> str:
    """The direction of writing, as HTML's `dir`."""
    return "rtl" if get_language_bidi() else "ltr"


def other_languages() -> list[Language]:
    """The languages that the page is not in, each by the name that its readers give it."""
    return [Language(code, tag_of(code), name) for code, name in settings.LANGUAGES if code != get_language()]


def default_choices() -> list[tuple[str, str]]:
    """The choices of a site's default language; the first is what it is without a choice."""
    return [("" if code == settings.LANGUAGE_CODE else code, name) for code, name in settings.LANGUAGES]
