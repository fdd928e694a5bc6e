"""Do the sweeps of what expires hold at a hundred times the rates of a community of 100,000, with and without a backup?

Ten million members, as docs/growth.md assumes them: so many rows a second come and have to go, for ever. Each table is
filled with rows that are due, and swept by the site's own task function; so is it once more while a transaction keeps
everything from being cleared, as pg_dump does for hours. The share is that of the time for which the task would run to
take as many rows as come. Then the table is vacuumed, filled, and so on. Pages of an index that are empty are used
again after one more VACUUM, so a table may be larger after two sweeps; where it is no larger after three, it does not
bloat. Deliveries and count changes are taken seconds after they come, so what is measured of them is one round of their
task after so many minutes of such rows.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from statistics import median

import psycopg
from celery import current_app
from django.db import connection
from django.utils import timezone

from benchmarks.community import USERS
from benchmarks.ground import Size, emptied
from benchmarks.measure import Report
from discover.issued_pages import forget_issued_pages, record_issued_pages
from items import counts
from notifications import forgetting
from storage import deliveries
from storage.connections import fetch
from timeline.models import Delivery

DAY = 86_400
MEMBERS = 1_000
TIMES = 100
SHARE = 0.1
"""The share of the time for which a task may run that it may take at most."""
FLAT = 1.2
"""A table that is so much larger after sweeps than before has no bloat that counts."""
COUNT_CHANGES = TIMES * (25_000 + 1_000) / DAY
"""Likes, replies and reposts a second."""
DELIVERIES = TIMES * 5_000 / DAY
FOLD_SECONDS = 2

ISSUED = f"""
    INSERT INTO discover_issuedpage (user_id, item_ids, reasons, has_more, issued_at, is_recorded)
    SELECT 1 + n %% {MEMBERS}, ARRAY(SELECT n * 20 + k FROM generate_series(1, 20) k),
        ARRAY(SELECT 'liked by people whom you follow' FROM generate_series(1, 20)), true,
        now() - interval '2 days' - n * interval '1 millisecond', %(recorded)s
    FROM generate_series(1, %(count)s::bigint) AS n
"""  # noqa: S608 (a constant)
TOLD = f"""
    WITH told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id, position)
        SELECT 1 + n %% {MEMBERS}, 'like', n, n FROM generate_series(1, %(count)s::bigint / 4) AS n
        RETURNING id, recipient_id, position
    )
    INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
    SELECT feedsite_next_id(), id, recipient_id, 1 + (position + k) %% {MEMBERS} FROM told, generate_series(1, 3) AS k
"""  # noqa: S608
CHANGED = """
    INSERT INTO items_countchange (item_id, likes, replies, circle_replies, reposts)
    SELECT 1 + n %% 50, 1, 0, 0, 0 FROM generate_series(1, %(count)s) AS n
"""
DELIVERED = """
    INSERT INTO timeline_delivery (item_id, sender_id, attempts, enqueued, last_error, sweep_at)
    SELECT n, 1, 0, 0, '', now() + interval '1 minute' FROM generate_series(1, %(count)s) AS n
"""
CLAIM = "UPDATE timeline_delivery SET attempts = attempts + 1, sweep_at = now() + interval '1 minute'"


class Swept:
    """A site with members and nothing else."""

    def __init__(self, size: Size) -> None:
        self.size = size

    def build(self) -> None:
        """Make the members."""
        emptied()
        with connection.cursor() as cursor:
            cursor.execute(USERS, {"first": 1, "count": MEMBERS, "level": 1, "big_vs": 0})

    def described(self) -> str:
        """The data set in a line."""
        return f"{self.size.swept:,} rows of each kind that are due, {MEMBERS:,} members"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A task that takes rows when their time has come. `a_second`: so many come."""

    name: str
    tables: tuple[str, ...]
    a_second: float
    fill: Callable[[int], None]
    run: Callable[[], int]


def run(swept: Swept) -> Report:
    """Run the benchmark, and return its report."""
    report = Report(
        "sweeps",
        __doc__.splitlines()[0],
        ["task", "rows", "seconds", "rows a second", "rows that come a second", "share of the time"],
        "once each",
    )
    with _unchecked():
        for sweep in (
            Sweep("discover.forget_issued_pages", ("discover_issuedpage",), TIMES * 400_000 / DAY, _issue, _forget),
            Sweep(
                "notifications.forget_old",
                ("notifications_notification", "notifications_act"),
                TIMES * 3_800_000 / 90 / DAY,
                lambda count: _write(TOLD, count=count),
                forgetting.forget_old,
            ),
        ):
            _measure(report, sweep, swept.size.swept)
        minutes = round(swept.size.swept_rounds * FOLD_SECONDS / 60)
        for name, task in (("items.fold_counts", _folded), ("timeline.sweep", _delivered), ("recording", _recorded)):
            fresh, kept = task(swept.size.swept_rounds, False), task(swept.size.swept_rounds, True)
            report.rows.append([f"a round of {name}, ms", "", round(fresh * 1000, 2), "", "", ""])
            report.rows.append(
                [f"the same beside a backup of {minutes} minutes, ms", "", round(kept * 1000, 2), "", "", ""]
            )
            report.ratio(f"{name} beside a backup of {minutes} minutes / without", kept / fresh)
    current_app.control.purge()
    return report


