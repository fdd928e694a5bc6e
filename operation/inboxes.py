"""What readers with few followees cost with an inbox and by one pull, and which `inbox_from` saves most.

A reader below `inbox_from` takes no delivery and has no inbox. Each of their pages is one pull, with a cost for every
followee, instead of an inbox and its outboxes. The readers are a sample of the site's own.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from accounts.levels import policy
from items.visibility import for_followers, in_timelines
from relations.rules import followees
from storage.connections import fetch
from storage.ids import compose

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

KEPT_DAYS = 365
"""A window holds the entries of this many days, up to its cap."""
LISTPACK = 512
"""Entries up to which the server packs a window (zset-max-listpack-entries)."""
SHARES = (0.0, 1 / 15, 1 / 4, 1.0)
"""Pages that a reader of each level opens for one of the highest: a level's middle age, in days."""
CANDIDATES = (0, 10, 20, 50, 100, 200)
SAMPLED = 300
"""Readers of the site that are looked at."""
FOLLOWEES = 100
"""Followees of each reader that are looked at."""
NEWEST = 50
"""Items of those that are looked at, at most: so many steps in an index, however large the site is."""
PAGES = 5.0
"""A day, of a reader who comes every day."""

# How much a day reaches readers with an inbox. The newest items of busy senders tell how much they write, but a burst
# is taken for a day's work.
SAMPLE = f"""
    SELECT u.id, u.level, u.following_count, u.following_count * coalesce(arriving.a_day, 0)::float8
    FROM (
        SELECT DISTINCT awake.* FROM unnest(%(points)s::bigint[]) point CROSS JOIN LATERAL (
            SELECT id, level, following_count FROM accounts_user WHERE id >= point AND level > 0 ORDER BY id LIMIT 1
        ) awake
    ) u CROSS JOIN LATERAL (
        SELECT avg(sender.a_day) AS a_day FROM (
            SELECT CASE WHEN written.items = {NEWEST}
                THEN {NEWEST} * 86400 / greatest(
                    extract(epoch FROM %(now)s::timestamptz - feedsite_id_time(written.oldest)), 86400)
                ELSE written.items / %(days)s::float8 END AS a_day
            FROM (
                {followees("u.id", "followee_id AS id")} LIMIT {FOLLOWEES}
            ) followee
            CROSS JOIN LATERAL (
                SELECT count(*) AS items, min(newest.id) AS oldest FROM (
                    SELECT i.id FROM items_item i
                    WHERE i.sender_id = followee.id AND {in_timelines("i")}
                        AND {for_followers("i")} AND i.id > %(since)s
                    ORDER BY i.id DESC LIMIT {NEWEST}
                ) newest
            ) written
        ) sender
    ) arriving
"""  # noqa: S608 (constants)


class NothingWrittenError(Exception):
    """There is nothing to recommend from. The message is for people."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Unit costs: seconds of one core, servers' work included, and bytes of Redis. Measured on 2026-11-21 on 2 cores
    of an AMD EPYC. `bench scale` measures them again.
    """

    push: float = 14.2e-6
    """One delivery of a fan-out to 10,000 followers of level 3."""
    page: float = 1.9e-3
    """A first page over HTTP that pulls nothing."""
    pull: float = 46e-6
    """One outbox more in a page."""
    inbox: float = 0.79e-3
    """The part of a page that reads from an inbox."""
    sql: float = 0.59e-3
    """The time of one pull instead, without any followee."""
    followee: float = 5.5e-6
    """The time of the pull for each further followee."""
    packed_entry: float = 34.2
    """Bytes of an entry of a window of up to `LISTPACK` entries."""
    entry: float = 84.2
    """Bytes of an entry of a longer window."""


def window_bytes(entries: Floats, costs: Costs) -> Floats:
    """Bytes of each window, by its number of entries."""
    held: Floats = entries * np.where(entries <= LISTPACK, costs.packed_entry, costs.entry)
    return held


@dataclass(frozen=True, slots=True)
class Readers:
    """Readers of a graph or of a sample, in arrays. Rates are a day's."""

    followees: Integers
    deliveries: Floats
    """Deliveries into each reader's inbox, if they have one."""
    outboxes: Integers
    """Outboxes that a page merges into each reader's inbox."""
    pages: Floats
    caps: Integers
    """The cap of each reader's inbox."""


