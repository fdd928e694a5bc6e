import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery.beat import PersistentScheduler, ScheduleEntry
from django.conf import LazySettings, settings
from django.core.cache import cache
from django.db import OperationalError, connection

from feedsite.celery import app
from items.models import CountChange
from storage import keys, quiet
from storage.connections import cache_breaker, fetch
from storage.queue import QUESTIONS
from tests.support.factories import ItemFactory
from tests.support.mail_servers import closed_port
from tests.support.sites import until
from tests.support.streams import database_url


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sent: list[str] = []
    monkeypatch.setattr(quiet.Scheduler, "apply_async", lambda self, entry, **kwargs: sent.append(entry.task))
    return sent


@pytest.fixture
def scheduler(tmp_path: Path) -> quiet.Scheduler:
    app.loader.import_default_modules()
    return quiet.Scheduler(app=app, schedule_filename=str(tmp_path / "beat"))


def entry(task: str) -> ScheduleEntry:
    return ScheduleEntry(name=task, task=task, schedule=2.0, app=app)


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
    scheduler.sent_at[fold.task] -= quiet.UNASKED_SECONDS
    scheduler.apply_entry(fold)
    assert len(sent) == 4, "once in ten minutes whatever is so"


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
def test_a_wrong_query_counts_as_something_to_do() -> None:
    queries = ["SELECT WHERE false", "SELECT FROM not_yet_made", "SELECT", "SELECT WHERE false"]
    assert list(map(quiet.has_work, queries)) == [False, True, True, False]


@pytest.mark.sessions
@pytest.mark.django_db(transaction=True)
def test_a_session_that_ended_is_replaced() -> None:
    assert not quiet.has_work("SELECT WHERE false")
    with psycopg.connect(database_url(), autocommit=True) as other:
        (pid,) = fetch("SELECT pg_backend_pid()")[0]
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
        until(lambda: not other.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).fetchall(), 10)
    assert quiet.has_work("SELECT WHERE false"), "PostgreSQL does not say"
    assert not quiet.has_work("SELECT WHERE false")


def test_beat_goes_on_when_the_disk_is_full(
    scheduler: quiet.Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(self: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(PersistentScheduler, "sync", fails)
    scheduler.sync()
    assert "beat cannot save which tasks it has sent" in caplog.text


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


@pytest.mark.sessions
@pytest.mark.django_db(transaction=True)
def test_what_is_due_at_about_the_same_time_is_asked_together(scheduler: quiet.Scheduler, sent: list[str]) -> None:
    until(lambda: scheduler.tick() > 0, 30)  # 2 s from the start, and then whenever something is due
    assert scheduler.tick() >= quiet.LEAST_SECONDS
    connection.close()


# --- One beat ----------------------------------------------------------------------------------------------
@contextmanager
def other_beat() -> Iterator[psycopg.Connection[Any]]:
    """A beat's session from another machine."""
    with psycopg.connect(database_url(), autocommit=True) as session:
        assert session.execute("SELECT pg_try_advisory_lock(%s)", [quiet.LOCK]).fetchone() == (True,)
        yield session


@pytest.mark.long
@pytest.mark.sessions
@pytest.mark.django_db(transaction=True)
def test_a_second_beat_waits_and_says_so(
    scheduler: quiet.Scheduler, sent: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with other_beat():
        for _ in range(3):
            assert scheduler.tick() == quiet.TURN_SECONDS
        assert not sent
        (line,) = [record.getMessage() for record in caplog.records if record.name == "feedsite.starts"]
        assert re.fullmatch(r"another beat is active, so this one waits \(this machine, since \d{4}-.* UTC\)", line)
    until(lambda: scheduler.tick() > 0 and bool(sent), 30)
    assert "beat is active" in caplog.messages
    with psycopg.connect(database_url(), autocommit=True) as session:
        taken = session.execute("SELECT pg_try_advisory_lock(%s)", [quiet.LOCK]).fetchone()
        assert taken == (False,), "it holds the lock now"
    connection.close()


@pytest.mark.sessions
@pytest.mark.django_db(transaction=True)
def test_a_beat_whose_session_ended_takes_the_lock_again_or_waits(scheduler: quiet.Scheduler, sent: list[str]) -> None:
    scheduler.tick()
    assert scheduler.is_at_work
    connection.close()  # as when PostgreSQL was restarted
    with other_beat():
        assert scheduler.tick() == quiet.TURN_SECONDS
        assert not scheduler.is_at_work
    until(lambda: scheduler.tick() is not None and scheduler.is_at_work, 30)
    connection.close()


@pytest.mark.sessions
@pytest.mark.django_db(transaction=True)
def test_the_beat_at_work_goes_on_without_postgresql(
    scheduler: quiet.Scheduler, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler.tick()
    connection.close()
    monkeypatch.setattr(quiet, "fetch", failing)
    assert scheduler._has_lock()
    scheduler.is_at_work = False
    assert not scheduler._has_lock(), "one that waited goes on to wait"


@pytest.mark.sessions
@pytest.mark.django_db(transaction=True)
def test_a_beat_that_waits_for_postgresql_says_so_once(
    scheduler: quiet.Scheduler, sent: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "feedsite.starts"]

    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", str(closed_port()))
        for _ in range(3):
            assert scheduler.tick() == quiet.TURN_SECONDS
        assert said() == [quiet.OUTAGE]
    with other_beat():
        for _ in range(2):
            assert scheduler.tick() == quiet.TURN_SECONDS
    assert [line.partition(" (")[0] for line in said()[1:]] == [quiet.OTHER]
    assert not sent
    connection.close()


def failing(*args: Any, **kwargs: Any) -> Any:
    raise OperationalError("the server closed the connection")


@pytest.mark.django_db
def test_behind_a_pooler_one_beat_has_a_lease(tmp_path: Path, sent: list[str], settings: LazySettings) -> None:
    settings.POOLED = True
    cache.delete(keys.beat())
    first, second = (quiet.Scheduler(app=app, schedule_filename=str(tmp_path / name)) for name in "ab")
    for _ in range(2):
        first.tick()
        assert second.tick() == quiet.TURN_SECONDS
    assert (first.is_at_work, second.is_at_work) == (True, False)
    assert 0 < cache.ttl(keys.beat()) <= quiet.LEASE_SECONDS
    cache.delete(keys.beat())  # as when its machine is gone
    second.tick()
    first.tick()
    assert (first.is_at_work, second.is_at_work) == (False, True)
    cache_breaker.trip()
    first.tick()
    second.tick()
    assert first.is_at_work
    assert second.is_at_work
    cache_breaker.reset()
