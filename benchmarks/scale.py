"""What would a site of 1, 50 or 500 million users take, and which follows should be pushed?

Unit costs come from this run: processor time per act of the site's functions, and bytes per row (with indexes), key and
message. The sites are arithmetic over these units and assumptions.

The policies are a model of one day of a follow graph. Pushed: each item of the followee costs a delivery. Pulled: each
page of the reader costs reading the followee's outbox.

- hybrid, as the site: followees with `threshold` followers are big-Vs and push only from `push_level` on.
- per pair: pushed if the followee's items a day times the cost of a delivery are less than the reader's pages a day
  times the cost of a pull (Silberstein et al., "Feeding Frenzy: Selectively Materializing Users' Event Feeds", SIGMOD
  2010, per-producer coherency).

Rates are constant. Blocks, mutes, visibility and rebuilt inboxes are left out.

See docs/decisions.md: Push or pull is decided by sender.
"""

import csv
import gzip
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from statistics import linear_regression

import numpy as np
import redis
from celery import current_app as app
from django.conf import settings
from django.db import connection
from numpy.typing import NDArray

from accounts.levels import policy
from accounts.models import User
from benchmarks.community import Community, by_token, fresh_item, materialise_inbox, users
from benchmarks.http_page import PAGE
from benchmarks.measure import Report, Request, over_http, served, servers_time
from benchmarks.played import ingest_over_http
from benchmarks.report import table
from benchmarks.streams import OURS, PAGE_IS_OPEN, measure, opened_by_pages
from community.dataset import Dataset
from discover import feed, refreshing
from discover.impressions import Impression, record, shard_of
from items import counts
from items.actions import like, publish
from items.models import Item
from items.search.query import parse
from items.search.search import search_items
from notifications.feed import notifications_page, unread_count
from storage import keys
from storage.connections import feeds, fetch, pipelined
from storage.queue import enqueue
from timeline import fanout
from timeline.home import home_page
from timeline.inbox import Inbox, Tail
from timeline.models import Delivery

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

KEPT_DAYS = 365
"""A window holds the entries of this many days, up to its cap."""
LISTPACK = 512
"""Entries up to which the server packs a window (zset-max-listpack-entries)."""
WARM_UP = 10
ROWS = 20_000
"""Rows written into tables that the community leaves empty."""
TASKS = 1_000
FOLLOWEES = 200
Units = dict[str, float]
"""Seconds of one core, and bytes, by name of the unit."""
BYTES = ("open stream", "entry of an inbox, packed", "impression of a day", "task that waits")
"""Units in bytes, besides the rows."""
BADGE = 5
"""Requests of the unread badge per view of the notifications."""
LIKES = """
    INSERT INTO items_like (user_id, item_id) SELECT u.id, i.id
    FROM (SELECT id FROM accounts_user ORDER BY id LIMIT 200) u,
        (SELECT id FROM items_item WHERE status = 'published' ORDER BY id LIMIT %(count)s / 200) i
    ON CONFLICT DO NOTHING
"""
# Four acts per entry, as for items with few likes.
NOTIFICATIONS = """
    WITH told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id)
        SELECT sender_id, 'like', id FROM items_item WHERE status = 'published' ORDER BY id LIMIT %(count)s / 4
        ON CONFLICT DO NOTHING RETURNING id, recipient_id
    )
    INSERT INTO notifications_act (notification_id, recipient_id, actor_id)
    SELECT told.id, told.recipient_id, u.id FROM told, (SELECT id FROM accounts_user ORDER BY id LIMIT 4) u
"""
TABLES = {
    "user": ("accounts_user",),
    "follow": ("relations_follow",),
    "item": ("items_item",),
    "item's words": ("items_itemdocument",),
    "like": ("items_like",),
    "act in a notification": ("notifications_act", "notifications_notification"),
}


