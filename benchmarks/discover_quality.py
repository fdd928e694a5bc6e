"""Does recall find whom readers will follow, against what is popular and what is new, on past dates of real data?

At a date, everything that was posted and followed from then on is taken out of the database; nothing is left to peek
at. Asked for are posts of the 60 days before, of senders that the reader does not follow, at most 2 of a sender, the
first 20. A hit is a post whose sender the reader follows within the next 180 days. Readers are all who follow somebody
before the date and somebody new within these 180 days, or a sample of them drawn by a seed. Peers, by the same rules
for the same readers: the newest posts; the newest of those most followed; the newest of those who won most followers
within the 60 days. Likes are not known here; discover_liked is about them.

The dates lie 180 days before the end of the data set, and two and four years before that. What recall weighs how was
chosen on other dates, whose 180 days do not touch these.

Before that, on everything and with what people worked on (interactions.csv.gz, where there is one) as likes: how long
does a recall take? It takes the data set apart, so it comes last.
"""

import csv
import gzip
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import msgspec
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import User
from benchmarks.measure import Report
from benchmarks.past import AHEAD, WINDOW, Post, Ranked, forget_since, hits_of, page, rates
from benchmarks.real import RealData
from discover.postgres import PostgresRecall
from discover.recall import Candidate
from discover.refreshing import refresh_popular, refresh_words
from storage import ids
from storage.connections import fetch
from timeline.models import ImportedUser

APART = timedelta(days=730)
DATES = 3
TARGET = 1.5
"""Times the hit rate of the best peer."""
WARM_UP = 20
"""Recalls that are not counted: each process plans its statements a few times before it keeps the plans."""
RECALL_TARGET_MS = 50


class Past:
    """The community at a date: the posts and readers known then, and the likes and follows that came after it."""

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
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE items_like")
        forget_since(now)
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
        """The newest posts of who has most followers, or won most `since`."""
        followers: Counter[int] = Counter(
            dict(
                fetch(
                    "SELECT followee_id, count(*) FROM relations_follow WHERE created_at >= %s GROUP BY 1",
                    [since or datetime(1, 1, 1, tzinfo=UTC)],
                )
            )
        )
        return sorted(self.newest, key=lambda post: (-followers[post[1]], -post[0]))

    def measure(self, ranked: Ranked) -> tuple[float, float]:
        """Hit rate and precision of the readers' pages."""

        def shown(reader: int) -> list[Post]:
            return page(ranked(reader), lambda post: self._is_shown(post, reader))

        return rates(hits_of(self.later, shown, 1))

    def _is_shown(self, post: Post, reader: int) -> bool:
        item, sender = post
        return item >= self.first and sender != reader and sender not in self.followed[reader]


def run(data: RealData) -> Report:
    """Run the benchmark, and return its report."""
    size = data.size
    report = Report(
        "discover_quality",
        __doc__.splitlines()[0],
        ["at", "readers", "posts", "way", "hit rate @ 20", "precision @ 20"],
        f"{DATES} dates, up to {size.quality_readers:,} readers each; scale {settings.DISCOVER_SCALE_DAYS:g} days, "
        f"offset {settings.DISCOVER_OFFSET_DAYS:g}, decay {settings.DISCOVER_DECAY:g}; recall timed for "
        f"{size.recall_readers} readers",
    )
    _time_recall(data, report)
    recall = PostgresRecall()
    found: defaultdict[str, list[float]] = defaultdict(list)
    end = ids.moment(fetch("SELECT max(id) FROM items_item")[0][0])
    for number in range(DATES):
        past = Past(end - AHEAD - number * APART, size.quality_readers)
        most_followed, rising = past.most_followed(), past.most_followed(past.now - WINDOW)
        ways: dict[str, Ranked] = {
            "recall": lambda reader, past=past: map(_post, recall.candidates(User(pk=reader), count=500, now=past.now)),
            "newest": lambda _, past=past: past.newest,
            "most followed": lambda _, posts=most_followed: posts,
            "most newly followed": lambda _, posts=rising: posts,
        }
        for way, ranked in ways.items():
            rate, precision = past.measure(ranked)
            found[way].append(rate)
            about = [f"{past.now:%Y-%m-%d}", len(past.later), len(past.newest)]
            report.rows.append([*about, way, round(rate, 3), round(precision, 3)])
    for number in range(DATES):
        at_date = {way: found[way][number] for way in found}
        best = max(rate for way, rate in at_date.items() if way != "recall")
        date = end - AHEAD - number * APART
        report.ratio(f"recall / best peer, {date:%Y-%m-%d}", at_date["recall"] / max(best, 0.001), at_least=TARGET)
    return report


def _post(candidate: Candidate) -> Post:
    return candidate.item_id, candidate.sender_id


def _time_recall(data: RealData, report: Report) -> None:
    """For readers drawn by a seed among those who follow somebody, whatever they follow and like."""
    likes = _like(data.folder)
    now = timezone.now()
    refresh_words(now=now)
    refresh_popular(now=now)
    followers = [row[0] for row in fetch("SELECT DISTINCT follower_id FROM relations_follow ORDER BY 1")]
    chosen = random.Random(11).sample(followers, min(data.size.recall_readers + WARM_UP, len(followers)))  # noqa: S311
    recall = PostgresRecall()
    seconds = []
    for reader in chosen:
        begin = time.perf_counter()
        recall.candidates(User(pk=reader), count=500, now=now)
        seconds.append(time.perf_counter() - begin)
    del seconds[:WARM_UP]
    p50, p99 = median(seconds) * 1000, sorted(seconds)[int(len(seconds) * 0.99)] * 1000
    report.notes.append(f"A recall of 500: p50 {p50:.1f} ms, p99 {p99:.1f} ms, with {likes:,} interactions as likes.")
    report.ratio(f"recall p50 / {RECALL_TARGET_MS} ms", p50 / RECALL_TARGET_MS, at_most=1)
    report.ratio(f"recall p99 / {RECALL_TARGET_MS} ms", p99 / RECALL_TARGET_MS)


def _like(folder: Path) -> int:
    """Make every pair of user and post in interactions.csv.gz a like, at the first time; how many."""
    path = folder / "interactions.csv.gz"
    if not path.exists():
        return 0
    users = dict(ImportedUser.objects.values_list("original_id", "user_id"))
    decode = msgspec.json.Decoder(dict[str, int | str]).decode
    with gzip.open(folder / "posts.jsonl.gz") as posts:  # in the order of time, as item ids are
        items = dict(zip((decode(line)["id"] for line in posts), _item_ids(), strict=True))
    first: dict[tuple[int, int], int] = {}
    with gzip.open(path, "rt") as table:
        for row in csv.DictReader(table):
            pair = users[int(row["user_id"])], items[int(row["item_id"])]
            first[pair] = min(int(row["created_at_unix"]), first.get(pair, 2**62))
    with connection.cursor() as cursor:
        with cursor.copy("COPY items_like (user_id, item_id, created_at) FROM STDIN") as copy:
            for (user, item), at in sorted(first.items(), key=lambda like: like[1]):
                copy.write_row((user, item, datetime.fromtimestamp(at, UTC)))
        cursor.execute("VACUUM ANALYZE items_like")
    return len(first)


def _item_ids() -> Sequence[int]:
    return [row[0] for row in fetch("SELECT id FROM items_item ORDER BY id")]
