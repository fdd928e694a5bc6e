"""What users played and no filter knows yet, and what they were issued last, in a Redis that loses nothing.

A play is acknowledged when Redis has it. A user's plays stand in a ZSET until a merge has written them to the filters
(seen.merging), and the user is marked on the time ring for it. The plays are written before the mark: whoever finds the
mark finds the plays.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

import redis
from django.conf import settings

from feedsite import keys
from feedsite.connections import Command, client_of, pipelined
from seen import old
from seen.ring import NODES, node_of, shard_of

TIMEOUT = 2.0
"""Seconds that a call waits for the server."""
ISSUED_LIFE = timedelta(days=30)


class PlayedUnavailableError(Exception):
    """The server of the plays did not answer: nothing was acknowledged."""


class Play(NamedTuple):
    """That a user played an item."""

    user_id: int
    item_id: int
    played_at: datetime


class Recent(NamedTuple):
    """What a user played and no filter may know yet, and what they were issued last."""

    played: list[int]
    issued: list[int]


@cache
def client() -> redis.Redis:
    return client_of(settings.PLAYED_URL, TIMEOUT)


@contextmanager
def errors() -> Iterator[None]:
    """Turn every way in which the server can fail into `PlayedUnavailableError`."""
    try:
        yield
    except (redis.RedisError, OSError) as error:
        raise PlayedUnavailableError(str(error)) from error


def record(plays: Iterable[Play], *, now: datetime) -> None:
    """Take plays, in one round trip; when it returns they are in every answer. Raises PlayedUnavailableError.

    While a migration may be rolled back they are written to the old server too (seen.old), in another round trip.
    Whoever is not told whether it worked may do it again: a play is there once, however often it is recorded.
    """
    by_user: dict[int, list[int]] = {}
    for play in plays:
        moment = int(play.played_at.timestamp() * 1000)
        by_user.setdefault(play.user_id, []).extend((moment, play.item_id))
    commands: list[Command] = [
        ("ZADD", keys.played_recent(user_id), "GT", *scores) for user_id, scores in by_user.items()
    ]
    with errors():
        pipelined(client(), [*commands, *marks(by_user, now=now)])
        old.write(by_user)


def marks(user_ids: Iterable[int], *, now: datetime) -> list[Command]:
    """The commands that mark users on the node of now."""
    by_shard: dict[int, list[int]] = {}
    for user_id in user_ids:
        by_shard.setdefault(shard_of(user_id), []).append(user_id)
    node = node_of(now)
    return [("SADD", keys.played_users(node, shard), *users) for shard, users in by_shard.items()]


def issue(pages: Iterable[tuple[int, Sequence[int]]]) -> None:
    """Remember the last items that users were issued: pages of a user id and item ids, the last issued at the end.

    One round trip. Raises PlayedUnavailableError.
    """
    seconds = int(ISSUED_LIFE.total_seconds())
    commands: list[Command] = []
    for user_id, item_ids in pages:
        key = keys.issued(user_id)
        commands += [
            ("LPUSH", key, *item_ids),
            ("LTRIM", key, 0, settings.ISSUED_COUNT - 1),
            ("EXPIRE", key, seconds),
        ]
    with errors():
        pipelined(client(), commands)


def recent(user_id: int) -> Recent:
    """What is not merged, and what was issued; one round trip. Raises PlayedUnavailableError."""
    with errors():
        played, issued = pipelined(
            client(),
            [("ZRANGE", keys.played_recent(user_id), 0, -1), ("LRANGE", keys.issued(user_id), 0, -1)],
        )
    return Recent(list(map(int, played)), list(map(int, issued)))


def dated(user_id: int) -> list[Play]:
    """What is not merged, the oldest play first; one round trip. Raises PlayedUnavailableError."""
    with errors():
        (reply,) = pipelined(client(), [("ZRANGE", keys.played_recent(user_id), 0, -1, "WITHSCORES")])
    return [
        Play(user_id, int(member), datetime.fromtimestamp(float(score) / 1000, UTC))
        for member, score in zip(reply[::2], reply[1::2], strict=True)
    ]


def forget(user_ids: Sequence[int]) -> int:
    """Remove what is not merged of users, what they were issued, and their marks; how many there were."""
    commands: list[Command] = []
    for user_id in user_ids:
        commands += [("UNLINK", keys.played_recent(user_id)), ("UNLINK", keys.issued(user_id))]
        commands += [("SREM", keys.played_users(node, shard_of(user_id)), user_id) for node in range(NODES)]
    return sum(pipelined(client(), commands))
