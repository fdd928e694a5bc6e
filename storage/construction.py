"""Builds missing windows: the first reader who misses one begins it, and a task fills it."""

import secrets
from abc import ABC, abstractmethod
from typing import NamedTuple

from storage.connections import FeedsUnavailableError, feeds, feeds_errors, feeds_for_tasks, pipelined
from storage.window import Window, WindowEntry


class BuiltWindow(Window, ABC):
    """A window that a task fills."""

    __slots__ = ("owner",)

    def __init__(self, owner: int, key: str) -> None:
        super().__init__(key)
        self.owner = owner
        """A user's id, or the source of an outbox (timeline.outbox)."""

    @abstractmethod
    def build_later(self, token: str) -> bool:
        """Have a worker do the build that `token` began. False if the broker did not take the task."""


class WindowSnapshot(NamedTuple):
    """The entries of a window, complete above `floor`."""

    epoch: int
    floor: int
    entries: list[WindowEntry]
    cap: int
    """The most entries to keep."""
    pushes: int = 0
    """The push generation of an inbox that takes big-Vs' posts, else 0."""


def begin(window: BuiltWindow, epoch: int) -> bool:
    """Begin a missing window. True if a task is enqueued. Without Redis the next reader tries."""
    token = secrets.token_hex(8)
    try:
        with feeds_errors():
            has_begun = pipelined(feeds(), [window.begin(token, epoch)])[0]
    except FeedsUnavailableError:
        return False
    return bool(has_begun) and window.build_later(token)


def is_under_way(window: Window, token: str) -> bool:
    """Whether `token` still builds the window. After a loss of data it is False for many queued builds."""
    return pipelined(feeds_for_tasks(), [("ZSCORE", window.key, f"build:{token}")])[0] is not None


def finish(window: Window, token: str, snapshot: WindowSnapshot) -> bool:
    """Complete the build that `token` began. True if the window is in use."""
    complete = window.complete(token, snapshot.epoch, snapshot.floor, snapshot.entries, snapshot.pushes)
    return bool(pipelined(feeds_for_tasks(), [complete, window.trim(snapshot.cap)])[0])
