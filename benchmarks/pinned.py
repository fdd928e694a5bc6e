"""A site under `up` on one processor, for `load`, and what it is at: processor time by kind of process, and queues.

The site shares the benchmark's own servers. Its programs, PostgreSQL and Valkey run on the last processor that this
process may use, and the one that asks keeps the first.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from benchmarks.ground import stop
from runtime import metrics, processes
from runtime.embedded import die_with_parent, wait_for

START_SECONDS = 300
NOT_OF_A_SITE = ("FEEDSITE_REDIS_TIMEOUT_SECONDS", "FEEDSITE_FEEDS_MEMORY")
"""Settings of the benchmarks' site that no site has: this one waits for Redis as sites do."""
LISTENING, ESTABLISHED = "0A", "01"


class Ports(NamedTuple):
    """Where the site listens."""

    web: int
    stream: int


class Spent(NamedTuple):
    """Processor time and counts of the site so far; the difference of two belongs to the time between them."""

    at: float
    processors: Counter[str]
    """Seconds of processor time by kind of process."""
    counted: Counter[str]
    """Sums and counts of its metrics."""

    def since(self, earlier: "Spent") -> "Spent":
        """The difference."""
        seconds, counted = Counter(self.processors), Counter(self.counted)
        seconds.subtract(earlier.processors)
        counted.subtract(earlier.counted)
        return Spent(self.at - earlier.at, seconds, counted)

    def plus(self, other: "Spent") -> "Spent":
        """The sum of two differences."""
        return Spent(self.at + other.at, self.processors + other.processors, self.counted + other.counted)

    def mean(self, name: str) -> float:
        """The mean of a histogram, in ms; 0 where it has counted nothing."""
        count = self.counted[f"{name}_count"]
        return self.counted[f"{name}_sum"] / count * 1000 if count else 0.0

    def busy(self) -> list[tuple[str, float]]:
        """Kinds of process by their share of a processor, the busiest first."""
        return [(kind, seconds / self.at) for kind, seconds in self.processors.most_common()]


@contextmanager
def site() -> Iterator[Ports]:
    """`up` on one processor, with the servers of this process."""
    every = sorted(os.sched_getaffinity(0))
    ports = Ports(*free_ports(2))
    environ = {name: value for name, value in os.environ.items() if name not in NOT_OF_A_SITE}
    environ |= {"PORT": str(ports.web), "FEEDSITE_STREAM_PORT": str(ports.stream)}
    log_path = settings.DATA_DIR / "up.log"
    os.sched_setaffinity(0, {every[-1]})  # `up` counts its processors when it starts
    try:
        with log_path.open("wb") as log:
            up = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=settings.BASE_DIR,
                env=environ,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        os.sched_setaffinity(0, {every[0]})
        try:
            wait_for(lambda: b"the site is at" in log_path.read_bytes() or up.poll() is not None, START_SECONDS)
            assert up.poll() is None, log_path.read_text()
            pin({every[-1]})
            yield ports
        finally:
            stop(up, 120)
    finally:
        os.sched_setaffinity(0, every)
        pin(set(every))


def pin(processors: set[int]) -> None:
    """Have all processes of the site run on these processors, with all their threads; what they start inherits it."""
    for process in processes.of_site(settings.DATA_DIR):
        for thread in Path(f"/proc/{process.pid}/task").glob("*"):
            with suppress(OSError):  # it has ended
                os.sched_setaffinity(int(thread.name), processors)


def free_ports(count: int) -> list[int]:
    """Ports on which nothing listens."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def spent() -> Spent:
    """Processor time and counts of the site until now."""
    found = processes.usage(processes.of_site(settings.DATA_DIR))
    seconds = Counter({kind: use.seconds for kind, use in found.items()})
    return Spent(time.monotonic(), seconds, counted())


def counted() -> Counter[str]:
    """Sums, counts and counters of the site's metrics, over all their labels."""
    sums: Counter[str] = Counter()
    for name, _, value in metrics.samples_in(settings.DATA_DIR / "run" / "metrics"):
        if name.endswith(("_sum", "_count", "_total")):
            sums[name] += value  # type: ignore[assignment]
    return sums


def to_accept(port: int) -> int:
    """Connections that the kernel has made and the server on the port has not accepted."""
    return sum(one.waiting for one in sockets() if one.state == LISTENING and one.port == port)


def accepted(port: int) -> int:
    """Connections with the server on the port, accepted or not."""
    return sum(one.state == ESTABLISHED and one.port == port for one in sockets())


class Socket(NamedTuple):
    """A row of the kernel's table of TCP: the local port, the state, and the bytes or connections that wait."""

    port: int
    state: str
    waiting: int


def sockets() -> Iterable[Socket]:
    """The kernel's table of TCP."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _number, local, _remote, state, queues, *_ = line.split()
        yield Socket(int(local.partition(":")[2], 16), state, int(queues.partition(":")[2], 16))
