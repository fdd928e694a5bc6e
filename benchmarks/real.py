"""The data of some benchmarks in place of the generated community: a data set as `manage.py load` takes it."""

import csv
import gzip
import json
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.db import connection

from benchmarks.ground import Size, emptied
from community.dataset import Dataset
from community.importing import load
from storage.connections import fetch
from timeline.models import ImportedUser


class RealData:
    """The data set in the benchmark's own database, which holds nothing else. The data stays where it is."""

    def __init__(self, folder: Path, size: Size) -> None:
        self.folder = folder
        self.size = size
        self.seconds = 0.0

    def build(self) -> None:
        """Load it, in place of whatever was there."""
        begin = time.perf_counter()
        emptied()
        load(Dataset(self.folder, quiet=True), password=None, say=lambda message: None)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        self.seconds = time.perf_counter() - begin

    def described(self) -> str:
        """The data set in a line."""
        users, follows, posts = (
            fetch(f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608 (constants)
            for table in ("accounts_user", "relations_follow", "items_item")
        )
        return f"{posts:,} real posts, {users:,} users, {follows:,} follows; loaded in {self.seconds:.0f} s"


class Interactions:
    """Pairs of user and item, in the order of time, from a data set's interactions.csv.gz."""

    def __init__(self, folder: Path, size: Size) -> None:
        self.folder = folder
        self.size = size
        self.pairs: list[tuple[int, int]] = []

    def build(self) -> None:
        """Read the first interactions of the data set, in the order of time."""
        with gzip.open(self.folder / "interactions.csv.gz", "rt") as file:
            rows = sorted((int(at), int(user), int(item)) for user, item, at in list(csv.reader(file))[1:])
        self.pairs = [(user, item) for _, user, item in rows[: self.size.interactions]]

    def described(self) -> str:
        """The data set in a line."""
        users, items = ({pair[place] for pair in self.pairs} for place in (0, 1))
        return f"{len(self.pairs):,} real interactions of {len(users):,} users with {len(items):,} items"


class Worked:
    """The interactions of a data set as posts and likes: each item is a post of the first who worked on it, at that
    time, and the first time of every other user is their like of it. Users and follows are the data set's own.
    """

    def __init__(self, folder: Path, size: Size) -> None:
        self.folder = folder
        self.size = size
        self.seconds = 0.0

    def build(self) -> None:
        """Load it, in place of whatever was there, by way of a data set in a temporary folder."""
        begin = time.perf_counter()
        first = self._first_times()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for file in ("users.csv.gz", "follows.csv.gz"):
                (folder / file).symlink_to((self.folder / file).resolve())
            likes = _as_posts(first, folder / "posts.jsonl.gz")
            data = RealData(folder, self.size)
            data.build()
        self._like(likes)
        self.seconds = time.perf_counter() - begin

    def described(self) -> str:
        """The data set in a line."""
        posts, likes = (
            fetch(f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608 (constants)
            for table in ("items_item", "items_like")
        )
        return f"{posts:,} items that people worked on, and {likes:,} likes of them; loaded in {self.seconds:.0f} s"

    def _first_times(self) -> dict[tuple[int, int], int]:
        """When (Unix seconds) each user worked on each item first, by item and user."""
        first: dict[tuple[int, int], int] = {}
        with gzip.open(self.folder / "interactions.csv.gz", "rt") as table:
            for row in csv.DictReader(table):
                pair = int(row["item_id"]), int(row["user_id"])
                first[pair] = min(int(row["created_at_unix"]), first.get(pair, 2**62))
        return first

    @staticmethod
    def _like(likes: list[list[tuple[int, int]]]) -> None:
        """Let users (of the data set's ids) like the posts, which lie in the order of their ids, at Unix seconds."""
        users = dict(ImportedUser.objects.values_list("original_id", "user_id"))
        posts = [row[0] for row in fetch("SELECT id FROM items_item ORDER BY id")]
        rows = sorted((at, users[user], post) for post, those in zip(posts, likes, strict=True) for at, user in those)
        with connection.cursor() as cursor:
            with cursor.copy("COPY items_like (user_id, item_id, created_at) FROM STDIN") as copy:
                for at, user, post in rows:
                    copy.write_row((user, post, datetime.fromtimestamp(at, UTC)))
            cursor.execute("VACUUM ANALYZE items_like")


def _as_posts(first: dict[tuple[int, int], int], path: Path) -> list[list[tuple[int, int]]]:
    """Write each item as a post, in the order of time; (Unix seconds, user) of those who came after its first."""
    of_item: dict[int, list[tuple[int, int]]] = {}
    for (item, user), at in first.items():
        of_item.setdefault(item, []).append((at, user))
    ordered = sorted((min(those), item) for item, those in of_item.items())
    # Whole trees begin in one second, and a millisecond has 4,096 ids.
    in_second: Counter[int] = Counter()
    with gzip.open(path, "wt", compresslevel=1) as posts:
        for (at, user), item in ordered:
            moment = datetime.fromtimestamp(at, UTC) + timedelta(milliseconds=min(in_second[at] // 1_000, 999))
            in_second[at] += 1
            line = {"id": item, "author_id": user, "created_at": moment.isoformat(), "text": f"Item {item}"}
            posts.write(json.dumps(line) + "\n")
    return [sorted(of_item[item])[1:] for _, item in ordered]
