"""One community in growing sizes: users drawn by chance, with their posts and the follows among them.

The smaller are among the larger. Of a data set; without one, of a graph by chance as large, in which each user writes
as often as users of the data set do on average.
"""

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.db import connection

from benchmarks.followers import give_windows
from benchmarks.ground import Size, emptied
from community.dataset import Dataset, FollowRow, PostRow, UserRow
from community.importing import load
from operation.graphs import by_chance
from storage.connections import fetch

SEED = 7
POSTS = 10
"""Posts of each user of a graph by chance, on average."""


class Source:
    """Everything that the communities are drawn from, in memory: read once, loaded in parts."""

    def __init__(self, folder: Path | None, most: int) -> None:
        self.name = "real graph" if folder else "graph by chance"
        self.users: list[UserRow] = []
        self.follows: list[FollowRow] = []
        self.posts: list[PostRow] = []
        if folder:
            dataset = Dataset(folder, quiet=True)
            self.users, self.follows, self.posts = (
                list(dataset.users()),
                list(dataset.follows()),
                list(dataset.posts()),
            )
        else:
            self._draw(most)
        order = [user.id for user in self.users]
        random.Random(SEED).shuffle(order)  # noqa: S311 (no secret)
        self.ranks = {user_id: rank for rank, user_id in enumerate(order)}

    def _draw(self, most: int) -> None:
        graph = by_chance(most, seed=SEED, pages=1, reads=1)
        self.users = [UserRow(0, user, f"user{user}") for user in range(1, most + 1)]
        pairs = zip(graph.readers.tolist(), graph.senders.tolist(), strict=True)
        self.follows = [FollowRow(reader + 1, sender + 1, None) for reader, sender in pairs]
        chance = random.Random(SEED)  # noqa: S311
        authors = chance.choices(range(1, most + 1), weights=graph.items.tolist(), k=POSTS * most)
        begin = datetime.now(UTC) - timedelta(minutes=10 * len(authors))
        self.posts = [
            PostRow(0, author, begin + timedelta(minutes=10 * place), f"post {place} of user{author} " * 4)
            for place, author in enumerate(authors)
        ]


class Part:
    """The first `count` users by their ranks, as `load` takes a data set."""

    def __init__(self, source: Source, count: int) -> None:
        self._source, self._count = source, count
        self.fingerprint = f"{source.name} {count}"

    def _has(self, user_id: int) -> bool:
        return self._source.ranks[user_id] < self._count

    def users(self) -> Iterator[UserRow]:
        """The users of the part."""
        return (user for user in self._source.users if self._has(user.id))

    def follows(self) -> Iterator[FollowRow]:
        """The follows within the part."""
        return (row for row in self._source.follows if self._has(row.follower_id) and self._has(row.followee_id))

    def posts(self) -> Iterator[PostRow]:
        """The posts of the part's users."""
        return (post for post in self._source.posts if self._has(post.author_id))


class Graphs:
    """The communities, one after the other in the same database."""

    def __init__(self, folder: Path | None, size: Size) -> None:
        self.folder, self.size = folder, size
        self.seconds = 0.0

    def build(self) -> None:
        """Read or draw what they are made of."""
        begin = time.perf_counter()
        self.source = Source(self.folder, max(self.size.graph_users))
        most = len(self.source.users)
        self.counts = sorted({min(count, most) for count in self.size.graph_users})
        self.seconds = time.perf_counter() - begin

    def described(self) -> str:
        """The data set in a line."""
        source = self.source
        counts = ", ".join(f"{count:,}" for count in self.counts)
        return (
            f"{counts} users of the {source.name} ({len(source.users):,} users, {len(source.follows):,} follows, "
            f"{len(source.posts):,} posts); read in {self.seconds:.0f} s"
        )

    def load(self, count: int) -> list[int]:
        """Load the community of `count` users in place of earlier data; returns their ids.

        All are active and have a window of one old entry: enough for fan-outs to deliver to.
        """
        emptied()
        load(Part(self.source, count), password=None, say=lambda message: None)  # type: ignore[arg-type]
        with connection.cursor() as cursor:
            cursor.execute("UPDATE accounts_user SET level = 3, is_big_v = false, last_seen_at = now()")
            cursor.execute("VACUUM ANALYZE")
        people = [row[0] for row in fetch("SELECT id FROM accounts_user ORDER BY id")]
        give_windows(people)
        return people
