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
"""How long a server that failed is left alone."""
SLOW_SHARE = 0.2
"""The share of the patience beyond which an answer is slow."""
FAILURES: tuple[type[Exception], ...] = (redis.ConnectionError, redis.TimeoutError, OSError)
"""The exceptions of a server of the Redis protocol that does not answer; its errors are answers."""


class UnavailableError(Exception):
    """A server other than PostgreSQL, without which a request has no answer, does not answer: pages and API say 503."""


class OpenError(ConnectionError):
    """The server failed a moment ago, or another thread is finding out whether it answers: it was not asked."""


class Breaker:
    """Stops asking a server for a while (a second) after it failed to answer, so that an outage costs one wait, not
    one a request. One a process and server; threads share it.

    `asking` is the way to ask. When the while is over one thread asks, and the others are turned away until it has an
    answer; that closes the breaker. A server that answers slowly is asked by one thread at a time, until an answer is
    quick again: so it never holds all threads of a process.
    """

    def __init__(
        self,
        seconds: float = BREAKER_SECONDS,
        *,
        name: str = "",
        failures: tuple[type[Exception], ...] = FAILURES,
        slow_share: float = SLOW_SHARE,
    ) -> None:
        """`slow_share` infinite: no answer within the patience is slow."""
        self._seconds = seconds
        self._slow_share = slow_share
        self._name = name
        self._failures = failures
        self._lock = threading.Lock()
        self._open_until = 0.0
        """0: closed. Once it is past, one thread may ask, and has its patience and as long before another may."""
        self._asker: int | None = None
        """The thread that may ask."""

    @property
    def is_open(self) -> bool:
        """Whether the server is being left alone just now; only to tell of it, `asking` decides by itself."""
        return time.monotonic() < self._open_until

    @contextmanager
    def asking(self, patience_seconds: float = float("inf")) -> Iterator[None]:
        """Stand around one question to the server, which the body gives up after `patience_seconds`. Raises OpenError
        instead of running the body while the server is left alone.

        Errors of the body pass on. One of the `failures` opens the breaker; another error of redis-py is an answer of
        the server; any other error says nothing about the server.
        """
        if not self._admits(patience_seconds):
            raise OpenError(f"{self._name or 'the server'} failed a moment ago")
        began = time.monotonic()
        try:
            yield
        except OpenError:  # of another server's breaker, or of this one's in a body that asks twice
            self._let_go()
            raise
        except self._failures:
            self.trip()
            raise
        except redis.RedisError:
            self._answered(time.monotonic() - began, patience_seconds)
            raise
        except BaseException:
            self._let_go()
            raise
        else:
            self._answered(time.monotonic() - began, patience_seconds)

    def trip(self) -> None:
        """Leave the server alone from now on, for the breaker's seconds."""
        with self._lock:
            self._open_until = time.monotonic() + self._seconds
            self._asker = None
        if self._name:
            metrics.breaker_trips.labels(self._name).inc()
            metrics.breaker_open_until.labels(self._name).set(time.time() + self._seconds)

    def reset(self) -> None:
        """Ask the server again at once, from all threads."""
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

    def _answered(self, seconds: float, patience_seconds: float) -> None:
        if seconds > patience_seconds * self._slow_share:
            with self._lock:
                self._asker, self._open_until = None, time.monotonic()
        elif self._open_until:
            self.reset()

    def _let_go(self) -> None:
        """Let another thread find out."""
        with self._lock:
            if self._asker == threading.get_ident():
                self._asker, self._open_until = None, time.monotonic()
