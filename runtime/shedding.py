"""Queues requests for the threads of web. Requests that wait too long are shed: answered 503.

granian's threads are doors: a door queues the request and returns. This module's threads answer. Doors also refuse late
requests, because all threads may wait for a frozen server.

The thread that answered last is the first to answer again, so few threads do the work of a quiet site. A thread
without work ends after a while, with its session of PostgreSQL, which takes about 15 MB.

granian drops a body when its call returns, so the door of a request with a body stays until the answer. The request
that would take the last of `DOORS` doors is refused at once.

Health checks (`web.health`) are not shed, because a busy process is not dead. But strangers can send them too, so only
`PROBES_LATE` late ones stay.

See docs/decisions.md: Requests queue in the site, not in granian.
See docs/decisions.md: Own code in place of a library.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

Scope = dict[str, Any]
Runner = Callable[[Any, Scope], Any]
"""Answers a request by granian's protocol, from any thread."""

HELD = 32
"""Maximum queued or running requests with bodies per process."""
DOORS = HELD + 1
"""Maximum threads of granian. It starts them as needed, and ends idle ones."""
IDLE_SECONDS = 60.0
"""After this time without a request a thread ends."""
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
PROBES_LATE = 8


class QueuedRequest(NamedTuple):
    """A queued request. `since` by time.monotonic(). `done` wakes a waiting door."""

    since: float
    protocol: Any
    scope: Scope
    done: threading.Event | None

    @property
    def is_probe(self) -> bool:
        """Whether it is a health check."""
        return self.scope.get("PATH_INFO") in PROBES


class RequestQueue:
    """The waiting requests in order, and the threads that answer them."""

    def __init__(self, answer: Runner, refuse: Runner, *, threads: int, seconds: float) -> None:
        self.answer, self.refuse = answer, refuse
        self.threads, self.seconds = threads, seconds
        self.waiting: deque[QueuedRequest] = deque()
        self.idle: list[threading.Condition] = []
        """What wakes each idle thread. The last one answered last."""
        self.started = self.held = 0
        self.lock = threading.Lock()

    def take(self, protocol: Any, scope: Scope) -> None:
        """Queue a request, and refuse late ones."""
        now = time.monotonic()
        done = threading.Event() if has_body(scope) else None
        new = QueuedRequest(now, protocol, scope, done)
        with self.lock:
            refused = self._late(now)
            if done and self.held >= HELD:
                refused.append(new)
            else:
                self._add(new)
        for each in refused:
            self._run(self.refuse, each)
        if done:
            done.wait()

    def _add(self, new: QueuedRequest) -> None:
        self.waiting.append(new)
        self.held += new.done is not None
        if self.idle:
            self.idle.pop().notify()
        elif self.started < self.threads:
            self._start()

    def _late(self, now: float) -> list[QueuedRequest]:
        late: list[QueuedRequest] = []
        probes: list[QueuedRequest] = []
        while self.waiting and now - self.waiting[0].since > self.seconds:
            each = self.waiting.popleft()
            (probes if each.is_probe and len(probes) < PROBES_LATE else late).append(each)
        self.waiting.extendleft(reversed(probes))
        self.held -= sum(each.done is not None for each in late)
        return late

    def _start(self) -> None:
        self.started += 1
        threading.Thread(target=self._work, name=f"web-{self.started}", daemon=True).start()

    def _work(self) -> None:
        from runtime import metrics  # Django is set up by now

        while each := self._next():
            waited = time.monotonic() - each.since
            metrics.web_wait_seconds.observe(waited)
            is_late = waited > self.seconds and not each.is_probe
            self._run(self.refuse if is_late else self.answer, each)
            if each.done:
                with self.lock:
                    self.held -= 1
            del each  # so that its connection can end
        close_sessions()

    def _next(self) -> QueuedRequest | None:
        """Wait for a request. None if this thread is to end."""
        with self.lock:
            woken = threading.Condition(self.lock)
            while not self.waiting:
                self.idle.append(woken)
                if not woken.wait(IDLE_SECONDS) and woken in self.idle:
                    self.idle.remove(woken)
                    self.started -= 1
                    return None
            return self.waiting.popleft()

    def _run(self, runner: Runner, each: QueuedRequest) -> None:
        """Answer a request. An error gives 500, unless the answer has begun."""
        try:
            if runner is self.refuse:
                from runtime import metrics

                metrics.web_shed.inc()
            runner(each.protocol, each.scope)
        except BaseException:
            logger.exception("a request failed and was answered 500")
            each.protocol.response_bytes(500, [], b"")
        finally:
            if each.done:
                each.done.set()


def close_sessions() -> None:
    """Close this thread's sessions of PostgreSQL."""
    from django.db import connections  # Django is set up by now

    connections.close_all()


def has_body(scope: Scope) -> bool:
    """Whether a request has a body."""
    return scope.get("CONTENT_LENGTH", "0") not in ("", "0") or "HTTP_TRANSFER_ENCODING" in scope


def install(module: ModuleType, *, threads: int, seconds: float) -> None:
    """Make granian's web processes use a queue. `module.refused` answers refused requests.

    Raises AttributeError if granian's internals have changed.
    """
    mp: Any = import_module("granian.server.mp")
    wrap = mp._wsgi_call_wrap

    def queued(callback: Any, *options: Any) -> Runner:
        queue = RequestQueue(wrap(callback, *options), wrap(module.refused, *options), threads=threads, seconds=seconds)
        return queue.take

    mp._wsgi_call_wrap = queued
