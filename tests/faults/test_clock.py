"""Beat, database and users have the right time."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts import tasks as account_tasks
from accounts.models import User
from feedsite.celery import app
from items import actions as items
from live import actions as live
from live import tasks as live_tasks
from live.models import LiveSession, State
from relations import actions as relations
from runtime.embedded import die_with_parent
from tests.support.effort import some
from tests.support.factories import UserFactory
from tests.support.sites import ROOT, Worker, signal, until
from tests.support.streams import database_url
from timeline.check import differences
from timeline.home import home_page
from timeline.models import Delivery
from timeline.oracle import home_ids

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(300)]

SHIFTED = """
import sys
from datetime import UTC, datetime, timedelta
import time_machine
time_machine.travel(datetime.now(UTC) + timedelta(hours=int(sys.argv.pop(1)))).start()
from celery.__main__ import main
main()
"""


class ShiftedWorker(Worker):
    """Its clock is `hours` ahead."""

    def __init__(self, folder: Path, hours: int) -> None:
        super().__init__(folder)
        self.hours = hours

    def command(self) -> list[str]:
        return [sys.executable, "-c", SHIFTED, str(self.hours), "-A", "feedsite", "worker", "--concurrency", "2"]


@pytest.fixture
def beat(tmp_path: Path, transactional_db: None) -> Iterator[None]:
    command = [sys.executable, "-m", "celery", "-A", "feedsite", "beat", "--pidfile=", "-s", str(tmp_path / "beat")]
    with (tmp_path / "beat.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--loglevel", "WARNING"],
            cwd=ROOT,
            env=os.environ | {"FEEDSITE_DATABASE_URL": database_url()},
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
    yield
    process.kill()
    process.wait()


@pytest.mark.long
@pytest.mark.parametrize("hours", some(1, [-1, 1]))
def test_fault_7_a_worker_whose_clock_is_an_hour_wrong(hours: int, tmp_path: Path, beat: None) -> None:
    """Lost deliveries arrive, sessions start on time, nobody goes dormant early."""
    now = timezone.now()
    sender, fan = UserFactory(last_seen_at=now), UserFactory(last_seen_at=now)
    almost_a_day = User.objects.create(username="drowsy", level=3, last_seen_at=now - timedelta(hours=23.5))
    for follower in (fan, almost_a_day):
        relations.follow(follower=follower, followee=sender)
    said = [items.publish(sender=sender, content={"text": "words"}).pk for _ in range(5)][::-1]
    with app.connection_for_write() as connection, connection.SimpleQueue("celery", no_ack=True) as queue:
        queue.clear()
    later = live.create(host=sender, title="words", starts_at=now + timedelta(minutes=30), automatic=True, now=now)
    due = live.create(host=fan, title="words", starts_at=now + timedelta(seconds=1), automatic=True, now=now)
    worker = ShiftedWorker(tmp_path, hours)
    try:
        worker.start()
        account_tasks.lower_levels.delay()
        until(lambda: worker.keep() and not Delivery.objects.exists(), 90)
        until(lambda: worker.keep() and LiveSession.objects.get(pk=due.pk).state == State.LIVE, 60)
        said.insert(0, items.publish(sender=sender, content={"text": "words"}).pk)
        account_tasks.lower_levels.delay()
        live_tasks.run.delay()
        until(lambda: not Delivery.objects.exists(), 60)
        until(lambda: home_page(User.objects.get(pk=fan.pk)).sources == ["inbox"], 60)
    finally:
        worker.kill()
        print((tmp_path / "worker.log").read_text()[-5_000:])
    assert LiveSession.objects.get(pk=later.pk).state == State.UPCOMING
    started = LiveSession.objects.get(pk=due.pk).started_at
    assert started is not None
    assert abs(timezone.now() - started) < timedelta(minutes=10)
    assert User.objects.get(pk=almost_a_day.pk).level == 3
    assert [int(item.id) for item in home_page(fan).items] == home_ids(fan.pk) == said
    assert list(differences([sender.pk, fan.pk, almost_a_day.pk])) == []
