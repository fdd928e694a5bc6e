"""Does recall find whom readers will follow and what they will like, against what is popular, what is new and a trained
model, on past dates of real data?

At a date, everything that was posted, followed and liked from then on is taken out of the database; nothing is left to
peek at. Likes are what people worked on (interactions.csv.gz, where there is one), at the first time. Asked for are
posts of the 60 days before, of senders that the reader does not follow, at most 2 of a sender, the first 20. Two things
are a hit: a post whose sender the reader follows within the next 180 days, and a post that the reader likes within
them. Readers of the first are all who follow somebody before the date and somebody new within these 180 days, of the
second all who liked something before it and something new within them; or samples drawn by a seed.

Peers, by the same rules for the same readers: the newest posts; the newest of those most followed; the newest of those
who won most followers within the 60 days; what an alternating least squares model (the library `implicit`, where it is
installed) ranks highest, which is trained at the date on all likes before it. `recall, liked alone` is the part of the
site's own that goes by likes.

The dates lie 180 days before the end of the data set, and two and four years before that. What recall weighs how was
chosen on other dates, whose 180 days do not touch these.

Before that, on everything: how long does a recall take, and how long a whole refresh? It takes the data set apart, so
it comes last.
"""

import csv
import gzip
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import msgspec
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import User
from benchmarks.measure import Report, percentile
from benchmarks.real import RealData
from discover.feed import refresh
from discover.postgres import PostgresRecall
from discover.recall import Candidate
from discover.refreshing import refresh_popular, refresh_words
from feedsite import ids
from feedsite.connections import fetch
from timeline.models import ImportedUser

WINDOW, AHEAD, APART = timedelta(days=60), timedelta(days=180), timedelta(days=730)
DATES = 3
PAGE = 20
TARGET = 1.5
"""Times the hit rate of the best peer."""
WARM_UP = 20
"""Recalls that are not counted: each process plans its statements a few times before it keeps the plans."""
RECALL_TARGET = 50
"""Milliseconds."""

FACTORS, ROUNDS = 64, 15
"""Of the trained peer: the length of its vectors, and its passes over the likes."""

Post = tuple[int, int]
"""Its id and its sender's."""
Hit = Callable[[Post, set[int]], bool]


