"""The claims of a test about time: how often something was waited for, and how much CPU it took, never how long a busy
machine takes.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from runtime import metrics
from storage.breaker import BREAKER_SECONDS

SHORT = 30
"""Seconds. Less than any patience of minutes, and more than a machine takes that does much else."""


BUSY = 3
"""How much more CPU a call may take where others use the machine, and its caches, at once."""


@contextmanager
def untraced() -> Iterator[None]:
    """The body runs without coverage, whose work on each line would be taken for its own."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def cpu(call: Callable[[], object], enough: float = 0.0) -> float:
    """Seconds of this thread's CPU that a call takes: the best of nine, or the first that is less than `enough`."""
    best = float("inf")
    with untraced():
        for _ in range(9):
            begun = time.thread_time()
            call()
            best = min(best, time.thread_time() - begun)
            if best < enough:
                break
    return best


@contextmanager
def waits_once_a_second(server: str = "feeds") -> Iterator[None]:
    """The body waits for a server that does not answer once, and once more in every second that it takes: as often as
    the breaker lets it.
    """
    trips = metrics.breaker_trips.labels(server)._value
    before, begun = trips.get(), time.monotonic()
    yield
    waits = trips.get() - before
    assert 1 <= waits <= 1 + (time.monotonic() - begun) / BREAKER_SECONDS
