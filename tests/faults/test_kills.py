import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.levels import actions as levels
from accounts.levels import big_v
from accounts.models import User
from items import actions as items
from items.models import Item
from relations import actions as relations
from relations.models import Follow
from runtime.embedded import die_with_parent
from storage import keys
from storage.connections import feeds_for_tasks, fetch, pipelined
from storage.window import Window
from tests.support.changed_settings import changed
from tests.support.effort import tries
from tests.support.factories import UserFactory
from tests.support.sites import Worker, until, walked
from tests.support.streams import database_url
from tests.support.windows import epochs
from timeline import fanout, inbox, outbox
from timeline.check import differences
from timeline.home import home_page
from timeline.inbox import Inbox
from timeline.models import Backfill, Delivery, DeliveryRange
from timeline.oracle import home_ids
from timeline.outbox import Outbox

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(400)]

CAPS = {1: 3, 2: 5, 3: 50}
KILLS = tries(40, 200)
READERS = 150
SOON = 60
OPTIONS = changed(FAN_OUT_RETRY_AFTER=0.5, FAN_OUT_RANGE=50)
"""Deliveries split into ranges and retry soon."""
SESSIONS = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
"""


@pytest.fixture
def people(transactional_db: None) -> list[User]:
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


@pytest.mark.long
@pytest.mark.sessions
def test_fault_1_kills_amid_publish_and_fan_out(people: list[User], tmp_path: Path) -> None:
    """Pages always equal the oracle. Within 60 s everything is delivered and every window complete."""
    seed = str(secrets.randbelow(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)  # noqa: S311 (chance)
    errors = tmp_path / "killing.log"
    own = set(fetch(SESSIONS))  # this process's, and those of an earlier test's threads
    with errors.open("wb") as log:
        killing = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killing", seed, str(KILLS)],
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
                # PostgreSQL may still run a dead process's statements.
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


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> User:
    """Follows a big-V and a friend. The inbox exceeds the cap for absent readers."""
    monkeypatch.setattr(settings, "LEVEL_CAPS", CAPS)
    now = timezone.now()
    big, friend = (UserFactory(username=name, last_seen_at=now) for name in ("big", "friend"))
    away = UserFactory(username="away", last_seen_at=now)
    for sender in (big, friend):
        relations.follow(follower=away, followee=sender)
    big_v.make_big_v(user=big)
    epoch = outbox.epoch_of(big.pk)
    assert epoch is not None
    pipelined(feeds_for_tasks(), [Outbox(big.pk).drop(), Outbox(big.pk).begin("t", epoch)])
    assert outbox.materialise(big.pk, "t")
    assert inbox.deepen_or_build(away.pk)
    return away


@pytest.fixture
def returning() -> Iterator[Callable[[int], str]]:
    """A process that kills itself at a place. Returns its report once its sessions are gone."""
    own = set(fetch(SESSIONS))
    caps = {f"FEEDSITE_LEVEL_{level}_CAP": str(cap) for level, cap in CAPS.items()}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.killing", "come_back"],
        cwd=settings.BASE_DIR,
        env=os.environ | OPTIONS | caps | {"FEEDSITE_DATABASE_URL": database_url()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent(signal.SIGKILL),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        tells, hears = process.stdin, process.stdout

        def come_back(place: int) -> str:
            tells.write(f"{place}\n")
            tells.flush()
            told = hears.readline().strip()
            until(lambda: set(fetch(SESSIONS)) <= own, 60)
            return told

        yield come_back
        process.kill()


@pytest.mark.long
def test_a_return_is_killed_between_any_two_steps(away: User, returning: Callable[[int], str]) -> None:
    """Pages stay exact, also after more posts, restores and deliveries. The next return deepens the inbox."""
    senders = [User.objects.get(username=name) for name in ("big", "friend")]
    come_back_after_days(away, senders)
    places = int(returning(0))
    assert is_deep(away)
    died: list[str] = []
    for place in range(1, places + 1):
        restored = come_back_after_days(away, senders)
        died.append(returning(place))
        exact(away)
        for sender in senders:
            items.publish(sender=sender, content={"text": "said after the death"})
        items.restore(item=restored)
        exact(away)
        deliver_all()
        exact(away)
        # As if the dead process's deepening had expired.
        feeds_for_tasks().zrem(keys.inbox(away.pk), "deepen")
        returning(0)
        if begun := feeds_for_tasks().zscore(keys.inbox(away.pk), "deepen"):
            assert inbox.deepen(away.pk, -int(begun)), "what the page has asked a worker for"
        assert is_deep(away), died[-1]
        exact(away)
    print(places, Counter(died))
    assert all(place.startswith(("before", "after")) for place in died)
    assert {"before a word to Redis", "after a statement", "after an enqueuing"} <= set(died)


def come_back_after_days(away: User, senders: list[User]) -> Item:
    """More is posted than an absent reader keeps. Returns an older deleted item, below the floor."""
    deleted = items.publish(sender=senders[0], content={"text": "before"})
    User.objects.filter(pk=away.pk).update(last_seen_at=timezone.now() - timedelta(days=3))
    levels.lower_levels()
    for sender in senders * 5:
        items.publish(sender=sender, content={"text": "meanwhile"})
    deliver_all()
    items.delete(item=deleted)
    away.refresh_from_db()
    assert away.level == 2
    assert {*home_page(away, limit=3).sources} == {"inbox", "outbox"}
    return Item.objects.get(pk=deleted.pk)


def deliver_all() -> None:
    Delivery.objects.update(not_before=timezone.now())
    for item_id in list(Delivery.objects.values_list("pk", flat=True)):
        assert fanout.fan_out(item_id)


def exact(reader: User) -> None:
    assert walked(reader) == home_ids(reader.pk)
    assert list(differences([reader.pk])) == []


def is_deep(reader: User) -> bool:
    reader.refresh_from_db()
    window = Window.slice(pipelined(feeds_for_tasks(), [Inbox(reader.pk).read_command(2**53, 100)])[0], 100)
    return window is not None and reader.level == 3 and window.pushes == reader.push_generation


def are_in_use(people: list[User]) -> bool:
    """Whether most read from windows. Otherwise the test proves nothing."""
    return sum("inbox" in home_page(person).sources for person in people) > len(people) // 2


def is_done() -> bool:
    backfills = Backfill.objects.filter(finished_at=None, cancelled_at=None)
    return not (Delivery.objects.exists() or DeliveryRange.objects.exists() or backfills.exists())
