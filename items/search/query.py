"""The parts of a search query."""

import re
from dataclasses import dataclass

from items.search.words import Run, phrase, runs
from items.text import hashtags
from web.letters import folded

QUERY_LENGTH = 200
# The quotation marks of all scripts: each opens and closes.
_QUOTE = '"\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f\u301d\u301e\u301f\uff02\uff62\uff63'
# A phrase to leave out may still be unfinished.
_PART = re.compile(
    rf"((?<!\S)[-\uff0d\u2212](?=[^\s-]))?(?:[{_QUOTE}]([^{_QUOTE}]*)(?:[{_QUOTE}]|(?(1)\Z|(?!)))|([^\s{_QUOTE}]+))"
)
_FROM = re.compile("from[:\uff1a][@\uff20]?(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Query:
    """A query. All its parts must match. `phrases`: words and quoted phrases. `is_open`: the last may be unfinished.
    `names`: for users. `without`: words and phrases that must not be there.
    """

    phrases: tuple[tuple[Run, ...], ...]
    is_open: bool
    senders: tuple[str, ...]
    tags: tuple[str, ...]
    names: tuple[str, ...]
    without: tuple[tuple[Run, ...], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        return not (self.phrases or self.senders or self.tags)

    @property
    def is_of_senders(self) -> bool:
        """Whether it asks for all posts of senders."""
        return bool(self.senders) and not (self.has_words or self.tags)

    @property
    def has_words(self) -> bool:
        """Whether it asks for words, or leaves some out."""
        return bool(self.phrases or self.without)

    @property
    def wanted(self) -> str:
        """The words that must be there, as a PostgreSQL tsquery."""
        last = len(self.phrases) - 1
        return " & ".join(
            phrase(list(part), is_open=self.is_open and place == last) for place, part in enumerate(self.phrases)
        )

    @property
    def tsquery(self) -> str:
        """The query as a PostgreSQL tsquery."""
        return " & ".join(filter(None, [self.wanted, *(f"!{phrase(list(part))}" for part in self.without)]))


def parse(text: str) -> Query:
    """Parse words, "phrases", -words and -"phrases" to leave out, from:name and #tag."""
    phrases: dict[tuple[str, ...], tuple[Run, ...]] = {}
    without: list[tuple[Run, ...]] = []
    senders: list[str] = []
    tags: list[str] = []
    names: list[str] = []
    is_open = False
    for minus, quoted, bare in _PART.findall(text):
        found = tuple(runs(part := quoted or bare))
        if minus:
            without += [found] if found else []
        elif sender := _FROM.fullmatch(bare):
            senders.append(sender[1])
        elif bare and bare[0] in "#\uff03" and len(tag := hashtags(bare)) == 1:
            tags += tag
        elif found:
            letters = tuple(run.letters for run in found)
            is_open = bool(bare) and letters not in phrases
            phrases.setdefault(letters, found)
            names += folded(part).removeprefix("@").split()
            continue
        is_open = False
    tags = list(dict.fromkeys(tags))
    # A hashtag may be in a name, too.
    named = names or list(map(folded, tags))
    return Query(tuple(phrases.values()), is_open, tuple(senders), tuple(tags), tuple(named), tuple(without))
