"""How do a page and a fan-out grow with the community, from a thousand users to forty thousand of the real graph?

Pages of readers drawn by chance among those whose home has three pages; the first, and the second. A page's waits
for PostgreSQL and for Redis are clocked where it waits; the rest is Python. Beside it in every round, the least that a
page could wait for: two times SELECT 1 and a PING. A fan-out is what workers do for an item whose sender is drawn by
chance among the posts, as `growth_followers` counts it; its limit too.

Expected: pages flat, though every reader follows more people and there is more to find in; a fan-out grows as the mean
number of followers does, which is in proportion to the users that were drawn.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any
from unittest.mock import patch

import psycopg
from redis.connection import AbstractConnection

from accounts.models import User
from benchmarks.community import materialise_inbox, users
from benchmarks.fan_out import fresh_item, raw, raw_key
from benchmarks.fits import Chart
from benchmarks.followers import deliver_all, nothing_left
from benchmarks.graphs import Graphs
from benchmarks.measure import Report, interleaved, milliseconds, percentile
from storage.connections import feeds, feeds_for_tasks, fetch, pipelined
from timeline.home import home_page
from timeline.inbox import Inbox

LIMIT = 20
FLAT = 0.1
"""An exponent up to this is called flat: forty times the users for at most 1.45 times the cost."""
LINEAR = 1.05
PARTS = {"sql": "SQL", "redis": "Redis", "python": "Python"}
# Whose home holds three pages or more, the most that are asked for.
READERS = """
    SELECT f.follower_id FROM relations_follow f JOIN (
        SELECT sender_id, count(*) AS posts FROM items_item GROUP BY sender_id
    ) written ON written.sender_id = f.followee_id
    GROUP BY f.follower_id HAVING sum(written.posts) >= %s ORDER BY f.follower_id
"""


@dataclass(slots=True)
class Waits:
    """Seconds that one call waited for each server."""

    sql: float = 0.0
    redis: float = 0.0


@dataclass(slots=True)
class Found:
    """The figures of one community; pages by their name."""

    count: int
    followees: float
    followers: float = 0.0
    """Followers of the items' senders, on average."""
    pages: dict[str, list[float]] = field(default_factory=dict)
    waits: dict[str, list[Waits]] = field(default_factory=dict)
    least: list[float] = field(default_factory=list)
    fan_outs: list[float] = field(default_factory=list)
    raws: list[float] = field(default_factory=list)

    def part(self, page: str, kind: str) -> float:
        """The median of what a page spent with `sql`, `redis` or `python`, in ms."""
        pairs = zip(self.pages[page], self.waits[page], strict=True)
        if kind == "python":
            return milliseconds([seconds - wait.sql - wait.redis for seconds, wait in pairs])
        return milliseconds([getattr(wait, kind) for _, wait in pairs])


def run(graphs: Graphs) -> Report:
    """Run the benchmark, and return its report."""
    size = graphs.size
    report = Report(
        "growth_graph",
        __doc__.splitlines()[0],
        [
            "users",
            "followees",
            "page",
            "p50, ms",
            "p99, ms",
            *(f"{part}, ms" for part in PARTS.values()),
            "over the least",
            "followers of an item",
            "fan-out, ms",
            "raw, ms",
        ],
        f"{size.page_rounds} pages over up to {size.graph_readers} readers and {size.graph_items} items in each size; "
        f"medians, of fan-outs and raw means",
    )
    found = [_measured(graphs, count) for count in graphs.counts]
    for one in found:
        for name, times in one.pages.items():
            page = [milliseconds(times), percentile(times, 0.99), *(one.part(name, kind) for kind in PARTS)]
            fan_out: list[str | float] = ["", "", ""]
            if name == "first":
                fan_out = [round(one.followers, 2), *(round(mean(some) * 1000, 2) for some in (one.fan_outs, one.raws))]
            report.rows.append(
                [
                    *(one.count, round(one.followees, 1), name),
                    *(round(figure, 3) for figure in page),
                    *(round(median(times) / median(one.least), 2), *fan_out),
                ]
            )
    _fit(report, found)
    return report


def _measured(graphs: Graphs, count: int) -> Found:
    size = graphs.size
    graphs.load(count)
    chance = random.Random(count)  # noqa: S311 (no secret)
    able = [row[0] for row in fetch(READERS, [3 * LIMIT])]
    assert able, f"of {count:,} users nobody's home has three pages"
    readers = users(chance.sample(able, min(size.graph_readers, len(able))))
    for reader in readers:
        materialise_inbox(reader.pk)
    follows, people = fetch("SELECT (SELECT count(*) FROM relations_follow), (SELECT count(*) FROM accounts_user)")[0]
    found = Found(count, follows / people)
    _pages(found, readers, size.page_rounds)
    _fan_outs(found, chance, size.graph_items)
    return found


