"""What does publishing cost, against the least that keeps an item?

The least is one prepared INSERT, committed to disk. Measures `items.actions.publish` in this process, and
`POST /api/v1/items` to granian, for a sender with followers, without a worker.

The split has its own rounds: each part is timed where it waits, and the rest is Python. The targets are for disks with
commits of 3 ms or more, because the rest does not shrink with the commit.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any
from unittest.mock import patch

import psycopg
from celery import Celery, current_app
from django.db import connection

from benchmarks.community import Community, by_token, users
from benchmarks.measure import BenchmarkReport, Client, MeasuredRequest, interleaved, milliseconds, over, served
from items.actions import publish
from storage import events
from timeline.models import Delivery

IN_PROCESS_TARGET, OVER_HTTP_TARGET = 2.5, 5.0
PAGE = "/api/v1/items"
INSERT = """
    INSERT INTO items_item (sender_id, type, title, content, extra_info, status, visibility)
    VALUES (%(sender)s, 'text', '', %(content)s, '{}', 'published', 'public') RETURNING id
"""
IN_PROCESS, OVER_HTTP, ALONE = "publish()", "POST over HTTP", "INSERT + commit"


def run(community: Community) -> BenchmarkReport:
    rounds = community.size.publish_rounds
    followers = min(community.publishers)
    (sender,) = users([community.publishers[followers]])
    headers = by_token(sender)
    report = BenchmarkReport(
        "publish",
        __doc__.splitlines()[0],
        ["what", "ms", "over INSERT + commit"],
        f"{rounds} items of a sender with {followers:,} followers; medians",
    )
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as truth:
        truth.autocommit = True

        def alone(number: int) -> None:
            params = {"sender": sender.pk, "content": f'{{"text": "bench {number}"}}'}
            truth.execute(INSERT, params, prepare=True).fetchall()

        with served() as port:
            client = Client(port)
            times = interleaved(
                {
                    IN_PROCESS: lambda number: publish(sender=sender, content={"text": f"bench {number}"}),
                    OVER_HTTP: lambda number: client.ask(
                        MeasuredRequest(PAGE, headers, {"content": {"text": f"bench http {number}"}})
                    ),
                    ALONE: alone,
                },
                rounds=rounds,
                warm_up=15,
            )
    for name in times:
        report.rows.append([name, round(milliseconds(times[name]), 2), round(over(times, name, ALONE), 2)])
    for name, seconds in _split(lambda number: publish(sender=sender, content={"text": f"split {number}"}), rounds):
        report.rows.append([f"of publish(): {name}", round(seconds * 1000, 2), ""])
    report.figure(
        "ms of publish(), of POST", ", ".join(f"{milliseconds(times[name]):.2f}" for name in (IN_PROCESS, OVER_HTTP))
    )
    report.ratio(f"{IN_PROCESS} / {ALONE}", over(times, IN_PROCESS, ALONE), at_most=IN_PROCESS_TARGET)
    report.ratio(f"{OVER_HTTP} / {ALONE}", over(times, OVER_HTTP, ALONE), at_most=OVER_HTTP_TARGET)
    current_app.control.purge()
    Delivery.objects.filter(sender=sender).delete()
    return report


def _split(act: Callable[[int], object], rounds: int) -> Iterator[tuple[str, float]]:
    """Time the parts of publishing. Yields each part and its median seconds."""
    parts: dict[str, list[float]] = {name: [] for name in ("statements", "commit", "task to the broker", "event")}
    whole: list[float] = []
    spent: dict[str, float] = {}
    with (
        _timed(psycopg.RawCursor, "execute", spent, "statements"),
        _timed(psycopg.Connection, "commit", spent, "commit"),
        _timed(Celery, "send_task", spent, "task to the broker"),
        _timed(events, "pipelined", spent, "event"),
    ):
        for number in range(15 + rounds):
            spent.clear()
            begin = time.perf_counter()
            act(number)
            seconds = time.perf_counter() - begin
            if number >= 15:
                whole.append(seconds)
                for name, series in parts.items():
                    series.append(spent.get(name, 0.0))
    yield from ((name, median(series)) for name, series in parts.items())
    rests = [all_of_it - sum(some) for all_of_it, *some in zip(whole, *parts.values(), strict=True)]
    yield "Python between them", median(rests)


@contextmanager
def _timed(owner: Any, name: str, spent: dict[str, float], part: str) -> Iterator[None]:
    original = getattr(owner, name)

    def timed(*args: Any, **options: Any) -> Any:
        begin = time.perf_counter()
        try:
            return original(*args, **options)
        finally:
            spent[part] = spent.get(part, 0.0) + time.perf_counter() - begin

    with patch.object(owner, name, timed):
        yield