@dataclass(frozen=True, slots=True)
class Costs:
    """Unit costs in seconds of one core and bytes of Redis, on 2 cores of an AMD EPYC. A run measures them again."""

    push: float = 14.2e-6
    """One delivery of a fan-out to 10,000 followers of level 3."""
    page: float = 1.9e-3
    """A first page over HTTP that pulls nothing."""
    pull: float = 46e-6
    """One outbox more in a page."""
    packed_entry: float = 34.2
    """Bytes of an entry of a window of up to `LISTPACK` entries."""
    entry: float = 84.2
    """Bytes of an entry of a longer window."""
    item: float = 8.5e-3
    """Publishing, for any number of followers."""


def window_bytes(entries: Floats, costs: Costs) -> Floats:
    """The bytes of windows with these numbers of entries."""
    held: Floats = entries * np.where(entries <= LISTPACK, costs.packed_entry, costs.entry)
    return held


def run(community: Community) -> Report:
    """Run the benchmark."""
    report = Report(
        "scale",
        __doc__.splitlines()[0],
        ["unit", "measured"],
        f"{community.size.cost_rounds} calls of each act; rows of {ROWS:,} and more",
    )
    community.materialise()
    costs, units = measured(community)
    for name, value in units.items():
        unit, factor = ("bytes", 1) if name in BYTES or name.startswith("row: ") else ("µs", 1e6)
        report.rows.append([f"{name}, {unit}", round(value * factor, 1)])
    rows = [[name, *(_short(work(site)) for site in SITES)] for name, work in needs(units).items()]
    report.notes.append(table(["in the busiest hour", *(site.name for site in SITES)], rows))
    users = community.size.graph_users
    graph = of_dataset(community.folder) if community.folder else by_chance(users, seed=1)
    compare(report, graph, costs)
    return report


# --- The units -----------------------------------------------------------------------------------------------
def measured(community: Community) -> tuple[Costs, Units]:
    """Measure the unit costs."""
    rounds = community.size.cost_rounds
    rows = _rows(community)
    people = users(community.readers[FOLLOWEES])
    turn = cycle(people)
    items = cycle(Item.objects.published().order_by("-pk")[: rounds + WARM_UP])
    strangers = cycle(User.objects.order_by("pk")[100 : 100 + rounds + WARM_UP])
    floors = {reader.pk: _floor(reader) for reader in people}
    words = parse("w3")

    def below(_: int) -> object:
        reader = next(turn)
        pipelined(feeds(), [Tail(reader.pk).drop()])
        return home_page(reader, last_id=floors[reader.pk])

    def cpu(act: Callable[[int], object]) -> float:
        return _cpu(act, rounds)

    page_below = cpu(below)
    pages = {count: _page(cpu, ids) for count, ids in community.hybrids.items() if count < 100}
    push = _delivery(community)
    publishing = cpu(lambda number: publish(sender=next(turn), content={"text": f"words {number}"}))
    liking = cpu(lambda _: like(user=next(strangers), item=next(items)))
    build = cpu(lambda _: materialise_inbox(next(turn).pk))
    told = cpu(lambda _: notifications_page(next(strangers))) + BADGE * cpu(lambda _: unread_count(next(strangers)))
    search = cpu(lambda _: search_items(words, next(turn)))
    now = datetime.now(UTC)
    refreshing.refresh_words(now=now)
    refreshing.refresh_popular(now=now)
    refresh = cpu(lambda _: feed.refresh(next(turn), limit=20))
    more = cpu(lambda _: feed.load_more(next(turn), limit=20))
    app.control.purge()
    Delivery.objects.all().delete()
    counts.fold()
    with served() as port:
        requests = {"home": [Request(PAGE, by_token(reader)) for reader in people]}
        home = over_http(port, requests, rounds=community.size.http_rounds, each=community.size.http_requests)["home"]
    aside = Report("", "", [], "")
    play, in_batch = ingest_over_http(aside, community.size.http_rounds, community.size.http_requests)
    publisher = users([community.publishers[max(community.publishers)]])[0]
    requests_of_streams = opened_by_pages(community)[:200]
    stream = measure(OURS, requests_of_streams, PAGE_IS_OPEN, publisher, community.size.stream_rounds, aside)
    packed, skipped = _entries(community)
    costs = Costs(
        item=publishing,
        push=push,
        page=home.total,
        pull=max(linear_regression(list(pages), list(pages.values())).slope, 1e-9),
        packed_entry=packed,
        entry=skipped,
    )
    units: Units = {
        "page of home over HTTP: worker": home.worker,
        "page of home over HTTP: PostgreSQL and Redis": home.total - home.parts[0],
        "page of home below the inbox": page_below,
        "publish": publishing,
        "delivery": push,
        "like": liking,
        "build an inbox of level 3": build,
        "look at the notifications, with the badge": told,
        "page of search": search,
        "refresh of Discover": refresh,
        "further page of Discover": more,
        "event to a stream": stream.spent,
        "play over HTTP, 8 of one user in a request": play,
        "play over HTTP, 8 of each of 100 users in a batch": in_batch,
        "open stream": stream.kilobytes * 1e3,
        "entry of an inbox, packed": packed,
        "impression of a day": _impression(people[0].pk),
        "task that waits": _task(),
        **{f"row: {name}": size for name, size in rows.items()},
    }
    return costs, units


