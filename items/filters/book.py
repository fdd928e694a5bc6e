"""The filters of many readers, matched together, for open connections. New ones are compiled separately until there are
many.
"""

from collections.abc import Iterable, Mapping

import msgspec
from django.utils import timezone

from items.bodies import ItemBody
from items.filters.filters import FilterRule, Filters, folded_text, rules_of

MOST = 100_000
"""Filters kept in memory, some tens of MB. The readers of one batch may have more."""
YOUNG, SHARE = 500, 4
"""New filters stay separate while they are fewer than YOUNG, or than 1/SHARE of the others."""


class _FilterGroup:
    def __init__(self, owners: Mapping[int, tuple[int, list[FilterRule]]]) -> None:
        self.owners = dict(owners)
        self.filters = Filters(rule for _version, rules in owners.values() for rule in rules)


class FilterCache:
    """The compiled filters of many readers. Not thread-safe."""

    def __init__(self) -> None:
        self._versions: dict[int, int] = {}
        self._shelves = [_FilterGroup({}), _FilterGroup({})]
        """The new filters, and the rest. A reader may be in both. The version says which one is current."""

    def load_missing(self, readers: Mapping[int, int]) -> None:
        """Load filters of readers whose version is not loaded."""
        missing = [reader for reader, version in readers.items() if self._versions.get(reader) != version]
        if not missing:
            return
        read: dict[int, tuple[int, list[FilterRule]]] = {reader: (readers[reader], []) for reader in missing}
        for rule in rules_of(missing):
            read[rule.owner][1].append(rule)
        young, old = self._shelves
        if len(young.filters.rules) + len(old.filters.rules) + sum(len(rules) for _, rules in read.values()) > MOST:
            kept = {owner: of for owner, of in self._all().items() if owner in readers and owner not in read}
            self._versions = {owner: version for owner, (version, _rules) in kept.items()}
            young, old = _FilterGroup({}), _FilterGroup(kept)
        self._versions |= {reader: readers[reader] for reader in missing}
        young = _FilterGroup(young.owners | read)
        if len(young.filters.rules) > max(YOUNG, len(old.filters.rules) // SHARE):
            self._shelves = [young, old]
            young, old = _FilterGroup({}), _FilterGroup(self._all())
        self._shelves = [young, old]

    def _all(self) -> dict[int, tuple[int, list[FilterRule]]]:
        every = [one for shelf in self._shelves for one in shelf.owners.items()]
        return {owner: of for owner, of in every if of[0] == self._versions.get(owner)}

    def matching_rules(
        self, item: ItemBody, readers: Iterable[int], seeing: Iterable[int] = ()
    ) -> dict[int, list[FilterRule]]:
        """Phrases that match the item, by reader. Call `load_missing` first. `seeing`: who may see its quote."""
        shown = item.shown
        asked = set(readers) - {int(shown.sender.id)}
        quoted = shown.quote.item if shown.quote else None
        both = asked & set(seeing) - {int(quoted.sender.id)} if quoted else set()
        found = self._matching_rules(folded_text(msgspec.structs.replace(shown, quote=None)), asked - both)
        return found | (self._matching_rules(folded_text(shown), both) if both else {})

    def _matching_rules(self, text: str, asked: set[int]) -> dict[int, list[FilterRule]]:
        now = timezone.now()
        hits: dict[int, set[str]] = {}
        own: dict[int, list[FilterRule]] = {}
        for shelf in self._shelves:
            for rule in shelf.filters.found(text, now):
                version, rules = shelf.owners[rule.owner]
                if rule.owner in asked and version == self._versions.get(rule.owner):
                    hits.setdefault(rule.owner, set()).add(rule.phrase)
                    own[rule.owner] = rules
        return {owner: [rule for rule in own[owner] if rule.phrase in phrases] for owner, phrases in hits.items()}
