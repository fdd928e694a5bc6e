"""Words in texts: found in whatever spelling readers take for the same (web.letters), however many words there are.

The search is that of Aho and Corasick (1975): one step a character, whatever the number of words, and one for each
place of a word. A text has as many places as letters and words together, so `Matcher.found` looks no further for words
that it has found often.

See docs/decisions.md: Phrases are found by one automaton.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

import ahocorasick
import regex

from web.letters import CLUSTER, COMPLEX, LETTER, compiled, folded

_SPACES = re.compile(r"\s+")
# Letters and digits of the scripts that put spaces between words: not of Thai, Lao, Burmese, Khmer, kana and Han.
_SPACED = f"[{LETTER}--[{COMPLEX}\\p{{scx=Han}}\\p{{scx=Hiragana}}\\p{{scx=Katakana}}]]"
# Borders stand before and after each of these: words of spaced scripts, and any other character. An apostrophe amid a
# word is part of it (j'ai, don't), but the one of a possessive ends it (AI's).
_PIECE = compiled(f"{_SPACED}++(?:'(?!s(?!{_SPACED})){_SPACED}++)*+|.", regex.DOTALL)
BORDER = "\x00"
"""Marks a border; no text and no word holds it."""
AGAIN = 10
"""Places of words that were found before, for each word that is looked for, after which those are looked for no more.
Compiling the others takes as long as passing so many."""


def fold(text: str) -> str:
    """`text` as it is compared (web.letters.folded), spaces single."""
    return _SPACES.sub(" ", folded(text)).strip()


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


class _Search:
    """Texts that are looked for, each with the ids of its words. Immutable: threads may share it."""

    def __init__(self, texts: Mapping[str, list[int]]) -> None:
        self._texts = texts
        self._longest = max(map(len, texts), default=0)
        self._automaton = ahocorasick.Automaton()
        for text in texts:
            self._automaton.add_word(text, text)
        self._automaton.make_automaton()

    def places(self, within: str) -> Iterator[Place]:
        """Every place of every word, by their ends; they may overlap."""
        for last, text in self._automaton.iter(within) if self._texts else ():
            for word in self._texts[text]:
                yield Place(last + 1 - len(text), last + 1, word)

    def found(self, within: str) -> set[int]:
        """The ids of the words that stand somewhere."""
        left, begin, found = self, 0, set[str]()
        while left._texts:
            again = 0
            for last, text in left._automaton.iter(within, begin):
                again += text in found
                found.add(text)
                if again > AGAIN * len(left._texts):
                    begin = max(0, last + 1 - left._longest)
                    break
            else:
                break
            left = _Search({text: words for text, words in left._texts.items() if text not in found})
        return {word for text in found for word in self._texts[text]}


class Matcher:
    """Many words, compiled by pyahocorasick. Immutable: threads may share it.

    Whole words are looked for between borders, in a text whose borders are marked.
    """

    def __init__(self, words: Iterable[Word]) -> None:
        parts, whole = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        for word in words:
            if word.folded:
                (whole[_bordered(word.folded)] if word.whole else parts[word.folded]).append(word.id)
        self._parts, self._whole = _Search(parts), _Search(whole)
        self._has_whole = bool(whole)

    def places(self, folded: str) -> Iterator[Place]:
        """Every place of every word; they may overlap."""
        yield from self._parts.places(folded)
        if self._has_whole:
            bordered = _bordered(folded)
            before = list(accumulate((letter != BORDER for letter in bordered), initial=0))  # letters of `folded`
            for start, end, word in self._whole.places(bordered):
                yield Place(before[start], before[end], word)

    def found(self, folded: str) -> set[int]:
        """The ids of the words in a folded text."""
        whole = self._whole.found(_bordered(folded)) if self._has_whole else set()
        return self._parts.found(folded) | whole


def _bordered(text: str) -> str:
    return _PIECE.sub(rf"{BORDER}\g<0>", text) + BORDER


def marked(text: str, matcher: Matcher) -> list[tuple[str, bool]]:
    """`text` in pieces, each with whether it is (part of) a found word; together they are the whole text.

    Folded piece by piece, a letter with its accents, so that places in the folded text lead back into the text.
    """
    origins: list[int] = []  # of each folded character: where its piece begins in the text
    folded: list[str] = []
    forms: dict[str, str] = {}
    for start, end in (cluster.span() for cluster in CLUSTER.finditer(text)):
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
