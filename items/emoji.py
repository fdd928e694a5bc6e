"""Emoji by English and Chinese names."""

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
    """An emoji. `names`: folded, in both languages."""

    emoji: str
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
    """All emoji. Some 2 MB, read once by a process."""
    rows = (line.split("\t") for line in FILE.read_text().splitlines() if not line.startswith("#"))
    return tuple(
        Emoji(emoji, tuple(map(folded, [*english, *chinese])), english[0], chinese[0], group)
        for emoji, english, chinese, group in (
            (emoji, english.split("|"), chinese.split("|"), group) for emoji, english, chinese, group in rows
        )
    )


def emoji_named(typed: str, count: int) -> list[Emoji]:
    """Emoji with a matching word, best first."""
    sought = folded(typed.replace("_", " ").strip())
    if not sought or len(sought) > LENGTH:
        return []
    word = re.compile(rf"\b{re.escape(sought)}")

    def rank(one: Emoji) -> int:
        titles = (one.names[0], folded(one.chinese))
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
