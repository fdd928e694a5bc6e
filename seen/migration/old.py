"""Old plays that are not yet in the filters (seen.migration.migrate moves them).

They are in the old Redis, `PLAYED_OLD_URL` (one ZSET for each user: id -> ms of the play). Two shelves of the filter
store say how far it is:

| shelf | key | value |
|---|---|---|
| `MIGRATED` | user | 1: the filters have what the old Redis had |
| `STATE` | 0 | `Migration`, as JSON |

A merge writes the filters, then the mark. If it dies in between it is repeated. A request reads the mark before the
filters.

Until `--cut-over` every play is also written to the old Redis, so a rollback loses nothing.

Source: the deduplication article, 4, its figure 11.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import redis
from django.conf import settings
from numpy.typing import NDArray

from seen.filter_store import MONTHS, FilterKey, StoreUnavailableError, month_of
from seen.filters import Ids
from seen.store import store
from storage.breaker import Breaker
from storage.connections import Command, client_of, pipelined

MIGRATED, STATE = 1, 2
STATE_KEY = FilterKey(0, STATE)
MARK = b"1"
LARGEST_ID = 2**53 - 1
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Earlier times are invalid: a score of 0, or one in seconds."""
CLOCK_SKEW = timedelta(days=1)
TIMEOUT_SECONDS = 5.0
"""How long workers and commands wait for the old server."""
AT_ONCE = 20
"""Users read at once from the old Redis. Its replies take ten times the memory of the numbers in them."""
_FIRST_MONTH = 1970 * 12
_NOTHING: Ids = np.zeros(0, dtype=np.uint64)


# --- How far the migration is ------------------------------------------------------------------------------
class Phase(StrEnum):
    """The phases of the migration."""

    NONE = "none"
    RUNNING = "running"
    CUT_OVER = "cut over"
    ROLLED_BACK = "rolled back"


class Migration(msgspec.Struct):
    """The state of the migration, with Unix times."""

    phase: Phase = Phase.NONE
    began_at: float = 0.0
    ended_at: float = 0.0
    users: int = 0
    """Users whom the last whole run found."""


def state() -> Migration:
    """The state of the migration. Raises StoreUnavailableError."""
    return _decode_state(store().read([STATE_KEY])[0])


def change_state(change: Callable[[Migration], Migration]) -> None:
    """Change the state of the migration, without a race. Raises StoreUnavailableError."""
    store().update([STATE_KEY], lambda _, data: msgspec.json.encode(change(_decode_state(data))))


def _decode_state(data: bytes | None) -> Migration:
    return msgspec.json.decode(data, type=Migration) if data else Migration()


Months = dict[int, Ids]


def by_month(ids: Ids, moments: NDArray[np.float64], *, now: datetime) -> Months:
    """Ids by the month of the play. `moments`: milliseconds since 1970, or 0 for now."""
    this_month = month_of(now)
    latest = (now + CLOCK_SKEW).timestamp() * 1000
    is_dated = (moments >= EARLIEST.timestamp() * 1000) & (moments <= latest)
    dated = np.where(is_dated, moments, latest).astype(np.int64).astype("datetime64[ms]")
    months = np.minimum(dated.astype("datetime64[M]").astype(np.int64) + _FIRST_MONTH, this_month)
    months[~is_dated] = this_month
    return {month: ids[months == month] for month in np.unique(months).tolist() if month > this_month - MONTHS}


# --- Reading, until it is in the filters -------------------------------------------------------------------
def keys_of(user_id: int) -> list[FilterKey]:
    """The keys to read before a user's filters, for `plays_outside_filters`."""
    return [FilterKey(user_id, MIGRATED), STATE_KEY] if settings.PLAYED_OLD_URL else []


def plays_outside_filters(user_id: int, found: Sequence[bytes | None]) -> Ids:
    """The user's plays that may not be in the filters, from the values of `keys_of`.

    Raises redis.RedisError and OSError.
    """
    if not found:
        return _NOTHING
    mark, data = found
    phase = _decode_state(data).phase
    if phase == Phase.CUT_OVER or (mark and phase == Phase.RUNNING):
        return _NOTHING
    (reply,) = _execute([("ZRANGE", _key(user_id), 0, -1)])
    return _numbers(reply)[0]


# --- Double writing ----------------------------------------------------------------------------------------
def write(scores: Mapping[int, Sequence[int]]) -> None:
    """Write plays to the old Redis too, until the cut-over. It may refuse some.

    `scores`: each user's plays as milliseconds, item id, and so on. Raises redis.RedisError and OSError.
    """
    if not settings.PLAYED_OLD_URL or not scores:
        return
    try:
        if _decode_state(store().read_briefly([STATE_KEY])[0]).phase == Phase.CUT_OVER:
            return
    except StoreUnavailableError:
        pass  # a play written twice does no harm
    _execute([("ZADD", _key(user_id), *pairs) for user_id, pairs in scores.items()])