class Past:
    """What was known at a date, and what came of it."""

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
        self.later = _sample(later, readers)
        liked: defaultdict[int, set[int]] = defaultdict(set)
        for reader, item in fetch(
            """
            SELECT user_id, item_id FROM items_like l WHERE created_at >= %(now)s AND created_at < %(end)s
            AND EXISTS (SELECT FROM items_like e WHERE e.user_id = l.user_id AND e.created_at < %(now)s)
            """,
            {"now": now, "end": now + AHEAD},
        ):
            liked[reader].add(item)
        self.liked_later = _sample(liked, readers)
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

    def page(self, posts: Iterable[Post], reader: int) -> list[Post]:
        """The first 20 that may be shown, by the rules of the site's pages."""
        shown: list[Post] = []
        of_sender: Counter[int] = Counter()
        for item, sender in posts:
            if item < self.first or sender == reader or sender in self.followed[reader]:
                continue
            if of_sender[sender] < settings.SENDER_CAP:
                of_sender[sender] += 1
                shown.append((item, sender))
                if len(shown) == PAGE:
                    break
        return shown

    def followed_hits(self, ranked: Callable[[int], Iterable[Post]]) -> tuple[float, float]:
        """Hit rate and precision of the readers' pages, where a hit is a sender whom the reader follows later."""
        return self._rates(ranked, self.later, lambda post, later: post[1] in later)

    def liked_hits(self, ranked: Callable[[int], Iterable[Post]]) -> tuple[float, float]:
        """The same, where a hit is a post that the reader likes later."""
        return self._rates(ranked, self.liked_later, lambda post, later: post[0] in later)

    def _rates(
        self, ranked: Callable[[int], Iterable[Post]], readers: dict[int, set[int]], is_hit: Hit
    ) -> tuple[float, float]:
        hits = [
            sum(is_hit(post, later) for post in self.page(ranked(reader), reader)) for reader, later in readers.items()
        ]
        count = max(len(hits), 1)
        return sum(hit > 0 for hit in hits) / count, sum(hits) / count / PAGE

    def trained(self) -> Callable[[int], Iterable[Post]] | None:
        """What a model of all likes before the date ranks highest of the posts; None without the library, or likes."""
        try:
            from implicit.als import AlternatingLeastSquares
        except ImportError:
            return None
        import numpy
        from scipy.sparse import csr_matrix

        likes = fetch("SELECT user_id, item_id FROM items_like")
        if not likes:
            return None
        readers, of_reader = numpy.unique([user for user, _ in likes], return_inverse=True)
        posts, of_post = numpy.unique([item for _, item in likes], return_inverse=True)
        table = csr_matrix((numpy.ones(len(likes), numpy.float32), (of_reader, of_post)), (len(readers), len(posts)))
        model = AlternatingLeastSquares(factors=FACTORS, iterations=ROUNDS, random_state=7, num_threads=1)
        model.fit(table, show_progress=False)
        senders = dict(self.newest)
        offered = numpy.array([place for place, item in enumerate(posts.tolist()) if item in senders])
        rows = {reader: row for row, reader in enumerate(readers.tolist())}

        def ranked(reader: int) -> Iterable[Post]:
            row = rows.get(reader)
            if row is None or not len(offered):
                return []
            scores = model.item_factors[offered] @ model.user_factors[row]
            already = set(table[row].indices.tolist())
            best = [int(posts[place]) for place in offered[numpy.argsort(-scores)] if place not in already]
            return [(item, senders[item]) for item in best[:500]]

        return ranked


def _sample(later: dict[int, set[int]], count: int) -> dict[int, set[int]]:
    some = random.Random(7).sample(sorted(later), min(count, len(later)))  # noqa: S311 (a sample, no secret)
    return {reader: later[reader] for reader in some}


def run(data: RealData) -> Report:
    size = data.size
    report = Report(
        "discover_quality",
        __doc__.splitlines()[0],
        [
            "at",
            "posts",
            "way",
            "will follow: readers",
            "hit rate @ 20",
            "precision",
            "will like: readers",
            "hit rate",
            "precision ",
        ],
        f"{DATES} dates, up to {size.quality_readers:,} readers each; scale {settings.DISCOVER_SCALE_DAYS:g} days, "
        f"offset {settings.DISCOVER_OFFSET_DAYS:g}, decay {settings.DISCOVER_DECAY:g}; recall timed for "
        f"{size.recall_readers} readers",
    )
    _time_recall(data, report)
    recall = PostgresRecall()
    follows: defaultdict[str, list[float]] = defaultdict(list)
    likes: defaultdict[str, list[float]] = defaultdict(list)
    end = ids.moment(fetch("SELECT max(id) FROM items_item")[0][0])
    dates = [end - AHEAD - number * APART for number in range(DATES)]
    for date in dates:
        past = Past(date, size.quality_readers)
        for way, ranked in _ways(past, recall).items():
            followed, liked = past.followed_hits(ranked), past.liked_hits(ranked)
            follows[way].append(followed[0])
            likes[way].append(liked[0])
            about = [f"{date:%Y-%m-%d}", len(past.newest), way]
            figures = [round(figure, 3) for figure in (*followed, *liked)]
            report.rows.append([*about, len(past.later), *figures[:2], len(past.liked_later), *figures[2:]])
    for number, date in enumerate(dates):
        for what, rates in (("follows", follows), ("likes", likes)):
            found = {way: rates[way][number] for way in rates if len(rates[way]) == DATES}
            best = max(rate for way, rate in found.items() if not way.startswith("recall"))
            target = TARGET if what == "follows" else None
            name = f"recall / best peer, {what}, {date:%Y-%m-%d}"
            report.ratio(name, found["recall"] / max(best, 0.001), at_least=target)
    return report


