# ruff: noqa: RUF002 - full-width letters are meant
"""How texts and queries are cut into the words that search compares, also for marking hits.

- A text is cut at everything but letters and digits. _ cuts too.
- In scripts with spaces, a run of letters, marks and digits is one folded word: ＡＢＣ is abc, Łódź is lodz, año
  stays año. Only the first 64 letters count.
- In others every character (in Thai with its signs) is a word, and every pair of neighbours at the place of
  its first: 小红书 is 小 小红 红 红书 书. So any run is found as a phrase of pairs.

See docs/decisions.md: Own tokeniser for search.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from web.letters import APOSTROPHES, CLUSTER, COMPLEX, UNSPACED, compiled, folded_text

WORD_LENGTH = 64
CHARACTER_LENGTH = 16
"""Code points used of a Thai character."""
_UNSEEN = r"\p{Default_Ignorable_Code_Point}"
_SPACED = rf"[[\p{{L}}\p{{N}}\p{{M}}]--[{UNSPACED}{COMPLEX}{APOSTROPHES}\p{{Me}}{_UNSEEN}]]"
_RUN = compiled(
    f"(?P<unspaced>{UNSPACED}++)|(?P<complex>[{COMPLEX}--\\p{{M}}][{COMPLEX}{_UNSEEN}]*)|{_SPACED}[{_SPACED}{_UNSEEN}]*+"
)
_NO_LETTER = compiled(r"[^\p{L}\p{N}\p{Mn}\p{Mc}]|^\p{M}+")
_ASCII_RUN = re.compile(r"[a-z0-9]+")
_TITLE_GAP = 2
"""Places between title and text, so that no phrase crosses them."""


class Run(NamedTuple):
    """A stretch of one script: with spaces one word, without a word per character."""

    words: tuple[str, ...]
    start: int
    end: int
    is_unspaced: bool
    spots: tuple[tuple[int, int], ...] = ()
    """Where the characters of Thai and similar scripts are."""

    @property
    def letters(self) -> str:
        """The letters of all words."""
        return "".join(self.words)

    @property
    def places(self) -> int:
        """Number of places."""
        return len(self.words)


def runs(text: str) -> Iterator[Run]:
    """The runs of `text` in order."""
    for found in _RUN.finditer(text):
        letters, kind = folded_text(found[0]), found.lastgroup
        if not letters.isalnum():
            letters = _NO_LETTER.sub("", letters)
        if not letters:
            continue
        spots: tuple[tuple[int, int], ...] = ()
        if kind == "unspaced":
            words = tuple(letters)
        elif kind == "complex":
            words = tuple(one[:CHARACTER_LENGTH] for one in CLUSTER.findall(letters))
            spots = _character_spans(text, found.span(), len(words))
        else:
            words = (letters[:WORD_LENGTH],)
        yield Run(words, *found.span(), kind is not None, spots)


def _character_spans(text: str, place: tuple[int, int], count: int) -> tuple[tuple[int, int], ...]:
    """Begin and end of each character of a run. Folding may split a character. Empty if that is ambiguous."""
    clusters = [cluster.span() for cluster in CLUSTER.finditer(text, *place)]
    if len(clusters) != count:
        clusters = [span for span in clusters for _ in CLUSTER.findall(folded_text(text[slice(*span)]))]
    return tuple(clusters) if len(clusters) == count else ()


def document(title: str, text: str) -> str:
    """An item's words with their places, as a tsvector. Empty without words."""
    words: list[str] = []
    place = _add_words(words, title, 1) + _TITLE_GAP if title else 1
    _add_words(words, text, place)
    return " ".join(words)


def _add_words(words: list[str], text: str, place: int) -> int:
    if text.isascii():
        found = _ASCII_RUN.findall(text.lower())
        words += [f"{word[:WORD_LENGTH]}:{at}" for at, word in enumerate(found, place)]
        return place + len(found)
    for run in runs(text):
        if run.is_unspaced:
            for at, letter in enumerate(run.words):
                words.append(f"{letter}:{place + at}")
                if at:
                    words.append(f"{run.words[at - 1]}{letter}:{place + at - 1}")
        else:
            words.append(f"{run.letters}:{place}")
        place += run.places
    return place


def phrase(found: list[Run], *, is_open: bool = False) -> str:
    """Consecutive runs as a tsquery. `is_open`: the last may be unfinished, if it is a spaced word of two letters or
    more.
    """
    parts: list[str] = []
    last = place = 0
    for run in found:
        if run.is_unspaced:
            count = max(len(run.words) - 1, 1)
            lexemes = [(place + at, "".join(run.words[at : at + 2])) for at in range(count)]
        else:
            lexemes = [(place, run.letters)]
        for at, lexeme in lexemes:
            if parts:
                parts.append(f"<{at - last}>")
            parts.append(f"'{lexeme}'")
            last = at
        place += run.places
    if is_open and not found[-1].is_unspaced and len(found[-1].letters) > 1 and not found[-1].letters.isdigit():
        parts[-1] += ":*"
    return f"({' '.join(parts)})"
