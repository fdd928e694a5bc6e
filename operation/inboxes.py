"""Estimates which `inbox_from` saves most, from a sample of readers.

A reader below it has no inbox and gets no deliveries. Each page is one pull that costs time per followee.
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
"""A window has the entries of this many days, up to its cap."""
LISTPACK = 512
"""Up to this many entries, the server stores a window compactly (zset-max-listpack-entries)."""
SHARES = (0.0, 1 / 15, 1 / 4, 1.0)
"""Pages opened by a reader of each level, relative to the highest: by the level's middle age in days."""
CANDIDATES = (0, 10, 20, 50, 100, 200)
SAMPLED = 300
"""Readers in the sample."""
FOLLOWEES = 100
"""Maximum followees per reader in the sample."""
NEWEST = 50
"""Maximum items per followee in the sample. Bounds the steps in an index."""
PAGES = 5.0
"""Pages per day of a daily reader."""

# Items per day that reach readers. For busy senders the rate comes from their newest items, so that a burst counts as a
# day's work.
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
    """No data for a recommendation. The message is for people."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Unit costs: seconds of one core, including servers' work, and bytes of Redis. Measured on 2026-11-21 on 2 cores
    of an AMD EPYC; `bench scale` measures again.
    """

    push: float = 14.2e-6
    """One delivery, in a fan-out to 10,000 followers of level 3."""
    page: float = 1.9e-3
    """A first page over HTTP without a pull."""
    pull: float = 46e-6
    """One more outbox in a page."""
    inbox: float = 0.79e-3
    """The part of a page that reads an inbox."""
    sql: float = 0.59e-3
    """One pull instead, without followees."""
    followee: float = 5.5e-6
    """Each followee in the pull."""
    packed_entry: float = 34.2
    """Bytes per entry of a window of up to `LISTPACK` entries."""
    entry: float = 84.2
    """Bytes per entry of a longer window."""


def window_bytes(entries: Floats, costs: Costs) -> Floats:
    """Bytes of windows, by numbers of entries."""
    held: Floats = entries * np.where(entries <= LISTPACK, costs.packed_entry, costs.entry)
    return held


@dataclass(frozen=True, slots=True)
class Readers:
    """Readers as arrays. Rates are per day."""

    followees: Integers
    deliveries: Floats
    """Deliveries into the reader's inbox, if there is one."""
    outboxes: Integers
    """Outboxes that a page merges."""
    pages: Floats
    caps: Integers
    """Cap of the reader's inbox."""


@dataclass(frozen=True, slots=True)
class Saving:
    """A day's savings compared with inboxes for all active readers."""

    inbox_from: int
    readers: float
    """Share of readers without an inbox."""
    deliveries: float
    """Share of deliveries saved."""
    memory: float
    """Share of inbox memory saved."""
    pages: float
    """Share of pages served by one pull."""
    delivered: float
    """Deliveries saved."""
    bytes: float
    """Bytes saved."""
    writing: float
    """Seconds of one core saved by fewer deliveries."""
    reading: float
    """Seconds of one core saved by pages. May be negative."""
    before: float
    """Seconds per page of these readers with an inbox."""
    after: float
    """Seconds per page of these readers with a pull."""

    @property
    def total(self) -> float:
        """Seconds of one core saved in total."""
        return self.writing + self.reading


class _Sampled(NamedTuple):
    user_id: int
    level: int
    followees: int
    arriving: float


def sample(*, now: datetime, days: int = 30) -> Readers:
    """Random readers, as if every item were pushed. Raises NothingWrittenError."""
    ((first, last),) = fetch("SELECT min(id), max(id) FROM accounts_user")
    points = [random.randint(first, last) for _ in range(SAMPLED)] if last else []  # noqa: S311 (a sample)
    since = compose(now - timedelta(days=days), 0)
    rows = fetch(SAMPLE, {"points": points, "now": now, "days": days, "since": since}, into=_Sampled._make)
    if not any(row.arriving for row in rows):
        raise NothingWrittenError(
            f"no post of the last {days} days reaches the readers of the sample, so there is no advice"
        )
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
    """The lowest of those that save most."""
    return max(found, key=lambda saving: (saving.total, -saving.inbox_from))


def advice(*, now: datetime, costs: Costs | None = None) -> str:
    """The recommendation in one sentence."""
    readers = sample(now=now)
    best = recommended(savings(readers, costs or Costs()))
    current = policy.current().inbox_from
    said = f"inbox_from is {current:,}; by a sample of {len(readers.followees):,} readers {best.inbox_from:,} is best"
    if not best.inbox_from:
        return said
    return (
        f"{said}. Against 0 it saves {best.deliveries:.0%} of the deliveries and {best.memory:.0%} of the inboxes' "
        f"memory. {best.pages:.0%} of the pages take {best.after * 1e3:.2f} ms instead of {best.before * 1e3:.2f}"
    )
