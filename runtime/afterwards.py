"""What a request does once it is answered: sends hints, such as tasks whose work PostgreSQL has.

A kill in between loses them, and the sweepers repeat the work. A stop waits for them.

See docs/decisions.md: A post's task leaves after the answer.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from multiprocessing.util import Finalize

logger = logging.getLogger(__name__)

Act = Callable[[], object]

STOP_SECONDS = 2.0
"""How long the end of a process waits for answered requests."""
EARLY = 100
"""Before whatever else ends with the process."""


class Afterwards:
    """The acts of one request, in order."""

    def __init__(self) -> None:
        self._acts: list[Act] = []

    def add(self, act: Act) -> None:
        """Add an act. It must be one that may get lost."""
        _wait_at_exit(os.getpid())
        unfinished.add(self)
        self._acts.append(act)

    def run(self) -> None:
        """Run the acts. An error is logged."""
        try:
            for act in self._acts:
                try:
                    act()
                except Exception:
                    logger.exception("what follows an answer failed")
        finally:
            self._acts.clear()
            unfinished.discard(self)


unfinished: set[Afterwards] = set()
"""Those of this process that have acts."""
_of_request: ContextVar[Afterwards | None] = ContextVar("afterwards", default=None)


def once_answered(act: Act) -> None:
    """Run an act after the answer to this thread's request, or now if there is none."""
    afterwards = _of_request.get()
    if afterwards is None:
        act()
    else:
        afterwards.add(act)


@contextmanager
def collected() -> Iterator[Afterwards]:
    """Collect the acts of the block. The caller runs them."""
    afterwards = Afterwards()
    token = _of_request.set(afterwards)
    try:
        yield afterwards
    finally:
        _of_request.reset(token)


@cache
def _wait_at_exit(process: int) -> None:
    """Have a process wait at its end. Not by atexit, which web's processes skip. A fork inherits nothing."""
    Finalize(None, wait_for_unfinished, exitpriority=EARLY)


def wait_for_unfinished() -> None:
    """Let the threads of answered requests come to their ends."""
    until = time.monotonic() + STOP_SECONDS
    while unfinished and time.monotonic() < until:
        time.sleep(0.005)