def _ways(past: Past, recall: PostgresRecall) -> dict[str, Callable[[int], Iterable[Post]]]:
    """The site's ranking and its peers', by name."""

    def recalled(reader: int) -> list[Candidate]:
        return recall.candidates(User(pk=reader), count=500, now=past.now)

    most_followed, rising = past.most_followed(), past.most_followed(past.now - WINDOW)
    ways: dict[str, Callable[[int], Iterable[Post]]] = {
        "recall": lambda reader: map(_post, recalled(reader)),
        "recall, liked alone": lambda reader: [_post(one) for one in recalled(reader) if one.reason == "liked"],
        "newest": lambda _: past.newest,
        "most followed": lambda _: most_followed,
        "most newly followed": lambda _: rising,
    }
    trained = past.trained()
    return ways | ({"ALS, trained on likes": trained} if trained else {})


def _post(candidate: Candidate) -> Post:
    return candidate.item_id, candidate.sender_id


def _forget_since(moment: datetime) -> None:
    """Take out of the database what was posted and followed from then on."""
    first = ids.compose(moment, 0)
    with connection.cursor() as cursor:
        # Nothing that stays refers to what goes.
        cursor.execute("SET session_replication_role = replica")
        for table, column in (("items_itemdocument", "item_id"), ("items_itemtag", "item_id"), ("items_item", "id")):
            cursor.execute(f"DELETE FROM {table} WHERE {column} >= %s", [first])  # noqa: S608 (constants)
        for table in ("relations_follow", "items_like"):
            cursor.execute(f"DELETE FROM {table} WHERE created_at >= %s", [moment])  # noqa: S608 (constants)
        cursor.execute("RESET session_replication_role")
        for table in ("items_itemdocument", "items_itemtag", "items_item", "relations_follow", "items_like"):
            cursor.execute(f"VACUUM ANALYZE {table}")


def _time_recall(data: RealData, report: Report) -> None:
    """For readers drawn by a seed among those who follow somebody, whatever they follow and like."""
    likes = _like(data.folder)
    now = timezone.now()
    refresh_words(now=now)
    refresh_popular(now=now)
    followers = [row[0] for row in fetch("SELECT DISTINCT follower_id FROM relations_follow ORDER BY 1")]
    chosen = random.Random(11).sample(followers, min(data.size.recall_readers + WARM_UP, len(followers)))  # noqa: S311
    recall = PostgresRecall()
    p50, p99 = _timed(chosen, lambda reader: recall.candidates(reader, count=500, now=now))
    report.notes.append(f"A recall of 500: p50 {p50:.1f} ms, p99 {p99:.1f} ms, with {likes:,} interactions as likes.")
    pulled50, pulled99 = _timed(chosen, lambda reader: refresh(reader, limit=PAGE, now=now))
    report.notes.append(
        f"A refresh, with what it checks, hydrates and keeps: p50 {pulled50:.1f} ms, p99 {pulled99:.1f} ms."
    )
    report.ratio(f"recall p50 / {RECALL_TARGET} ms", p50 / RECALL_TARGET, at_most=1)
    report.ratio(f"recall p99 / {RECALL_TARGET} ms", p99 / RECALL_TARGET)


def _timed(readers: Iterable[int], call: Callable[[User], object]) -> tuple[float, float]:
    """The median and the 99th percentile of a call, in ms, after those that warm up."""
    seconds = []
    for reader in User.objects.in_bulk(list(readers)).values():
        begin = time.perf_counter()
        call(reader)
        seconds.append(time.perf_counter() - begin)
    del seconds[:WARM_UP]
    return median(seconds) * 1000, percentile(seconds, 0.99)


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
