import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.models import User
from relations.models import Follow
from runtime.embedded import die_with_parent
from storage.connections import feeds_for_tasks, pipelined
from tests.support.changed_settings import changed
from tests.support.effort import tries
from tests.support.factories import UserFactory
from tests.support.streams import StreamServer, database_url
from tests.support.web import WebServer
from tests.support.windows import epoch_of, epochs
from timeline.home import home_page
from timeline.inbox import Inbox, materialise

FOLLOWERS = tries(2_500, 5_000)
"""A fan-out reads 2,000 with its claim."""
ROOT = Path(__file__).resolve().parent.parent.parent


class Worker:
    """A worker with beat, in its own process group."""

    tree = ROOT

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.environ = environ
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "celery", "-A", "feedsite", "worker", "--beat", "--concurrency", "2"]
        return [*command, "--schedule", str(self.folder / f"beat-{time.monotonic_ns()}"), "--loglevel", "WARNING"]

    def start(self) -> None:
        environ = os.environ | {
            "FEEDSITE_DATABASE_URL": database_url(),
            **changed(FAN_OUT_RETRY_AFTER=1),
            **self.environ,
        }
        with (self.folder / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.tree,
                env=environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),  # also if the tests are killed
            )

    def keep(self) -> bool:
        """Restart it if it ended: Celery's consumer may die with its broker. Always true, for `until`."""
        if self.process is not None and self.process.poll() is not None:
            self.start()
        return True

    def said(self) -> str:
        return (self.folder / "worker.log").read_text()

    def stand(self, signal_number: int) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal_number)

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path)
    yield worker
    worker.kill()
    if (log := tmp_path / "worker.log").exists():
        print(log.read_text()[-10_000:])  # shown if the test failed


@pytest.fixture
def streams(tmp_path: Path, transactional_db: None) -> Iterator[StreamServer]:
    server = StreamServer(tmp_path)
    server.start()
    yield server
    server.end()


@pytest.fixture
def web(tmp_path: Path, transactional_db: None) -> Iterator[WebServer]:
    server = WebServer(tmp_path)
    server.start()
    yield server
    server.end()
    print(server.said()[-10_000:])


@pytest.fixture
def star(transactional_db: None) -> User:
    """Their followers all have inboxes."""
    star = UserFactory(last_seen_at=timezone.now())
    fans = User.objects.bulk_create(
        User(username=f"fan{number}", level=3, last_seen_at=timezone.now(), following_count=1)
        for number in range(FOLLOWERS)
    )
    Follow.objects.bulk_create(Follow(follower=fan, followee=star) for fan in fans)
    built_for = epochs(fan.pk for fan in fans)
    for first in range(0, FOLLOWERS, 500):
        part = fans[first : first + 500]
        pipelined(feeds_for_tasks(), [Inbox(fan.pk).begin("t", built_for[fan.pk]) for fan in part])
        pipelined(feeds_for_tasks(), [Inbox(fan.pk).complete("t", built_for[fan.pk], 0, []) for fan in part])
    pipelined(feeds_for_tasks(), [Inbox(star.pk).begin("t", epoch_of(star.pk))])
    materialise(star.pk, "t")
    return star


def until(done: Callable[[], bool], seconds: float) -> float:
    """Wait until it is true. Returns the seconds."""
    start = time.monotonic()
    while not done():
        assert time.monotonic() - start < seconds, "it did not happen in time"
        time.sleep(0.02)
    return time.monotonic() - start


def walked(reader: User) -> list[int]:
    ids: list[int] = []
    last_id, more = None, True
    while more:
        page = home_page(User.objects.get(pk=reader.pk), last_id=last_id, limit=100)
        ids += [int(item.id) for item in page.items]
        last_id, more = page.last_id, page.has_more
    return ids
