"""The recommended feed: `refresh` starts a new recall, `load_more` continues, and no reader gets an item twice.

PostgreSQL stores each page with its call (IssuedPage), one call of a reader after the other. So whatever Redis loses, a
page repeats nothing of the last day. Bloom filters know the week before (discover.impressions).

Source: the smart feed protocol, section 4.

See docs/decisions.md: Shown pages are rows of PostgreSQL.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.about.site import current
from accounts.models import User
from discover import reasons
from discover.cache import CachedRecommendation, CandidateList
from discover.candidates import FilteredCandidates, recall_unseen, spread_senders, spread_tags
from discover.kept import KeptRecall
from discover.models import IssuedPage
from items.bodies import ItemBody
from items.hydrate import ItemRow, body, columns, decorate
from items.models import Context
from items.visibility import visible_alone
from relations.rules import READER, mutes
from runtime import metrics
from storage.connections import FeedsUnavailableError, feeds_errors, fetch, id_array

LOCK = 0x64697363
"""The class of the advisory locks, one per reader."""
ROUNDS = 5
"""How often a page is refilled if cached items are now hidden or of one sender."""

# Posts only, so there are no originals and threads to check.
SHOWN = f"""
    SELECT {columns("i", "s")} FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS wanted (id, place)
    JOIN items_item i ON i.id = wanted.id JOIN accounts_user s ON s.id = i.sender_id
    WHERE i.repost_of_id IS NULL AND i.reply_to_id IS NULL AND i.sender_id <> %(reader)s AND {visible_alone("i", "s")}
        AND NOT {mutes(READER, "i.sender_id")}
        AND NOT EXISTS (SELECT FROM discover_notinterested n WHERE n.user_id = %(reader)s AND n.item_id = i.id)
        AND (%(again)s OR i.id NOT IN (SELECT unnest(p.item_ids) FROM discover_issuedpage p
            WHERE p.user_id = %(reader)s))
    ORDER BY wanted.place
"""
ISSUE = """
    INSERT INTO discover_issuedpage (user_id, request_id, item_ids, reasons, has_more, issued_at, is_recorded)
    VALUES (%s, %s, %s::bigint[], %s, %s, %s, false) RETURNING id
