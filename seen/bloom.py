"""Bloom filters in Redis of which user was shown which item, many users to a key.

`ModuleFilter` if the server has BF.* (RedisBloom, valkey-bloom), else `BitmapFilter`.

See docs/decisions.md: Bloom filters work without Redis modules.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import redis

from storage.connections import Command, pipelined_with_errors

PIPELINE_LENGTH = 500
"""The most commands of one round trip that adds."""


class Addition(NamedTuple):
    """Items that a user was shown, to add to a key. `expires_at` (Unix time) is for a new key."""

    key: str
    user_id: int
    item_ids: Sequence[int]
    expires_at: int


class KnownItems(NamedTuple):
    """Which items the filters know, and which keys are of another kind of filter."""

    item_ids: set[int]
    foreign_keys: set[str]


class Fill(NamedTuple):
    """How full a key is: its members, maybe estimated, and its capacity."""

    members: int
    capacity: int


class SharedFilters(Protocol):
    """Filters of one kind in Redis. Raises redis-py's errors.

    Members beyond a filter's capacity go into further filters, which keeps the error rate.
    """

    @property
    def capacity(self) -> int:
        """How many members a key's first filter takes."""
        ...

    @property
    def error(self) -> float:
        """The error rate of a new filter."""
        ...

    def known(self, client: redis.Redis, keys: Sequence[str], user_id: int, ids: Sequence[int]) -> KnownItems:
        """Which of `ids` any key has for the user. One round trip per level of filters."""
        ...

    def add(self, client: redis.Redis, additions: Iterable[Addition], *, replace: bool = False) -> list[Addition]:
        """Add items. Repeating it changes nothing.

        Returns additions to foreign keys, or replaces these keys.
        """
        ...

    def fill(self, client: redis.Redis, keys: Sequence[str]) -> list[Fill | None]:
        """How full each key is. None if missing or foreign."""
        ...


def is_wrong_type(reply: Any) -> bool:
    """Whether a reply says that the key is of another kind. Raises other errors."""
    if not isinstance(reply, redis.ResponseError):
        return False
    if str(reply).startswith("WRONGTYPE"):
        return True
    raise reply


def replies_of(client: redis.Redis, commands: Sequence[Command]) -> Iterator[Any]:
    """Send commands and yield their replies, None for a foreign key. Raises other errors."""
    for first in range(0, len(commands), PIPELINE_LENGTH):
        for reply in pipelined_with_errors(client, commands[first : first + PIPELINE_LENGTH]):
            yield None if is_wrong_type(reply) else reply


def has_module(client: redis.Redis) -> bool:
    """Whether the server has BF.*, and lists it in COMMAND INFO."""
    (reply,) = pipelined_with_errors(client, [("COMMAND", "INFO", "BF.RESERVE", "BF.MADD", "BF.MEXISTS", "BF.INFO")])
    return not isinstance(reply, redis.ResponseError) and all(reply)


def is_module_missing(error: redis.ResponseError) -> bool:
    """Whether the error says that the server does not know BF.*."""
    return "unknown" in str(error).lower() and "command" in str(error).lower()
