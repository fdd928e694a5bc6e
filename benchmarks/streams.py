"""What does an open stream cost, and how soon does it hear of a post?

The peer is a bare asyncio server that reads the same Redis stream and writes the same bytes, without HTTP, PostgreSQL
and batching.

Apps get the whole status instead of an id. Half of their connections are WebSockets. Of twenty, one follows the public
timeline, one a hashtag, one a list, and the others their home.
"""

import asyncio
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

import redis.asyncio
from django.conf import settings

from accounts.models import User
from benchmarks.community import Community, by_app, by_token
from benchmarks.measure import BenchmarkReport, free_ports, stop
from items.actions import publish
from relations import lists
from runtime.embedded import die_with_parent, wait_for
from storage import keys
from storage.events import Position, Published, event_of
from stream.news import ItemNews, message, reset_message

KILOBYTES = 40
"""Limit of a stream's memory."""
MILLISECONDS = 250
"""Limit of the time until 99 of a hundred have heard."""
TAG = "bench"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
}
TICKS = os.sysconf("SC_CLK_TCK")
OURS, BARE, APPS = "stream process", "bare writer", "stream process, for apps"
STREAM = ["-m", "runtime.stream_server", "--host", "127.0.0.1", "--port", "{port}", "--most", "{most}"]
STREAM += ["feedsite.asgi:application"]
WRITER = ["-c", "import django; django.setup(); from benchmarks.streams import bare; bare({port})"]
SERVERS = {OURS: STREAM, BARE: WRITER, APPS: STREAM}
PAGE_IS_OPEN, APP_IS_OPEN = b"event: reset", b"\r\n\r\n"
"""The ends of what a connection receives when it opens."""


class StreamFigures(NamedTuple):
    """One server's figures, in seconds."""

    kilobytes: float
    spent: float
    """Processor time per stream and event."""
    middle: float
    late: float
    """The times after which half of all, and 99 of a hundred, heard."""
    last: float
    """The time after which the last connection heard, in half of the rounds."""


def run(community: Community) -> BenchmarkReport:
    size = community.size
    report = BenchmarkReport(
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
        report.ratio(f"KB a stream, {name}", found[name].kilobytes, at_most=KILOBYTES)
    report.ratio("ms until 99 % have heard", found[OURS].late * 1000, at_most=MILLISECONDS)
    if found[BARE].spent:  # the kernel counts in ticks, and few streams take none
        report.ratio("CPU of a stream and event / bare writer", found[OURS].spent / found[BARE].spent)
        report.ratio("CPU of a stream and event, for apps / bare writer", found[APPS].spent / found[BARE].spent)
    report.ratio("p50 / bare writer", found[OURS].middle / found[BARE].middle)
    report.figure(f"CPU ms of an item for {len(apps):,} apps", f"{found[APPS].spent * len(apps) * 1000:.0f}")
    return report


def opened_by_pages(community: Community) -> list[bytes]:
    """Requests of pages that show their home."""
    listeners = User.objects.in_bulk(list(community.followers[: community.size.streams]))
    return [request("/api/v1/stream", by_token(user)) for user in listeners.values()]


def opened_by_apps(community: Community, publisher: User) -> list[bytes]:
    """Requests of apps: a socket, a stream, and so on."""
    listeners = list(User.objects.in_bulk(list(community.followers[: community.size.app_streams])).values())
    requests = []
    for place, (user, headers) in enumerate(zip(listeners, by_app(listeners), strict=True)):
        path, query = listened_to(place // 2 % 20, user, publisher)
        if place % 2:
            requests.append(request(f"/api/v1/streaming/{path}{query and '?' + query}", headers))
        else:
            named = f"stream={path.replace('/', ':')}{query and '&' + query}"
            requests.append(request(f"/api/v1/streaming?{named}", headers | UPGRADE))
    return requests


def listened_to(kind: int, user: User, publisher: User) -> tuple[str, str]:
    """Path and query of a stream with the publisher's items."""
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


def request(target: str, headers: dict[str, str]) -> bytes:
    """A GET as bytes."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def measure(
    name: str, requests: list[bytes], opened: bytes, publisher: User, rounds: int, report: BenchmarkReport
) -> StreamFigures:
    """Measure a server, and add a row: memory, time, and when each connection hears of published items."""
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
    found = StreamFigures(kilobytes, spent, median(heard), quantiles(heard, n=100)[98], median(last))
    figures = [round(kilobytes, 1), round(count / seconds), round(spent * 1e6, 1)]
    report.rows.append([name, count, *figures, *(round(each * 1000, 1) for each in found[2:])])
    return found


class Listeners:
    """Many connections, read by one loop."""

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
        """Wait until each connection has received the item. Returns when they did."""
        moments: dict[int, float] = {}
        until = time.monotonic() + 60
        while len(moments) < len(self.sockets):
            assert time.monotonic() < until, f"{len(moments)} of {len(self.sockets)} heard"
            for key, _ in self.selector.select(1):
                with suppress(BlockingIOError):  # another event of the selector took all of it
                    if item in key.fileobj.recv(65536):  # type: ignore[union-attr]
                        moments.setdefault(key.fd, time.perf_counter())
        return list(moments.values())


@contextmanager
def served(name: str) -> Iterator[tuple[int, int]]:
    """Run a server. Yields the port, and the id of the working process."""
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [sys.executable, *(part.format(port=port, most=settings.STREAM_CAP + 100) for part in SERVERS[name])],
        cwd=settings.BASE_DIR,
        env=os.environ | {"FEEDSITE_DATA_DIR": str(settings.DATA_DIR), "DJANGO_SETTINGS_MODULE": "feedsite.settings"},
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        assert wait_for(lambda: answers(port), 120), f"{name} does not answer"
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        yield port, int(children[-1]) if children else server.pid
    finally:
        stop(server, 30)


def answers(port: int) -> bool:
    """Whether the server on the port answers."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return bool(one.recv(100))
    return False


def memory(pid: int) -> float:
    """A process's resident memory, in KB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmRSS:")).split()[1])


def processor_time(pid: int) -> float:
    """The processor seconds of a process, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# --- The peer ------------------------------------------------------------------------------------------------
def bare(port: int) -> None:
    """Serve the Redis stream's entries until killed."""
    asyncio.run(_bare(port))


async def _bare(port: int) -> None:
    writers: set[asyncio.StreamWriter] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + reset_message(None))
        writers.add(writer)
        await reader.read()
        writers.discard(writer)
        writer.close()

    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, protocol=2)
    # "$" would miss what comes between two waits, so the position is read before the first connection.
    newest = await client.xrevrange(keys.events(), count=1)
    last = newest[0][0] if newest else "0"
    async with await asyncio.start_server(connected, "127.0.0.1", port, backlog=2048):
        while True:
            for _, entries in await client.xread({keys.events(): last}, block=1000):
                for position, fields in entries:
                    last = position
                    event = event_of(fields)
                    if isinstance(event, Published):
                        news = message("item", Position.parse(position), ItemNews(str(event.item)))
                        for writer in writers:
                            writer.write(news)