@dataclass(frozen=True, slots=True)
class Saving:
    """A day with an `inbox_from`, against a day in which every active reader has an inbox."""

    inbox_from: int
    readers: float
    """The share of the readers who have no inbox then."""
    deliveries: float
    """The share of the deliveries that are not made."""
    memory: float
    """The share of the bytes of inboxes that are not held."""
    pages: float
    """The share of the pages that one pull serves."""
    delivered: float
    """Deliveries that are not made."""
    bytes: float
    """Bytes that are not held."""
    writing: float
    """Seconds of one core that deliveries take less."""
    reading: float
    """Seconds of one core that pages take less; negative: more."""
    before: float
    """Seconds that a page of these readers takes from an inbox."""
    after: float
    """Seconds that a page of these readers takes by one pull."""

    @property
    def total(self) -> float:
        """Seconds of one core that the day takes less."""
        return self.writing + self.reading


class _Sampled(NamedTuple):
    """A row of `SAMPLE`: a reader, and how many items a day arrive from whom they follow."""

    user_id: int
    level: int
    followees: int
    arriving: float


def sample(*, now: datetime, days: int = 30) -> Readers:
    """`SAMPLED` of the site's readers by chance, as if every item were pushed to them. Raises NothingWrittenError
    without readers, or where nothing is written.
    """
    ((first, last),) = fetch("SELECT min(id), max(id) FROM accounts_user")
    points = [random.randint(first, last) for _ in range(SAMPLED)] if last else []  # noqa: S311 (a sample)
    since = compose(now - timedelta(days=days), 0)
    rows = fetch(SAMPLE, {"points": points, "now": now, "days": days, "since": since}, into=_Sampled._make)
    if not any(row.arriving for row in rows):
        raise NothingWrittenError(f"nothing was written within {days} days that reaches the readers who were looked at")
    levels = np.array([row.level for row in rows])
    return Readers(
        np.array([row.followees for row in rows]),
        np.array([row.arriving for row in rows], dtype=np.float64),
        np.zeros(len(rows), dtype=np.int64),
        np.array(SHARES)[levels] * PAGES,
        _caps(levels),
    )


def _caps(levels: Integers) -> Integers:
    return np.array([0, *(settings.LEVEL_CAPS[level] for level in (1, 2, 3))])[levels]


def savings(readers: Readers, costs: Costs, candidates: Sequence[int] = CANDIDATES) -> list[Saving]:
    """The savings and costs of each `inbox_from`."""
    entries = np.minimum(readers.deliveries * KEPT_DAYS, readers.caps)
    held = window_bytes(entries, costs)
    from_inbox = costs.page + costs.pull * readers.outboxes
    by_pull = costs.page - costs.inbox + costs.sql + costs.followee * readers.followees
    found = []
    for inbox_from in candidates:
        few = readers.followees < inbox_from
        pages = readers.pages[few]
        before, after = float(pages @ from_inbox[few]), float(pages @ by_pull[few])
        delivered, held_by_few = float(readers.deliveries[few].sum()), float(held[few].sum())
        opened = max(float(pages.sum()), 1e-9)
        found.append(
            Saving(
                inbox_from,
                readers=_share(float(few.sum()), len(few)),
                deliveries=_share(delivered, readers.deliveries.sum()),
                memory=_share(held_by_few, held.sum()),
                pages=_share(float(pages.sum()), readers.pages.sum()),
                delivered=delivered,
                bytes=held_by_few,
                writing=delivered * costs.push,
                reading=before - after,
                before=before / opened,
                after=after / opened,
            )
        )
    return found


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def recommended(found: Sequence[Saving]) -> Saving:
    """The one that saves most; of equals the lowest."""
    return max(found, key=lambda saving: (saving.total, -saving.inbox_from))


def advice(*, now: datetime, costs: Costs | None = None) -> str:
    """One sentence for this site as it is, from a sample."""
    readers = sample(now=now)
    best = recommended(savings(readers, costs or Costs()))
    current = policy.current().inbox_from
    said = f"inbox_from is {current:,}; a sample of {len(readers.followees):,} readers recommends {best.inbox_from:,}"
    if not best.inbox_from:
        return said
    return (
        f"{said}, which saves against 0 {best.deliveries:.0%} of the deliveries and {best.memory:.0%} of the inboxes' "
        f"memory; {best.pages:.0%} of the pages take {best.after * 1e3:.2f} ms instead of {best.before * 1e3:.2f}"
    )
