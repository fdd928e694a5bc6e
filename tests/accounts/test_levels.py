import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts import tasks
from accounts.levels.actions import lower_levels, touch
from accounts.models import Level, User
from accounts.signals import levels_lowered, levels_raised
from tests.support.at_once import at_once
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)

News = list[dict[int, list[int]]]
DAY = timedelta(days=1)


def seen(ago: timedelta | None, **fields: Any) -> User:
    return UserFactory.create(last_seen_at=None if ago is None else timezone.now() - ago, **fields)


@pytest.fixture
def news() -> Iterator[News]:
    heard: News = []

    def hear(user_ids_by_level: dict[int, list[int]], **kwargs: Any) -> None:
        assert not connection.in_atomic_block
        heard.append({level: sorted(users) for level, users in user_ids_by_level.items()})

    levels_lowered.connect(hear)
    yield heard
    levels_lowered.disconnect(hear)


@pytest.mark.parametrize("level", [Level.DORMANT, Level.MONTHLY, Level.WEEKLY])
@pytest.mark.parametrize("ago", [None, timedelta(minutes=1), timedelta(days=3)])
def test_being_seen_raises_to_the_top(level: Level, ago: timedelta | None) -> None:
    """A dormant user's window took no deliveries, so its epoch advances. Other windows stay."""
    user, other = seen(ago, level=level), seen(None, level=level)
    before, epochs = timezone.now(), (user.window_epoch, other.window_epoch)
    assert touch([user.pk]) == [user.pk]
    user.refresh_from_db()
    assert user.level == Level.DAILY
    assert (user.window_epoch == epochs[0]) == (level != Level.DORMANT)
    assert user.last_seen_at is not None
    assert abs(user.last_seen_at - before) < timedelta(minutes=1)
    other.refresh_from_db()
    assert (other.level, other.window_epoch, other.last_seen_at) == (level, epochs[1], None)


def test_being_seen_is_written_once_in_the_interval(settings: Any) -> None:
    user = seen(settings.LAST_SEEN_INTERVAL - timedelta(minutes=1))
    assert touch([user.pk]) == []
    assert User.objects.get(pk=user.pk).last_seen_at == user.last_seen_at

    user = seen(settings.LAST_SEEN_INTERVAL + timedelta(seconds=1))
    assert touch([user.pk]) == []
    after = User.objects.get(pk=user.pk)
    assert after.last_seen_at is not None
    assert timezone.now() - after.last_seen_at < timedelta(minutes=1)
    assert (after.level, after.window_epoch) == (Level.DAILY, user.window_epoch)


def test_unknown_and_suspended_users_are_not_noted_as_seen() -> None:
    assert touch([12345]) == []
    suspended = seen(None, is_active=False, level=Level.DORMANT)
    assert touch([suspended.pk]) == []


@pytest.mark.slow
@committed
def test_raised_levels_are_announced_after_the_commit() -> None:
    heard: list[list[int]] = []

    def hear(user_ids: list[int], **kwargs: Any) -> None:
        assert not connection.in_atomic_block
        heard.append(user_ids)

    levels_raised.connect(hear)
    try:
        users = [seen(2 * DAY, level=level).pk for level in (0, 1, 2, 3)]
        assert touch(users) == users[:3]
        with transaction.atomic():
            User.objects.filter(pk__in=users).update(level=1)
            assert touch(users[3:]) == users[3:]
            transaction.set_rollback(True)
    finally:
        levels_raised.disconnect(hear)
    assert heard == [users[:3]]


@pytest.mark.slow
@committed
def test_two_requests_at_once_raise_once() -> None:
    for _ in range(5):
        user = seen(None, level=Level.DORMANT)
        raised = at_once(*[lambda user=user: touch([user.pk])] * 4)
        user.refresh_from_db()
        assert user.level == Level.DAILY
        assert sorted(raised) == [[], [], [], [user.pk]]


MINUTE = timedelta(minutes=1)
"""Margin for a slow machine."""


@pytest.mark.parametrize(
    ("level", "ago", "lowered"),
    [
        (3, timedelta(0), 3),
        (3, DAY - MINUTE, 3),
        (3, DAY + MINUTE, 2),
        (3, 7 * DAY - MINUTE, 2),
        (3, 7 * DAY + MINUTE, 1),
        (3, 30 * DAY - MINUTE, 1),
        (3, 30 * DAY + MINUTE, 0),
        (2, DAY + MINUTE, 2),
        (2, 7 * DAY + MINUTE, 1),
        (2, 31 * DAY, 0),
        (1, 29 * DAY, 1),
        (1, 30 * DAY + MINUTE, 0),
        (0, timedelta(0), 0),
        (0, 400 * DAY, 0),
        (1, timedelta(0), 1),
    ],
)
@pytest.mark.parametrize("ever_seen", [True, False])
def test_ages_decide(level: int, ago: timedelta, lowered: int, ever_seen: bool) -> None:
    """Who was never seen counts as seen when joining. Nobody rises."""
    user = seen(ago if ever_seen else None, level=level, date_joined=timezone.now() - (40 * DAY if ever_seen else ago))
    epoch, pushes = user.window_epoch, user.push_generation
    assert lower_levels() == (level != lowered)
    user.refresh_from_db()
    assert (user.level, user.window_epoch) == (lowered, epoch)
    assert user.push_generation == pushes + (level != lowered)


@committed
def test_batches_are_announced_after_their_commit(news: News) -> None:
    weekly = [seen(2 * DAY).pk for _ in range(5)]
    dormant = [seen(99 * DAY, level=1).pk for _ in range(2)]
    seen(timedelta(0))
    assert lower_levels(batch=2) == 7
    assert news == [{2: weekly[:2]}, {2: weekly[2:4]}, {2: weekly[4:]}, {0: dormant}]
    assert lower_levels(batch=2) == 0
    assert len(news) == 4


@committed
def test_a_batch_that_does_not_commit_is_not_announced(news: News) -> None:
    user = seen(2 * DAY)
    with transaction.atomic():
        assert lower_levels() == 1
        transaction.set_rollback(True)
    assert news == []
    assert User.objects.get(pk=user.pk).level == Level.DAILY


@committed
def test_users_being_changed_wait_for_the_next_time() -> None:
    busy, idle = seen(2 * DAY), seen(2 * DAY)
    locked, done = threading.Event(), threading.Event()

    def change() -> None:
        with transaction.atomic():
            User.objects.select_for_update().get(pk=busy.pk)
            locked.set()
            assert done.wait(30)

    def lower() -> int:
        assert locked.wait(30)
        try:
            return lower_levels()
        finally:
            done.set()

    assert at_once(change, lower) == [None, 1]
    assert User.objects.get(pk=idle.pk).level == Level.WEEKLY
    assert User.objects.get(pk=busy.pk).level == Level.DAILY
    tasks.lower_levels()
    assert User.objects.get(pk=busy.pk).level == Level.WEEKLY


@pytest.mark.slow
@committed
def test_lowering_and_being_seen_at_once_ends_at_the_top() -> None:
    for _ in range(5):
        user = seen(2 * DAY)
        before = user.push_generation
        raised, lowered = at_once(lambda user=user: touch([user.pk]), lower_levels)
        user.refresh_from_db()
        assert user.level == Level.DAILY
        # The generation rises only if the level had been lowered.
        assert len(raised) == lowered
        assert user.push_generation == before + lowered