def _pages(found: Found, readers: list[User], rounds: int) -> None:
    seconds = [home_page(reader, limit=LIMIT).last_id for reader in readers]
    warm_up = min(2 * len(readers), rounds)
    found.waits = {"first": [], "second": []}
    clock = Waits()

    def page(name: str, last_ids: list[int | None]) -> Callable[[int], object]:
        def read(number: int) -> None:
            clock.sql = clock.redis = 0.0
            place = number % len(readers)
            page = home_page(readers[place], last_id=last_ids[place], limit=LIMIT)
            found.waits[name].append(Waits(clock.sql, clock.redis))
            assert len(page.items) == LIMIT
            assert page.sources == ["inbox"]

        return read

    def least(number: int) -> None:
        fetch("SELECT 1")
        fetch("SELECT 1")
        pipelined(feeds(), [("PING",)])

    cases = {"first": page("first", [None] * len(readers)), "second": page("second", seconds), "least": least}
    with clocked(clock):
        times = interleaved(cases, rounds=rounds, warm_up=warm_up)
    found.least = times.pop("least")
    found.pages = times
    for some in found.waits.values():
        del some[:warm_up]


@contextmanager
def clocked(clock: Waits) -> Iterator[None]:
    """Add up in `clock` what this process waits for PostgreSQL and for Redis."""
    execute = psycopg.Cursor.execute
    send, read = AbstractConnection.send_packed_command, AbstractConnection.read_response

    def timed(call: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def timing(*args: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            try:
                return call(*args, **options)
            finally:
                setattr(clock, kind, getattr(clock, kind) + time.perf_counter() - begin)

        return timing

    with (
        patch.object(psycopg.Cursor, "execute", timed(execute, "sql")),
        patch.object(AbstractConnection, "send_packed_command", timed(send, "redis")),
        patch.object(AbstractConnection, "read_response", timed(read, "redis")),
    ):
        yield


def _fan_outs(found: Found, chance: random.Random, count: int) -> None:
    senders = [row[0] for row in fetch("SELECT sender_id FROM items_item ORDER BY id")]
    drawn = chance.sample(senders, min(count, len(senders)))
    audiences = {
        sender: [row[0] for row in fetch("SELECT follower_id FROM relations_follow WHERE followee_id = %s", [sender])]
        for sender in set(drawn)
    }
    items = [fresh_item(sender) for sender in drawn]
    keys = [[raw_key(follower) for follower in audiences[sender]] for sender in drawn]
    ids = [row[0] for row in fetch("SELECT feedsite_next_id() FROM generate_series(1, %s)", [len(drawn)])]
    client = feeds_for_tasks()
    cases: dict[str, Callable[[int], object]] = {
        "fan_out": lambda number: deliver_all(items[number].pk),
        "raw": lambda number: raw(client, ids[number], drawn[number], keys[number], 1000),
    }
    times = interleaved(cases, rounds=len(drawn), warm_up=0)
    found.fan_outs, found.raws = times["fan_out"], times["raw"]
    found.followers = mean(len(some) for some in keys)
    assert nothing_left(), "a fan-out was not completed"
    for place, sender in enumerate(drawn):
        if audience := audiences[sender]:
            newest = f"{sender}:{items[place].pk}"
            assert client.zscore(Inbox(audience[-1]).key, newest) is not None, "an inbox lacks the item"


def _fit(report: Report, found: list[Found]) -> None:
    pages = Chart("page", "A page of home, by users", "users", "ms")
    parts = Chart("parts", "What a first page waits for, by users", "users", "ms")
    deliveries = Chart("fan_out", "A fan-out, by users", "users", "ms")
    laws = {}
    for name in ("first", "second"):
        for share, said in ((0.5, "p50"), (0.99, "p99")):
            points = [(one.count, percentile(one.pages[name], share)) for one in found]
            laws[f"{name} page, {said}"] = pages.add(f"{name} page, {said}", points)
    for kind, said in PARTS.items():
        points = [(one.count, one.part("first", kind)) for one in found]
        laws[f"{said} of a first page"] = parts.add(said, points)
    laws["the least"] = parts.add("the least", [(one.count, milliseconds(one.least)) for one in found])
    fan_out = deliveries.add("fan-out, mean", [(one.count, mean(one.fan_outs) * 1000) for one in found])
    least = deliveries.add("raw ZADD + trim, mean", [(one.count, mean(one.raws) * 1000) for one in found])
    report.charts += [pages, parts, deliveries]
    for name in ("first", "second"):
        report.ratio(f"exponent: {name} page, p50, over users", laws[f"{name} page, p50"].exponent, at_most=FLAT)
    for name, law in laws.items():
        if name not in ("first page, p50", "second page, p50"):
            report.ratio(f"exponent: {name}, over users", law.exponent)
    report.ratio("exponent: fan-out over users", fan_out.exponent, at_most=LINEAR)
    report.ratio("exponent: raw ZADD + trim over users", least.exponent)
    fewest, most = found[0], found[-1]
    ratio = [median(one.pages["first"]) / median(one.least) for one in (most, fewest)]
    report.ratio(f"first page over the least, {most.count:,} / {fewest.count:,} users", ratio[0] / ratio[1])
    report.notes.append(
        f"Exponents, with 95 % confidence: first page {laws['first page, p50']}, second page "
        f"{laws['second page, p50']}, fan-out {fan_out} (R² {fan_out.r2:.3f})."
    )