def _cpu(act: Callable[[int], object], rounds: int) -> float:
    for number in range(WARM_UP):
        act(number)
    begin = time.process_time() + sum(servers_time())
    for number in range(rounds):
        act(number)
    return (time.process_time() + sum(servers_time()) - begin) / rounds


def _page(cpu: Callable[[Callable[[int], object]], float], reader_ids: list[int]) -> float:
    turn = cycle(users(reader_ids))
    return cpu(lambda _: home_page(next(turn)))


def _floor(reader: User) -> int:
    """An id below which PostgreSQL serves the reader's home."""
    last_id = None
    for _ in range(200):
        page = home_page(reader, last_id=last_id, limit=100)
        if "sql" in page.sources or not page.has_more:
            break
        last_id = page.last_id
    assert last_id
    return last_id


def _delivery(community: Community) -> float:
    followers = max(community.publishers)
    fresh = iter([fresh_item(community.publishers[followers]).pk for _ in range(16)])
    for _ in range(2):
        fanout.fan_out(next(fresh))
    begin = time.process_time() + sum(servers_time())
    done = [fanout.fan_out(item) for item in fresh]
    return (time.process_time() + sum(servers_time()) - begin) / len(done) / followers


def _rows(community: Community) -> dict[str, float]:
    """The bytes of a row of each kind, with indexes."""
    community.index_words(ROWS)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(LIKES, {"count": ROWS})
        cursor.execute(NOTIFICATIONS, {"count": ROWS})
        cursor.execute("RESET session_replication_role")
    found = {}
    for name, tables in TABLES.items():
        size = count = 0
        for each in tables:
            with connection.cursor() as cursor:
                cursor.execute(f"VACUUM ANALYZE {each}")
            ((taken, rows),) = fetch(f"SELECT pg_total_relation_size('{each}'), (SELECT count(*) FROM {each})")  # noqa: S608
            size, count = size + taken, count or rows
        found[name] = size / count
    return found


def _entries(community: Community) -> tuple[float, float]:
    """The bytes of an entry in a packed inbox (hybrids, level 2), and in a skiplist (level 3)."""
    kinds = []
    for readers in (community.hybrids[min(community.hybrids)], community.readers[max(community.readers)]):
        key = Inbox(readers[0]).key
        kinds.append((feeds().memory_usage(key, samples=0) or 0) / max(feeds().zcard(key), 1))
    return kinds[0], kinds[1]


def _impression(reader: int) -> float:
    """The bytes of an impression: those of a day's filter of a shard, over its capacity."""
    today = datetime.now(UTC).date()
    record([Impression(reader, today, range(1, 1_001))])
    held = feeds().memory_usage(keys.impressions(today, shard_of(reader)), samples=0) or 0
    return float(held / settings.IMPRESSION_CAPACITY)


