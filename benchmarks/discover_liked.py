"""Does recall find the posts that readers will like, against what is popular, what is new and a trained model?

The data set's interactions have items of their own: each is a post here, of the first who worked on it, at that time,
and the first time of every other user is their like. At a date, everything from then on is taken out of the database.
Asked for are posts of the 60 days before, neither the reader's own nor liked already, at most 2 of a sender, the first
20. A hit is a post that the reader likes within the next 180 days. Readers are all who liked something before the date
and like such a post within these 180 days. The dates lie 180 days apart, so that no like counts twice; few people like
what is so new, so the rates are those of all dates together.

Peers, by the same rules for the same readers: the newest posts; those most liked; those most liked among the newest,
which the site's own `popular` is about; what an alternating least squares model (the library `implicit`) ranks highest
that is trained at each date: on all likes before it, on likes and authorships, and the latter with the site's decay of
age. It may take its time for that, a minute for all readers together, where recall has milliseconds for one.
`recall, likes alone` is the one source of the site's recall that goes by likes. Nothing was tuned on this data.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

import numpy as np
from implicit.als import AlternatingLeastSquares
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from accounts.models import User
from benchmarks.measure import Report
from benchmarks.past import AHEAD, WINDOW, Post, Ranked, forget_since, hits_of, page, rates
from benchmarks.real import Worked
from discover import decay
from discover.postgres import PostgresRecall
from discover.recall import Candidate
from discover.refreshing import refresh_popular, refresh_words
from storage import ids
from storage.connections import fetch

DATES = 12
FACTORS, ROUNDS, SEED = 64, 15, 7
"""The trained model's length of vectors, its passes over the likes, and its seed."""
OFFERED = 500
"""Posts that each way may rank: as many as recall gives a refresh."""


class Past:
    """The likes known at a date, and those that came after it."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.first = ids.compose(now - WINDOW, 0)
        later: defaultdict[int, set[int]] = defaultdict(set)
        for reader, item in fetch(
            """
            SELECT user_id, item_id FROM items_like l
            WHERE created_at >= %(now)s AND created_at < %(end)s AND item_id >= %(first)s AND item_id < %(below)s
            AND EXISTS (SELECT FROM items_like e WHERE e.user_id = l.user_id AND e.created_at < %(now)s)
            """,
            {"now": now, "end": now + AHEAD, "first": self.first, "below": ids.compose(now, 0)},
        ):
            later[reader].add(item)
        self.later = dict(later)
        forget_since(now)
        self.likes: list[tuple[int, int]] = fetch("SELECT user_id, item_id FROM items_like")
        self.liked = set(self.likes)
        self.newest: list[Post] = fetch(
            "SELECT id, sender_id FROM items_item WHERE id >= %s ORDER BY id DESC", [self.first]
        )
        self.senders = dict(self.newest)
        refresh_words(now=now)
        refresh_popular(now=now)

    def most_liked(self) -> list[Post]:
        """The posts of the 60 days that have most likes, the newest first among equals."""
        likes = Counter(item for _, item in self.likes)
        return sorted(self.newest, key=lambda post: (-likes[post[0]], -post[0]))

    def popular(self) -> list[Post]:
        """The posts that the site holds for popular, without the reader."""
        known = fetch("SELECT item_id, popularity FROM discover_popularitem ORDER BY popularity DESC, item_id DESC")
        return [(item, self.senders[item]) for item, _ in known if item in self.senders]

    def trained(self, acts: list[tuple[int, int]], *, is_aged: bool = False) -> Ranked:
        """The ranking of a model that is trained on (user, item) of `acts`, times the decay of age if `is_aged`."""
        readers, of_reader = np.unique([user for user, _ in acts], return_inverse=True)
        posts, of_post = np.unique([item for _, item in acts], return_inverse=True)
        table = csr_matrix((np.ones(len(acts), np.float32), (of_reader, of_post)), (len(readers), len(posts)))
        with threadpool_limits(1, "blas"):
            model = AlternatingLeastSquares(factors=FACTORS, iterations=ROUNDS, random_state=SEED, num_threads=2)
            model.fit(table, show_progress=False)
        places = {post: place for place, post in enumerate(posts.tolist())}
        rows = {reader: row for row, reader in enumerate(readers.tolist())}
        offered = [post for post in self.newest if post[0] in places]  # it knows nothing of the others
        vectors = model.item_factors[[places[item] for item, _ in offered]]
        weights = np.exp([self._log_decay(item) if is_aged else 0.0 for item, _ in offered])

        def best(reader: int) -> Iterable[Post]:
            scores = vectors @ model.user_factors[rows[reader]] * weights
            return [offered[place] for place in np.argsort(-scores)]

        return best

    def _log_decay(self, item: int) -> float:
        params = decay.params()
        days = (ids.moment(self.newest[0][0]) - ids.moment(item)) / timedelta(days=1)
        return float(-params["decay_rate"] * max(days - params["decay_offset"], 0) ** 2)

    def hits(self, ranked: Ranked) -> list[int]:
        """Hits on each reader's page."""

        def shown(reader: int) -> list[Post]:
            return page(ranked(reader), lambda post: self._is_shown(post, reader))

        return hits_of(self.later, shown, 0)

    def _is_shown(self, post: Post, reader: int) -> bool:
        item, sender = post
        return item >= self.first and sender != reader and (reader, item) not in self.liked


def run(data: Worked) -> Report:
    """Run the benchmark, and return its report."""
    report = Report(
        "discover_liked",
        __doc__.splitlines()[0],
        ["way", "readers", "hit rate @ 20", "precision @ 20"],
        f"{DATES} dates, 180 days apart; {FACTORS} factors and {ROUNDS} passes of the trained model",
    )
    end = ids.moment(fetch("SELECT max(id) FROM items_item")[0][0])
    hits: defaultdict[str, list[int]] = defaultdict(list)
    for number in range(1, DATES + 1):
        past = Past(end - number * AHEAD)
        if past.later:
            for way, ranked in _ways(past).items():
                hits[way] += past.hits(ranked)
    found = {way: rates(of_readers) for way, of_readers in hits.items()}
    report.rows += [
        [way, len(hits[way]), round(rate, 3), round(precision, 4)] for way, (rate, precision) in found.items()
    ]
    for peer in [way for way in found if not way.startswith("recall")]:
        report.ratio(f"recall / {peer}", found["recall"][0] / max(found[peer][0], 0.001))
    return report


def _ways(past: Past) -> dict[str, Ranked]:
    """The site's ranking and its peers', by name."""
    recall = PostgresRecall()
    candidates: dict[int, list[Candidate]] = {
        reader: recall.candidates(User(pk=reader), count=OFFERED, now=past.now) for reader in past.later
    }
    most_liked, popular = past.most_liked(), past.popular()
    all_acts = past.likes + fetch("SELECT sender_id, id FROM items_item")
    return {
        "recall": lambda reader: [(one.item_id, one.sender_id) for one in candidates[reader]],
        "recall, likes alone": lambda reader: [
            (one.item_id, one.sender_id) for one in candidates[reader] if one.reason == "liked"
        ],
        "newest": lambda _: past.newest,
        "most liked": lambda _: most_liked,
        "popular": lambda _: popular,
        "ALS of likes": past.trained(past.likes),
        "ALS of likes and authors": past.trained(all_acts),
        "ALS of likes and authors, aged": past.trained(all_acts, is_aged=True),
    }
