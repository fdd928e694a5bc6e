"""Bloom filters on the feeds server that know which user was shown which item, many users to a key.

Two kinds of one interface (`Filter`): `ModuleFilter` (seen.module_bloom) where the server has the commands BF.*
(RedisBloom, valkey-bloom), `BitmapFilter` (seen.bitmap_bloom) where it has not. Which keys there are, and for which
days, is the business of discover.impressions.

See docs/decisions.md: Bloom filters work without Redis modules.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import redis

from storage.connections import Command, tried

PIPELINE_LENGTH = 500
"""Commands of one round trip that adds."""


class Addition(NamedTuple):
    """Items that a user was shown, for one key; where the key must be made it expires at `expires_at` (Unix time)."""

    key: str
    user_id: int
    item_ids: Sequence[int]
    expires_at: int


class Answer(NamedTuple):
    """Which items are known, and which keys hold something that this kind of filter cannot read."""

    item_ids: set[int]
    foreign_keys: set[str]


class Fill(NamedTuple):
    """How many members a key holds, as far as it knows, and for how many it was made."""

    members: int
    capacity: int


class Filter(Protocol):
    """Filters of one kind, each made on its first write for `capacity` members at an error rate of `error`.

    A key goes on as it was made when the settings change meanwhile. Members that a key has no room for go into further
    filters, so that the error rate holds beyond the capacity too. Errors are those of redis-py.
    """

    @property
    def capacity(self) -> int:
        """Members that a new filter is made for."""
        ...

    @property
    def error(self) -> float:
        """The error rate that a new filter is made for, from 0 to 1."""
        ...

    def known(self, client: redis.Redis, keys: Sequence[str], user_id: int, ids: Sequence[int]) -> Answer:
        """Which of `ids` were added for the user to any of the keys; one round trip, and one for each further filter
        that the user's impressions of some key fill.
        """
        ...

    def add(self, client: redis.Redis, additions: Iterable[Addition], *, replace: bool = False) -> list[Addition]:
        """Add, one round trip for each `PIPELINE_LENGTH` additions and filter; doing it again changes nothing.

        A key that holds something else is left alone, and its additions are returned; with `replace` it is made anew.
        """
        ...

    def fill(self, client: redis.Redis, keys: Sequence[str]) -> list[Fill | None]:
        """How full each key is; None for one that does not exist or holds something else. One round trip."""
        ...


def is_foreign(reply: Any) -> bool:
    """Whether a command failed because the key holds something else; raises any other error."""
    if not isinstance(reply, redis.ResponseError):
        return False
    if str(reply).startswith("WRONGTYPE"):
        return True
    raise reply


def sent(client: redis.Redis, commands: Sequence[Command]) -> Iterator[Any]:
    """The replies to commands, `PIPELINE_LENGTH` a round trip; None where a key is foreign. Raises any other error."""
    for first in range(0, len(commands), PIPELINE_LENGTH):
        for reply in tried(client, commands[first : first + PIPELINE_LENGTH]):
            yield None if is_foreign(reply) else reply


def has_module(client: redis.Redis) -> bool:
    """Whether the server knows BF.*, by any module; one that may not be asked counts as one without.

    See docs/decisions.md: Bloom filters work without Redis modules.
    """
    (reply,) = tried(client, [("COMMAND", "INFO", "BF.RESERVE", "BF.MADD", "BF.MEXISTS", "BF.INFO")])
    return not isinstance(reply, redis.ResponseError) and all(reply)


def is_module_missing(error: redis.ResponseError) -> bool:
    """Whether a command failed because the server does not know BF.* (any more)."""
    return "unknown" in str(error).lower() and "command" in str(error).lower()
