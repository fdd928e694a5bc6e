"""Collects the state of the played history.

Makes up to 7 round trips to Redis (30,000 counts for 5,000 shards take 0.15 s), 4 reads of the store and 3 queries. A
server that does not answer is a problem. A user may be counted on several nodes.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, TypeVar

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runtime import metrics
from seen.filter_store import KEPT_MONTHS, StoreUnavailableError, month_of
from seen.migration import migrate
from seen.migration.old import Phase
from seen.models import MergeRun
from seen.played import PlayedUnavailableError, client, errors
from seen.ring import NODES, node_of, shards_of_task
from seen.store import store
from storage import keys
from storage.connections import fetch, pipelined

T = TypeVar("T")

HOUR = timedelta(hours=1)
SPAN = timedelta(days=1)
"""How far back the state goes."""
AT_ONCE = 5_000
"""Counts per round trip."""
FAILURES_SHOWN = 10
LATE = timedelta(minutes=15)
"""How long after the full hour merges must have begun."""


class NodeState(StrEnum):
    """The states of a node of the ring."""

    CURRENT = "current"
    """This hour's plays are marked here."""
    MERGING = "merging"
    """The last hour's node, which this hour's tasks merge."""
    LEFT = "left"
    """No task works here. Remaining users were missed twice, and wait one lap."""


class Ring(NamedTuple):
    """The users whose plays wait on the ring."""

    states: list[NodeState]
    """By node."""
    by_node: list[int]
    by_task_shard: list[int]

    def waiting(self, state: NodeState) -> int:
        """The number of users on nodes in this state."""
        return sum(users for one, users in zip(self.states, self.by_node, strict=True) if one == state)


class Failure(NamedTuple):
    """A failed merge."""

    at: datetime
    node: int
    task_shard: int
    error: str


class Month(NamedTuple):
    """The filters of a month. `size` in bytes."""

    month: str
    age: int
    """Months ago."""
    filters: int
    size: int


class Moving(NamedTuple):
    """How far the migration is (seen.migration.migrate)."""

    phase: Phase
    users: int
    """In the parts of files that were read."""
    merged: int
    left: int
    files: int
    unread: int
    """Files not read to their end."""


class Problem(NamedTuple):
    """A problem of the played history: a name for machines, and a sentence for people."""

    name: str
    text: str


class Merged(NamedTuple):
    """What the merges of a day did."""

    users: int
    plays: int
    failed_lately: int
    """Failures of this hour and the last one."""


class Status(NamedTuple):
    """The state of the played history."""

    at: datetime
    problems: list[Problem]
    ring: Ring | None
    merged: Merged
    last_merge: datetime | None
    failures: list[Failure]
    months: list[Month]
    migration: Moving | None
    """None if there was never one."""


def collect(*, now: datetime) -> Status:
    """Collect the state of the played history. Raises only Django's database errors."""
    problems: list[Problem] = []
    ring = _tried(lambda: _ring(now), problems, "plays")
    months, migration = _tried(lambda: (_months(now), _moving()), problems, "store") or ([], None)
    merged = Merged(*fetch(MERGED, {"since": now - SPAN, "now": now, "lately": _hour(now) - HOUR})[0])
    last = MergeRun.objects.order_by("-started_at").values_list("started_at", flat=True).first()
    status = Status(now, problems, ring, merged, last, _failures(now), months, migration)
    problems += _problems(status)
    return status


def measure(*, now: datetime) -> Status:
    """Set the metrics of the played history from its state, and return it."""
    status = collect(now=now)
    down = {problem.name for problem in status.problems}
    for name in ("plays", "store"):
        metrics.played_up.labels(name).set(name not in down)
    if ring := status.ring:
        for node, users in enumerate(ring.by_node):
            metrics.played_node.labels(node).set(users)
        for state in NodeState:
            metrics.played_backlog.labels(state).set(ring.waiting(state))
        for task_shard, users in enumerate(ring.by_task_shard):
            metrics.played_task_shard.labels(task_shard).set(users)
    if "store" not in down:
        found = {month.age: month for month in status.months}
        for age in range(KEPT_MONTHS + 1):
            month = found.get(age)
            metrics.played_filters.labels(age).set(month.filters if month else 0)
            metrics.played_filter_bytes.labels(age).set(month.size if month else 0)
        moving = status.migration
        metrics.played_migration.labels("merged").set(moving.merged if moving else 0)
        metrics.played_migration.labels("left").set(moving.left if moving else 0)
    return status