"""


@dataclass(slots=True)
class FeedPage:
    """A page of the feed. `has_more`: the same recall has more.

    `sources`: `cache`, `recall`, `issued` (a repeated call), and `no-dedup` if Redis could not say what was seen.
    """

    items: list[ItemBody]
    has_more: bool
    sources: list[str]


class Buffer(Protocol):
    """A queue of entries to recommend."""

    @property
    def left(self) -> int:
        """The number of entries left."""
        ...

    def take(self, count: int) -> list[CachedRecommendation]:
        """Remove and return the first `count` entries or fewer."""
        ...

    def put_back(self, entries: Sequence[CachedRecommendation]) -> None:
        """Put entries back at the front."""
        ...


@dataclass(slots=True)
class RecalledBuffer:
    """A queue of candidates just recalled."""

    entries: list[CachedRecommendation]

    @property
    def left(self) -> int:
        """The number of entries left."""
        return len(self.entries)

    def take(self, count: int) -> list[CachedRecommendation]:
        """Remove and return the first `count` entries or fewer."""
        taken, self.entries = self.entries[:count], self.entries[count:]
        return taken

    def put_back(self, entries: Sequence[CachedRecommendation]) -> None:
        """Put entries back at the front."""
        self.entries = [*entries, *self.entries]


@dataclass(slots=True)
class CachedBuffer:
    """A queue of candidates of an earlier refresh. Raises what redis-py raises."""

    cache: CandidateList
    left: int = 0

    def take(self, count: int) -> list[CachedRecommendation]:
        """Remove and return the first `count` entries or fewer."""
        taken, self.left = self.cache.pop(count)
        return taken

    def put_back(self, entries: Sequence[CachedRecommendation]) -> None:
        """Put entries back at the front."""
        self.cache.put_back(entries)
        self.left += len(entries)


@dataclass(slots=True)
class FilledPage:
    """A page in the making."""

    items: list[ItemBody] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


# --- The two calls ---------------------------------------------------------------------------------------
def refresh(reader: User, *, limit: int, request_id: str | None = None, now: datetime | None = None) -> FeedPage:
    """Start a new recall, and return the best items that `reader` has not seen. Drops cached candidates.

    Repeating a `request_id` within a day returns its page. Raises Django's database errors, but none of Redis.
    """
    now = now or timezone.now()
    with transaction.atomic():
        _lock(reader)
        page = _replayed(reader, request_id) or _page_from_recall(reader, limit, request_id, now)
    metrics.discover_pages.labels("refresh", page.sources[0]).inc()
    return page


def load_more(reader: User, *, limit: int, request_id: str | None = None, now: datetime | None = None) -> FeedPage:
    """The next page of the last refresh, maybe short. If nothing is left, it is a refresh."""
    now = now or timezone.now()
    with transaction.atomic():
        _lock(reader)
        page = (
            _replayed(reader, request_id)
            or _page_from_cache(reader, limit, request_id, now)
            or _page_from_recall(reader, limit, request_id, now)
        )
    metrics.discover_pages.labels("load_more", page.sources[0]).inc()
    return page


def _lock(reader: User) -> None:
    """Let one call of a reader run at a time. Later statements then see what was issued meanwhile."""
    fetch("SELECT FROM pg_advisory_xact_lock(%s, %s)", [LOCK, reader.pk % 2**31])


def _replayed(reader: User, request_id: str | None) -> FeedPage | None:
    """The page of an earlier call with this id, without items that are now hidden. None if there is none."""
    if request_id is None:
        return None
    issued = IssuedPage.objects.filter(user=reader, request_id=request_id).first()
    if issued is None:
        return None
    codes = dict(zip(issued.item_ids, issued.reasons, strict=True))
    items = _visible_entries(
        reader, [CachedRecommendation(item_id, codes[item_id]) for item_id in issued.item_ids], again=True
    )
    return FeedPage([item for item, _ in items], issued.has_more, ["issued"])


def _page_from_cache(reader: User, limit: int, request_id: str | None, now: datetime) -> FeedPage | None:
    cached = CachedBuffer(CandidateList(reader.pk))
    try:
        with feeds_errors():
            filled = _fill(reader, cached, limit)
    except FeedsUnavailableError:
        return None
    if not filled.items:
        return None
    return _record_page(reader, filled, request_id, now, has_more=cached.left > 0, sources=["cache"])


def _page_from_recall(reader: User, limit: int, request_id: str | None, now: datetime) -> FeedPage:
    cache = CandidateList(reader.pk)
    is_known, kept = True, None
    try:
        with feeds_errors():
            kept = cache.drop()
    except FeedsUnavailableError:
        is_known = False
    if kept and not kept.serves(reader, now):
        kept = None
    found, recalled, filled = _fill_from_recall(reader, limit, now, kept)
    if kept and len(filled.items) < limit:
        kept = None
        found, recalled, filled = _fill_from_recall(reader, limit, now)
    try:
        with feeds_errors():
            cache.push(recalled.entries, None if kept else KeptRecall.of(reader, found.to_keep, now))
    except FeedsUnavailableError:
        is_known = False
    sources = ["recall"] if is_known and found.is_deduplicated else ["recall", "no-dedup"]
    has_more = recalled.left > 0 or found.has_more
    return _record_page(reader, filled, request_id, now, has_more=has_more, sources=sources)


def _fill_from_recall(
    reader: User, limit: int, now: datetime, kept: KeptRecall | None = None
) -> tuple[FilteredCandidates, RecalledBuffer, FilledPage]:
    found = recall_unseen(reader, wanted=limit, now=now, kept=kept)
    ordered = spread_senders(spread_tags(found.candidates), limit)
    recalled = RecalledBuffer([CachedRecommendation(one.item_id, one.reason) for one in ordered])
    return found, recalled, _fill(reader, recalled, limit)


# --- Pages -----------------------------------------------------------------------------------------------
def _fill(reader: User, buffer: Buffer, limit: int) -> FilledPage:
    filled = FilledPage()
    senders: Counter[str] = Counter()
    later: list[CachedRecommendation] = []
    for _ in range(ROUNDS):
        entries = buffer.take(limit)
        for item, entry in _visible_entries(reader, entries):
            if len(filled.items) >= limit or senders[item.sender.id] >= settings.SENDER_CAP:
                later.append(entry)
                continue
            senders[item.sender.id] += 1
            filled.items.append(item)
            filled.reasons.append(entry.reason)
        if len(filled.items) >= limit or len(entries) < limit:
            break
    if later:
        buffer.put_back(later)
    return filled


def _visible_entries(
    reader: User, entries: Sequence[CachedRecommendation], *, again: bool = False
) -> list[tuple[ItemBody, CachedRecommendation]]:
    """The bodies of the entries that the reader may see. Issued ones only with `again`."""
    if not entries:
        return []
    by_id = {entry.item_id: entry for entry in entries}
    rows = fetch(SHOWN, {"ids": id_array(by_id), "reader": reader.pk, "again": again}, into=ItemRow.of)
    shown = decorate(
        [body(row, reader.pk, reasons.words(by_id[row.id].reason)) for row in rows], reader, Context.PUBLIC
    )
    return [(item, by_id[int(item.id)]) for item in shown]


def _record_page(
    reader: User, filled: FilledPage, request_id: str | None, now: datetime, *, has_more: bool, sources: list[str]
) -> FeedPage:
    """Store the page, except in read-only mode, and return it."""
    if (filled.items or request_id is not None) and current().is_writable:
        issued = id_array(int(item.id) for item in filled.items)
        fetch(ISSUE, [reader.pk, request_id, issued, filled.reasons, has_more, now])
    return FeedPage(filled.items, has_more, sources)
