"""Processes killed -9 wherever they are: nothing is missing, from nowhere, and nothing is left over."""

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import User
from feedsite.connections import feeds_for_tasks, fetch, pipelined
from feedsite.embedded import die_with_parent
from relations.models import Follow
from tests.factories import UserFactory
from tests.faults.conftest import Worker, until, walked
from tests.streams import database_url
from tests.windows import epochs
from timeline.check import differences
from timeline.home import home_page
from timeline.inbox import Inbox
from timeline.models import Backfill, Delivery, DeliveryRange
from timeline.oracle import home_ids

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(400)]

KILLS = 200
READERS = 150
SOON = 60
OPTIONS = {"FEEDSITE_FAN_OUT_RETRY_AFTER": "0.5", "FEEDSITE_FAN_OUT_RANGE": "50"}
"""Deliveries are split into ranges, and what a dead process left is tried again soon."""
SESSIONS = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
"""


@pytest.fixture
def people(transactional_db: None) -> list[User]:
    """Everybody follows a star, a big-V and a friend, and has an inbox."""
    now = timezone.now()
    senders = [
        UserFactory(username="star", last_seen_at=now, follower_count=READERS),
        UserFactory(username="big", last_seen_at=now, follower_count=READERS, is_big_v=True),
        UserFactory(username="friend", last_seen_at=now),
    ]
    readers = User.objects.bulk_create(
        User(
            username=f"{'fickle' if number < 20 else 'fan'}{number}",
            level=number % 3 + 1,
            last_seen_at=now,
            following_count=3,
        )
        for number in range(READERS)
    )
    Follow.objects.bulk_create(Follow(follower=reader, followee=sender) for reader in readers for sender in senders)
    people = senders + readers
    built_for = epochs(one.pk for one in people)
    pipelined(feeds_for_tasks(), [Inbox(one.pk).begin("t", built_for[one.pk]) for one in people])
    pipelined(feeds_for_tasks(), [Inbox(one.pk).complete("t", built_for[one.pk], 0, []) for one in people])
    return people


def test_fault_1_200_kills_amid_publish_and_fan_out(people: list[User], tmp_path: Path) -> None:
    """Processes that publish, deliver, change, relate and sweep are killed -9 at 200 random points. Pages equal the
    oracle all the time; within 60 s of a worker everything is delivered, and every window holds what it must.
    """
    seed = str(secrets.randbelow(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)  # noqa: S311 (chance)
    errors = tmp_path / "killing.log"
    own = set(fetch(SESSIONS))  # this one, and what a thread of an earlier test may have left open
    with errors.open("wb") as log:
        killing = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.killing", seed, str(KILLS)],
            cwd=settings.BASE_DIR,
            env=os.environ | OPTIONS | {"FEEDSITE_DATABASE_URL": database_url()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
    assert killing.stdin is not None
    assert killing.stdout is not None
    places: dict[str, int] = {}
    with killing:
        try:
            for line in killing.stdout:
                places = json.loads(line)
                # What a dead process had sent to PostgreSQL may still be under way.
                until(lambda: set(fetch(SESSIONS)) <= own, 60)
                for person in chance.sample(people, 3):
                    assert walked(person) == home_ids(person.pk)
                killing.stdin.write(b"\n")
                killing.stdin.flush()
        finally:
            killing.kill()
    assert killing.returncode == 0, errors.read_text()
    print(places, Delivery.objects.count(), "deliveries pending")
    assert "not killed" not in places, errors.read_text()
    assert sum(places.values()) == KILLS
    for kind in ("publish", "deliver", "change", "relate", "sweep"):
        assert any(place.startswith(kind) for place in places), kind
    assert Delivery.objects.exists(), "something was left undone"
    assert not Delivery.objects.parked().exists()

    worker = Worker(tmp_path, **OPTIONS)
    try:
        worker.start()
        until(lambda: worker.keep() and Delivery.objects.filter(attempts=0).count() == 0, 120)
        begin = time.monotonic()
        until(lambda: worker.keep() and is_done(), SOON)
        print(f"done {time.monotonic() - begin:.1f} s after the worker began")
        until(lambda: worker.keep() and are_in_use(people), 60)
    finally:
        worker.kill()
    connection.close()
    assert list(differences([person.pk for person in people])) == []
    for person in people:
        assert walked(person) == home_ids(person.pk), person.username


def are_in_use(people: list[User]) -> bool:
    """Whether most read from windows: what is not used proves nothing."""
    return sum("inbox" in home_page(person).sources for person in people) > len(people) // 2


def is_done() -> bool:
    """Whether nothing is pending."""
    backfills = Backfill.objects.filter(finished_at=None, cancelled_at=None)
    return not (Delivery.objects.exists() or DeliveryRange.objects.exists() or backfills.exists())
