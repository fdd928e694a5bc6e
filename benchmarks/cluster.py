"""The cost of a page on a cluster of three nodes, against a single server.

The same readers with the same windows on both; pages alternate. `Redis alone` is what a page asks it, without
PostgreSQL. All nodes and the single server share this machine, so this is what the client and the further processes
cost; what further machines give is not seen. Both are reached by TCP. Beside them the same commands by the pipelines of
redis-py's own client for clusters.
"""

import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

import redis
from django.conf import settings
from redis.cluster import RedisCluster

from accounts.models import User
from benchmarks.community import Community, materialise_inbox, materialise_outbox, users
from benchmarks.measure import Report, interleaved, milliseconds, over
from runtime.embedded import Home, Valkey, wait_for
from storage import connections
from storage.connections import TASK_TIMEOUT_SECONDS, Command, client_of, pipelined
from storage.window import INFINITY, Entry, Window, deliver
from timeline import home, reading
from timeline.inbox import Inbox, cap_of
from timeline.outbox import Outbox

NODES = 3
SLOTS = 16_384
WINDOWS = 10_000
PART = 500


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    size = community.size
    report = Report(
        "cluster",
        __doc__.splitlines()[0],
        ["what", "cluster", "single server", "cluster by redis-py"],
        f"{size.page_rounds} rounds each; medians in ms, deliveries/s as means",
    )
    with servers() as (cluster, single):
        clients = {
            "cluster": client_of(cluster, TASK_TIMEOUT_SECONDS),
            "single": client_of(single, TASK_TIMEOUT_SECONDS),
        }
        peer = peer_of(cluster)
        for count, readers in community.hybrids.items():
            (reader,) = users(readers[:1])
            for url in (cluster, single):
                with feeds_from(url):
                    outboxes = build(reader)
            asked = [window.reading(INFINITY, 20) for window in (Inbox(reader.pk), *outboxes)]
            cases = {name: partial(ask, asked, client) for name, client in clients.items()}
            cases["redis-py"] = partial(ask_by_redis_py, asked, peer)
            _times(report, f"Redis alone: inbox and {count} outboxes", cases, size.page_rounds)
            cases = {name: partial(page, reader, client) for name, client in clients.items()}
            _times(report, f"home page: inbox and {count} outboxes", cases, size.page_rounds)
        windows = [Inbox(INFINITY + number).key for number in range(min(WINDOWS, size.items))]
        for client in clients.values():
            make(windows, client)
        cases = {name: partial(fill, windows, client) for name, client in clients.items()}
        times = interleaved(cases, rounds=size.fan_out_rounds)
        report.rows.append(
            [
                f"deliveries/s into {len(windows):,} windows",
                *(round(len(windows) / mean(times[name])) for name in clients),
                "",
            ]
        )
        report.ratio("deliveries/s over the single server's", over(times, "single", "cluster", mean))
        entries = [("ZADD", window, INFINITY - 5_000, "bench") for window in windows]
        cases = {"cluster": partial(in_parts, pipelined, clients["cluster"], entries)}
        cases["redis-py"] = partial(in_parts, by_redis_py, peer, entries)
        _times(report, f"{len(windows):,} ZADD, {PART} at a time", cases, size.fan_out_rounds)
        for client in (*clients.values(), peer):
            client.close()
    return report


def _times(report: Report, what: str, cases: Mapping[str, partial[object]], rounds: int) -> None:
    times = interleaved(dict(cases), rounds=rounds)
    columns = ("cluster", "single", "redis-py")
    report.rows.append([what, *(round(milliseconds(times[name]), 2) if name in times else "" for name in columns)])
    if "single" in times:
        report.ratio(f"{what}: time over the single server's", over(times, "cluster", "single"))
    if "redis-py" in times:
        report.ratio(f"{what}: redis-py's client over ours", over(times, "redis-py", "cluster"))


# --- Timed cases -----------------------------------------------------------------------------------------
def ask(commands: Sequence[Command], client: redis.Redis, number: int) -> None:
    """One round of commands by the site's client."""
    pipelined(client, commands)


def ask_by_redis_py(commands: Sequence[Command], peer: RedisCluster, number: int) -> None:
    """A round of commands by redis-py's pipeline, the peer."""
    by_redis_py(peer, commands)


def by_redis_py(peer: RedisCluster, commands: Sequence[Command]) -> None:
    """Run the commands in a pipeline of redis-py."""
    pipeline = peer.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
    pipeline.execute()


