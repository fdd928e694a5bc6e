"""The construction of a window that is missing: begun by the first who misses it, done by a task from a snapshot of
PostgreSQL. storage/window.py says how it stays exact when its builder dies.

Home and the live feed share this, but each has a page loop of its own: these have little in common.
"""

import secrets
from typing import ClassVar, NamedTuple

from storage.connections import FeedsUnavailableError, feeds, feeds_errors, feeds_for_tasks, pipelined
from storage.queue import enqueue
from storage.window import Entry, Window


class BuiltWindow(Window):
    """A window that a task fills."""

    builder: ClassVar[str]
    """The task, of the window's owner and the token of the construction."""
    __slots__ = ("owner",)

    def __init__(self, owner: int, key: str) -> None:
        super().__init__(key)
        self.owner = owner
        """Whose window it is: a user's id, or the source of an outbox (timeline.outbox)."""


class Snapshot(NamedTuple):
    """The entries that belong into a window, complete above `floor`, and what of its owner they were read for."""

    epoch: int
    floor: int
    entries: list[Entry]
    cap: int
    """Entries that the window keeps."""
    pushes: int = 0
    """The push generation under which the window takes big-Vs' pushes; 0: none."""


def begin(window: BuiltWindow, epoch: int) -> bool:
    """Begin a window; True if workers have been asked to fill it. Not if it is built, or being built, for this epoch,
    nor where Redis does not answer: the next reader who misses it begins it.
    """
    token = secrets.token_hex(8)
    try:
        with feeds_errors():
            has_begun = pipelined(feeds(), [window.begin(token, epoch)])[0]
    except FeedsUnavailableError:
        return False
    return bool(has_begun) and enqueue(window.builder, window.owner, token)


def is_under_way(window: Window, token: str) -> bool:
    """Whether the construction that `token` began is still to be completed.

    Builders ask first. After a flush, builds that nobody waits for any more would feed the backlog.
    """
    return pipelined(feeds_for_tasks(), [("ZSCORE", window.key, f"build:{token}")])[0] is not None


def finish(window: Window, token: str, snapshot: Snapshot) -> bool:
    """Complete the construction that `token` began, and trim the window; True if it is in use now. What was delivered
    meanwhile comes on top of the snapshot.
    """
    complete = window.complete(token, snapshot.epoch, snapshot.floor, snapshot.entries, snapshot.pushes)
    return bool(pipelined(feeds_for_tasks(), [complete, window.settle(snapshot.cap)])[0])
