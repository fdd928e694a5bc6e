"""Words in texts: found without regard to case, width and invisible characters, however many words there are.

The search is that of Aho and Corasick (1975): one step a character, whatever the number of words.

See docs/decisions.md: Words are searched by Aho and Corasick, by pyahocorasick.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import ahocorasick

from items.words import stream_safe

# Characters that are drawn as nothing (Unicode's Default_Ignorable_Code_Point, as far as texts may hold them).
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
SPACES = re.compile(r"\s+")
# Letters and digits of the scripts that put spaces between words: not of Thai, Lao, Burmese, Khmer, kana and Han.
SPACED = re.compile(
    "[^\\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)


def fold(text: str) -> str:
    """`text` as it is compared: without invisible characters, in compatibility form, case folded, spaces single."""
    visible = INVISIBLE.sub("", text)
    if visible.isascii():
        even = visible.lower()
    else:
        visible = stream_safe(visible)
        even = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    return SPACES.sub(" ", even).strip()


class Place(NamedTuple):
    """Where a word stands in a folded text."""

    start: int
    end: int
    word: int


class Word(NamedTuple):
    """A folded word with the id of its rule; `whole`: no letter of a spaced script may adjoin its own letters."""

    id: int
    folded: str
    whole: bool


class Matcher:
    """Many words, compiled by pyahocorasick. Immutable: threads may share it."""

    def __init__(self, words: Iterable[Word]) -> None:
        by_text: defaultdict[str, list[Word]] = defaultdict(list)
        for word in words:
            by_text[word.folded].append(word)
        by_text.pop("", None)
        self._automaton = ahocorasick.Automaton()
        for text, same in by_text.items():
            self._automaton.add_word(text, tuple(same))
        self._automaton.make_automaton()

    def places(self, folded: str) -> Iterator[Place]:
        """Every place of every word, by their ends; they may overlap."""
        if not self._automaton:
            return
        for last, words in self._automaton.iter(folded):
            for word in words:
                start = last + 1 - len(word.folded)
                if not word.whole or _is_whole(folded, start, last + 1):
                    yield Place(start, last + 1, word.id)

    def found(self, folded: str) -> set[int]:
        """The ids of the words in a folded text."""
        return {place.word for place in self.places(folded)}


def _is_whole(text: str, start: int, end: int) -> bool:
    def cut(left: str, right: str) -> bool:
        return not (SPACED.match(left) and SPACED.match(right))

    return (start == 0 or cut(text[start - 1], text[start])) and (end == len(text) or cut(text[end - 1], text[end]))


def marked(text: str, matcher: Matcher) -> list[tuple[str, bool]]:
    """`text` in pieces, each with whether it is (part of) a found word; together they are the whole text.

    Folded piece by piece, a letter with its accents, so that places in the folded text lead back into the text.
    """
    origins: list[int] = []  # of each folded character: where its piece begins in the text
    folded: list[str] = []
    forms: dict[str, str] = {}
    for start, end in _clusters(text):
        piece = text[start:end]
        form = forms.get(piece)
        if form is None:
            form = forms[piece] = " " if piece.isspace() else fold(piece)
        if form == " " and (not folded or folded[-1] == " "):
            continue
        folded.extend(form)
        origins.extend([start] * len(form))
    origins.append(len(text))
    inside = [False] * len(text)
    for place in matcher.places("".join(folded)):
        first, last = origins[place.start], origins[place.end]
        if last == first:  # the word ends inside a letter that folds to several
            last = first + 1
        inside[first:last] = [True] * (last - first)
    pieces: list[tuple[str, bool]] = []
    begin = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or inside[index] != inside[begin]:
            pieces.append((text[begin:index], inside[begin]))
            begin = index
    return pieces


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or not unicodedata.combining(text[index]):
            yield start, index
            start = index
