"""Where the words and phrases of a query are in a text, by Aho and Corasick's algorithm (1975) over words."""

from collections import deque

from items.search.query import Query
from items.search.words import Run, runs

HITS = 100
"""Hits marked in one text. Later ones are left out."""


class _Automaton:
    """An automaton that finds a query's phrases. State 0 is the start. A state is an index in each list."""

    def __init__(self, query: Query) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._longest = [0]
        """Number of words of the longest phrase that ends in each state."""
        self._is_begun = [False]
        """Whether the next word completes the open phrase, if it begins with that phrase's last word."""
        self.open_word = ""
        self.open_length = 0
        for number, part in enumerate(query.phrases):
            words = [word for run in part for word in run.words]
            self._longest[self._state(words)] = len(words)
            if query.is_open and number == len(query.phrases) - 1 and not part[-1].is_unspaced:
                *begun, self.open_word = words
                self.open_length = len(words)
                self._is_begun[self._state(begun)] = True
        self._shorter = self._link()

    def _state(self, words: list[str]) -> int:
        state = 0
        for word in words:
            following = self._next[state].get(word)
            if following is None:
                following = self._next[state][word] = len(self._next)
                self._next.append({})
                self._longest.append(0)
                self._is_begun.append(False)
            state = following
        return state

    def _link(self) -> list[int]:
        """For each state, the state of its longest proper suffix."""
        shorter = [0] * len(self._next)
        queue = deque(self._next[0].values())
        while queue:
            state = queue.popleft()
            self._longest[state] = max(self._longest[state], self._longest[shorter[state]])
            self._is_begun[state] |= self._is_begun[shorter[state]]
            for word, child in self._next[state].items():
                suffix = shorter[state]
                while suffix and word not in self._next[suffix]:
                    suffix = shorter[suffix]
                shorter[child] = self._next[suffix].get(word, 0)
                queue.append(child)
        return shorter

    def step(self, state: int, word: str) -> tuple[int, int]:
        is_open = self._is_begun[state] and word.startswith(self.open_word)
        while state and word not in self._next[state]:
            state = self._shorter[state]
        state = self._next[state].get(word, 0)
        return state, max(self._longest[state], self.open_length if is_open else 0)


def hits(text: str, query: Query) -> list[tuple[int, int]]:
    """The (start, end) of hits, merged, at most `HITS`. Takes linear time."""
    if not query.phrases:
        return []
    automaton, state = _Automaton(query), 0
    units = [unit for run in runs(text) for unit in _word_spans(run)]
    begins = list(range(len(units) + 1))
    """For each unit, the first unit of the hit that ends there. One after itself if none does."""
    for at, (word, _, _) in enumerate(units):
        state, length = automaton.step(state, word)
        begins[at] = at + 1 - length
    places: list[tuple[int, int]] = []
    below = len(units) + 1
    is_hit = [False] * len(units)
    for at in reversed(range(len(units))):  # a unit is hit if a hit that ends there or later begins at or before it
        below = min(below, begins[at])
        is_hit[at] = below <= at
    for at, (_, start, end) in enumerate(units):
        if not is_hit[at]:
            continue
        if places and is_hit[at - 1] and not text[places[-1][1] : start].strip():
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        elif not places or start >= places[-1][1]:
            if len(places) == HITS:
                break
            places.append((start, end))
    return places


def _word_spans(run: Run) -> list[tuple[str, int, int]]:
    if not run.is_unspaced:
        return [(run.letters, run.start, run.end)]
    if run.spots:
        return [(word, *spot) for word, spot in zip(run.words, run.spots, strict=True)]
    if len(run.words) != run.end - run.start:  # composed letters: use the position of the whole run for each
        return [(word, run.start, run.end) for word in run.words]
    return [(word, run.start + at, run.start + at + 1) for at, word in enumerate(run.words)]
