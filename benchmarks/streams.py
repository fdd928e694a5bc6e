"""The cost of an open stream, and the time from a publish until all streams hear of it.

The stream process as `up` runs it, and one client process that holds all connections. `items.actions.publish` by one
whom all of them follow; heard is when a connection has received the event. The peer is a bare asyncio server that reads
the same Redis stream and writes the same bytes to as many sockets: no HTTP, no question to PostgreSQL, no gathering.

Apps get the whole status instead of an id. Half of their connections are sockets, half are streams; of twenty, one
listens to what is public, one to a hashtag, one to a list, and the others to their home.
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
from typing import NamedTuple

from django.conf import settings

from accounts.actions import issue_token
from accounts.models import User
from benchmarks.app_tokens import app_tokens
from benchmarks.community import Community
from benchmarks.ground import stop
from benchmarks.measure import Report
from items.actions import publish
from relations import lists
from runtime.embedded import die_with_parent, wait_for

KILOBYTES = 40
"""The memory that a stream may take."""
SECONDS = 0.25
"""How late the 99th of a hundred may hear."""
TAG = "bench"
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
)
TICKS = os.sysconf("SC_CLK_TCK")
OURS, BARE, APPS = "stream process", "bare writer", "stream process, for apps"
STREAM = "-m runtime.stream_server --host 127.0.0.1 --port {port} --most {most} feedsite.asgi:application"
SERVERS = {OURS: STREAM, BARE: "-m benchmarks.bare_streams {port}", APPS: STREAM}
PAGE_IS_OPEN, APP_IS_OPEN = b"event: reset", b"\r\n\r\n"
"""The ends of what a connection receives while it is opened."""


class Found(NamedTuple):
    """The figures of one server."""

    kilobytes: float
    """Kilobytes of a stream."""
    spent: float
    """Processor seconds of a stream and an event."""
    middle: float
    late: float
    """Seconds after which half of all, and 99 of a hundred, heard."""
    last: float
    """Seconds after which the last connection heard, in half of the rounds."""


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    size = community.size
    report = Report(
        "streams",
        __doc__.splitlines()[0],
        [
            "server",
            "streams",
            "KB a stream",
            "opened a second",
            "CPU us a stream and event",
            "heard p50 ms",
            "p99 ms",
            "last ms",
        ],
        f"{size.stream_rounds} items, each heard by all; p50 and p99 over all, the last in half of the rounds",
    )
    publisher = User.objects.get(pk=community.publishers[max(community.publishers)])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    pages, apps = opened_by_pages(community), opened_by_apps(community, publisher)
    found = {name: measure(name, pages, PAGE_IS_OPEN, publisher, size.stream_rounds, report) for name in (OURS, BARE)}
    found[APPS] = measure(APPS, apps, APP_IS_OPEN, publisher, size.stream_rounds, report)
    for name in (OURS, APPS):
        report.ratio(f"{name}: KB a stream / {KILOBYTES}", found[name].kilobytes / KILOBYTES, at_most=1)
    report.ratio(f"{OURS}: p99 / {SECONDS * 1000:.0f} ms", found[OURS].late / SECONDS, at_most=1)
    if found[BARE].spent:  # the kernel counts in ticks; few streams take none
        report.ratio("CPU of a stream and event / bare writer", found[OURS].spent / found[BARE].spent)
        report.ratio("CPU of a stream and event, for apps / bare writer", found[APPS].spent / found[BARE].spent)
    report.ratio("p50 / bare writer", found[OURS].middle / found[BARE].middle)
    report.notes.append(
        f"An item for {len(apps):,} apps takes {found[APPS].spent * len(apps) * 1000:.0f} ms of the processor."
    )
    return report


def opened_by_pages(community: Community) -> list[bytes]:
    """The requests of pages that look at their home."""
    listeners = User.objects.in_bulk(list(community.followers[: community.size.streams]))
    tokens = [issue_token(user=user) for user in listeners.values()]
    return [request("/api/v1/stream", f"Authorization: Token {token}") for token in tokens]


def opened_by_apps(community: Community, publisher: User) -> list[bytes]:
    """The requests of apps: a socket, a stream, a socket, and so on."""
    listeners = list(User.objects.in_bulk(list(community.followers[: community.size.app_streams])).values())
    requests = []
    for place, (user, token) in enumerate(zip(listeners, app_tokens(listeners), strict=True)):
        path, query = listened_to(place // 2 % 20, user, publisher)
        authorized = f"Authorization: Bearer {token}"
        if place % 2:
            requests.append(request(f"/api/v1/streaming/{path}{query and '?' + query}", authorized))
        else:
            named = f"stream={path.replace('/', ':')}{query and '&' + query}"
            requests.append(request(f"/api/v1/streaming?{named}", authorized, *UPGRADE))
    return requests


def listened_to(kind: int, user: User, publisher: User) -> tuple[str, str]:
    """A stream that tells of the publisher's items: its path, and its query."""
    match kind:
        case 0:
            return "public/local", ""
        case 1:
            return "hashtag", f"tag={TAG}"
        case 2:
            made = lists.create(owner=user, title="bench")
            lists.add(owner=user, list_id=made.pk, member=publisher)
            return "list", f"list={made.pk}"
    return "user", ""