def _task() -> float:
    """The bytes of a task in the queue. Empties the queue."""
    broker = redis.Redis.from_url(settings.CACHE_URL.partition("?")[0])  # the same server, database 0
    app.control.purge()
    for number in range(TASKS):
        enqueue("timeline.fan_out", 10**15 + number)
    held = broker.memory_usage(app.conf.task_default_queue, samples=0) or 0
    app.control.purge()
    broker.close()
    return float(held / TASKS)


# --- Sites of several sizes ----------------------------------------------------------------------------------
DAY = 86_400
PEAK = 3
"""The busiest hour over the average. Assumed, like all that follows."""
PAGES, READS = 5.0, 100.0
"""Pages of home per user and day, and pages per item."""
LIKED, DISCOVERED, SEARCHED, PLAYED = 5, 2, 0.2, 30
"""Likes per item. Per user and day: Discover refreshes with a further page each, searches, plays."""
CONNECTED, EVENTS = 0.05, 1 / 60
"""The share of users with an open stream, and events a second on it."""
ACTIVE, CAP = 0.3, 450
"""The share of users with an active inbox, and its entries: few enough for the server to pack them."""
BUSY = 0.5
"""The share of a core that may be busy."""


@dataclass(frozen=True)
class Site:
    """The size of a site to compute."""

    name: str
    users: float
    followers: float
    """Followers of an item's sender, averaged over items."""
    given: float | None = None
    """Items a second in the busiest hour, if known."""
    largest: float = 0
    """Followers of the most followed user."""

    def a_second(self, a_day: float) -> float:
        """How often an act that each user does `a_day` times happens a second, in the busiest hour."""
        return self.users * a_day / DAY * PEAK

    @property
    def items(self) -> float:
        """Items a second in the busiest hour."""
        return self.a_second(PAGES) / READS if self.given is None else self.given


SITES = (
    Site("1 M users", 1e6, 499),
    Site("50 M", 50e6, 499),
    Site("500 M", 500e6, 499),
    Site("100 M, 3,500 items/s", 100e6, 403, 3_500, 22e6),
)
IN_ALL = "**cores in all, half busy**"


def needs(u: Units) -> dict[str, Callable[[Site], float]]:
    """Functions that compute what a site needs in its busiest hour."""
    item = u["publish"] + LIKED * u["like"]
    discover = u["refresh of Discover"] + u["further page of Discover"]
    liked = u["row: like"] + u["row: act in a notification"]
    stored = u["row: item"] + u["row: item's words"] + LIKED * liked
    cores: dict[str, Callable[[Site], float]] = {
        "cores: web": lambda s: s.a_second(PAGES) * u["page of home over HTTP: worker"],
        "cores: servers of pages": lambda s: s.a_second(PAGES) * u["page of home over HTTP: PostgreSQL and Redis"],
        "cores: items and their likes": lambda s: s.items * item,
        "cores: deliveries": lambda s: s.items * s.followers * u["delivery"],
        "cores: Discover": lambda s: s.a_second(DISCOVERED) * discover,
        "cores: search": lambda s: s.a_second(SEARCHED) * u["page of search"],
        "cores: notifications": lambda s: s.a_second(1) * u["look at the notifications, with the badge"],
        "cores: streams": lambda s: s.users * CONNECTED * EVENTS * u["event to a stream"],
        "cores: plays": lambda s: s.a_second(PLAYED) * u["play over HTTP, 8 of each of 100 users in a batch"],
    }
    return {
        "pages of home/s": lambda s: s.a_second(PAGES),
        "items/s": lambda s: s.items,
        "deliveries/s": lambda s: s.items * s.followers,
        **cores,
        IN_ALL: lambda s: sum(work(s) for work in cores.values()) / BUSY,
        "seconds of a core for an item of the largest": lambda s: s.largest * u["delivery"],
        "bytes of open streams": lambda s: s.users * CONNECTED * u["open stream"],
        "bytes of inboxes, with a replica": lambda s: 2 * s.users * ACTIVE * CAP * u["entry of an inbox, packed"],
        "bytes of impressions, with a replica": lambda s: s.users * DISCOVERED * 40 * 7 * 2 * u["impression of a day"],
        "bytes of users and follows": lambda s: s.users * (u["row: user"] + 11 * u["row: follow"]),
        "bytes of a year's items": lambda s: s.items / PEAK * DAY * 365 * stored,
        "bytes of ten minutes' tasks": lambda s: s.items * 600 * u["task that waits"],
        "core-hours to build lost inboxes": lambda s: s.users * ACTIVE * u["build an inbox of level 3"] / 3600,
        "cores for pages without inboxes": lambda s: s.a_second(PAGES) * u["page of home below the inbox"],
    }


