"""The parts of a search query."""

import re
from dataclasses import dataclass

from items.search.words import Run, phrase, runs
from items.text import hashtags
from web.letters import folded

QUERY_LENGTH = 200
_PART = re.compile(r'"([^"]*)"|“([^”]*)”|([^\s"“”]+)')
_FROM = re.compile("from[:\uff1a][@\uff20]?(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Query:
    """A query. All its parts must match. `phrases`: words and quoted phrases. `is_open`: the last may be unfinished.
    `names`: for users.
    """

    phrases: tuple[tuple[Run, ...], ...]
    is_open: bool
    senders: tuple[str, ...]
    tags: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        return not (self.phrases or self.senders or self.tags)

    @property
    def tsquery(self) -> str:
        """The query as a PostgreSQL tsquery."""
        last = len(self.phrases) - 1
        return " & ".join(
            phrase(list(part), is_open=self.is_open and place == last) for place, part in enumerate(self.phrases)
        )


def parse(text: str) -> Query:
    """Parse words, "phrases", from:name and #tag."""
    phrases: dict[tuple[str, ...], tuple[Run, ...]] = {}
    senders: list[str] = []
    tags: list[str] = []
    names: list[str] = []
    is_open = False
    for quoted, curly, bare in _PART.findall(text):
        if sender := _FROM.fullmatch(bare):
            senders.append(sender[1])
        elif bare and bare[0] in "#\uff03" and len(tag := hashtags(bare)) == 1:
            tags += tag
        elif found := tuple(runs(part := quoted or curly or bare)):
            letters = tuple(run.letters for run in found)
            is_open = bool(bare) and letters not in phrases
            phrases.setdefault(letters, found)
            names += folded(part).removeprefix("@").split()
            continue
        is_open = False
    return Query(tuple(phrases.values()), is_open, tuple(senders), tuple(dict.fromkeys(tags)), tuple(names))
