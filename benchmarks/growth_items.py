"""How do pages, writes, search and VACUUM grow with the number of items?

The site's own functions, in this process, on the communities of `grown`; PostgreSQL has the site's own settings. "Warm"
is the median of calls whose rows are in memory as far as they fit; "cold" that of the first calls for a reader after
PostgreSQL was started anew and the kernel was told to forget its files. One untimed call for another reader goes
before, so that catalogs and the upper parts of indexes are there, as on a site that runs. Sizes are measured in turn.

Expected: what is found by reader, sender, thread or id costs the same, but for one more level of an index and more
places that are not in memory; what VACUUM reads grows as the tables do.
"""

import itertools
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import OperationalError, connection

from accounts.models import User
from benchmarks.community import entries, materialise_inbox, users
from benchmarks.grown import RARE, RARELY, TABLES, THREAD, Community, Grown, own_database
from benchmarks.measure import Report, interleaved
from benchmarks.search import Writer
from discover import feed, refreshing
from items import counts
from items.actions import delete, edit, like, publish
from items.models import Item
from items.profile import item_count, profile_page, replies_page, visible_item
from items.query import parse
from items.search import search_items
from items.tags import tag_page
from notifications.feed import notifications_page
from operation.doctor import growth
from storage.connections import feeds, fetch, pipelined
from timeline.home import home_page
from timeline.inbox import Inbox, Tail
from timeline.models import Delivery

LIMIT = 20
PASSES = 2
FLAT = 1.5
"""Up to this a call is called flat, warm."""
COLD = 3.0
"""A reader's rows lie on more pages of a larger index and table, and more of these are not in memory."""
COLD_CALLS = 5
WAIT_SECONDS = 90
Case = Callable[[int], object]


