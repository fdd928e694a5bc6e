"""The breaker: keeps a process from asking a server that has just failed.

See docs/decisions.md: Own code in place of a library.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from runtime import metrics

BREAKER_SECONDS = 1.0
"""How long a failed server is not asked."""
SLOW_SHARE = 0.2
"""An answer that takes more than this share of the time-out is slow."""
FAILURES: tuple[type[Exception], ...] = (redis.ConnectionError, redis.TimeoutError, OSError)
"""A Redis server does not answer. Its error replies are answers."""


class UnavailableError(Exception):
    """A server other than PostgreSQL is down. The reply is a 503."""


class BreakerOpenError(ConnectionError):
    """The server was not asked: it has just failed, or another thread tests it."""


class Breaker:
    """Stops asking a failed server for a second, so that an outage costs one wait, not one per request.

    Then one thread tests the server and the others are refused. A slow server is asked by one thread at a time.
    """

    def __init__(
        self,
        seconds: float = BREAKER_SECONDS,
        *,
        name: str = "",
        failures: tuple[type[Exception], ...] = FAILURES,
        slow_share: float = SLOW_SHARE,
    ) -> None:
        self._seconds = seconds
        self._slow_share = slow_share
        self._name = name
        self._failures = failures
        self._lock = threading.Lock()
        self._open_until = 0.0
        """0: closed. After this time one thread may ask, and another only after its time-out and as long again."""
        self._asker: int | None = None
        """The thread that may ask."""

    @property
    def is_open(self) -> bool:
        """Whether the server failed a moment ago. For information only: `asking` decides."""
        return time.monotonic() < self._open_until

    @contextmanager
    def guard(self, patience_seconds: float = float("inf")) -> Iterator[None]:
        """Wrap one question of at most `patience_seconds`. Raises OpenError while the server is left alone.

        `failures` open the breaker. redis-py's other errors count as answers.
        """
        if not self._admits(patience_seconds):
            raise BreakerOpenError(f"{self._name or 'the server'} failed a moment ago")
        began = time.monotonic()
        try:
            yield
        except BreakerOpenError:  # of another server's breaker, or of this one in a nested question
            self._release_probe()
            raise
        except self._failures:
            self.trip()
            raise
        except redis.RedisError:
            self._note_answer(time.monotonic() - began, patience_seconds)
            raise
        except BaseException:
            self._release_probe()
            raise
        else:
            self._note_answer(time.monotonic() - began, patience_seconds)

    def trip(self) -> None:
        """Leave the server alone for a while."""
        with self._lock:
            self._open_until = time.monotonic() + self._seconds
            self._asker = None
        if self._name:
            metrics.breaker_trips.labels(self._name).inc()
            metrics.breaker_open_until.labels(self._name).set(time.time() + self._seconds)

    def reset(self) -> None:
        """Let all threads ask again at once."""
        with self._lock:
            self._open_until = 0.0
            self._asker = None

    def _admits(self, patience_seconds: float) -> bool:
        if not self._open_until:
            return True
        me = threading.get_ident()
        with self._lock:
            if not self._open_until or self._asker == me:
                return True
            now = time.monotonic()
            if now < self._open_until:
                return False
            patience = patience_seconds if patience_seconds < float("inf") else 0.0
            self._asker, self._open_until = me, now + patience + self._seconds
            return True

    def _note_answer(self, seconds: float, patience_seconds: float) -> None:
        if seconds > patience_seconds * self._slow_share:
            with self._lock:
                self._asker, self._open_until = None, time.monotonic()
        elif self._open_until:
            self.reset()

    def _release_probe(self) -> None:
        with self._lock:
            if self._asker == threading.get_ident():
                self._asker, self._open_until = None, time.monotonic()
