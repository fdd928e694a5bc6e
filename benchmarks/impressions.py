"""How long does it take to leave out what a reader was shown within a week?

500 candidates against the filters of seven days, each as full as it is made for, by readers who see 20 to 1000 items a
day. The peer is redis-py's pipeline of BF.MEXISTS, one a day, whose members are made before; the limit is the same
commands packed before, and PING. Both kinds of filters run on one server, which has RedisBloom; where the wheel is
missing there is only the bitmap, and no peer.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta

import redis
from django.conf import settings
from django.test import override_settings

from benchmarks import redisbloom
from benchmarks.community import Community
from benchmarks.measure import Report, interleaved, milliseconds, over
from discover.impressions import DAYS, Impression, record, shown
from runtime.embedded import Home, wait_for
from storage import keys
from storage.connections import borrowed, feeds, feeds_for_tasks

CANDIDATES = 500
READERS = 50
"""Readers of a batch that is recorded, a page of 20 items each."""
PROBED = 100
NEW = 10**15
"""Items from here on were shown to no reader."""
PEER = "peer"


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    size = community.size
    report = Report(
        "impressions",
        __doc__.splitlines()[0],
        ["filters", "what", "ms", "x PING"],
        f"{size.impression_rounds} rounds; {size.impressions:,} impressions a day and filter",
    )
    module = redisbloom.server(Home(settings.DATA_DIR))
    if module is None:
        report.notes.append("RedisBloom is not installed here: there is no peer, and the bitmap alone was measured.")
        with served(settings.REDIS_URL, "bitmap", size.impressions):
            measure(report, "bitmap", size.impressions, size.impression_rounds, has_module=False)
        return report
    module.start()
    try:
        assert wait_for(module.answers, 30), module.last_words()
        for kind in ("bitmap", "module"):
            with served(f"unix://{module.socket}", kind, size.impressions):
                measure(report, kind, size.impressions, size.impression_rounds, has_module=True)
    finally:
        module.stop()
    return report


@contextmanager
def served(url: str, kind: str, capacity: int) -> Iterator[None]:
    """Impressions are on this server, in one shard and in filters of this kind."""
    with override_settings(REDIS_URL=url, BLOOM=kind, IMPRESSION_SHARDS=1, IMPRESSION_CAPACITY=capacity):
        forget_clients()
        try:
            yield
        finally:
            feeds_for_tasks().flushall()
            forget_clients()
    forget_clients()


def forget_clients() -> None:
    """Close the clients of Redis, so that the next are of another server."""
    for client in (feeds, feeds_for_tasks):
        client().close()
        client.cache_clear()


def measure(report: Report, kind: str, impressions: int, rounds: int, *, has_module: bool) -> None:
    """Time recording and asking with one kind of filter, and add rows to the report."""
    client = feeds_for_tasks()
    today = datetime.now(UTC).date()
    readers = fill(today, impressions)
    reader = readers[0]
    candidates = range(NEW, NEW + CANDIDATES)
    cases: dict[str, Callable[[int], object]] = {
        "PING": lambda _: client.ping(),
        "shown, 500": lambda _: shown(reader, candidates, today=today),
        "shown, 8000": lambda _: shown(reader, range(NEW, NEW + 8_000), today=today),
        "record, 50 readers' pages of 20": lambda number: record(pages(number, today)),
    }
    if has_module:
        cases |= peers(client, readers, impressions)
    times = interleaved(cases, rounds=rounds)
    for name, taken in times.items():
        report.rows.append([kind, name, round(milliseconds(taken), 3), round(over(times, name, "PING"), 1)])
    if has_module:
        limit = 1.0 if kind == "module" else 0.5
        report.ratio(f"{kind}: shown / 7 BF.MEXISTS (redis-py)", over(times, "shown, 500", MEXISTS), at_most=limit)
        report.ratio(f"{kind}: shown / 7 BF.MEXISTS (packed before)", over(times, "shown, 500", PACKED))
        report.ratio(f"{kind}: shown / 3,500 BF.EXISTS (redis-py)", over(times, "shown, 500", EXISTS), at_most=0.2)
    report.ratio(f"{kind}: shown / PING", over(times, "shown, 500", "PING"))
    report.ratio(f"{kind}: wrong / configured", wrong(readers, today), at_most=1.1)
    used = client.memory_usage(keys.impressions(today - timedelta(days=1), 0), samples=0)
    report.ratio(f"{kind}: bytes an impression", used / impressions)


def fill(today: date, impressions: int) -> list[int]:
    """Record the week before the day that is measured, and that day: pages of 20, by turns; who read."""
    rng = random.Random(1)  # noqa: S311 (the same in every run)
    counts: list[int] = []
    while sum(counts) < impressions:
        counts.append(min(round(20 * 50 ** rng.random()), impressions - sum(counts)))
    for ago in range(DAYS):
        first = 1 + ago * 1_000
        day = [
            Impression(user, today - timedelta(days=ago), range(first + at, first + min(at + 20, count)))
            for user, count in enumerate(counts, 1)
            for at in range(0, count, 20)
        ]
        rng.shuffle(day)
        for at in range(0, len(day), 20):
            record(day[at : at + 20])
    return list(range(1, len(counts) + 1))


def pages(number: int, today: date) -> list[Impression]:
    """The impressions of fifty readers, on a day of their own that no query looks at."""
    first = 1 + number * 20
    return [Impression(user, today + timedelta(days=1), range(first, first + 20)) for user in range(READERS)]


def wrong(readers: list[int], today: date) -> float:
    """The part of new items that are taken for shown, over what seven filters of the configured rate would."""
    asked = readers[:PROBED]
    taken = sum(len(shown(reader, range(NEW, NEW + 8_000), today=today)) for reader in asked)
    configured = 1 - (1 - settings.IMPRESSION_ERROR_RATE) ** DAYS
    return taken / (8_000 * len(asked)) / configured


MEXISTS = "7 BF.MEXISTS of 500 (redis-py)"
PACKED = "7 BF.MEXISTS of 500 (packed before)"
EXISTS = "3,500 BF.EXISTS (redis-py)"


def peers(client: redis.Redis, readers: list[int], impressions: int) -> dict[str, Callable[[int], object]]:
    """The peers: filters as one would write them by hand, made by the module and as full."""
    each = impressions // len(readers)
    for ago in range(DAYS):
        client.execute_command("BF.RESERVE", f"{PEER}:{ago}", settings.IMPRESSION_ERROR_RATE, impressions)
        for reader in readers:
            members = [f"{reader}:{item}" for item in range(1 + ago * 1_000, 1 + ago * 1_000 + each)]
            client.execute_command("BF.MADD", f"{PEER}:{ago}", *members)
    members = [f"{readers[0]}:{item}" for item in range(NEW, NEW + CANDIDATES)]
    commands = [("BF.MEXISTS", f"{PEER}:{ago}", *members) for ago in range(DAYS)]
    with borrowed(client) as connection:
        packed = connection.pack_commands(commands)

    def pipeline(_: int) -> object:
        pipe = client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        return pipe.execute()

    def sent(_: int) -> object:
        with borrowed(client) as connection:
            connection.send_packed_command(packed)
            return [connection.read_response() for _ in commands]

    def one_by_one(_: int) -> object:
        pipe = client.pipeline(transaction=False)
        for _, key, *members in commands:
            for member in members:
                pipe.execute_command("BF.EXISTS", key, member)
        return pipe.execute()

    return {MEXISTS: pipeline, PACKED: sent, EXISTS: one_by_one}