def _short(number: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.2g}" if number < 100 else f"{number:.0f}"


# --- Graphs of follows ---------------------------------------------------------------------------------------
LEVELS = 4
NO_LEVEL = LEVELS
"""The push level that pushes a big-V's items to nobody."""
NEVER = np.iinfo(np.int64).max
"""The threshold that makes no sender big-V: 0 in FEEDSITE_BIG_V_THRESHOLD."""
CLOSE = 1.01
"""Costs within this factor of the least count as equal. Among them, the highest threshold makes the fewest big-Vs."""
LAG = 5.0
"""Seconds that a worker may take for an item."""
MEAN_FOLLOWEES = 10
SKEW = 3
"""The exponent of popularity: degrees fall as 1 / degree ** (1 + SKEW / (SKEW - 1))."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A follow graph. `readers[i]` follows `senders[i]`, both array indexes. Rates are items and pages a day."""

    levels: Integers
    items: Floats
    pages: Floats
    readers: Integers
    senders: Integers

    @property
    def size(self) -> int:
        """The number of users."""
        return len(self.levels)

    def followers(self) -> Integers:
        """The number of followers of each user."""
        return np.bincount(self.senders, minlength=self.size)


def levels_of(pages: Floats) -> Integers:
    """The levels of users who read this many pages a day, evenly spread."""
    ages = sorted((age.total_seconds() / DAY for age in settings.LEVEL_AGES.values()), reverse=True)
    return np.searchsorted(1 / np.array(ages), pages, side="right")


def by_chance(users: int, *, seed: int, pages: float = PAGES, reads: float = READS) -> Graph:
    """A random graph. Popularity follows a power law. Followees, reading and writing are lognormal."""
    chance = np.random.default_rng(seed)
    counts = chance.lognormal(sigma=1.0, size=users)
    counts = np.minimum(counts * (MEAN_FOLLOWEES / counts.mean()), settings.FOLLOW_CAP).astype(np.int64)
    readers = np.repeat(np.arange(users), counts)
    senders = (users * chance.random(len(readers)) ** SKEW).astype(np.int64)
    readers, senders = np.divmod(np.unique(readers * users + senders), users)
    other = readers != senders
    readers, senders = readers[other], senders[other]
    fame = np.sqrt(1 + np.bincount(senders, minlength=users))
    reading = _scaled(chance.lognormal(sigma=2.0, size=users), pages * users)
    writing = _scaled(fame * chance.lognormal(sigma=2.0, size=users), reading.sum() / reads)
    return Graph(levels_of(reading), writing, reading, readers, senders)


def of_dataset(folder: Path, *, pages: float = PAGES, reads: float = READS) -> Graph:
    """The graph of a data set. Pages follow from its interactions, or are equal without them."""
    dataset = Dataset(folder, quiet=True)
    places = {row.id: place for place, row in enumerate(dataset.users())}
    follows = ((places.get(row.follower_id), places.get(row.followee_id)) for row in dataset.follows())
    known = np.array([pair for pair in follows if None not in pair], dtype=np.int64).reshape(-1, 2)
    posts = _counted(places, (post.author_id for post in dataset.posts()))
    acts = np.ones(len(places))
    if (file := folder / "interactions.csv.gz").exists():
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            acts = _counted(places, (int(row["user_id"]) for row in csv.DictReader(lines)))
    reading = _scaled(acts, pages * len(places))
    return Graph(levels_of(reading), _scaled(posts, reading.sum() / reads), reading, known[:, 0], known[:, 1])


