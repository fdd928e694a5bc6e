"""What some benchmarks are about instead of the generated community: a data set as `manage.py load` takes it."""

import csv
import gzip
import time
from pathlib import Path

from django.db import connection

from benchmarks.ground import Size, emptied
from feedsite.connections import fetch
from timeline.dataset import Dataset
from timeline.importing import load


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
    """Who did something with which item, in the order of time, from a data set's interactions.csv.gz."""

    def __init__(self, folder: Path, size: Size) -> None:
        self.folder = folder
        self.size = size
        self.pairs: list[tuple[int, int]] = []

    def build(self) -> None:
        with gzip.open(self.folder / "interactions.csv.gz", "rt") as file:
            rows = sorted((int(at), int(user), int(item)) for user, item, at in list(csv.reader(file))[1:])
        self.pairs = [(user, item) for _, user, item in rows[: self.size.interactions]]

    def described(self) -> str:
        """The data set in a line."""
        users, items = ({pair[place] for pair in self.pairs} for place in (0, 1))
        return f"{len(self.pairs):,} real interactions of {len(users):,} users with {len(items):,} items"
