"""Find words in texts, in any spelling that readers take for the same (web.letters)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

import ahocorasick
import regex

from web.letters import CLUSTER, COMPLEX, LETTER, compiled, folded_text

_SPACES = re.compile(r"\s+")
# Letters and digits of scripts with spaces between words: not Thai, Lao, Burmese, Khmer, kana and Han.
_SPACED = f"[{LETTER}--[{COMPLEX}\\p{{scx=Han}}\\p{{scx=Hiragana}}\\p{{scx=Katakana}}]]"
# Borders are before and after each piece: a word of a spaced script, or any other character. An apostrophe inside a
# word belongs to it (j'ai, don't), but a possessive one ends it (AI's).
_PIECE = compiled(f"{_SPACED}++(?:'(?!s(?!{_SPACED})){_SPACED}++)*+|.", regex.DOTALL)
BORDER = "\x00"
"""Marks a border. No text or word contains it."""
AGAIN = 10
"""Repeated hits, per word searched, before the words already found are dropped. Compiling the others again costs about
as much as passing this many hits.
"""


def fold(text: str) -> str:
    """`text` as it is compared, with single spaces."""
    return _SPACES.sub(" ", folded_text(text)).strip()


class TextPosition(NamedTuple):
    """Where a word is in a folded text."""

    start: int
    end: int
    word: int


class Word(NamedTuple):
    """A folded word with its rule's id. `whole`: no letter of a spaced script next to it."""

    id: int
    folded: str
    whole: bool


class _Search:
    """Texts compiled for one search. Immutable: threads may share it."""

    def __init__(self, texts: Mapping[str, list[int]]) -> None:
        self._texts = texts
        self._longest = max(map(len, texts), default=0)
        self._automaton = ahocorasick.Automaton()
        for text in texts:
            self._automaton.add_word(text, text)
        self._automaton.make_automaton()

    def places(self, within: str) -> Iterator[TextPosition]:
        for last, text in self._automaton.iter(within) if self._texts else ():
            for word in self._texts[text]:
                yield TextPosition(last + 1 - len(text), last + 1, word)

    def matching_ids(self, within: str) -> set[int]:
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
    """Many words, compiled. Immutable: threads may share it."""

    def __init__(self, words: Iterable[Word]) -> None:
        parts, whole = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        for word in words:
            if word.folded:
                (whole[_with_borders(word.folded)] if word.whole else parts[word.folded]).append(word.id)
        self._parts, self._whole = _Search(parts), _Search(whole)
        self._has_whole = bool(whole)

    def places(self, folded: str) -> Iterator[TextPosition]:
        """Every place of every word."""
        yield from self._parts.places(folded)
        if self._has_whole:
            bordered = _with_borders(folded)
            before = list(accumulate((letter != BORDER for letter in bordered), initial=0))  # letters of `folded`
            for start, end, word in self._whole.places(bordered):
                yield TextPosition(before[start], before[end], word)

    def matching_ids(self, folded: str) -> set[int]:
        """The ids of the words in a text."""
        whole = self._whole.matching_ids(_with_borders(folded)) if self._has_whole else set()
        return self._parts.matching_ids(folded) | whole


def _with_borders(text: str) -> str:
    return _PIECE.sub(rf"{BORDER}\g<0>", text) + BORDER


def marked(text: str, matcher: Matcher) -> list[tuple[str, bool]]:
    """`text` in pieces, each with whether it is part of a found word."""
    origins: list[int] = []  # where the letter of each folded character begins in the text
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
