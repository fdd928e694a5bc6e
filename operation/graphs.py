"""Graphs for the simulator: the site's own, a data set's, and one by chance.

How often a user opens a page is kept nowhere. On the site it follows from the level; in a data set from how much the
user did (`interactions.csv.gz`; all users alike without it). Pages are `reads` to an item everywhere.
"""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from django.conf import settings

from accounts.models import User
from community.dataset import Dataset
from community.problems import DatasetError
from items.models import Item, Status, Visibility
from operation.simulation import Floats, Graph, Integers, levels_of
from relations.models import Follow
from storage.replica import lagging

CHUNK = 50_000
READING_SECONDS = 600.0
"""Seconds that reading the site's graph may take a replica."""
SHARES = (0.0, 1 / 15, 1 / 4, 1.0)
"""How many pages a reader of each level opens for one of the highest: a level's middle age, in days."""
ACTIVITY = "interactions.csv.gz"
FOLLOWEES = 10
"""The mean of a graph by chance, before doubles are left out."""
SKEW = 3
"""The exponent of popularity: degrees fall as 1 / degree ** (1 + SKEW / (SKEW - 1))."""


class GraphError(Exception):
    """There is nothing to simulate; the message is for people."""


def of_site(*, now: datetime, days: int, reads: float) -> Graph:
    """Active users, their follows, and what they published within `days`.

    Replies are not delivered, and do not count.
    """
    return lagging(None, lambda on: _of_site(now, days, reads, on), seconds=READING_SECONDS)


def _of_site(now: datetime, days: int, reads: float, on: str) -> Graph:
    users = list(
        User.objects.using(on).filter(is_active=True).order_by("pk").values_list("pk", "level").iterator(CHUNK)
    )
    table = np.array(users, dtype=np.int64).reshape(-1, 2)
    places = table[:, 0]
    follows = Follow.objects.using(on).filter(follower__is_active=True, followee__is_active=True)
    pairs = follows.values_list("follower_id", "followee_id").iterator(CHUNK)
    published = (
        Item.objects.using(on)
        .filter(status=Status.PUBLISHED, reply_to=None, created_at__gt=now - timedelta(days=days))
        .exclude(visibility=Visibility.SELF)
        .values_list("sender_id", flat=True)
        .iterator(CHUNK)
    )
    items = _counted(places, published) / days
    levels = table[:, 1]
    if not items.any():
        raise GraphError(f"no item was published within {days} days; take more with --days, or --data, or --users")
    if not levels.any():
        raise GraphError("all users are dormant, and no pages can be counted on; take --data or --users")
    pages = _scaled(np.array(SHARES)[levels], items.sum() * reads)
    return Graph(places, levels, items, pages, *_edges(places, pairs))


def of_dataset(folder: Path, *, pages: float, reads: float, quiet: bool) -> Graph:
    """The follows and posts of all time of a data set, at `pages` a user and day on average; raises DatasetError."""
    dataset = Dataset(folder, quiet=quiet)
    places = np.sort(np.array([row.id for row in dataset.users()], dtype=np.int64))
    readers, senders = _edges(places, ((row.follower_id, row.followee_id) for row in dataset.follows()))
    posts = _counted(places, (post.author_id for post in dataset.posts()))
    if not posts.any():
        raise GraphError(f"{folder} holds no posts")
    acts = _counted(places, _actors(folder / ACTIVITY)) if (folder / ACTIVITY).exists() else np.ones(len(places))
    reading = _scaled(acts, pages * len(places))
    return Graph(places, levels_of(reading), _scaled(posts, reading.sum() / reads), reading, readers, senders)


def by_chance(users: int, *, seed: int, pages: float, reads: float) -> Graph:
    """Popularity by a power law; how many one follows, how much one reads and writes by lognormal laws, where who is
    popular writes more. The same for the same seed.
    """
    chance = np.random.default_rng(seed)
    counts = chance.lognormal(sigma=1.0, size=users)
    counts = np.minimum(counts * (FOLLOWEES / counts.mean()), settings.FOLLOW_CAP).astype(np.int64)
    readers = np.repeat(np.arange(users), counts)
    senders = (users * chance.random(len(readers)) ** SKEW).astype(np.int64)
    pairs = np.sort(readers * users + senders)  # np.unique hashes, which takes longer
    readers, senders = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], users)
    other = readers != senders
    readers, senders = readers[other], senders[other]
    fame = np.sqrt(1 + np.bincount(senders, minlength=users))
    reading = _scaled(chance.lognormal(sigma=2.0, size=users), pages * users)
    writing = _scaled(fame * chance.lognormal(sigma=2.0, size=users), reading.sum() / reads)
    return Graph(np.arange(1, users + 1), levels_of(reading), writing, reading, readers, senders)


def _scaled(weights: Floats, total: float) -> Floats:
    mass = weights.sum()
    return weights * (total / mass) if mass else weights


def _counted(places: Integers, user_ids: Iterable[int]) -> Floats:
    """How often each user comes; who is not among `places`, which are in order, is left out."""
    counts = Counter(user_ids)
    known = np.array([(user_id, count) for user_id, count in counts.items()], dtype=np.int64).reshape(-1, 2)
    known = known[np.isin(known[:, 0], places)]
    found = np.zeros(len(places))
    found[np.searchsorted(places, known[:, 0])] = known[:, 1]
    return found


def _edges(places: Integers, pairs: Iterable[tuple[int, int]]) -> tuple[Integers, Integers]:
    """Follows as places; follows of users who are not there are dropped, such as of a sign-up in between."""
    flat = np.fromiter(pairs, dtype=np.dtype((np.int64, 2)))
    flat = flat[np.isin(flat, places).all(axis=1)]
    return np.searchsorted(places, flat[:, 0]), np.searchsorted(places, flat[:, 1])


def _actors(path: Path) -> Iterable[int]:
    """The first column, `user_id`."""
    number = 1
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            if next(lines, "").partition(",")[0].strip() != "user_id":
                raise DatasetError(f"{path.name} line 1: the first column is not user_id")
            for number, line in enumerate(lines, 2):  # noqa: B007 (named in the error)
                yield int(line.partition(",")[0])
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DatasetError(f"{path.name} line {number}: {error}") from None
