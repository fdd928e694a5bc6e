"""What strangers choose is waited for in a lane of its own."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from community.archives import reader
from feedsite.celery import app
from items.link_cards import actions as link_cards
from media.decoder import decoder
from runtime.embedded import wait_for
from storage.queue import OUTSIDE
from tests.support.sites import Worker
from tests.support.workers import queue_server
from timeline.fanout import fan_out
from web import outbound


@app.task(name="items.fold_counts_like")
def ordinary(what: str) -> None:
    """A task that nobody put into the lane."""
    if what == "page":
        outbound.get("https://example.org/", types=("text/html",), member=1)
    if what == "push":
        outbound.post("https://example.org/", headers={}, body=b"", member=1)
    if what == "picture":
        decoder.run({"seconds": 1})
    if what == "archive":
        reader.read(Path("archive"), Path(), 0)


@pytest.mark.parametrize("what", ["page", "push", "picture", "archive"])
def test_other_tasks_wait_for_no_stranger(what: str) -> None:
    with pytest.raises(RuntimeError, match="is not in the lane outside"):
        ordinary(what)


def test_the_lane_has_tasks_that_exist() -> None:
    app.loader.import_default_modules()
    assert settings.CELERY_TASK_ROUTES.keys() <= app.tasks.keys()
    assert {app.amqp.router.route({}, name)["queue"].name for name in settings.CELERY_TASK_ROUTES} == {OUTSIDE}
    assert app.amqp.router.route({}, "timeline.fan_out")["queue"].name == "celery"


@pytest.mark.parametrize(
    ("sweep", "repeated"),
    [
        ("items.read_link_pages", "items.read_link_pages"),
        ("moving.sweep", "moving.run_import"),
        ("notifications.sweep_pushes", "notifications.push_device"),
    ],
)
def test_a_sweep_waits_behind_the_tasks_that_it_repeats(sweep: str, repeated: str) -> None:
    """Elsewhere it repeated them each minute while the lane stood still."""
    assert sweep in {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert len({app.amqp.router.route({}, name)["queue"].name for name in (sweep, repeated)}) == 1


class Lane(Worker):
    """A worker, and its lane."""

    def pids(self) -> dict[str, list[int]]:
        """Processes of the worker's group by name."""
        found: dict[str, list[int]] = {}
        assert self.process is not None
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.getpgid(int(folder.name)) == self.process.pid:
                    found.setdefault((folder / "comm").read_text().strip(), []).append(int(folder.name))
        return found

    def has_outside(self, processes: int) -> bool:
        """Whether the lane has so many beside the one that starts them."""
        return len(self.pids().get(OUTSIDE, [])) == 1 + processes


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Lane]:
    worker = Lane(tmp_path, AUTOSCALE_KEEPALIVE="2")
    yield worker
    worker.kill()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_each_takes_its_own_tasks_alone_and_the_lane_ends_with_its_worker(worker: Lane) -> None:
    """tests/runtime/test_supervisor.py kills the lane: its worker ends too."""
    worker.start()
    assert wait_for(lambda: worker.has_outside(1), 60)
    queues = queue_server()
    for pid in worker.pids()[OUTSIDE]:
        os.kill(pid, signal.SIGSTOP)
    for _ in range(20):
        assert link_cards.assign_card.delay(1)
        assert fan_out.delay(1)
    assert wait_for(lambda: not queues.llen("celery"), 60)
    assert queues.llen(OUTSIDE) >= 20 - settings.OUTSIDE_PROCESSES
    for pid in worker.pids()[OUTSIDE]:
        os.kill(pid, signal.SIGCONT)
    assert wait_for(lambda: not queues.llen(OUTSIDE), 60)
    assert "beat" in worker.pids()
    assert worker.process is not None
    os.kill(worker.process.pid, signal.SIGKILL)
    assert wait_for(lambda: not worker.pids().get(OUTSIDE), 30)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_the_lane_has_another_process_while_one_is_busy(worker: Lane) -> None:
    worker.start()
    assert wait_for(lambda: worker.has_outside(1), 60)
    parent, busy = sorted(worker.pids()[OUTSIDE])
    os.kill(busy, signal.SIGSTOP)
    for _ in range(2):
        assert link_cards.assign_card.delay(1)
    assert wait_for(lambda: worker.has_outside(2), 60)
    assert parent in worker.pids()[OUTSIDE]
    os.kill(busy, signal.SIGCONT)
    assert wait_for(lambda: worker.has_outside(1), 60)
    assert not queue_server().llen(OUTSIDE)
