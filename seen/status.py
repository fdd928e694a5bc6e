"""Collects the state of the played history: users waiting on the ring, merges, filters, and problems.

Makes 7 round trips to Redis (30,000 counts for 5,000 shards take 0.15 s), 4 reads of the store and 4 queries. A server
that does not answer is a problem. A user waits on the node of every hour in which they played, so may be counted twice.

Computed when the page is opened, because it is needed when beat and workers are down.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runtime import metrics
from seen.filter_store import KEPT_MONTHS, StoreUnavailableError, month_of
from seen.lmdb_store import LmdbStore
from seen.migration import migrate
from seen.migration.old import Phase
from seen.models import MergeRun
from seen.played import PlayedUnavailableError, client, errors
from seen.ring import NODES, node_of, shards_of_task
from seen.state import (
    Failure,
    Hour,
    Month,
    Moving,
    Node,
    NodeState,
    Problem,
    Room,
    Run,
    Server,
    Status,
    TaskShard,
)
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
FULL = 0.9
"""The share of its room at which the store counts as full."""


def collect(*, now: datetime) -> Status:
    """Ask all servers. Raises only Django's database errors."""
    problems: list[Problem] = []
    ring = _tried(lambda: _ring(now), problems, "plays")
    nodes, task_shards, server = ring or ([], [], None)
    months, migration = _tried(lambda: (_months(now), _moving()), problems, "store") or ([], None)
    _add_runs(task_shards, now)
    last = MergeRun.objects.order_by("-started_at").values_list("started_at", flat=True).first()
    status = Status(
        now,
        problems,
        nodes,
        task_shards,
        _hours(now),
        _failures(now),
        months,
        server,
        _room(),
        last,
        migration,
    )
    problems += _problems(status)
    return status


def measure(*, now: datetime) -> Status:
    """Set the metrics."""
    status = collect(now=now)
    down = {problem.name for problem in status.problems}
    for name in ("plays", "store"):
        metrics.played_up.labels(name).set(name not in down)
    for node in status.nodes:
        metrics.played_node.labels(node.number).set(node.users)
    for state in NodeState if status.nodes else ():
        metrics.played_backlog.labels(state).set(sum(node.users for node in status.nodes if node.state == state))
    for task_shard in status.task_shards:
        metrics.played_task_shard.labels(task_shard.number).set(task_shard.users)
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
def _ring(now: datetime) -> tuple[list[Node], list[TaskShard], Server]:
    shards = range(settings.PLAYED_SHARDS)
    sets = [[keys.played_users(node, shard) for shard in shards] for node in range(NODES)]
    counts: list[int] = []
    with errors():
        # If nobody played, EXISTS costs a sixth of counting.
        used = pipelined(client(), [("EXISTS", *each) for each in sets])
        for each, is_used in zip(sets, used, strict=True):
            asked = [("SCARD", key) for key in each] if is_used else []
            for first in range(0, len(asked), AT_ONCE):
                counts += pipelined(client(), asked[first : first + AT_ONCE])
            counts += [0] * (len(each) - len(asked))
        memory, persistence = map(_info, pipelined(client(), [("INFO", "memory"), ("INFO", "persistence")]))
    server = Server(
        int(memory.get("used_memory", 0)),
        persistence.get("aof_enabled") == "1",
        memory.get("maxmemory", "0") != "0" and memory.get("maxmemory_policy") != "noeviction",
    )
    by_node = [counts[len(shards) * node : len(shards) * (node + 1)] for node in range(NODES)]
    this_node, this_hour = node_of(now), now.replace(minute=0, second=0, microsecond=0)
    nodes = []
    for number in range(NODES):
        ago = (this_node - number) % NODES
        state = (NodeState.CURRENT, NodeState.MERGING)[ago] if ago < 2 else NodeState.LEFT
        nodes.append(Node(number, state, this_hour - ago * HOUR, sum(by_node[number])))
    return nodes, [_task_shard(number, nodes, by_node) for number in range(settings.PLAYED_TASK_SHARDS)], server


