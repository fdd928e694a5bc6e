"""The truth: one statement to PostgreSQL about a page whose windows have been read.

It says in one snapshot what the reader's windows must have been built for, which big-Vs' outboxes belong to them, which
deliveries are pending, and, of the candidates and of what is pending, what may be shown, with the bodies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from django.conf import settings

from accounts import policy
from accounts.models import User
from items.hydrate import ORIGINALS
from relations import rules
from storage.connections import fetch, id_array
from timeline import completions
from timeline.hydrate import VERIFIED, VERIFIED_WIDTH, Verified
from timeline.inbox import cap_of

FOLLOWED_BIG_VS = f"""
    SELECT one.reader, array_agg(followed.id) FROM unnest(%(readers)s::bigint[]) AS one (reader)
    CROSS JOIN LATERAL ({rules.followed_big_vs("one.reader")}) followed GROUP BY one.reader
"""  # noqa: S608 (constants)
# The columns of the reader are computed once (OFFSET 0: not anew for each item), and stand in every row of the result:
# there is one where no item is asked about.
READER = f"""
    SELECT reader.*, CASE WHEN push_generation = 0 OR push_generation <> %(pushes)s THEN ARRAY(
            {rules.followed_big_vs(rules.READER, "ARRAY[v.id, reader.generation # v.promotion]")}
        ) END AS big_vs
    FROM (
        SELECT {policy.has_inbox()} AS has_inbox, u.level, {policy.EPOCH} AS epoch,
            {policy.PUSH_GENERATION} AS push_generation, {policy.GENERATION} AS generation,
            {policy.PUSH_LEVEL} AS push_level, {policy.INBOX_FROM} AS inbox_from
        FROM accounts_user u WHERE u.id = %(reader)s OFFSET 0
    ) reader OFFSET 0
"""  # noqa: S608 (constants)
ASK, ASK_LAST = (
    f"""
    WITH scanned AS MATERIALIZED (
        SELECT d.item_id, d.sender_id FROM timeline_delivery d WHERE d.item_id < %(before)s
        ORDER BY d.item_id DESC LIMIT %(pending)s
    ),
    pending AS MATERIALIZED (
        SELECT scanned.item_id FROM scanned
        WHERE scanned.sender_id = %(reader)s OR {rules.follows(rules.READER, "scanned.sender_id")}
        ORDER BY scanned.item_id DESC LIMIT %(count)s
    )
    SELECT {columns}, candidate.id = ANY (ARRAY(SELECT item_id FROM pending)),
        reader.level, reader.has_inbox, reader.epoch, reader.push_generation, reader.push_level, reader.inbox_from,
        reader.big_vs,
        greatest(
            CASE WHEN (SELECT count(*) FROM scanned) = %(pending)s THEN (SELECT min(item_id) - 1 FROM scanned) END,
            CASE WHEN (SELECT count(*) FROM pending) = %(count)s THEN (SELECT min(item_id) - 1 FROM pending) END,
            0),
        (SELECT max(id) FROM items_item), {completions.LAST}
    FROM ({READER}) reader LEFT JOIN (
        (
            SELECT unnest(%(ids)s::bigint[]) AS id
            UNION ALL SELECT item_id FROM pending WHERE item_id <> ALL (%(ids)s::bigint[])
        ) candidate
        JOIN items_item i ON i.id = candidate.id JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ) ON true
    """  # noqa: S608
    for columns in VERIFIED
)


class _About(NamedTuple):
    """The columns at the end of every row of `ASK`: about the reader and PostgreSQL."""

    level: int
    has_inbox: bool
    epoch: int | None
    push_generation: int
    push_level: int
    inbox_from: int
    big_vs: list[tuple[int, int | None]] | None
    pending_bound: int
    newest: int | None
    last: int
    process: int


class Missed(StrEnum):
    """Why the windows did not suffice for a page: the label of `feedsite_home_misses_total`, told by timeline.explain.
    The name is for programs, in metrics and JSON: a new one needs a text in explain.WHYS and a line in
    docs/operations.md.
    """

    DORMANT = "dormant"
    """The reader's level has no inbox."""
    FEW = "few"
    """By the policy no reader with so few followees has an inbox."""
    MISSING = "missing"
    """A window is absent, under construction, or of another epoch or run."""
    FLOOR = "floor"
    """The page reaches below the floor of a window."""
    HIDDEN = "hidden"
    """Most of the entries may not be seen just now."""
    OUTBOXES = "outboxes"
    """To merge so many outboxes costs more than a pull."""
    REDIS = "redis"
    """No answer."""


