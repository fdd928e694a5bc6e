"""Beat asks PostgreSQL before it sends."""

import heapq
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery.beat import ScheduleEntry, event_t
from django.conf import settings
from django.db import OperationalError

from feedsite.celery import app
from items.models import CountChange
from storage import quiet
from storage.connections import fetch
from storage.queue import QUESTIONS
from tests.support.factories import ItemFactory
from tests.support.sites import until
from tests.support.streams import database_url


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tasks that beat sends."""
    sent: list[str] = []
    monkeypatch.setattr(quiet.Scheduler, "apply_async", lambda self, entry, **kwargs: sent.append(entry.task))
    return sent


@pytest.fixture
def scheduler(tmp_path: Path) -> quiet.Scheduler:
    app.loader.import_default_modules()
    return quiet.Scheduler(app=app, schedule_filename=str(tmp_path / "beat"))


def entry(task: str) -> ScheduleEntry:
    return ScheduleEntry(name=task, task=task, schedule=2.0, app=app)


def due(task: str) -> ScheduleEntry:
    """An entry that was last due longer ago than its period."""
    return ScheduleEntry(name=task, task=task, schedule=2.0, app=app, last_run_at=app.now() - timedelta(minutes=1))


@pytest.mark.django_db
def test_a_task_is_sent_when_there_is_something_to_do(scheduler: quiet.Scheduler, sent: list[str]) -> None:
    fold = entry("items.fold_counts")
    scheduler.apply_entry(fold)
    assert sent == ["items.fold_counts"], "once after the start, whatever is so"
    scheduler.apply_entry(fold)
    assert len(sent) == 1
    CountChange.objects.create(item_id=ItemFactory().pk, likes=1)
    scheduler.apply_entry(fold)
    scheduler.apply_entry(fold)
    assert len(sent) == 3, "until it is done"
    CountChange.objects.all().delete()
    scheduler.apply_entry(fold)
    assert len(sent) == 3
    scheduler.sent_at[fold.name] -= quiet.UNASKED_SECONDS
    scheduler.apply_entry(fold)
    assert len(sent) == 4, "once in ten minutes whatever is so"


@pytest.mark.django_db
def test_one_statement_asks_for_all_that_are_due(
    scheduler: quiet.Scheduler, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = ["items.fold_counts", "relations.fold_follower_counts", "live.run"]
    scheduler._heap, scheduler.old_schedulers = [], {}
    for task in tasks:
        scheduler.sent_at[task] = time.monotonic()
        heapq.heappush(scheduler._heap, event_t(0, 5, due(task)))
    later = entry("relations.end_mutes")
    scheduler.sent_at[later.name] = time.monotonic()
    heapq.heappush(scheduler._heap, event_t(scheduler._when(later, 2.0), 5, later))
    CountChange.objects.create(item_id=ItemFactory().pk, likes=1)
    asked: list[str] = []
    monkeypatch.setattr(quiet, "fetch", lambda query: asked.append(query) or fetch(query))
    while scheduler.tick() == 0:
        pass
    assert sent == ["items.fold_counts"]
    assert len(asked) == 1
    assert not scheduler.answers, "each is taken once"
    scheduler.answers = {"live.run": True}
    scheduler.apply_entry(entry("live.run"))
    assert len(sent) == 2
    scheduler.answers, scheduler.asked_at = {"live.run": True}, scheduler.asked_at - 1
    scheduler.apply_entry(entry("live.run"))
    assert len(sent) == 2, "an answer of before says nothing"
    assert sorted(each.task for _, _, each in scheduler._heap) == sorted([*tasks, later.task]), "all wait anew"


@pytest.mark.django_db
def test_a_task_without_a_question_is_always_sent(scheduler: quiet.Scheduler, sent: list[str]) -> None:
    for _ in range(3):
        scheduler.apply_entry(entry("operation.observe"))
    assert len(sent) == 3


def test_without_postgresql_tasks_are_sent(
    scheduler: quiet.Scheduler, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(query: str) -> Any:
        raise OperationalError("away")

    monkeypatch.setattr(quiet, "fetch", fails)
    for _ in range(3):
        scheduler.apply_entry(entry("items.fold_counts"))
    assert len(sent) == 3


@pytest.mark.django_db(transaction=True)
def test_a_wrong_query_takes_no_other_along() -> None:
    assert quiet.are_wanted(["SELECT WHERE false", "SELECT FROM not_yet_made", "SELECT"]) == [False, True, True]


@pytest.mark.sessions
@pytest.mark.django_db(transaction=True)
def test_a_session_that_ended_is_replaced() -> None:
    queries = ["SELECT WHERE false", "SELECT"]
    assert quiet.are_wanted(queries) == [False, True]
    with psycopg.connect(database_url(), autocommit=True) as other:
        (pid,) = fetch("SELECT pg_backend_pid()")[0]
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
        until(lambda: not other.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).fetchall(), 10)
    assert quiet.are_wanted(queries) == [True, True], "PostgreSQL does not say"
    assert quiet.are_wanted(queries) == [False, True]


def test_beat_sleeps_between_its_turns(scheduler: quiet.Scheduler, sent: list[str]) -> None:
    scheduler._heap = []
    assert scheduler.tick() >= quiet.TOGETHER_SECONDS
    later = entry("operation.observe")
    heapq.heappush(scheduler._heap, (scheduler._when(later, 0.001), 5, later))
    assert (seconds := scheduler.tick()) == 0 or seconds >= quiet.TOGETHER_SECONDS


FREQUENT = {
    each["task"]
    for each in settings.CELERY_BEAT_SCHEDULE.values()
    if isinstance(each["schedule"], float) and each["schedule"] < 20
}


@pytest.mark.django_db
def test_every_frequent_task_has_a_question_that_postgresql_understands() -> None:
    app.loader.import_default_modules()
    assert QUESTIONS.keys() | {"discover.index"} >= FREQUENT
    assert app.tasks.keys() >= QUESTIONS.keys()
    for query in QUESTIONS.values():
        assert fetch(f"SELECT EXISTS ({query})")[0][0] in (True, False)
