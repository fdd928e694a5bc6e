"""Events for open pages: one capped Redis stream, read by stream.hub. A hint: pages that ask see what they missed.

See docs/decisions.md: One event stream, one question for all connections.
"""

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import redis

from storage import keys
from storage.breaker import BREAKER_SECONDS
from storage.connections import (
    Command,
    FeedsRefusedError,
    FeedsUnavailableError,
    feeds,
    feeds_errors,
    feeds_for_tasks,
    pipelined,
)

logger = logging.getLogger(__name__)

LENGTH = 10_000
"""About how many entries the stream keeps: how far back a connection can resume."""
FIELD = b"event"


class Published(msgspec.Struct, tag="published", frozen=True):
    """An item became visible, maybe again or to more users."""

    item: int


class Edited(msgspec.Struct, tag="edited", frozen=True):
    """An item's content or audience changed."""

    item: int
    visibility_before: str


class Withdrawn(msgspec.Struct, tag="withdrawn", frozen=True):
    """A published item is no longer published."""

    item: int
    visibility_before: str


class SessionChanged(msgspec.Struct, tag="session", frozen=True):
    """A live session is new or changed. `was_hidden`: only its host saw it."""

    session: int
    was_hidden: bool = False


class Notified(msgspec.Struct, tag="notified", frozen=True):
    """A user has a notification. `payload` goes to their pages."""

    user: int
    payload: dict[str, Any]


class ManyNotified(msgspec.Struct, tag="notified-many", frozen=True):
    """Many users have a notification. `payloads` by user."""

    payloads: dict[int, dict[str, Any]]


class FiltersChanged(msgspec.Struct, tag="filters", frozen=True):
    """A user's filters changed."""

    user: int


class Revoked(msgspec.Struct, tag="revoked", frozen=True):
    """A user's session, token, password or account is gone."""

    user: int


class Gap(msgspec.Struct, tag="gap", frozen=True):
    """Events before this may be lost."""


Event = Published | Edited | Withdrawn | SessionChanged | Notified | ManyNotified | FiltersChanged | Revoked | Gap
ItemEvent = Published | Edited | Withdrawn

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode


class Position(NamedTuple):
    """The place of an event in the stream: Redis's clock in milliseconds, and a number."""

    milliseconds: int
    number: int

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.number}"

    @classmethod
    def parse(cls, text: str | bytes) -> "Position":
        """Parse the text of a position. Raises ValueError."""
        text = text.decode("ascii", "replace") if isinstance(text, bytes) else text
        parts = text.split("-")
        if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) <= 20 for part in parts):
            raise ValueError(f"{text!r} is not the id of an event")
        return cls(int(parts[0]), int(parts[1]))


Entry = tuple[Position, Event | None]
"""A position and its event. The event is None if another version of the program wrote it."""


class Listener(NamedTuple):
    """An open connection's reader, and the item or session of its page."""

    reader: int
    item: int = 0
    session: int = 0


def entry(event: Event) -> Command:
    """The command that appends the event."""
    return ("XADD", keys.events(), "MAXLEN", "~", LENGTH, "*", FIELD, _encode(event))


def event_of(fields: Mapping[bytes, bytes] | list[bytes]) -> Event | None:
    """Decode an event. None if another version wrote it."""
    pairs = fields if isinstance(fields, Mapping) else dict(zip(fields[::2], fields[1::2], strict=False))
    with suppress(msgspec.DecodeError, KeyError):
        event: Event = _decode(pairs[FIELD])
        return event
    return None


def announce(*events: Event) -> None:
    """Append events after their commit. Never fails: a `Gap` follows for lost events."""
    try:
        with feeds_errors():
            pipelined(feeds(), [entry(event) for event in events])
    except FeedsRefusedError:
        logger.exception("the feeds server refused an event for open pages")
    except FeedsUnavailableError:
        gaps.note_lost_event()


class GapWriter:
    """Appends a `Gap` for lost events. A thread tries once a second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owed = False
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def note_lost_event(self) -> None:
        """Note that an event was lost, and start the thread."""
        with self._lock:
            self._owed = True
            if self._thread is None:
                self._ending.clear()
                self._thread = threading.Thread(target=self._append_gaps, name="gaps", daemon=True)
                self._thread.start()

    def forget(self) -> None:
        """End the thread without appending what is owed."""
        self._ending.set()
        if thread := self._thread:
            thread.join()
        self._thread = None

    def _append_gaps(self) -> None:
        while not self._ending.wait(BREAKER_SECONDS):
            self._owed = False
            try:
                pipelined(feeds_for_tasks(), [entry(Gap())])
            except (redis.RedisError, OSError) as error:
                logger.info("open pages are not told of lost events yet: %s", error)
                continue
            with self._lock:
                if not self._owed:  # nothing was lost since
                    self._thread = None
                    return


gaps = GapWriter()