@dataclass(slots=True)
class Expected:
    """The policy as this process met it last. It decides what a page tries first, never what it shows."""

    push_level: int = 0
    inbox_from: int = 0

    def forget(self) -> None:
        """Expect nothing: the next page tries the windows."""
        self.push_level = self.inbox_from = 0

    def has_inbox(self, reader: User) -> bool:
        """Whether the reader may have an inbox."""
        return cap_of(reader.level) > 0 and reader.following_count >= self.inbox_from

    def merges(self, reader: User) -> bool:
        """Whether a page of the reader's may merge outboxes."""
        return self.push_level == 0 or reader.level < self.push_level


expected = Expected()


@dataclass(slots=True)
class Truth:
    """PostgreSQL's word on a reader and on candidates for a page."""

    level: int
    has_inbox: bool
    """Whether fan-out serves the reader."""
    epoch: int | None
    """The epoch that the reader's windows must have been built for (policy.EPOCH); None: no window is to be used."""
    push_generation: int
    """The reader's, if they take pushes from big-Vs; 0: their pages merge the outboxes."""
    big_vs: dict[int, int | None] | None
    """The followed big-Vs, each with the epoch that the outbox must have been built for; None where the inbox that
    was read needs no outbox.
    """
    pending_bound: int
    """The pending deliveries are complete above this id."""
    newest: int
    """No item that PostgreSQL knew has a higher id."""
    has_moved: bool
    """Whether a delivery may have been completed since the windows were read (timeline.completions)."""
    rows: dict[int, Verified]
    """The candidates and what is pending by id, as far as they exist."""
    pending: set[int]
    """Those of them whose delivery is pending."""

    @property
    def has_windows(self) -> bool:
        """Whether the reader has an inbox, and a generation counts that it can be of."""
        return self.has_inbox and self.epoch is not None

    @property
    def why_no_windows(self) -> Missed:
        """The reason, where `has_windows` is false."""
        if self.has_inbox:
            return Missed.MISSING
        return Missed.FEW if self.level else Missed.DORMANT


def ask(reader_id: int, ids: Sequence[int], *, before: int, count: int, pushes: int, below: int = 0) -> Truth:
    """Ask PostgreSQL about the candidates `ids` and the newest `count` items that are pending below `before`.

    `pushes` is the push generation that the inbox names. The rows say what follows below `below`, unless that is 0.
    """
    params = {
        "reader": reader_id,
        "ids": id_array(ids),
        "before": before,
        "count": count,
        "pending": settings.PENDING_CAP + 1,
        "pushes": pushes,
        "below": below,
    }
    found = fetch(ASK_LAST if below else ASK, params)
    about = _About._make(found[0][VERIFIED_WIDTH:])
    rows = {item_id: Verified.of(row) for row in found if (item_id := row[0]) is not None}
    expected.push_level, expected.inbox_from = about.push_level, about.inbox_from
    return Truth(
        level=about.level,
        has_inbox=about.has_inbox,
        epoch=about.epoch,
        push_generation=about.push_generation,
        big_vs=None if about.big_vs is None else dict(about.big_vs),
        pending_bound=about.pending_bound,
        newest=about.newest or 0,
        has_moved=completions.have_moved(about.last, about.process),
        rows=rows,
        pending={item_id for item_id, row in rows.items() if row.is_pending},
    )


def followed_big_vs(reader_ids: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Which big-Vs each of these readers follows, without those who follow none."""
    return [(reader_id, ids) for reader_id, ids in fetch(FOLLOWED_BIG_VS, {"readers": id_array(reader_ids)})]