def _task_shard(number: int, nodes: Sequence[Node], by_node: Sequence[Sequence[int]]) -> TaskShard:
    shards = shards_of_task(number)
    parts = [counts[shards.start : shards.stop] for counts in by_node]

    def waiting(state: NodeState) -> int:
        return sum(sum(part) for node, part in zip(nodes, parts, strict=True) if node.state == state)

    fullest = max(max(part, default=0) for part in parts)
    return TaskShard(number, waiting(NodeState.CURRENT), waiting(NodeState.MERGING), waiting(NodeState.LEFT), fullest)


def _info(reply: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in reply.decode().splitlines())
    return {name: value for name, colon, value in lines if colon}


# --- Merges ------------------------------------------------------------------------------------------------
LAST_RUNS = """
    SELECT DISTINCT ON (task_shard, is_second) task_shard, extract(minute FROM started_at) >= 30 AS is_second,
        started_at, seconds, users, plays, error
    FROM seen_mergerun WHERE started_at > %s AND started_at <= %s
    ORDER BY task_shard, is_second, started_at DESC
"""
BY_HOUR = """
    SELECT date_trunc('hour', started_at, 'UTC'), sum(users), sum(plays), sum(seconds),
        count(*) FILTER (WHERE error <> '')
    FROM seen_mergerun WHERE started_at > %s AND started_at <= %s GROUP BY 1
"""


def _add_runs(task_shards: Sequence[TaskShard], now: datetime) -> None:
    for number, is_second, *found in fetch(LAST_RUNS, [now - SPAN, now]):
        if number < len(task_shards):
            setattr(task_shards[number], "second" if is_second else "first", Run(*found))


def _hours(now: datetime) -> list[Hour]:
    """The hours of the last day, the current one last."""
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    first = this_hour - SPAN + HOUR
    found = {hour: Hour(hour, *rest) for hour, *rest in fetch(BY_HOUR, [first - timedelta.resolution, now])}
    hours = (first + ago * HOUR for ago in range(SPAN // HOUR))
    return [found.get(hour) or Hour(hour) for hour in hours]


def _failures(now: datetime) -> list[Failure]:
    failed = MergeRun.objects.filter(started_at__gt=now - SPAN, started_at__lte=now).exclude(error="")
    rows = failed.order_by("-started_at").values_list("started_at", "node", "task_shard", "error")[:FAILURES_SHOWN]
    return [Failure(*row) for row in rows]


# --- The filters -------------------------------------------------------------------------------------------
def _months(now: datetime) -> list[Month]:
    """Newest first."""
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


def _room() -> Room | None:
    """For LMDB only. A server reports its own space."""
    found = store()
    if not isinstance(found, LmdbStore):
        return None
    try:
        used = (found.folder / "data.mdb").stat().st_size
        return Room(used, settings.PLAYED_STORE_BYTES, shutil.disk_usage(found.folder).free)
    except OSError:
        return None  # not created yet


# --- Problems that an administrator looks after ------------------------------------------------------------
def _problems(status: Status) -> Iterator[Problem]:
    yield from _problems_of_merging(status)
    if (server := status.server) is not None:
        if server.evicts:
            yield Problem("evicts", _("The plays server may evict data. Set maxmemory-policy noeviction."))
        if not server.is_logged:
            yield Problem("volatile", _("The plays server has no AOF and loses plays in a crash. Set appendonly yes."))
    if (room := status.room) is not None and room.used > FULL * min(room.most, room.used + room.free):
        yield Problem("full", _("The store of filters, or its disk, is almost full."))


def _problems_of_merging(status: Status) -> Iterator[Problem]:
    waiting = {state: sum(node.users for node in status.nodes if node.state == state) for state in NodeState}
    this_hour = status.at.replace(minute=0, second=0, microsecond=0)
    if left := waiting[NodeState.LEFT]:
        text = ngettext(
            "The plays of %(users)d user were not merged in time. They are merged within six hours.",
            "The plays of %(users)d users were not merged in time. They are merged within six hours.",
            left,
        )
        yield Problem("left", text % {"users": left})
    is_idle = status.last_merge is None or status.last_merge < this_hour
    if waiting[NodeState.MERGING] and is_idle and status.at - this_hour > LATE:
        yield Problem("idle", _("Nothing was merged this hour, but plays wait. Check that beat and workers run."))
    failed = sum(hour.failures for hour in status.hours[-2:])
    if failed:
        text = ngettext("%(count)d merge failed within two hours.", "%(count)d merges failed within two hours.", failed)
        yield Problem("failed", text % {"count": failed})
