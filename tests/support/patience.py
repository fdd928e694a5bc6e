"""The claims of a test about time: how often something was waited for, never how long a busy machine takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from runtime import metrics
from storage.breaker import BREAKER_SECONDS

SHORT = 30
"""Seconds. Less than any patience of minutes, and more than a machine takes that does much else."""


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
