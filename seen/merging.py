"""Merges plays from Redis into the month filters on disk, every hour.

A merge may die at any point, run twice, late, or beside another one, and no play is lost:
- Plays leave Redis only after the store has them, and only as they were read. A play repeated meanwhile stays.
- Adding to a filter twice changes nothing.
- A user's mark leaves the ring after their plays, and is set again if new plays came in between.

A run merges at most `rounds()` parts of a user, so that no command blocks Redis for long. Other tasks merge the rest.

Source: the deduplication article, 3.2.2.

See docs/decisions.md: A play leaves Redis only after it is on disk.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from django.conf import settings

from runtime import metrics
from seen import forgetting, played
from seen.filter_store import IDLE_HOURS, MONTHS, FilterKey, StoreRefusedError, StoreUnavailableError, month_of
from seen.filters import Ids, MonthFilter, id_numbers, parse_stored
from seen.migration import old
from seen.models import MergeRun
from seen.played import PlayedRefusedError, PlayedUnavailableError, client, errors, mark_commands
from seen.ring import node_before, shards_of_task
from seen.store import store
from storage import keys
from storage.connections import pipelined, register_script

logger = logging.getLogger(__name__)

PURGED_AT_ONCE = 500
RUNS_KEPT = timedelta(days=30)
"""How long records of merges are kept."""
CHUNK = 200
"""Users per transaction of the store."""
PART = 1_000
"""Plays of one user to read, merge and remove at a time."""
OF_ONE_USER = (ValueError, ArithmeticError, PlayedRefusedError, StoreRefusedError)
"""Errors that one user's data may cause. BadFilterError is a ValueError."""

Mark = tuple[int, int]
"""A shard, and a user marked on it."""

# KEYS: recent plays; ARGV: ids and scores as read. Replies how many plays are left.
FORGET = register_script(
    """
    for n = 1, #ARGV, 2 do
        if redis.call('ZSCORE', KEYS[1], ARGV[n]) == ARGV[n + 1] then redis.call('ZREM', KEYS[1], ARGV[n]) end
    end
    return redis.call('ZCARD', KEYS[1])
    """
)


class BadPlaysError(Exception):
    """One user's plays or filters cannot be merged."""


@dataclass(slots=True)
class MergeResult:
    """The result of a merge. `failed`: the number of users whose plays were not merged."""

    users: int = 0
    plays: int = 0
    failed: int = 0
    failure: Exception | None = None


def merge_task_shard(task_shard: int, *, now: datetime) -> MergeResult:
    """Merge one task's shards of the last hour, and record the result. Raises the first failure."""
    node, begin = node_before(now), time.monotonic()
    merged = merge_shards(node, shards_of_task(task_shard), now=now)
    seconds = time.monotonic() - begin
    metrics.played_merged_users.inc(merged.users)
    metrics.played_merged_plays.inc(merged.plays)
    metrics.played_merge_seconds.inc(seconds)
    metrics.played_merges.labels("failed" if merged.failure else "done").inc()
    metrics.played_failed_users.inc(merged.failed)
    if merged.users or merged.failure:
        MergeRun.objects.create(
            node=node,
            task_shard=task_shard,
            started_at=now,
            seconds=seconds,
            users=merged.users,
            plays=merged.plays,
            error=str(merged.failure or "")[:200],
        )
    if merged.failure:
        raise merged.failure
    return merged


def merge_shards(node: int, shards: Iterable[int], *, now: datetime) -> MergeResult:
    """Merge the plays of all users who are marked in these shards. Failed ones are left to the next pass."""
    merged = MergeResult()
    try:
        for marked in _scan_marks(node, shards):
            parts = [marked]
            for part in parts:
                try:
                    merged.plays += merge_users([user_id for _, user_id in part], now=now)
                    merged.users += len(part)
                    _unmark(node, part, now)
                except OF_ONE_USER as error:
                    if len(part) > 1:  # one user's plays fail: retry each user alone
                        parts += [[mark] for mark in part]
                    else:
                        user_id = part[0][1]
                        logger.exception("the plays of user %d cannot be merged", user_id)
                        merged.failed += 1
                        merged.failure = merged.failure or BadPlaysError(f"user {user_id}: {error}")
                except StoreUnavailableError as error:
                    merged.failed += len(part)
                    merged.failure = merged.failure or error
    except PlayedUnavailableError as error:  # all shards are on one server
        merged.failure = merged.failure or error
    return merged


def merge_early(user_id: int, *, now: datetime) -> int:
    """Merge one user's plays before their hour is over, maybe by further tasks."""
    with errors():
        pipelined(client(), [("DEL", keys.played_early(user_id))])
    plays = merge_users([user_id], now=now)
    metrics.played_merged_plays.inc(plays)
    with errors():
        (left,) = pipelined(client(), [("ZCARD", keys.played_recent(user_id))])
    if plays and played.needs_early_merge(left):
        played.enqueue_early_merges([user_id], is_request=False)
    return plays


def merge_users(user_ids: Sequence[int], *, now: datetime) -> int:
    """Write these users' plays to their filters, and remove them from Redis. Returns the number of plays."""
    plays = 0
    left = list(user_ids)
    for _ in range(most_rounds()):
        merged = _merge_part(left, now)
        plays += sum(merged.values())
        left = [user_id for user_id, count in merged.items() if count == PART]
        if not left:
            break
    if gone := forgetting.deleted_among(user_ids):
        forgetting.forget(gone, now=now)
    return plays