def _scaled(weights: Floats, total: float) -> Floats:
    mass = weights.sum()
    return weights * (total / mass) if mass else weights


def _counted(places: dict[int, int], user_ids: Iterable[int]) -> Floats:
    found = np.zeros(len(places))
    for user_id, count in Counter(user_ids).items():
        if user_id in places:
            found[places[user_id]] = count
    return found


# --- Policies: which follows are pushed ----------------------------------------------------------------------
def push_all(graph: Graph) -> Mask:
    """The policy that pushes every follow.

    A policy is an array with True for each pushed follow.
    """
    return np.ones(len(graph.senders), dtype=bool)


def pull_all(graph: Graph) -> Mask:
    """The policy that pulls every follow."""
    return np.zeros(len(graph.senders), dtype=bool)


def hybrid(graph: Graph, threshold: int, push_level: int) -> Mask:
    """The policy in which senders with `threshold` followers push only to followers from `push_level` on."""
    minimum = np.where(graph.followers() >= threshold, max(1, push_level), 1)
    pushed: Mask = graph.levels[graph.readers] >= minimum[graph.senders]
    return pushed


def per_pair(graph: Graph, costs: Costs) -> Mask:
    """The policy that takes the cheaper way for each follow."""
    pushed: Mask = (graph.items * costs.push)[graph.senders] < (graph.pages * costs.pull)[graph.readers]
    return pushed


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a day costs under a policy, in seconds of one core. `p50` and `p99` are per page."""

    policy: str
    pushed: int
    pulled: int
    deliveries: float
    writing: float
    reading: float
    inbox_bytes: float
    outbox_bytes: float
    p50: float
    p99: float
    lag: float
    """Seconds of one worker for an item of the sender with most pushes."""

    @property
    def total(self) -> float:
        """Seconds of a core for a day's writing and reading."""
        return self.writing + self.reading


def outcome(name: str, graph: Graph, pushed: Mask, costs: Costs) -> Outcome:
    """The costs of a day under a policy."""
    pushes = np.bincount(graph.senders[pushed], minlength=graph.size)
    pulled = ~pushed
    outboxes = np.bincount(graph.readers[pulled], minlength=graph.size)
    deliveries = float(graph.items @ pushes)
    page: Floats = costs.page + costs.pull * outboxes.astype(np.float64)
    read = np.bincount(graph.senders[pulled], minlength=graph.size) > 0
    # A dormant reader who takes pushes has the shortest inbox.
    caps = np.array([settings.LEVEL_CAPS[max(1, level)] for level in range(LEVELS)])
    held = np.minimum(_arriving(graph, pushed) * KEPT_DAYS, caps[graph.levels])
    kept = np.where(read, np.minimum(graph.items * KEPT_DAYS, settings.OUTBOX_CAP), 0)
    p50, p99 = quantiles(page, graph.pages, (0.5, 0.99))
    return Outcome(
        name,
        pushed=int(pushes.sum()),
        pulled=int(outboxes.sum()),
        deliveries=deliveries,
        writing=float(graph.items.sum() * costs.item + deliveries * costs.push),
        reading=float(graph.pages @ page),
        inbox_bytes=float(window_bytes(held, costs).sum()),
        outbox_bytes=float(window_bytes(kept, costs).sum()),
        p50=p50,
        p99=p99,
        lag=float(costs.item + costs.push * pushes[graph.items > 0].max(initial=0)),
    )


def _arriving(graph: Graph, pushed: Mask) -> Floats:
    weights = graph.items[graph.senders[pushed]]
    return np.bincount(graph.readers[pushed], weights=weights, minlength=graph.size).astype(np.float64)


def quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> list[float]:
    """Weighted quantiles of the values. Zeros without weight."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    if not len(reached) or reached[-1] <= 0:
        return [0.0] * len(shares)
    places = np.searchsorted(reached, np.array(shares) * reached[-1])
    return [float(value) for value in values[order][np.minimum(places, len(values) - 1)]]


# --- The threshold -------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Point:
    """What a day costs with a threshold and push level."""

    threshold: int
    push_level: int
    big_vs: int
    day: Outcome


def curve(graph: Graph, costs: Costs) -> list[Point]:
    """What a day costs at every push level and threshold."""
    followers = graph.followers()
    return [
        Point(
            threshold,
            push_level,
            int((followers >= threshold).sum()),
            outcome("hybrid", graph, hybrid(graph, threshold, push_level), costs),
        )
        for push_level in range(1, NO_LEVEL + 1)
        for threshold in thresholds(int(followers.max(initial=0)))
    ]


def thresholds(most: int) -> list[int]:
    """The thresholds to try: 1, 2, 5, 10 and so on up to `most`, then `NEVER`."""
    found = [factor * 10**power for power in range(len(str(most))) for factor in (1, 2, 5)]
    return [*(threshold for threshold in found if threshold <= most), NEVER]


def recommend(points: Sequence[Point], *, lag: float, push_level: int) -> Point:
    """The cheapest point with at most `lag` seconds per item, or else the one with the least lag.

    Among `CLOSE` points: the fewest big-Vs, then the cheapest, then the nearest to `push_level`.
    """
    limit = max(lag, min(point.day.lag for point in points))
    allowed = [point for point in points if point.day.lag <= limit]
    cheapest = min(point.day.total for point in allowed)
    close = [point for point in allowed if point.day.total <= cheapest * CLOSE]
    return min(close, key=lambda point: (point.big_vs, point.day.total, abs(point.push_level - push_level)))


def compare(report: Report, graph: Graph, costs: Costs) -> None:
    """Add the policies and their costs to the report."""
    level = policy.configured().push_level
    best = recommend(curve(graph, costs), lag=LAG, push_level=level)
    as_set = hybrid(graph, settings.BIG_V_THRESHOLD or NEVER, level)
    policies = {
        "push": push_all(graph),
        "pull": pull_all(graph),
        "hybrid, as set": as_set,
        "hybrid, recommended": hybrid(graph, best.threshold, best.push_level),
        "per pair": per_pair(graph, costs),
    }
    days = [outcome(name, graph, pushed, costs) for name, pushed in policies.items()]
    rows = [
        [
            *(day.policy, day.pushed, round(day.deliveries)),
            *(f"{seconds:,.1f}" for seconds in (day.writing, day.reading, day.total)),
            f"{(day.inbox_bytes + day.outbox_bytes) / 1e6:,.0f}",
            f"{day.p50 * 1e3:.2f}, {day.p99 * 1e3:.2f}",
            f"{day.lag:.3f}",
        ]
        for day in days
    ]
    heads = ["policy", "follows pushed", "deliveries", "writing, s", "reading, s", "in all, s", "Redis, MB"]
    setting = "0 (off)" if best.threshold == NEVER else f"{best.threshold:,}"
    followed = f"{graph.size:,} users and {len(graph.senders):,} follows"
    acts = f"{graph.items.sum():,.0f} items and {graph.pages.sum():,.0f} pages"
    named = f"a threshold of {setting} with push level {best.push_level}, which makes {best.big_vs:,} big-Vs"
    report.notes += [
        f"A day of {followed}, {acts}:",
        table([*heads, "page p50, p99, ms", "lag, s"], rows),
        f"Recommended: {named}.",
    ]
    totals = {day.policy: day.total for day in days}
    report.ratio("hybrid, recommended / per pair", totals["hybrid, recommended"] / totals["per pair"])
    report.ratio("hybrid, as set / hybrid, recommended", totals["hybrid, as set"] / totals["hybrid, recommended"])
