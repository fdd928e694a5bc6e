import sys
import time
import weakref
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone
from kombu.asynchronous import Hub

from feedsite.celery import app
from items.models import IdempotencyKey
from runtime.embedded import wait_for
from storage import connections
from tests.support.factories import ItemFactory
from tests.support.servers import Valkey, dead, frozen
from tests.support.sites import Worker
from tests.support.workers import queue_server
from timeline.tasks import sweep


def test_every_scheduled_task_exists() -> None:
    app.loader.import_default_modules()
    assert {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} <= set(app.tasks)


def test_a_lost_connection_to_the_broker_leaves_nothing_behind() -> None:
    """Each kept half a megabyte of the worker."""
    consumer, of_pool = SimpleNamespace(hub=Hub()), Mock()
    consumer.hub.on_tick.add(of_pool)
    (step,) = (step for step in app.steps["consumer"] if step.__name__ == "ForgetsLostConnections")
    lost = []
    for _ in range(3):
        with app.connection_for_read() as connection:
            connection.connect()
            connection.transport.register_with_event_loop(connection.connection, consumer.hub)
            connection.transport.itself = connection.transport  # as frames and their errors hold each other
            lost.append(weakref.ref(connection.transport))
        consumer.hub.timer.clear()  # as Celery does
        step(consumer).stop(consumer)
    del connection
    step(consumer).start(consumer)
    assert [transport() for transport in lost] == [None] * 3
    assert consumer.hub.on_tick == {of_pool}


@pytest.mark.slow
@pytest.mark.django_db
def test_periodic_tasks_run() -> None:
    app.loader.import_default_modules()
    old, new = timezone.now() - timedelta(days=2), timezone.now() + timedelta(days=2)
    Session.objects.bulk_create(
        Session(session_key=key, session_data="", expire_date=when) for key, when in (("old", old), ("new", new))
    )
    item = ItemFactory()
    for key in ("old", "new"):
        IdempotencyKey.objects.create(sender=item.sender, key=key, fingerprint="", item=item)
    IdempotencyKey.objects.filter(key="old").update(created_at=old)
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        app.tasks[entry["task"]]()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["new"]
    assert list(IdempotencyKey.objects.values_list("key", flat=True)) == ["new"]


def test_a_dead_broker_is_told_and_not_raised(broker_server: Valkey) -> None:
    with dead(broker_server):
        assert not sweep.delay()
        assert not sweep.delay(), "not even asked again for a second"
    connections.broker_breaker.reset()
    assert sweep.delay(), "the connection is another"


@pytest.mark.slow
def test_a_frozen_broker_is_told_in_little_time(broker_server: Valkey) -> None:
    assert sweep.delay()
    with frozen(broker_server):
        began = time.monotonic()
        assert not sweep.delay()
        assert time.monotonic() - began < 5
    connections.broker_breaker.reset()
    assert wait_for(lambda: sweep.delay(), 30)


# --- Messages of another version -------------------------------------------------------------------------
LATER = """
from feedsite.celery import app

@app.task(name="later.mark")
def mark(path: str) -> None:
    open(path, "w").close()
"""
"""A task that this version does not know."""


class LonelyWorker(Worker):
    """A worker without beat: it gets only what the test sends."""

    def command(self) -> list[str]:
        more = ["--include", "later"] if "PYTHONPATH" in self.environ else []
        return [sys.executable, "-m", "celery", "-A", "feedsite", "worker", "--concurrency", "1", *more]

    def said(self) -> str:
        return (self.folder / "worker.log").read_text()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[LonelyWorker]:
    queue_server().delete("celery", "unacked", "unacked_index")  # what other tests' killed workers left
    worker = LonelyWorker(tmp_path)
    yield worker
    worker.kill()


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_message_that_the_worker_does_not_know_is_dropped_and_logged_once(
    tmp_path: Path, worker: LonelyWorker
) -> None:
    """A sweeper sends its task again."""
    (tmp_path / "later.py").write_text(LATER)
    dropped, known = tmp_path / "dropped", tmp_path / "known"
    worker.start()
    app.send_task("later.mark", [str(dropped)])
    app.send_task("timeline.fan_out", [1, "an argument of a later version"])
    assert wait_for(lambda: "TypeError" in worker.said(), 60), worker.said()
    assert wait_for(lambda: not queue_server().exists("celery", "unacked"), 60), worker.said()
    assert worker.said().count("Received unregistered task") == 1
    assert worker.said().count("Traceback") == 2, "one for each message"
    worker.kill()

    worker.environ["PYTHONPATH"] = str(tmp_path)
    worker.start()
    app.send_task("later.mark", [str(known)])
    assert wait_for(known.exists, 60), worker.said()
    assert not dropped.exists()