def _measure(report: Report, sweep: Sweep, count: int) -> None:
    sizes = []
    for is_kept in (False, True, False, False):
        sweep.fill(count)
        _vacuum(sweep.tables, "ANALYZE")
        sizes.append(_size(sweep.tables))
        with _backup() if is_kept else nullcontext():
            begin = time.perf_counter()
            taken = sweep.run()
            seconds = time.perf_counter() - begin
        assert taken >= count * 0.9, (sweep.name, taken)
        begin = time.perf_counter()
        _vacuum(sweep.tables, "VACUUM")
        vacuumed = time.perf_counter() - begin
        if len(sizes) <= len((False, True)):
            name = f"{sweep.name}{', beside a backup' * is_kept}"
            share = sweep.a_second * seconds / taken
            report.ratio(f"share of the time, {name}", share, at_most=SHARE)
            rates = [round(taken / seconds), round(sweep.a_second), round(share, 4)]
            report.rows.append([name, taken, round(seconds, 2), *rates])
            share = round(sweep.a_second * vacuumed / taken, 4)
            report.rows.append([f"VACUUM after {name}", taken, round(vacuumed, 2), round(taken / vacuumed), "", share])
    report.ratio(f"size after two sweeps / before any, {sweep.name}", sizes[2] / sizes[0])
    report.ratio(f"size after three sweeps / after two, {sweep.name}", sizes[3] / sizes[2], at_most=FLAT)


def _issue(count: int) -> None:
    _write(ISSUED, count=count, recorded=True)


def _forget() -> int:
    return forget_issued_pages(now=timezone.now())


def _folded(rounds: int, is_kept: bool) -> float:
    """Seconds of a fold, at the end of so many."""
    waiting = round(COUNT_CHANGES * FOLD_SECONDS)
    with _backup() if is_kept else nullcontext():
        times = []
        for _ in range(rounds):
            _write(CHANGED, count=waiting)
            begin = time.perf_counter()
            counts.fold()
            times.append(time.perf_counter() - begin)
    _vacuum(("items_countchange", "items_itemcounts"), "VACUUM")
    return median(times[-20:])


def _delivered(rounds: int, is_kept: bool) -> float:
    """Seconds in which the sweeper looks for what is due, after all items of so many rounds were delivered."""
    with _backup() if is_kept else nullcontext():
        for _ in range(10):
            _write(DELIVERED, count=max(1, round(DELIVERIES * FOLD_SECONDS * rounds / 10)))
            _write(CLAIM)
            Delivery.objects.all().delete()
        times = []
        for _ in range(20):
            begin = time.perf_counter()
            deliveries.sweep(Delivery)
            times.append(time.perf_counter() - begin)
    _vacuum(("timeline_delivery",), "VACUUM")
    return median(times)


def _recorded(rounds: int, is_kept: bool) -> float:
    """Seconds of recording what was issued in a second, after a tenth of so many rounds."""
    a_second = round(TIMES * 400_000 / DAY)
    with _backup() if is_kept else nullcontext():
        _write(ISSUED, count=a_second * FOLD_SECONDS * rounds // 10, recorded=False)
        _write("UPDATE discover_issuedpage SET is_recorded = true WHERE NOT is_recorded")
        times = []
        for _ in range(5):
            _write(ISSUED, count=a_second, recorded=False)
            begin = time.perf_counter()
            record_issued_pages()
            times.append(time.perf_counter() - begin)
        _forget()
    _vacuum(("discover_issuedpage",), "VACUUM")
    return median(times)


def _write(statement: str, **params: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params or None)


def _vacuum(tables: tuple[str, ...], how: str) -> None:
    _write(f"{how} {', '.join(tables)}")


def _size(tables: tuple[str, ...]) -> int:
    return sum(int(fetch("SELECT pg_total_relation_size(%s::regclass)", [table])[0][0]) for table in tables)


@contextmanager
def _unchecked() -> Iterator[None]:
    """Rows name items that are not there."""
    _write("SET session_replication_role = replica")
    yield
    _write("RESET session_replication_role")


@contextmanager
def _backup() -> Iterator[None]:
    """A transaction as pg_dump has it open."""
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT count(*) FROM pg_class")
        yield
        other.rollback()
