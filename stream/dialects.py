"""Dialects of the stream: the site's own events, or those of another protocol, as bytes for a kind of connection.

The hub reads events and writes bytes; a dialect makes the bytes, for all connections of its kind at once.

See docs/decisions.md: Apps hear the same bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from storage.events import Entry, Position


class Hearer(Protocol):
    """A key of connections that are told the same; hashable."""

    @property
    def reader(self) -> int:
        """The user who listens."""


Message = tuple[Any | None, Position, bytes]
"""The bytes for the connections of one hearer, or of all (None), for the event at a place."""


class Dialect(NamedTuple):
    """How the connections of one kind are told what happened. Bytes may be empty: they are told nothing."""

    name: str
    news: Callable[[Iterable[Any], Sequence[Entry]], list[Message]]
    """The messages that a batch of events becomes, in its order; runs in a thread, raises Django's database errors."""
    reset: Callable[[Position | None], bytes] | None
    """Tells that events up to here may have been lost. None where the protocol has no word for it: then the connection
    ends, and its client asks when it comes back.
    """
    heartbeat: Callable[[Any, Position | None, float], bytes]
    """Keeps the connection of a hearer open which was quiet for so many seconds; the place is down to where all was
    written, None where that is not known. No bytes: it may be quiet for longer.
    """
