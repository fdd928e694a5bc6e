"""Plays that no filter has yet, and the items issued last, in a Redis that must not lose data.

Plays are written before the user's mark on the ring, so a merge that finds the mark finds the plays.

At most `PLAYED_WAITING_CAP` plays of a user wait (the deduplication article, 3.3, allows 10,000 within an hour). Half
of it triggers an early merge.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

import redis
from django.conf import settings

from runtime import metrics
from seen.migration import old
from seen.ring import NODES, node_of, shard_of
from seen.signals import room_filled
from storage import keys
from storage.breaker import Breaker, UnavailableError
from storage.connections import Command, client_of, pipelined, register_script

TIMEOUT_SECONDS = 2.0
"""How long workers and commands wait for the server."""
ISSUED_COUNT = 100
"""Issued items to remember for a user."""
ISSUED_LIFE = timedelta(days=30)
KEPT_LIFE = timedelta(days=217)
"""At least as long as a filter lives after its last play: to the end of the sixth month after."""
EARLY_SECONDS = 5
"""Least time between two early merges of one user, and the wait for a refused caller."""
AT_ONCE = 1_000
"""Plays of one user to ask for or list per command."""

# KEYS[1]: recent plays; ARGV: the most that may wait, then score and id in turn. Replies how many wait now, or -1 if
# none was taken.
TAKE = register_script(
    """
    local key = KEYS[1]
    if redis.call('ZCARD', key) + (#ARGV - 1) / 2 > tonumber(ARGV[1]) then return -1 end
    for first = 2, #ARGV, 1000 do
        redis.call('ZADD', key, 'GT', unpack(ARGV, first, math.min(first + 999, #ARGV)))
    end
    return redis.call('ZCARD', key)
    """
)


class PlayedUnavailableError(UnavailableError):
    """The plays' server did not answer."""


class PlayedRefusedError(PlayedUnavailableError):
    """The server refused a key or a command."""


class PlaysFullError(Exception):
    """So many plays of a user wait that no more are taken."""


class Play(NamedTuple):
    """A play of an item by a user."""

    user_id: int
    item_id: int
    played_at: datetime


class RecentIds(NamedTuple):
    """A user's waiting plays and issued items. `is_whole`: no more plays wait than allowed."""

    played: list[int]
    issued: list[int]
    is_whole: bool


breaker = Breaker(name="plays")


_client = cache(client_of)


def client() -> redis.Redis:
    """The client of the plays' server, for workers and commands."""
    return _client(settings.PLAYED_URL, TIMEOUT_SECONDS)


def _execute(commands: Sequence[Command], *, is_request: bool = True) -> list[Any]:
    """Send commands to the plays' server. Raises PlayedUnavailableError.

    For a request, all replies must come within `PLAYED_TIMEOUT_SECONDS`.
    """
    with errors():
        if not is_request:
            return pipelined(client(), commands)
        patience = settings.PLAYED_TIMEOUT_SECONDS
        with breaker.guard(patience):
            return pipelined(_client(settings.PLAYED_URL, patience), commands, patience_seconds=patience)


@contextmanager
def errors() -> Iterator[None]:
    """Turn the server's errors into `PlayedUnavailableError`."""
    try:
        yield
    except redis.OutOfMemoryError as error:  # not about this key or command
        raise PlayedUnavailableError(str(error)) from error
    except redis.ResponseError as error:
        raise PlayedRefusedError(str(error)) from error
    except (redis.RedisError, OSError) as error:
        raise PlayedUnavailableError(str(error)) from error


def has_recent_plays() -> bool:
    """Whether any user played something lately. Raises PlayedUnavailableError."""
    (found,) = _execute([("EXISTS", keys.played_kept())])
    return bool(found)


def record(plays: Iterable[Play], *, now: datetime) -> None:
    """Take plays like `add_plays`, but raise PlaysFullError if some do not fit."""
    if full := add_plays(plays, now=now):
        raise PlaysFullError(f"{settings.PLAYED_WAITING_CAP} plays of user {full[0]} wait")


def add_plays(plays: Iterable[Play], *, now: datetime) -> list[int]:
    """Take plays. After that, all answers know them.

    Returns users whose plays did not fit: none of theirs were taken. Repeating it changes nothing. During a migration
    writes to the old server too. Raises PlayedUnavailableError.
    """
    by_user: dict[int, list[int]] = {}
    for play in plays:
        moment = int(play.played_at.timestamp() * 1000)
        by_user.setdefault(play.user_id, []).extend((moment, play.item_id))
    if not by_user:
        return []
    most = settings.PLAYED_WAITING_CAP
    commands: list[Command] = [
        ("EVALSHA", TAKE, 1, keys.played_recent(user_id), most, *scores) for user_id, scores in by_user.items()
    ]
    kept = ("SET", keys.played_kept(), 1, "EX", int(KEPT_LIFE.total_seconds()))
    sizes = dict(zip(by_user, _execute([*commands, *mark_commands(by_user, now=now), kept]), strict=False))
    enqueue_early_merges([user_id for user_id, size in sizes.items() if size < 0 or needs_early_merge(size)])
    full = [user_id for user_id, size in sizes.items() if size < 0]
    metrics.played_refused.inc(len(full))
    with errors():
        old.write({user_id: scores for user_id, scores in by_user.items() if user_id not in full})
    return full


def needs_early_merge(size: int) -> bool:
    """Whether so many plays of a user wait that an early merge is due."""
    return size >= int(settings.PLAYED_WAITING_CAP) // 2


def enqueue_early_merges(user_ids: Sequence[int], *, is_request: bool = True) -> None:
    """Enqueue early merges, one per user in `EARLY_SECONDS`. Raises PlayedUnavailableError."""
    if not user_ids:
        return
    commands: list[Command] = [
        ("SET", keys.played_early(user_id), 1, "NX", "EX", EARLY_SECONDS) for user_id in user_ids
    ]
    marked = _execute(commands, is_request=is_request)
    for user_id, is_first in zip(user_ids, marked, strict=True):
        if is_first:
            room_filled.send(sender=None, user_id=user_id)


def mark_commands(user_ids: Iterable[int], *, now: datetime) -> list[Command]:
    """Commands that mark users on the current node."""
    by_shard: dict[int, list[int]] = {}
    for user_id in user_ids:
        by_shard.setdefault(shard_of(user_id), []).append(user_id)
    node = node_of(now)
    return [("SADD", keys.played_users(node, shard), *users) for shard, users in by_shard.items()]


def record_issued(pages: Iterable[tuple[int, Sequence[int]]], *, is_request: bool = True) -> None:
    """Remember issued items, the last one at the end. Raises PlayedUnavailableError."""
    seconds = int(ISSUED_LIFE.total_seconds())
    commands: list[Command] = []
    for user_id, item_ids in pages:
        key = keys.issued(user_id)
        commands += [
            ("LPUSH", key, *item_ids),
            ("LTRIM", key, 0, ISSUED_COUNT - 1),
            ("EXPIRE", key, seconds),
        ]
    _execute(commands, is_request=is_request)


def recent_ids(user_id: int) -> RecentIds:
    """The user's waiting plays, up to the bound, and issued items. Raises PlayedUnavailableError."""
    most = settings.PLAYED_WAITING_CAP
    played, issued = _execute(
        [("ZRANGE", keys.played_recent(user_id), 0, most), ("LRANGE", keys.issued(user_id), 0, -1)]
    )
    return RecentIds(list(map(int, played)), list(map(int, issued)), len(played) <= most)


def waiting_among(user_id: int, item_ids: Sequence[int]) -> list[int]:
    """Those of the ids whose plays wait, even beyond the bound. Raises PlayedUnavailableError."""
    key = keys.played_recent(user_id)
    parts = [item_ids[first : first + AT_ONCE] for first in range(0, len(item_ids), AT_ONCE)]
    replies = _execute([("ZMSCORE", key, *part) for part in parts])
    scores = [score for reply in replies for score in reply]
    return [item_id for item_id, score in zip(item_ids, scores, strict=True) if score is not None]


def dated_plays(user_id: int) -> list[Play]:
    """The user's waiting plays with their times, oldest first. Raises PlayedUnavailableError."""
    found: dict[bytes, bytes] = {}
    cursor: Any = 0
    while True:  # ZSCAN returns everything that is there from its start to its end
        ((cursor, reply),) = _execute([("ZSCAN", keys.played_recent(user_id), cursor, "COUNT", AT_ONCE)])
        found.update(zip(reply[::2], reply[1::2], strict=True))
        if int(cursor) == 0:
            break
    ordered = sorted((float(score), int(member)) for member, score in found.items())
    return [Play(user_id, item_id, datetime.fromtimestamp(score / 1000, UTC)) for score, item_id in ordered]


def forget(user_ids: Sequence[int]) -> int:
    """Delete the users' plays, issued items and marks. Returns how many entries were deleted."""
    commands: list[Command] = []
    for user_id in user_ids:
        commands += [("UNLINK", keys.played_recent(user_id)), ("UNLINK", keys.issued(user_id))]
        commands += [("SREM", keys.played_users(node, shard_of(user_id)), user_id) for node in range(NODES)]
    return sum(pipelined(client(), commands))
