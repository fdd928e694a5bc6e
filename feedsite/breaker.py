"""What keeps a process from asking a server that has just failed."""

import time

from feedsite import metrics

BREAKER_SECONDS = 1.0


class Breaker:
    """Stops asking a server for a while (a second) after it failed to answer, so that an outage costs one wait, not
    one a request.

    One a process and server; threads may share it (a lost race costs one extra wait).
    """

    def __init__(self, seconds: float = BREAKER_SECONDS, *, name: str = "") -> None:
        self._seconds = seconds
        self._name = name
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        return time.monotonic() < self._open_until

    def trip(self) -> None:
        self._open_until = time.monotonic() + self._seconds
        if self._name:
            metrics.breaker_trips.labels(self._name).inc()
            metrics.breaker_open_until.labels(self._name).set(time.time() + self._seconds)

    def reset(self) -> None:
        self._open_until = 0.0