def in_parts(send: Callable[..., object], client: Any, commands: Sequence[Command], number: int) -> None:
    """Run the commands in parts of `PART`, by either client."""
    for first in range(0, len(commands), PART):
        send(client, commands[first : first + PART])


def page(reader: User, client: redis.Redis, number: int) -> None:
    """Read a page of home from the given server."""
    with patch.object(reading, "feeds", lambda: client), patch.object(home, "feeds", lambda: client):
        home.home_page(reader)


def fill(windows: Sequence[str], client: redis.Redis, number: int) -> None:
    """Deliver an item into windows of the given server."""
    deliver(client, Entry(INFINITY - 10_000 + number, 1), windows, [cap_of(3)] * len(windows))


# --- The readers' windows --------------------------------------------------------------------------------
def build(reader: User) -> list[Outbox]:
    """A reader's windows on the feeds server; the outboxes that their page reads."""
    materialise_inbox(reader.pk)
    big_vs = reader.follows.filter(followee__is_big_v=True).order_by("pk").values_list("followee", flat=True)
    for big_v in big_vs:
        materialise_outbox(big_v)
    return [Outbox(big_v) for big_v in big_vs]


def peer_of(url: str) -> RedisCluster:
    """redis-py's own client of the cluster, which knows the scripts."""
    peer = RedisCluster.from_url(
        url.replace("redis+cluster:", "redis:"), socket_timeout=TASK_TIMEOUT_SECONDS, protocol=2
    )
    for source in connections._scripts.values():
        peer.script_load(source)
    return peer


def make(names: Sequence[str], client: redis.Redis) -> None:
    """Build empty windows of these names."""
    for first in range(0, len(names), 500):
        windows = [Window(key) for key in names[first : first + 500]]
        pipelined(client, [window.begin("bench", 1) for window in windows])
        pipelined(client, [window.complete("bench", 1, 0, []) for window in windows])


@contextmanager
def feeds_from(url: str) -> Iterator[None]:
    """Have the site use another feeds server."""
    before, settings.REDIS_URL = settings.REDIS_URL, url
    for client in (connections.feeds, connections.feeds_for_tasks):
        client.cache_clear()
    try:
        yield
    finally:
        settings.REDIS_URL = before
        for client in (connections.feeds, connections.feeds_for_tasks):
            client.cache_clear()


@contextmanager
def servers() -> Iterator[tuple[str, str]]:
    """The addresses of a cluster and of a single server, as the feeds server is set up."""
    ports, others = free_ports(NODES + 1), free_ports(NODES + 1)
    with tempfile.TemporaryDirectory(prefix="feedsite-bench-") as folder:
        place = Home(Path(folder))
        place.make()
        started = []
        for number, (port, other) in enumerate(zip(ports, others, strict=True)):
            options = {"bind": "127.0.0.1", "port": str(port), "cluster-port": str(other), "save": ""}
            options |= {"cluster-enabled": "yes" if number else "no", "zset-max-listpack-entries": "512"}
            started.append(Valkey(place, f"node{number}", options))
        try:
            for server in started:
                server.start()
            assert wait_for(lambda: all(server.answers() for server in started), 30), started[-1].last_words()
            _join(ports[1:], others[1])
            yield f"redis+cluster://127.0.0.1:{ports[1]}", f"redis://127.0.0.1:{ports[0]}"
        finally:
            for server in started:
                server.kill()


def free_ports(count: int) -> list[int]:
    """Ports of this machine that were free a moment ago."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _join(ports: Sequence[int], first_bus: int) -> None:
    share = SLOTS // NODES + 1
    nodes = [redis.Redis(port=port, protocol=2) for port in ports]
    for number, node in enumerate(nodes):
        last = min(share * (number + 1), SLOTS) - 1
        node.execute_command("CLUSTER", "ADDSLOTSRANGE", share * number, last)
        node.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        node.execute_command("CLUSTER", "MEET", "127.0.0.1", ports[0], first_bus)
    well = (b"cluster_state:ok", b"cluster_slots_ok:%d" % SLOTS)
    until = time.monotonic() + 60
    while not all(said in bytes(node.execute_command("CLUSTER", "INFO")) for node in nodes for said in well):
        assert time.monotonic() < until, "the nodes do not find each other"
        time.sleep(0.1)
    for node in nodes:
        node.close()
