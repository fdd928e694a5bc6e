"""The queue in which requests wait for a thread of web. Requests that have waited for too long are shed: answered 503.

granian would queue them itself, where nothing says how long they wait: at twice the capacity of a machine it holds up
to a thousand requests, and each waits for many seconds for an answer that its client no longer wants. So the threads
that granian calls are doors here. A door takes a request when it comes, notes the time and queues it; the threads that
answer are this module's. A request that a thread comes to after `seconds` is refused before anything of it was begun.
A door refuses what is late as well, should no thread come: all may wait for a frozen server.

granian drops the body of a request when its call returns. So the door of a request with a body stays until that is
answered, and at most `HELD` of them do: the request that would take the last door is refused at once.

Questions about health (`web.health`) are not shed: a busy process is no dead one. Of those that are late, `PROBES_LATE`
wait on; strangers may ask them too.

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
"""Answers the request of a scope by granian's protocol, whichever thread calls it."""

HELD = 32
"""Requests with bodies that wait or are answered at a time, by process."""
DOORS = HELD + 1
"""Threads of granian, which it starts as they are needed, and ends when they are idle."""
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
PROBES_LATE = 8


class Waiting(NamedTuple):
    """A request that waits; `since` by time.monotonic(). `done` is set when it is answered, where a door waits."""

    since: float
    protocol: Any
    scope: Scope
    done: threading.Event | None

    @property
    def is_probe(self) -> bool:
        """Whether it asks about health."""
        return self.scope.get("PATH_INFO") in PROBES


class Queue:
    """Requests in the order in which they came, and the threads that answer them, which start with the first."""

    def __init__(self, answer: Runner, refuse: Runner, *, threads: int, seconds: float) -> None:
        self.answer, self.refuse = answer, refuse
        self.threads, self.seconds = threads, seconds
        self.waiting: deque[Waiting] = deque()
        self.idle = self.started = self.held = 0
        self.changed = threading.Condition(threading.Lock())

    def take(self, protocol: Any, scope: Scope) -> None:
        """The door: queue a request, and refuse those that are late."""
        now = time.monotonic()
        done = threading.Event() if has_body(scope) else None
        new = Waiting(now, protocol, scope, done)
        with self.changed:
            refused = self._late(now)
            if done and self.held >= HELD:
                refused.append(new)
            else:
                self._add(new)
        for each in refused:
            self._run(self.refuse, each)
        if done:
            done.wait()

    def _add(self, new: Waiting) -> None:
        self.waiting.append(new)
        self.held += new.done is not None
        if not self.idle and self.started < self.threads:
            self._start()
        self.changed.notify()

    def _late(self, now: float) -> list[Waiting]:
        """Take those out that have waited for too long."""
        late: list[Waiting] = []
        probes: list[Waiting] = []
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

        while True:
            with self.changed:
                self.idle += 1
                while not self.waiting:
                    self.changed.wait()
                self.idle -= 1
                each = self.waiting.popleft()
            waited = time.monotonic() - each.since
            metrics.web_wait_seconds.observe(waited)
            is_late = waited > self.seconds and not each.is_probe
            self._run(self.refuse if is_late else self.answer, each)
            if each.done:
                with self.changed:
                    self.held -= 1
            del each  # its connection may end

    def _run(self, runner: Runner, each: Waiting) -> None:
        """Answer by a runner. An error of the application itself is a 500, unless its answer has begun."""
        try:
            if runner is self.refuse:
                from runtime import metrics

                metrics.web_shed.inc()
            runner(each.protocol, each.scope)
        except BaseException:
            logger.exception("The application failed")
            each.protocol.response_bytes(500, [], b"")
        finally:
            if each.done:
                each.done.set()


def has_body(scope: Scope) -> bool:
    """Whether a request has a body."""
    return scope.get("CONTENT_LENGTH", "0") not in ("", "0") or "HTTP_TRANSFER_ENCODING" in scope


def install(module: ModuleType, *, threads: int, seconds: float) -> None:
    """Have granian's processes of web answer by a queue; `module.refused` is the application that refuses.

    granian has no setting for it. Raises AttributeError where its version has another inside.
    """
    mp: Any = import_module("granian.server.mp")
    wrap = mp._wsgi_call_wrap

    def queued(callback: Any, *options: Any) -> Runner:
        queue = Queue(wrap(callback, *options), wrap(module.refused, *options), threads=threads, seconds=seconds)
        return queue.take

    mp._wsgi_call_wrap = queued
