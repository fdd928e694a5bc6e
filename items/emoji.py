"""Emoji by short codes, and by English and Chinese names and those of the reader's language."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.utils.translation import get_language

from web.letters import folded

FILE = Path(__file__).with_name("emoji.tsv")
GROUPS = ("0", "1", "3", "4", "5", "6", "7", "8", "9")
"""CLDR's groups, in order. 2 are parts of other emoji."""
SHOWN = 48
"""Most emoji that a search in the picker shows."""
LENGTH = 30
"""Most letters of a searched name."""


LANGUAGES = ("en", "zh", "es", "ja")
"""Languages with names, in the order of the file's columns."""


class Emoji(NamedTuple):
    """An emoji. `codes`: its short codes, with spaces. `titles`, `names`: by language. `names` are folded."""

    emoji: str
    codes: tuple[str, ...]
    titles: dict[str, str]
    names: dict[str, tuple[str, ...]]
    group: str

    @property
    def name(self) -> str:
        """Its name in the reader's language."""
        return self.titles[_language()]


@cache
def all_emoji() -> tuple[Emoji, ...]:
    """All emoji. Some 6 MB, read once by a process."""
    return tuple(_emoji(line) for line in FILE.read_text().splitlines() if not line.startswith("#"))


def _emoji(line: str) -> Emoji:
    emoji, codes, *columns, group = line.split("\t")
    named = {language: column.split("|") for language, column in zip(LANGUAGES, columns, strict=True)}
    titles = {language: names[0] for language, names in named.items()}
    words = {language: tuple(map(folded, names)) for language, names in named.items()}
    return Emoji(emoji, tuple(filter(None, codes.split("|"))), titles, words, group)


def _language() -> str:
    code = (get_language() or "")[:2]
    return code if code in LANGUAGES else "en"


def emoji_named(typed: str, count: int) -> list[Emoji]:
    """Emoji with a matching word, best first."""
    sought = folded(typed.replace("_", " ").strip())
    if not sought or len(sought) > LENGTH:
        return []
    word = re.compile(rf"\b{re.escape(sought)}")
    languages = dict.fromkeys(("en", "zh", _language()))

    def rank(one: Emoji) -> int:
        titles = (*(one.names[language][0] for language in languages), *one.codes)
        names = [name for language in languages for name in one.names[language]]
        if sought in titles:
            return 0
        if sought in names:
            return 1
        if any(name.startswith(sought) for name in titles):
            return 2
        if any(name.startswith(sought) for name in names):
            return 3
        if any(word.search(name) for name in names):
            return 4
        return 5 if not sought.isascii() and any(sought in name for name in names) else 6

    ranked = [(rank(one), one) for one in all_emoji()]
    found = [(place, one) for place, one in ranked if place < 6]
    found.sort(key=lambda pair: pair[0])  # stable
    return [one for _place, one in found[:count]]


def emoji_of_group(group: str) -> list[Emoji]:
    """A group's emoji, in order."""
    return [one for one in all_emoji() if one.group == group]
