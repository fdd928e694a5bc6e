"""Tests count waits and CPU time, never elapsed time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from runtime import metrics
from storage.breaker import BREAKER_SECONDS

SHORT = 30
"""Enough for a busy machine."""


BUSY = 3
"""While others use the machine and its caches."""


@contextmanager
def untraced() -> Iterator[None]:
    """Coverage's work per line would count as the body's."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def cpu(call: Callable[[], object], enough: float = 0.0) -> float:
    """CPU seconds in this thread: the best of nine, or the first below `enough`."""
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
    """The block may wait once, and once more per second, as the breaker allows."""
    trips = metrics.breaker_trips.labels(server)._value
    before, begun = trips.get(), time.monotonic()
    yield
    waits = trips.get() - before
    assert 1 <= waits <= 1 + (time.monotonic() - begun) / BREAKER_SECONDS