def most_rounds() -> int:
    """The most rounds of a merge: enough parts for all waiting plays, and one for new plays."""
    return -(-int(settings.PLAYED_WAITING_CAP) // PART) + 1


def _merge_part(user_ids: Sequence[int], now: datetime) -> dict[int, int]:
    """Merge the oldest plays of each user, at most `PART`. Returns how many by user."""
    with errors():
        before = old.unmigrated_plays(user_ids, now=now)
        replies = pipelined(
            client(), [("ZRANGE", keys.played_recent(user_id), 0, PART - 1, "WITHSCORES") for user_id in user_ids]
        )
    read = {user_id: reply for user_id, reply in zip(user_ids, replies, strict=True) if reply}
    months = {key: ids for user_id, reply in read.items() for key, ids in _by_month(user_id, reply).items()}
    expected = _filter_capacities(months, before.months)
    for key, ids in before.months.items():
        months[key] = np.concatenate([months[key], ids]) if key in months else ids

    def add(key: FilterKey, data: bytes | None) -> bytes:
        ids = months[key]
        if data is None:
            found = MonthFilter.empty(key.user_id, expected=expected[key], error=_filter_error_rate())
        else:
            found = MonthFilter.writable(data)
        return found.to_bytes() if found.add(ids) or data is None else data

    if months:
        store().update(list(months), add)
    old.mark_migrated(before)
    with errors():
        pipelined(
            client(),
            [("EVALSHA", FORGET, 1, keys.played_recent(user_id), *reply) for user_id, reply in read.items()],
        )
    return {user_id: len(reply) // 2 for user_id, reply in read.items()}


def _by_month(user_id: int, reply: Sequence[bytes]) -> dict[FilterKey, Ids]:
    months: dict[FilterKey, list[int]] = {}
    for member, score in zip(reply[::2], reply[1::2], strict=True):
        month = month_of(datetime.fromtimestamp(float(score) / 1000, UTC))
        months.setdefault(FilterKey(user_id, month), []).append(int(member))
    return {key: id_numbers(ids) for key, ids in months.items()}


def _filter_error_rate() -> float:
    """The error rate of one filter. It is a part of the configured rate, because `MONTHS` filters are asked
    together.
    """
    return float(settings.PLAYED_ERROR_RATE) / MONTHS


def _filter_capacities(months: Mapping[FilterKey, Ids], old_months: Mapping[FilterKey, Ids]) -> dict[FilterKey, int]:
    """How many plays each filter is made for: last month's number or twice the first batch, plus migrated plays."""
    before = store().read([FilterKey(key.user_id, key.month - 1) for key in months]) if months else []
    filters = (parse_stored(key.user_id, data) for key, data in zip(months, before, strict=True))
    counts = (found.count if found else 0 for found in filters)
    expected = {key: len(ids) for key, ids in old_months.items()}
    for (key, ids), count in zip(months.items(), counts, strict=True):
        expected[key] = expected.get(key, 0) + max(2 * len(ids), count)
    return expected


def _scan_marks(node: int, shards: Iterable[int]) -> Iterator[list[Mark]]:
    cursors: dict[int, Any] = dict.fromkeys(shards, 0)
    waiting: set[Mark] = set()
    while cursors:
        with errors():
            scans = [
                ("SSCAN", keys.played_users(node, shard), cursor, "COUNT", CHUNK) for shard, cursor in cursors.items()
            ]
            replies = pipelined(client(), scans)
        for shard, (cursor, found) in zip(list(cursors), replies, strict=True):
            waiting.update((shard, int(user_id)) for user_id in found)
            cursors[shard] = int(cursor)
        cursors = {shard: cursor for shard, cursor in cursors.items() if cursor}
        while len(waiting) >= CHUNK or (waiting and not cursors):
            yield [waiting.pop() for _ in range(min(CHUNK, len(waiting)))]


def _unmark(node: int, marked: Sequence[Mark], now: datetime) -> None:
    """Remove merged users' marks. A user who has plays again is marked on the current node.

    A later play sets its mark after the removal.
    """
    by_shard: dict[int, list[int]] = {}
    for shard, user_id in marked:
        by_shard.setdefault(shard, []).append(user_id)
    user_ids = [user_id for some in by_shard.values() for user_id in some]
    with errors():
        replies = pipelined(
            client(),
            [
                *(("SREM", keys.played_users(node, shard), *some) for shard, some in by_shard.items()),
                *(("ZCARD", keys.played_recent(user_id)) for user_id in user_ids),
            ],
        )
        left = replies[len(by_shard) :]
        if again := [user_id for user_id, count in zip(user_ids, left, strict=True) if count]:
            pipelined(client(), mark_commands(again, now=now))
    crowded = [user_id for user_id, count in zip(user_ids, left, strict=True) if played.needs_early_merge(count)]
    played.enqueue_early_merges(crowded, is_request=False)


def mark_strays(*, now: datetime) -> int:
    """Mark all users with plays, in case a merge died without their mark. Returns how many."""
    cursor: Any = 0
    marked = 0
    pattern = keys.played_recent(0)[:-1] + "*"
    while True:
        with errors():
            ((cursor, found),) = pipelined(client(), [("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)])
            user_ids = [int(key.rpartition(b":")[2]) for key in found]
            if user_ids:
                pipelined(client(), mark_commands(user_ids, now=now))
        marked += len(user_ids)
        if int(cursor) == 0:
            return marked


def purge(*, now: datetime) -> int:
    """Remove expired filters in the idle hours, in small batches, because others wait to write. Returns how many."""
    purged = 0
    while now.astimezone(settings.SITE_ZONE).hour < IDLE_HOURS:
        found = store().purge(now=now, limit=PURGED_AT_ONCE)
        purged += found
        if found < PURGED_AT_ONCE:
            break
    return purged


def forget_runs(*, now: datetime) -> int:
    """Delete old records of merges. Returns how many."""
    deleted, _ = MergeRun.objects.filter(started_at__lt=now - RUNS_KEPT).delete()
    return deleted
