"""The cost of an open stream, and the time from a publish until all streams hear of it.

The stream process as `up` runs it, and one client process that holds all connections. `items.actions.publish` by one
whom all of them follow; heard is when a connection has received the event. The peer is a bare asyncio server that reads
the same Redis stream and writes the same bytes to as many sockets: no HTTP, no question to PostgreSQL, no gathering.
"""

import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles

from django.conf import settings

from accounts.actions import issue_token
from accounts.models import User
from benchmarks.community import Community
from benchmarks.measure import Report
from items.actions import publish
from runtime.embedded import die_with_parent, wait_for

KILOBYTES = 40
"""The memory that a stream may take."""
SECONDS = 0.25
"""How late the 99th of a hundred may hear."""
TICKS = os.sysconf("SC_CLK_TCK")
OURS, BARE = "stream process", "bare writer"
SERVERS = {
    OURS: "-m granian --interface asgi --no-ws --host 127.0.0.1 --port {port} --workers 1 --log-level warning "
    "--backlog 2048 --backpressure 5000 --workers-kill-timeout 1 feedsite.asgi:application",
    BARE: "-m benchmarks.bare_streams {port}",
}


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    size = community.size
    report = Report(
        "streams",
        __doc__.splitlines()[0],
        ["server", "streams", "KB a stream", "opened a second", "CPU us a stream and event", "heard p50 ms", "p99 ms"],
        f"{size.stream_rounds} items, each heard by all; p50 and p99 over all",
    )
    followers = max(community.publishers)
    publisher = User.objects.get(pk=community.publishers[followers])
    listeners = User.objects.in_bulk(list(community.followers[: size.streams]))
    tokens = [issue_token(user=user) for user in listeners.values()]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    found = {name: measure(name, tokens, publisher, size.stream_rounds, report) for name in SERVERS}
    report.ratio(f"{OURS}: KB a stream / {KILOBYTES}", found[OURS][0] / KILOBYTES, at_most=1)
    report.ratio(f"{OURS}: p99 / {SECONDS * 1000:.0f} ms", found[OURS][2] / SECONDS, at_most=1)
    if found[BARE][1]:  # the kernel counts in ticks; few streams take none
        report.ratio("CPU of a stream and event / bare writer", found[OURS][1] / found[BARE][1])
    report.ratio("p50 / bare writer", found[OURS][3] / found[BARE][3])
    return report


def measure(
    name: str, tokens: list[str], publisher: User, rounds: int, report: Report
) -> tuple[float, float, float, float]:
    """KB a stream, CPU seconds a stream and event, p99 and p50 in seconds."""
    with served(name) as (port, pid):
        empty = memory(pid)
        begin = time.perf_counter()
        with Listeners(port, tokens) as listeners:
            opened = time.perf_counter() - begin
            time.sleep(1)
            kilobytes = (memory(pid) - empty) / len(tokens)
            heard: list[float] = []
            before = processor_time(pid)
            for number in range(rounds):
                start = time.perf_counter()
                item = publish(sender=publisher, content={"text": f"bench {number}"})
                heard += [moment - start for moment in listeners.hear(str(item.pk).encode())]
            spent = (processor_time(pid) - before) / (rounds * len(tokens))
        cuts = quantiles(heard, n=100)
        middle, late = median(heard), cuts[98]
        figures = [round(kilobytes, 1), round(len(tokens) / opened), round(spent * 1e6, 1)]
        report.rows.append([name, len(tokens), *figures, round(middle * 1000, 1), round(late * 1000, 1)])
        return kilobytes, spent, late, middle


class Listeners:
    """Many open connections, read by one loop."""

    def __init__(self, port: int, tokens: list[str]) -> None:
        self.selector = selectors.DefaultSelector()
        self.sockets: list[socket.socket] = []
        for token in tokens:
            one = socket.create_connection(("127.0.0.1", port), 10)
            request = f"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Token {token}\r\n\r\n"
            one.sendall(request.encode())
            received = b""
            while b"event: reset" not in received:
                part = one.recv(65536)
                assert part, received
                received += part
            one.setblocking(False)
            self.selector.register(one, selectors.EVENT_READ)
            self.sockets.append(one)

    def __enter__(self) -> "Listeners":
        return self

    def __exit__(self, *error: object) -> None:
        for one in self.sockets:
            one.close()
        self.selector.close()

    def hear(self, item: bytes) -> list[float]:
        """When each connection got the item."""
        moments: list[float] = []
        until = time.monotonic() + 30
        while len(moments) < len(self.sockets):
            assert time.monotonic() < until, f"{len(moments)} of {len(self.sockets)} heard"
            for key, _ in self.selector.select(1):
                with suppress(BlockingIOError):  # another event of the selector had it all
                    if item in key.fileobj.recv(65536):  # type: ignore[union-attr]
                        moments.append(time.perf_counter())
        return moments


@contextmanager
def served(name: str) -> Iterator[tuple[int, int]]:
    """The server; its port, and the process that does the work."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, *SERVERS[name].format(port=port).split()],
        cwd=settings.BASE_DIR,
        env=os.environ | {"FEEDSITE_DATA_DIR": str(settings.DATA_DIR)},
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        assert wait_for(lambda: answers(port), 30), f"{name} does not answer"
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        yield port, int(children[-1]) if children else server.pid
    finally:
        server.terminate()
        server.wait(10)


def answers(port: int) -> bool:
    """Whether the server on the port answers."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return bool(one.recv(100))
    return False


def memory(pid: int) -> float:
    """Resident memory, in KB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmRSS:")).split()[1])


def processor_time(pid: int) -> float:
    """Seconds of all its threads, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
