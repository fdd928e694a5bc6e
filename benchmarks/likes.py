"""The cost of a like, alone and while all users like the same item.

Each call is one transaction that commits, from as many connections at once. `like` is the site's verb. Its limit is the
row of the like alone, which counts nothing; its peer adds one to the item's row of counts in the same transaction, by
one UPDATE of an integer, as most tutorials do: all likes wait for that row. While the site's verb runs, another
connection folds the staged counts again and again. The counts are compared with the rows at the end, and must be equal.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection, transaction

from accounts.models import User
from benchmarks.community import Community
from benchmarks.measure import Report
from items import counts
from items.actions import like
from items.hydrate import hydrate
from items.models import CountChange, Item, ItemCounts, Like
from storage.connections import fetch

CONNECTIONS = 32
TARGET = 0.5
"""The pace of likes that is the target, as a share of the row's alone: a like's transaction has its signal's receivers
and the staged change besides.
"""

Call = Callable[[User, Item], object]


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    count = community.size.likes
    report = Report(
        "likes",
        __doc__.splitlines()[0],
        ["calls", "likes/s, one item", "likes/s, an item each", "count in the end"],
        f"{count} likes from {CONNECTIONS} connections at once",
    )
    people = list(User.objects.order_by("pk")[:count])
    items = list(Item.objects.published().order_by("-pk")[: count + 1])
    cases: dict[str, Call] = {"row alone": _row, "like (folded meanwhile)": like_it, "one UPDATE a like": _counter}
    speeds: dict[str, tuple[float, float]] = {}
    for name, call in cases.items():
        viral, *others = items
        _clear()
        if call is _counter:
            ItemCounts.objects.bulk_create(ItemCounts(item=item) for item in items)
        folding = name.startswith("like")
        hot = _at_once([(call, person, viral) for person in people], folding=folding)
        rows = Like.objects.filter(item=viral.pk).count()
        counted = hydrate([viral.pk], people[0])[0].counts.likes if folding else ""
        if folding:
            assert counted == rows == len(people), "the count is wrong"
        spread = _at_once([(call, person, item) for person, item in zip(people, others, strict=False)], folding=folding)
        speeds[name] = len(people) / hot, len(people) / spread
        report.rows.append([name, round(speeds[name][0]), round(speeds[name][1]), counted])
    _clear()
    row, site, peer = speeds.values()
    report.ratio("like / row alone, one item", site[0] / row[0], at_least=TARGET)
    report.ratio("like / one UPDATE a like, one item", site[0] / peer[0], at_least=1)
    report.ratio("like, one item / an item each", site[0] / site[1], at_least=0.8)
    return report


def like_it(person: User, item: Item) -> object:
    """Like the item by the site's verb."""
    return like(user=person, item=item)


def _row(person: User, item: Item) -> None:
    with transaction.atomic():
        _insert(person, item)


def _counter(person: User, item: Item) -> None:
    with transaction.atomic():
        _insert(person, item)
        fetch("UPDATE items_itemcounts SET likes = likes + 1 WHERE item_id = %s RETURNING item_id", [item.pk])


def _insert(person: User, item: Item) -> None:
    fetch("INSERT INTO items_like (user_id, item_id) VALUES (%s, %s) RETURNING id", [person.pk, item.pk])


def _clear() -> None:
    Like.objects.all().delete()
    CountChange.objects.all().delete()
    fetch("DELETE FROM items_itemcounts RETURNING item_id")


def _at_once(calls: list[tuple[Call, User, Item]], *, folding: bool) -> float:
    """Seconds until every call has committed."""
    parts = [calls[first::CONNECTIONS] for first in range(CONNECTIONS)]
    ready, done = threading.Barrier(CONNECTIONS + 1), threading.Event()

    def work(part: list[tuple[Call, User, Item]]) -> None:
        try:
            connection.ensure_connection()
            ready.wait(60)
            for call, person, item in part:
                call(person, item)
        finally:
            connection.close()

    def fold() -> None:
        try:
            while not done.wait(0.1):
                counts.fold()
        finally:
            connection.close()

    with ThreadPoolExecutor(CONNECTIONS + 1) as pool:
        folder = pool.submit(fold) if folding else None
        jobs = [pool.submit(work, part) for part in parts]
        ready.wait(60)
        begin = time.perf_counter()
        for job in jobs:
            job.result()
        seconds = time.perf_counter() - begin
        done.set()
        if folder:
            folder.result()
    return seconds