def _tried(look: Callable[[], T], problems: list[Problem], name: str) -> T | None:
    try:
        return look()
    except PlayedUnavailableError as error:
        text = _("The plays server does not answer, so calls with plays get 503 (%(error)s).")
        problems.append(Problem(name, text % {"error": error}))
    except StoreUnavailableError as error:
        text = _("The store of filters does not answer, so nothing is merged (%(error)s).")
        problems.append(Problem(name, text % {"error": error}))
    return None


# --- The ring ----------------------------------------------------------------------------------------------
def _ring(now: datetime) -> Ring:
    shards = range(settings.PLAYED_SHARDS)
    counts: list[list[int]] = []
    with errors():
        sets = [[keys.played_users(node, shard) for shard in shards] for node in range(NODES)]
        # If nobody played, EXISTS costs a sixth of counting.
        used = pipelined(client(), [("EXISTS", *each) for each in sets])
        for each, is_used in zip(sets, used, strict=True):
            counts.append([] if is_used else [0] * len(each))
            for first in range(0, len(each) if is_used else 0, AT_ONCE):
                counts[-1] += pipelined(client(), [("SCARD", key) for key in each[first : first + AT_ONCE]])
    ago = [(node_of(now) - node) % NODES for node in range(NODES)]
    parts = map(shards_of_task, range(settings.PLAYED_TASK_SHARDS))
    return Ring(
        [(NodeState.CURRENT, NodeState.MERGING)[hours] if hours < 2 else NodeState.LEFT for hours in ago],
        [sum(each) for each in counts],
        [sum(sum(each[part.start : part.stop]) for each in counts) for part in parts],
    )


# --- Merges ------------------------------------------------------------------------------------------------
MERGED = """
    SELECT coalesce(sum(users), 0), coalesce(sum(plays), 0),
        count(*) FILTER (WHERE error <> '' AND started_at >= %(lately)s)
    FROM seen_mergerun WHERE started_at > %(since)s AND started_at <= %(now)s
"""


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _failures(now: datetime) -> list[Failure]:
    failed = MergeRun.objects.filter(started_at__gt=now - SPAN, started_at__lte=now).exclude(error="")
    rows = failed.order_by("-started_at").values_list("started_at", "node", "task_shard", "error")[:FAILURES_SHOWN]
    return [Failure(*row) for row in rows]


# --- The filters -------------------------------------------------------------------------------------------
def _months(now: datetime) -> list[Month]:
    this_month = month_of(now)
    return [
        Month(f"{month // 12}-{month % 12 + 1:02}", this_month - month, found.filters, found.size)
        for month, found in sorted(store().stats().items(), reverse=True)
    ]


def _moving() -> Moving | None:
    found = migrate.status()
    migration = found.migration
    if migration.phase == Phase.NONE:
        return None
    unread = sum(not file.is_whole for file in migration.files)
    return Moving(migration.phase, found.users, found.merged, found.left, len(migration.files), unread)


# --- Problems that an administrator looks after ------------------------------------------------------------
def _problems(status: Status) -> Iterator[Problem]:
    if status.ring:
        yield from _problems_of_merging(status, status.ring)
    if failed := status.merged.failed_lately:
        text = ngettext("%(count)d merge failed within two hours.", "%(count)d merges failed within two hours.", failed)
        yield Problem("failed", text % {"count": failed})


def _problems_of_merging(status: Status, ring: Ring) -> Iterator[Problem]:
    if left := ring.waiting(NodeState.LEFT):
        text = ngettext(
            "The plays of %(users)d user were not merged in time. They are merged within six hours.",
            "The plays of %(users)d users were not merged in time. They are merged within six hours.",
            left,
        )
        yield Problem("left", text % {"users": left})
    this_hour = _hour(status.at)
    is_idle = status.last_merge is None or status.last_merge < this_hour
    if ring.waiting(NodeState.MERGING) and is_idle and status.at - this_hour > LATE:
        yield Problem("idle", _("Nothing was merged this hour, but plays wait. Check that beat and workers run."))
