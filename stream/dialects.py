"""Dialects: turn events into the bytes of one kind of connection.

See docs/decisions.md: Apps hear the same bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from storage.events import Entry, Position


class ListenerProtocol(Protocol):
    """Who listens on a connection, and to what. Connections with equal hearers get the same messages. Hashable."""

    @property
    def reader(self) -> int:
        """The user who listens."""


Message = tuple[Any | None, Position, bytes]
"""Bytes for the connections of one hearer, or of all (None), and the position of their event."""


class Dialect(NamedTuple):
    """How to write to one kind of connection."""

    name: str
    news: Callable[[Iterable[Any], Sequence[Entry]], list[Message]]
    """The messages for a batch of events, in order. Runs in a thread. Raises Django's database errors."""
    reset: Callable[[Position | None], bytes] | None
    """A message that events up to here may be lost. None if the protocol has none: then the connection ends, and its
    client reloads when it reconnects.
    """
    heartbeat: Callable[[Any, Position | None, float], bytes]
    """A message that keeps a connection open after the given quiet seconds, or no bytes. The position is the last one
    written, or None if unknown.
    """
