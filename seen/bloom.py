"""Bloom filters in Redis of which user was shown which item, many users to a key.

Two kinds with one interface (`Filter`): `ModuleFilter` if the server has BF.* (RedisBloom, valkey-bloom), else
`BitmapFilter`. discover.impressions decides the keys.

See docs/decisions.md: Bloom filters work without Redis modules.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import redis

from storage.connections import Command, tried

PIPELINE_LENGTH = 500
"""The most commands of one round trip that adds."""


class Addition(NamedTuple):
    """Items that a user was shown. A new key expires at `expires_at` (Unix time)."""

    key: str
    user_id: int
    item_ids: Sequence[int]
    expires_at: int


class Answer(NamedTuple):
    """The known items, and keys with something that this kind of filter cannot read."""

    item_ids: set[int]
    foreign_keys: set[str]


class Fill(NamedTuple):
    """A key's members, maybe estimated, and its capacity."""

    members: int
    capacity: int


class Filter(Protocol):
    """Filters of one kind. The first write makes one for `capacity` members at an error rate of `error`.

    An existing key keeps its capacity when settings change. Members beyond it go into further filters, so that the
    error rate holds. Raises redis-py's errors.
    """

    @property
    def capacity(self) -> int:
        """The capacity of a new filter."""
        ...

    @property
    def error(self) -> float:
        """The error rate of a new filter, from 0 to 1."""
        ...

    def known(self, client: redis.Redis, keys: Sequence[str], user_id: int, ids: Sequence[int]) -> Answer:
        """Which of `ids` were added for the user to any of the keys.

        One round trip, and one more for each further filter that the user needs.
        """
        ...

    def add(self, client: redis.Redis, additions: Iterable[Addition], *, replace: bool = False) -> list[Addition]:
        """Add items. Repeating it changes nothing. One round trip for each `PIPELINE_LENGTH` additions and filter.

        Returns additions whose key holds something else. `replace` makes such keys new instead.
        """
        ...

    def fill(self, client: redis.Redis, keys: Sequence[str]) -> list[Fill | None]:
        """How full each key is. None if it is missing or holds something else. One round trip."""
        ...


def is_foreign(reply: Any) -> bool:
    """Whether a command failed because the key holds something else. Raises other errors."""
    if not isinstance(reply, redis.ResponseError):
        return False
    if str(reply).startswith("WRONGTYPE"):
        return True
    raise reply


def sent(client: redis.Redis, commands: Sequence[Command]) -> Iterator[Any]:
    """The replies to commands, `PIPELINE_LENGTH` a round trip. None for a foreign key. Raises other errors."""
    for first in range(0, len(commands), PIPELINE_LENGTH):
        for reply in tried(client, commands[first : first + PIPELINE_LENGTH]):
            yield None if is_foreign(reply) else reply


def has_module(client: redis.Redis) -> bool:
    """Whether the server has BF.*. False if the question is not allowed.

    See docs/decisions.md: Bloom filters work without Redis modules.
    """
    (reply,) = tried(client, [("COMMAND", "INFO", "BF.RESERVE", "BF.MADD", "BF.MEXISTS", "BF.INFO")])
    return not isinstance(reply, redis.ResponseError) and all(reply)


def is_module_missing(error: redis.ResponseError) -> bool:
    """Whether a command failed because the server does not know BF.*."""
    return "unknown" in str(error).lower() and "command" in str(error).lower()
