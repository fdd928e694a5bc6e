# ruff: noqa: RUF002 - full-width letters are meant
"""How texts and queries are cut into the words that search compares: one tokeniser for both, and for marking hits.

- A text is cut at everything but letters and digits; _ cuts too.
- In scripts that are written with spaces a run of letters and digits is one word: in lower case, in its compatibility
  form (NFKC: ＡＢＣ is abc), Latin letters without accents, no stemming, at most its first 64 letters.
- In scripts written without spaces (Han, Kana, Hangul, Bopomofo) every character is a word, and so is every pair of
  neighbours, at the place of its first: 小红书 is 小 小红 红 红书 书. So a run of any length is found wherever it
  stands, as a phrase of pairs, and a single character is found too. There is no dictionary that could be wrong.
- Words have places, counted through the text, so that phrases can be told from words that only occur.

See docs/decisions.md: Code written by hand, and why it stays.
See docs/decisions.md: Search cuts texts itself, and PostgreSQL compares.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from items.links import UNSPACED

WORD_LENGTH = 64
_ACCENTS = "\u0300-\u036f"
_RUN = re.compile(f"[{UNSPACED}]+|(?:(?![{UNSPACED}])[^\\W_]|[{_ACCENTS}])+")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")
_ASCII_RUN = re.compile(r"[a-z0-9]+")
_ACCENTED = re.compile(f"(?<=[a-z])[{_ACCENTS}]+")
MARKS = 30
"""Combining marks that are looked at of one letter."""
_TITLE_GAP = 2
"""Places between title and text, which no phrase crosses."""


class Run(NamedTuple):
    """A stretch of one script: its words' letters, where it stood in the text, and whether its script has no spaces."""

    letters: str
    start: int
    end: int
    is_unspaced: bool

    @property
    def places(self) -> int:
        """How many places it takes."""
        return len(self.letters) if self.is_unspaced else 1


def runs(text: str) -> Iterator[Run]:
    """The runs of `text` in order."""
    for found in _RUN.finditer(text):
        letters = _folded(found[0])
        if letters:
            is_unspaced = _IS_UNSPACED.match(found[0]) is not None
            yield Run(letters if is_unspaced else letters[:WORD_LENGTH], found.start(), found.end(), is_unspaced)


def _folded(run: str) -> str:
    if run.isascii():
        return run.lower()
    run = stream_safe(run)
    for _ in range(2):  # as a tag is: items.text.canonical_tag
        run = unicodedata.normalize("NFKC", run).casefold()
    run = _ACCENTED.sub("", unicodedata.normalize("NFD", run))
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", run)))


def stream_safe(text: str) -> str:
    """`text` without the combining marks that follow `MARKS` others: no script writes so many on one letter.

    Normalisation sorts the marks of a letter in a time that grows with the square of their number, so it is given none
    but such a text (Unicode Standard Annex #15, Stream-Safe Text Format).

    See docs/decisions.md: Letters keep thirty combining marks.
    """
    if len(text) <= MARKS:
        return text
    kept: list[str] = []
    marks = 0
    for letter, combining in zip(text, map(unicodedata.combining, text), strict=True):
        marks = marks + 1 if combining else 0
        if marks <= MARKS:
            kept.append(letter)
    return text if len(kept) == len(text) else "".join(kept)


def document(title: str, text: str) -> str:
    """The words of a message with their places, as PostgreSQL reads a tsvector. Empty if there are none."""
    words: list[str] = []
    place = _add(words, title, 1) + _TITLE_GAP if title else 1
    _add(words, text, place)
    return " ".join(words)


def _add(words: list[str], text: str, place: int) -> int:
    """Add the words of `text` from `place` on; the next free place."""
    if text.isascii():
        found = _ASCII_RUN.findall(text.lower())
        words += [f"{word[:WORD_LENGTH]}:{at}" for at, word in enumerate(found, place)]
        return place + len(found)
    for run in runs(text):
        if run.is_unspaced:
            for at, letter in enumerate(run.letters):
                words.append(f"{letter}:{place + at}")
                if at:
                    words.append(f"{run.letters[at - 1 : at + 1]}:{place + at - 1}")
        else:
            words.append(f"{run.letters}:{place}")
        place += run.places
    return place


def phrase(found: list[Run], *, is_open: bool = False) -> str:
    """The runs one after the other, as PostgreSQL reads a tsquery.

    `is_open`: the last may go on, if it is a word of two letters or more in a script with spaces.
    """
    parts: list[str] = []
    last = place = 0
    for run in found:
        if run.is_unspaced:
            count = max(len(run.letters) - 1, 1)
            lexemes = [(place + at, run.letters[at : at + 2]) for at in range(count)]
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