# --- Merging -----------------------------------------------------------------------------------------------
class UnmigratedPlays(NamedTuple):
    """Old plays that the filters lack, to be merged."""

    months: dict[FilterKey, Ids]
    user_ids: list[int]
    """The users who are migrated with them."""


def unmigrated_plays(user_ids: Sequence[int], *, now: datetime) -> UnmigratedPlays:
    """The users' old plays that the filters lack. Raises StoreUnavailableError and redis.RedisError."""
    if not settings.PLAYED_OLD_URL or state().phase != Phase.RUNNING:
        return UnmigratedPlays({}, [])
    marks = store().read([FilterKey(user_id, MIGRATED) for user_id in user_ids])
    unmarked = [user_id for user_id, mark in zip(user_ids, marks, strict=True) if not mark]
    months: dict[int, Months] = {}
    for first in range(0, len(unmarked), AT_ONCE):
        some = unmarked[first : first + AT_ONCE]
        for user_id, reply in zip(some, pipelined(client(), map(_dated_range, some)), strict=True):
            months[user_id] = by_month(*_numbers(reply[::2], reply[1::2]), now=now)
    return UnmigratedPlays(
        {FilterKey(user_id, month): ids for user_id, one in months.items() for month, ids in one.items() if len(ids)},
        unmarked,
    )


def mark_migrated(before: UnmigratedPlays) -> None:
    """Mark users with complete filters. Raises StoreUnavailableError."""
    if before.user_ids:
        store().update([FilterKey(user_id, MIGRATED) for user_id in before.user_ids], lambda key, data: MARK)


def forget(user_ids: Sequence[int]) -> int:
    """Delete deleted accounts' plays from the old Redis. They count as migrated. Returns how many had data.

    Raises StoreUnavailableError and redis.RedisError.
    """
    phase = state().phase
    if phase == Phase.RUNNING:
        store().update([FilterKey(user_id, MIGRATED) for user_id in user_ids], lambda key, data: MARK)
    if not settings.PLAYED_OLD_URL or phase == Phase.CUT_OVER:
        return 0
    return sum(pipelined(client(), [("DEL", _key(user_id)) for user_id in user_ids]))


# --- The old Redis -----------------------------------------------------------------------------------------
breaker = Breaker(name="old plays")

_client = cache(client_of)


def client() -> redis.Redis:
    """The client of the old server, for workers and commands."""
    return _client(settings.PLAYED_OLD_URL, TIMEOUT_SECONDS)


def _execute(commands: Sequence[Command]) -> list[Any]:
    """Send commands to the old server. Raises RedisError and OSError."""
    patience = settings.PLAYED_TIMEOUT_SECONDS
    with breaker.guard(patience):
        return pipelined(_client(settings.PLAYED_OLD_URL, patience), commands, patience_seconds=patience)


def _key(user_id: int) -> str:
    pattern: str = settings.PLAYED_OLD_KEY
    return pattern.replace("{uid}", str(user_id))


def users() -> Iterator[int]:
    """All users whom the old Redis knows, some of them twice. Raises redis.RedisError and OSError."""
    before, after = settings.PLAYED_OLD_KEY.split("{uid}")
    for key in client().scan_iter(match=re.sub(r"([\\*?\[\]])", r"\\\1", before) + "*", count=1_000, _type="zset"):
        user = key.decode(errors="replace").removeprefix(before).removesuffix(after)
        if user.isdecimal() and 0 < int(user) <= LARGEST_ID and _key(int(user)).encode() == key:
            yield int(user)


def users_with_older_plays(user_ids: Sequence[int], *, since: float, now: datetime) -> list[int]:
    """Those of the users with a play that may be older than double writing, which began at `since` (Unix time).

    Raises redis.RedisError and OSError.
    """
    span = since * 1000, (now + CLOCK_SKEW).timestamp() * 1000
    keys = list(map(_key, user_ids))
    counts = pipelined(client(), [*(("ZCARD", key) for key in keys), *(("ZCOUNT", key, *span) for key in keys)])
    pairs = zip(user_ids, counts[: len(keys)], counts[len(keys) :], strict=True)
    return [user_id for user_id, count, written_twice in pairs if count > written_twice]


def _dated_range(user_id: int) -> tuple[str, str, int, int, str]:
    return "ZRANGE", _key(user_id), 0, -1, "WITHSCORES"


def _numbers(members: Sequence[bytes], scores: Iterable[bytes] = ()) -> tuple[Ids, NDArray[np.float64]]:
    """Those of the members that are ids, and their scores."""
    numbers = np.array([int(each) if each.isdigit() and len(each) <= 16 else 0 for each in members], dtype=np.uint64)
    is_id = (numbers > 0) & (numbers <= LARGEST_ID)
    moments = np.array(list(map(float, scores)) or [0.0] * len(members))
    return numbers[is_id], moments[is_id]
