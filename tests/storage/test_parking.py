"""Messages between two versions of the site, and the workers of both, as real processes on a real broker."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from feedsite.celery import app
from runtime.embedded import wait_for
from storage import events, keys, parking
from storage.connections import feeds_for_tasks
from storage.parking import PARKED, park, takes, unpark
from tests.support.factories import ItemFactory
from tests.support.sites import Worker
from tests.support.streams import database_url
from tests.support.versions import Version, version, version_of_now
from tests.support.workers import queue_server
from timeline.models import Delivery

LATER = """
from feedsite.celery import app

@app.task(name="later.mark")
def mark(path: str, word: str) -> None:
    open(path, "w").write(word)
"""
"""A task that the version of now does not know."""


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    queue_server().delete(PARKED)
    yield
    queue_server().delete(PARKED)


def parked() -> int:
    return int(queue_server().llen(PARKED))


def test_a_call_fits_or_does_not() -> None:
    def task(user_id: int, token: str = "") -> None: ...

    assert takes(task, (1,), {})
    assert takes(task, (1, "x"), {})
    assert takes(task, (1,), {"token": "x"})
    assert not takes(task, (), {})
    assert not takes(task, (1, "x", 2), {})
    assert not takes(task, (1,), {"depth": 2})


@pytest.mark.slow
def test_known_messages_are_sent_on_and_others_stay() -> None:
    app.loader.import_default_modules()
    park(app, "timeline.fan_out", [1], {})
    park(app, "later.mark", [1], {})
    park(app, "timeline.fan_out", [1, 2], {})
    park(app, "later.mark", [2], {}, since=time.time() - parking.KEPT_SECONDS - 1)
    assert parked() == 4
    assert unpark(app=app) == 1
    assert parked() == 2
    assert queue_server().llen("celery") == 1
    assert unpark(app=app) == 0
    assert parked() == 2


class WorkerOf(Worker):
    """A worker of a version, without beat."""

    def __init__(self, folder: Path, of: Version, *more: str, **environ: str) -> None:
        super().__init__(folder, **environ)
        self.of = of
        self.more = more

    def command(self) -> list[str]:
        celery = [self.of.python, "-m", "celery", "-A", "feedsite", "worker", "--concurrency", "1"]
        return [*celery, "--loglevel", "WARNING", *self.more]

    def start(self) -> None:
        environ = os.environ | {"FEEDSITE_DATABASE_URL": database_url(), **self.environ}
        with (self.folder / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), cwd=self.of.tree, env=environ, stdout=log, stderr=log, start_new_session=True
            )

    def said(self) -> str:
        return (self.folder / "worker.log").read_text()


def enqueue_by(of: Version, name: str, *args: Any) -> None:
    """Have a process of the version send a message."""
    code = f"from feedsite.celery import app; app.send_task({name!r}, {args!r})"
    subprocess.run([of.python, "-c", code], cwd=of.tree, env=os.environ.copy(), check=True)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_worker_parks_what_it_does_not_know_and_a_newer_one_runs_it(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text(LATER)
    done, done_too = tmp_path / "done", tmp_path / "done too"
    of_now = WorkerOf(tmp_path, version_of_now())
    of_now.start()
    try:
        app.send_task("later.mark", [str(done), "unknown"])
        app.send_task("later.mark", [str(done_too), "expires"], expires=600)
        app.send_task("timeline.fan_out", [1, "an argument of a later version"])
        assert wait_for(lambda: parked() == 2, 60), of_now.said()
        assert wait_for(lambda: not queue_server().llen("celery"), 60)
    finally:
        of_now.kill()
    assert "later.mark is unknown: parked" in of_now.said()
    assert "timeline.fan_out does not take" in of_now.said()
    later = WorkerOf(tmp_path, version_of_now(), "--include", "later", PYTHONPATH=str(tmp_path))
    later.start()
    try:
        app.send_task("storage.unpark")
        assert wait_for(done.exists, 60), later.said()
        assert wait_for(lambda: done.read_text() == "unknown", 10)
    finally:
        later.kill()
    assert parked() == 1, "no version knows the third argument of a fan-out yet"
    assert not done_too.exists()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_written_by_the_old", [True, False], ids=["old writes", "new writes"])
def test_a_worker_runs_what_another_version_enqueued(tmp_path: Path, is_written_by_the_old: bool) -> None:
    """The first version and this one, each way, on the database of this one."""
    old, now = version(tmp_path / "old"), version_of_now()
    writer, runner = (old, now) if is_written_by_the_old else (now, old)
    item = ItemFactory()
    Delivery.objects.create(item=item, sender_id=item.sender_id)
    enqueue_by(writer, "timeline.fan_out", item.pk)
    enqueue_by(writer, "seen.merge_user", item.sender_id)
    enqueue_by(writer, "live.apply", item.sender_id)
    worker = WorkerOf(tmp_path, runner)
    worker.start()
    try:
        assert wait_for(lambda: not Delivery.objects.filter(item=item).exists(), 120), worker.said()
        assert wait_for(lambda: not queue_server().llen("celery"), 60), worker.said()
    finally:
        worker.kill()
    assert "Traceback" not in worker.said()
    assert not parked()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_events_of_another_version_are_read_or_count_as_unknown(tmp_path: Path) -> None:
    """This version reads all that the first appends, and the first what it knows of this one's."""
    old = version(tmp_path / "old")
    environ = os.environ | {"DJANGO_SETTINGS_MODULE": "feedsite.settings"}
    write = "from feedsite import events; events.announce(events.Published(7), events.Withdrawn(8, 'public'))"
    subprocess.run([old.python, "-c", f"import django; django.setup(); {write}"], cwd=old.tree, env=environ, check=True)
    client = feeds_for_tasks()
    entries = client.xrange(keys.events())
    assert [events.event_of(fields) for _, fields in entries] == [
        events.Published(7),
        events.Withdrawn(8, "public"),
    ]
    events.announce(events.Published(9), events.FiltersChanged(1))
    read = (
        "from feedsite import events; from feedsite.connections import feeds_for_tasks; from feedsite import keys;"
        "print([events.event_of(fields) for _, fields in feeds_for_tasks().xrange(keys.events())][-2:])"
    )
    done = subprocess.run(
        [old.python, "-c", f"import django; django.setup(); {read}"],
        cwd=old.tree,
        env=environ,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[Published(item=9), None]"


def test_the_worker_of_the_site_parks() -> None:
    assert settings.CELERY_WORKER_CONSUMER == "storage.parking:Consumer"
    assert issubclass(app.Task, parking.ParkingTask)