@dataclass(slots=True)
class Found:
    """The figures of one size: seconds by the name of the case, and bytes by that of the table."""

    warm: dict[str, list[float]] = field(default_factory=dict)
    cold: dict[str, list[float]] = field(default_factory=dict)
    upkeep: dict[str, float] = field(default_factory=dict)
    heaps: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes of the table itself, and of its indexes, by table."""


def run(grown: Grown) -> Report:
    """Run the benchmark, and return its report."""
    size = grown.size
    report = Report(
        "growth_items",
        __doc__.splitlines()[0],
        ["what", *(f"{one.items:,} {how}" for how in ("warm", "cold") for one in grown.communities), "warm", "cold"],
        f"{PASSES * size.grown_rounds} warm and {size.grown_cold * COLD_CALLS} cold calls over {size.grown_readers} "
        "readers of each kind, ms, medians; the last two columns are of the largest over the smallest",
    )
    found = {community.items: Found() for community in grown.communities}
    with own_database():
        for _ in range(PASSES):
            for community in grown.communities:
                community.use()
                _warm(community, found[community.items], size.grown_rounds)
        for measure, count in ((_cold, size.grown_cold), (_upkeep, size.grown_changes)):
            for community in grown.communities:
                community.use()
                measure(community, found[community.items], count)
    _tell(report, found)
    return report


# --- The cases ---------------------------------------------------------------------------------------------
class Cases:
    """The calls that are measured on one community. Each takes its number."""

    def __init__(self, community: Community) -> None:
        self.community = community
        self.chance = random.Random(5)  # noqa: S311 (no secret)
        self.readers = {kind.followees: users(kind.ids) for kind in community.kinds}
        self.few, self.many = (self.readers[count] for count in sorted(self.readers))
        for reader in (*self.few, *self.many):
            materialise_inbox(reader.pk)
        self.inboxes = [[entry.item_id for entry in entries(reader.pk)] for reader in self.many]
        self.senders = self._of_rank(0.1, 200)
        self.busy = self._of_rank(0.0, 20)
        self.posts = self._posts(400)
        self.threads = self._threads()
        self.mine: list[Item] = []

    def _of_rank(self, share: float, count: int) -> list[User]:
        """Senders from that place among the busiest on."""
        first = 1 + int(self.community.senders * share)
        return users(range(first, min(first + count, self.community.senders)))

    def _posts(self, count: int) -> list[Item]:
        numbers = self.chance.sample(range(self.community.items // 2 // 10), count)
        found = Item.objects.in_bulk([self._id(10 * number + 1) for number in numbers])
        return list(found.values())

    def _threads(self) -> list[int]:
        return [self._id(first + 1) for first in range(0, self.community.items - 1, THREAD)][:20]

    def _id(self, number: int) -> int:
        return ((self.community.begun + number * self.community.step) << 12) | (number & 4095)

    def reads(self) -> dict[str, Case]:
        """Pages."""
        one, many = self.few, self.many
        words, limit = Writer().words, LIMIT
        tenth = [inbox[9 * limit - 1] for inbox in self.inboxes]

        def turn(some: list[Any], number: int) -> Any:
            return some[number % len(some)]

        def pulled(number: int) -> object:
            reader = turn(many, number)
            pipelined(feeds(), [Inbox(reader.pk).drop(), Tail(reader.pk).drop()])
            page = home_page(reader, limit=limit)
            assert page.sources == ["sql"], page.sources
            return page

        def below(number: int) -> object:
            place = number % len(many)
            pipelined(feeds(), [Tail(many[place].pk).drop()])
            return home_page(many[place], last_id=self.inboxes[place][-1], limit=limit)

        def search(text: str) -> Case:
            query = parse(text)
            return lambda number: search_items(query, turn(many, number), limit=limit)

        def thread(number: int) -> object:
            reader = turn(many, number)
            body = visible_item(turn(self.threads, number), reader)
            assert body
            return replies_page(body, reader, limit=limit)

        return {
            "home, few followees": lambda n: home_page(turn(one, n), limit=limit),
            "home, many followees": lambda n: home_page(turn(many, n), limit=limit),
            "home, page 10": lambda n: home_page(turn(many, n), last_id=turn(tenth, n), limit=limit),
            "home, first page below the inbox, by SQL": below,
            "profile": lambda n: profile_page(turn(self.senders, n), turn(many, n), limit=limit),
            "profile of the busiest": lambda n: profile_page(turn(self.busy, n), turn(many, n), limit=limit),
            "profile's count": lambda n: item_count(turn(self.senders, n), turn(many, n)),
            "an item": lambda n: visible_item(turn(self.posts, n).pk, turn(many, n)),
            "thread of 1,000": thread,
            "hashtag": lambda n: tag_page(f"tag{1 + n % 50}", turn(many, n), limit=limit),
            "notifications": lambda n: notifications_page(turn(self.busy, n), limit=limit),
            "search, frequent word": search(words[3]),
            "search, word in 1 of 500": search(words[100]),
            "search, word in 1 of 20,000": search(words[5_000]),
            f"search, word in {RARELY} items": search(RARE),
            "search, two frequent words": search(f"{words[3]} {words[5]}"),
            "search, phrase of frequent words": search(f'"{words[3]} {words[5]}"'),
            "search, frequent words that are no phrase": search(f'"{words[3]} {words[5]} {words[3]} {words[5]}"'),
            "search, frequent and rare word": search(f"{words[3]} {RARE}"),
            "Discover, refresh": lambda n: feed.refresh(turn(many, n), limit=limit),
            "home without inbox, by SQL": pulled,
        }

    def writes(self) -> dict[str, Case]:
        """Writes."""
        senders, posts = itertools.cycle(self.senders), itertools.cycle(self.posts)

        def say(number: int) -> object:
            self.mine.append(publish(sender=next(senders), content={"text": f"so it grows {number}"}))
            return None

        return {
            "publish": say,
            "like": lambda _: like(user=next(senders), item=next(posts)),
            "edit": lambda number: edit(item=self.mine[-1], content={"text": f"it has grown {number}"}),
            "delete": lambda _: delete(item=self.mine.pop(0)),
        }


def _warm(community: Community, found: Found, rounds: int) -> None:
    cases = Cases(community)
    for case in (*cases.writes().values(), *cases.reads().values()):
        case(0)
    for name, case in cases.reads().items():
        times = interleaved({name: case}, rounds=rounds, warm_up=len(cases.many))
        found.warm.setdefault(name, []).extend(times[name])
    for _ in range(rounds):
        for name, case in cases.writes().items():
            begin = time.perf_counter()
            case(1)
            found.warm.setdefault(name, []).append(time.perf_counter() - begin)
    counts.fold()
    _quiet()


def _cold(community: Community, found: Found, starts: int) -> None:
    cases = Cases(community)
    for start in range(starts):
        _forget()
        for name, case in cases.reads().items():
            case(0)
            first = 1 + start * COLD_CALLS
            for number in range(first, first + COLD_CALLS):
                begin = time.perf_counter()
                case(number)
                found.cold.setdefault(name, []).append(time.perf_counter() - begin)
    _quiet()


def _quiet() -> None:
    """Drop the tasks that were sent, and the deliveries that they would have been for."""
    current_app.control.purge()
    Delivery.objects.all().delete()


def _forget() -> None:
    """Start PostgreSQL anew, its files forgotten by the kernel."""
    pid_file = Path(settings.DATA_DIR) / "run" / "postgres.pid"
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
    connection.close()
    process = int(pid_file.read_text())
    os.kill(process, signal.SIGINT)
    _await(lambda: not Path(f"/proc/{process}").exists())
    for path in (Path(settings.DATA_DIR) / "postgres" / "base").rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)
    _await(_answers)


def _answers() -> bool:
    try:
        return bool(fetch("SELECT 1"))
    except OperationalError:
        connection.close()
        return False


def _await(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, "PostgreSQL does not come back"
        time.sleep(0.05)


# --- The upkeep of the site --------------------------------------------------------------------------
def _upkeep(community: Community, found: Found, changes: int) -> None:
    from django.utils import timezone

    for table in TABLES:
        ((heap, indexes),) = fetch("SELECT pg_table_size(%s::regclass), pg_indexes_size(%s::regclass)", [table, table])
        found.heaps[table] = (heap, indexes)
    tasks: dict[str, Callable[[], object]] = {
        "task discover.refresh_popular": lambda: refreshing.refresh_popular(now=timezone.now()),
        "task discover.refresh_words": lambda: refreshing.refresh_words(now=timezone.now()),
        "doctor: tables and old rows": lambda: [*growth.tables(), *growth.old_rows()],
    }
    with connection.cursor() as cursor:
        cursor.execute("VACUUM items_item, items_itemdocument, items_itemcounts")
    change = [
        "UPDATE items_item SET content = content || '{\"new\": 1}', modified_at = now() WHERE id = ANY(%s)",
        "UPDATE items_itemdocument SET document = document || '''new'':9'::tsvector WHERE item_id = ANY(%s)",
        "UPDATE items_itemcounts SET likes = likes + 1 WHERE item_id = ANY(%s)",
    ]
    chance = random.Random(3)  # noqa: S311 (no secret)
    numbers = [
        10 * number + 1 for number in chance.sample(range(community.items // 10), min(changes, community.items // 10))
    ]
    ids = [((community.begun + number * community.step) << 12) | (number & 4095) for number in numbers]

    def changed(statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, [ids])

    def vacuumed(table: str) -> Callable[[], object]:
        def vacuum() -> None:
            with connection.cursor() as cursor:
                cursor.execute(f"VACUUM {table}")

        return vacuum

    for table, statement in zip(("items_item", "items_itemdocument", "items_itemcounts"), change, strict=True):
        changed(statement)
        tasks[f"VACUUM {table}, {len(ids):,} dead rows"] = vacuumed(table)
    with connection.cursor() as cursor:
        tasks["ANALYZE items_item"] = lambda: cursor.execute("ANALYZE items_item")
        for name, task in tasks.items():
            begin = time.perf_counter()
            task()
            found.upkeep[name] = time.perf_counter() - begin


def _tell(report: Report, found: dict[int, Found]) -> None:
    sizes = list(found.values())
    least, most = sizes[0], sizes[-1]
    few, many = (f"{items:,}" for items in (min(found), max(found)))
    for name in least.warm:
        cells: list[str | float] = [round(median(one.warm[name]) * 1000, 2) for one in sizes]
        cells += [round(median(one.cold[name]) * 1000, 2) if name in one.cold else "" for one in sizes]
        warm = median(most.warm[name]) / median(least.warm[name])
        cold = median(most.cold[name]) / median(least.cold[name]) if name in least.cold else None
        report.rows.append([name, *cells, round(warm, 2), "" if cold is None else round(cold, 2)])
        report.ratio(f"{name}, warm, {many} / {few} items", warm, at_most=FLAT)
        if cold is not None:
            report.ratio(f"{name}, cold, {many} / {few} items", cold, at_most=COLD)
    for name in least.upkeep:
        spent = [round(one.upkeep[name] * 1000, 1) for one in sizes]
        ratio = most.upkeep[name] / least.upkeep[name]
        report.rows.append([name, *spent, *([""] * len(sizes)), round(ratio, 2), ""])
        report.ratio(f"{name}, {many} / {few} items", ratio)
    for items, one in found.items():
        said = ", ".join(
            f"{table} {heap / 2**20:,.0f} + {indexes / 2**20:,.0f}" for table, (heap, indexes) in one.heaps.items()
        )
        whole = sum(heap + indexes for heap, indexes in one.heaps.values())
        report.notes.append(
            f"{items:,} items, MB of the table and of its indexes: {said}; {whole / 2**30:.1f} GB in all."
        )
