"""The candidates for a reader's next pages: recalled, filtered and mixed.

See docs/decisions.md: Recall adds up small bounded queries.
"""

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from accounts.models import User
from discover import impressions
from discover.exclusions import exclude
from discover.kept import KeptRecall
from discover.recall import RecalledItem
from discover.recallers import recall
from runtime import metrics
from seen.checker import unseen
from seen.filter_store import StoreUnavailableError
from seen.played import PlayedUnavailableError
from seen.usage import usage
from storage.connections import FeedsUnavailableError

logger = logging.getLogger(__name__)

DEEPER = 4
"""With too few candidates left, recall this many times as many."""
APART = 3
"""Of this many cards in a row, one comes by the same hashtag, while there are others."""


PART = 80
"""Candidates to filter first. While these do not fill a page, twice as many follow."""


@dataclass(frozen=True, slots=True)
class FilteredCandidates:
    """The candidates that are left. `is_deduplicated`: the week's impressions and views were known."""

    candidates: list[RecalledItem]
    is_deduplicated: bool
    to_keep: list[RecalledItem]
    """These as recall scored them, and those that were not filtered yet."""

    @property
    def has_more(self) -> bool:
        """Whether there are candidates that were not filtered yet."""
        return len(self.to_keep) > len(self.candidates)


def recall_unseen(reader: User, *, wanted: int, now: datetime, kept: KeptRecall | None = None) -> FilteredCandidates:
    """The candidates to show among the first `RECALL_COUNT`, or among more if fewer than `wanted` are left.

    With `kept` only among these and newer posts.

    Source: the smart feed protocol, scenario 1, steps 2 and 3; the recent views article.
    """
    if kept:
        return _filter(reader, kept.with_newer(reader, now), wanted, now)
    count = settings.RECALL_COUNT
    while True:
        found = recall(reader, count=count, now=now)
        filtered = _filter(reader, found, wanted, now)
        deeper = min(count * DEEPER, settings.RECALL_DEPTH)
        if len(filtered.candidates) >= wanted or len(found) < count or deeper <= count:
            return filtered
        count = deeper


def _filter(reader: User, found: Sequence[RecalledItem], wanted: int, now: datetime) -> FilteredCandidates:
    """Filter the first candidates: `PART` of them, and more while these do not fill a page of `wanted`."""
    candidates: list[RecalledItem] = []
    excluded: Counter[str] = Counter()
    is_known, done, size = True, 0, max(PART, 3 * wanted)
    while done < len(found) and not _fills(candidates, wanted):
        part = found[done : done + size]
        kept = exclude(reader, part, now=now)
        unseen_ones, is_seen_known = _unseen(reader, kept.candidates, now)
        excluded += kept.excluded
        excluded["impression"] += len(kept.candidates) - len(unseen_ones)
        is_known = is_known and is_seen_known and kept.views_known
        candidates += unseen_ones
        done, size = done + len(part), 2 * size
    left = {one.item_id for one in candidates}
    _log_exclusions(reader, done, excluded, len(left))
    return FilteredCandidates(
        candidates, is_known, [one for one in found[:done] if one.item_id in left] + list(found[done:])
    )


def _fills(candidates: Sequence[RecalledItem], wanted: int) -> bool:
    """Whether a page takes `wanted` of the candidates, in spite of `SENDER_CAP`."""
    cap = settings.SENDER_CAP
    return sum(min(count, cap) for count in Counter(one.sender_id for one in candidates).values()) >= wanted


def _unseen(reader: User, candidates: list[RecalledItem], now: datetime) -> tuple[list[RecalledItem], bool]:
    """The candidates that the reader has not seen.

    False, with candidates that they may have seen, if that is unknown.
    """
    ids = [one.item_id for one in candidates]
    left = set(ids)
    is_known = True
    if settings.DISCOVER_SEEN != "plays":
        try:
            left -= impressions.shown_among(reader.pk, ids, today=now.date())
        except FeedsUnavailableError:
            is_known = False
    if settings.DISCOVER_SEEN != "impressions":
        try:
            if settings.DISCOVER_SEEN != "auto" or usage.is_kept():
                left.intersection_update(unseen(reader.pk, ids, now=now))
        except (PlayedUnavailableError, StoreUnavailableError):
            is_known = False
    return [one for one in candidates if one.item_id in left], is_known


def _log_exclusions(reader: User, found: int, excluded: Counter[str], left: int) -> None:
    for reason, count in excluded.items():
        metrics.discover_excluded.labels(reason).inc(count)
    reasons = " ".join(f"{reason}={count}" for reason, count in sorted(excluded.items()) if count)
    logger.info("Recall for user %s: recalled=%s left=%s excluded: %s", reader.pk, found, left, reasons or "nothing")


def spread_senders(candidates: Sequence[RecalledItem], size: int) -> list[RecalledItem]:
    """The candidates in pages of `size`, each with at most `SENDER_CAP` of one sender. Later pages may have gaps."""
    pages: list[list[RecalledItem]] = []
    open_page = 0
    next_page: defaultdict[int, int] = defaultdict(int)
    here: Counter[int] = Counter()
    for candidate in candidates:
        sender = candidate.sender_id
        place = max(open_page, next_page[sender])
        while place < len(pages) and len(pages[place]) >= size:
            place += 1
        if place >= len(pages):
            pages.append([])
            place = len(pages) - 1
        if place > next_page[sender]:
            next_page[sender], here[sender] = place, 0
        pages[place].append(candidate)
        here[sender] += 1
        if here[sender] >= settings.SENDER_CAP:
            next_page[sender], here[sender] = place + 1, 0
        while open_page < len(pages) and len(pages[open_page]) >= size:
            open_page += 1
    return [candidate for page in pages for candidate in page]


def spread_tags(candidates: Sequence[RecalledItem]) -> list[RecalledItem]:
    """The candidates, with those that came by the same hashtag `APART`. What is left of them stands at the end."""
    spread: list[RecalledItem] = []
    free_from: Counter[str] = Counter()
    held: defaultdict[str, deque[RecalledItem]] = defaultdict(deque)
    for candidate in candidates:
        reason = candidate.reason
        if reason.startswith("tag:"):
            held[reason].append(candidate)
        else:
            spread.append(candidate)
        for tag, waiting in held.items():
            if waiting and len(spread) >= free_from[tag]:
                free_from[tag] = len(spread) + APART
                spread.append(waiting.popleft())
    left = {one.item_id for waiting in held.values() for one in waiting}
    return spread + [one for one in candidates if one.item_id in left]