def request(target: str, *headers: str) -> bytes:
    """A GET over HTTP."""
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def measure(name: str, requests: list[bytes], opened: bytes, publisher: User, rounds: int, report: Report) -> Found:
    """Open a connection by each request, and have all of them hear of items."""
    count = len(requests)
    with served(name) as (port, pid):
        empty = memory(pid)
        begin = time.perf_counter()
        with Listeners(port, requests, opened) as listeners:
            seconds = time.perf_counter() - begin
            time.sleep(1)
            kilobytes = (memory(pid) - empty) / count
            heard: list[float] = []
            last: list[float] = []
            before = processor_time(pid)
            for number in range(rounds):
                start = time.perf_counter()
                item = publish(sender=publisher, content={"text": f"bench {number} #{TAG}"})
                heard += [moment - start for moment in listeners.hear(str(item.pk).encode())]
                last.append(max(heard[-count:]))
            spent = (processor_time(pid) - before) / (rounds * count)
    found = Found(kilobytes, spent, median(heard), quantiles(heard, n=100)[98], median(last))
    figures = [round(kilobytes, 1), round(count / seconds), round(spent * 1e6, 1)]
    report.rows.append([name, count, *figures, *(round(each * 1000, 1) for each in found[2:])])
    return found


class Listeners:
    """Many open connections, read by one loop."""

    def __init__(self, port: int, requests: list[bytes], opened: bytes) -> None:
        self.selector = selectors.DefaultSelector()
        self.sockets: list[socket.socket] = []
        for each in requests:
            one = socket.create_connection(("127.0.0.1", port), 10)
            one.sendall(each)
            received = b""
            while opened not in received:
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
        moments: dict[int, float] = {}
        until = time.monotonic() + 60
        while len(moments) < len(self.sockets):
            assert time.monotonic() < until, f"{len(moments)} of {len(self.sockets)} heard"
            for key, _ in self.selector.select(1):
                with suppress(BlockingIOError):  # another event of the selector had it all
                    if item in key.fileobj.recv(65536):  # type: ignore[union-attr]
                        moments.setdefault(key.fd, time.perf_counter())
        return list(moments.values())


@contextmanager
def served(name: str) -> Iterator[tuple[int, int]]:
    """The server; its port, and the process that does the work."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, *SERVERS[name].format(port=port, most=settings.STREAM_CAP + 100).split()],
        cwd=settings.BASE_DIR,
        env=os.environ | {"FEEDSITE_DATA_DIR": str(settings.DATA_DIR)},
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        assert wait_for(lambda: answers(port), 30), f"{name} does not answer"
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        yield port, int(children[-1]) if children else server.pid
    finally:
        stop(server, 10)


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
