"""Emoji by short codes, English and Chinese names."""

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


class Emoji(NamedTuple):
    """An emoji. `codes`: its short codes, with spaces. `names`: folded, in both languages."""

    emoji: str
    codes: tuple[str, ...]
    names: tuple[str, ...]
    english: str
    chinese: str
    group: str

    @property
    def name(self) -> str:
        """Its name in the reader's language."""
        return self.chinese if (get_language() or "").startswith("zh") else self.english


@cache
def all_emoji() -> tuple[Emoji, ...]:
    """All emoji. Some 3 MB, read once by a process."""
    return tuple(_emoji(line) for line in FILE.read_text().splitlines() if not line.startswith("#"))


def _emoji(line: str) -> Emoji:
    emoji, codes, english, chinese, group = line.split("\t")
    names = [*english.split("|"), *chinese.split("|")]
    title = english.partition("|")[0], chinese.partition("|")[0]
    return Emoji(emoji, tuple(filter(None, codes.split("|"))), tuple(map(folded, names)), *title, group)


def emoji_named(typed: str, count: int) -> list[Emoji]:
    """Emoji with a matching word, best first."""
    sought = folded(typed.replace("_", " ").strip())
    if not sought or len(sought) > LENGTH:
        return []
    word = re.compile(rf"\b{re.escape(sought)}")

    def rank(one: Emoji) -> int:
        titles = (one.names[0], folded(one.chinese), *one.codes)
        if sought in titles:
            return 0
        if sought in one.names:
            return 1
        if any(name.startswith(sought) for name in titles):
            return 2
        if any(name.startswith(sought) for name in one.names):
            return 3
        if any(word.search(name) for name in one.names):
            return 4
        return 5 if not sought.isascii() and any(sought in name for name in one.names) else 6

    ranked = [(rank(one), one) for one in all_emoji()]
    found = [(place, one) for place, one in ranked if place < 6]
    found.sort(key=lambda pair: pair[0])  # stable
    return [one for _place, one in found[:count]]


def emoji_of_group(group: str) -> list[Emoji]:
    """A group's emoji, in order."""
    return [one for one in all_emoji() if one.group == group]
