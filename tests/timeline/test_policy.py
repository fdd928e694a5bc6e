"""A change of the policy loses no item, whatever windows and sets of fans were built under the old one."""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from accounts import policy
from accounts.models import Policy, User
from feedsite import keys
from items.models import Item
from relations import actions as relations
from tests.timeline.conftest import Workers, read, seen, sources
from timeline import active_fans, fanout
from timeline.check import differences
from timeline.models import Delivery, DeliveryRange
from timeline.oracle import home_ids

pytestmark = pytest.mark.django_db(transaction=True)

Say = Callable[..., Item]
Level = Callable[[int], None]
InboxFrom = Callable[[int], None]


@pytest.fixture(autouse=True)
def _workers(workers: Workers) -> Workers:
    return workers


@pytest.fixture
def weekly(follow: Any, workers: Workers) -> User:
    """Somebody of level 2 who follows a big-V and has read their home."""
    reader = seen(level=2)
    follow(reader, seen(username="star", is_big_v=True))
    read(reader)
    workers.work()
    read(reader)
    workers.work()
    return reader


def star() -> User:
    return User.objects.get(username="star")


def is_exact(reader: User) -> bool:
    return read(reader, limit=50) == home_ids(reader.pk)


@pytest.mark.parametrize("levels", [(2,), (1,), (4,), (2, 3), (2, 3, 2), (4, 2)])
def test_a_change_of_the_push_level_loses_nothing(
    weekly: User, say: Say, workers: Workers, push_level: Level, levels: tuple[int, ...]
) -> None:
    say(star())
    workers.work()
    for level in levels:
        push_level(level)
        assert is_exact(weekly)
        workers.work()
        for _ in range(2):
            say(star())
            workers.work()
            assert is_exact(weekly)
    read(weekly)
    workers.work()
    assert "inbox" in sources(weekly), "windows are built for the new policy"
    assert list(differences([weekly.pk, star().pk])) == []


def test_a_window_is_not_rebuilt_by_a_page_that_began_under_the_old_policy(
    weekly: User, say: Say, workers: Workers, push_level: Level
) -> None:
    """Level 3, 2 and 3 again: the inbox of the first time lacks what was pulled in between."""
    push_level(2)
    read(weekly)
    workers.work()
    item = say(star())
    workers.work()
    push_level(3)
    say(star())
    workers.work()
    push_level(2)
    assert item.pk in read(weekly)
    assert is_exact(weekly)


def test_readers_with_few_followees_are_served_by_one_pull(
    weekly: User, say: Say, workers: Workers, follow: Any, inbox_from: InboxFrom
) -> None:
    assert sources(weekly) == ["inbox", "outbox"]
    inbox_from(2)
    item = say(star())
    workers.work()
    assert (read(weekly), sources(weekly)) == ([item.pk], ["sql"])
    assert workers.queue == [], "no page asks for an inbox"
    follow(weekly, seen(username="second"))
    read(weekly)
    workers.work()
    assert sources(weekly) == ["inbox", "outbox"]
    assert is_exact(weekly)
    relations.unfollow(follower=weekly, followee=User.objects.get(username="second"))
    assert sources(weekly) == ["sql"]
    inbox_from(0)
    read(weekly)
    workers.work()
    assert sources(weekly) == ["inbox", "outbox"]
    assert is_exact(weekly)


def test_processes_that_were_started_with_another_value_make_no_difference(
    weekly: User, say: Say, workers: Workers, settings: Any
) -> None:
    say(star())
    workers.work()
    settings.BIG_V_PUSH_LEVEL = 2  # in a process that was deployed before the others
    assert is_exact(weekly)
    assert sources(weekly) == ["inbox", "outbox"]


def test_a_set_of_fans_of_another_policy_is_built_anew(
    weekly: User, say: Say, workers: Workers, push_level: Level, feeds: redis.Redis
) -> None:
    say(star())
    workers.work()
    assert active_fans.sizes(star().pk, policy.current().generation) is not None
    push_level(2)
    read(weekly)
    workers.work()
    item = say(star())
    workers.work()
    assert feeds.zscore(keys.inbox(weekly.pk), f"{star().pk}:{item.pk}") == item.pk


@pytest.mark.parametrize("levels", [(3, 2), (2, 3)])
def test_a_fan_out_that_was_split_under_another_policy(
    weekly: User, say: Say, workers: Workers, push_level: Level, settings: Any, levels: tuple[int, int]
) -> None:
    settings.FAN_OUT_RANGE = 1
    if levels[0] != 3:
        push_level(levels[0])
    for _ in range(3):
        relations.follow(follower=seen(), followee=star())
    relations.fold_follower_counts()
    read(weekly)
    workers.work()
    item = say(star())
    fanout.fan_out(item.pk)
    assert DeliveryRange.objects.exists()
    push_level(levels[1])
    assert is_exact(weekly)
    workers.work()
    assert not Delivery.objects.exists()
    assert is_exact(weekly)
    assert list(differences([weekly.pk])) == []


def test_without_a_generation_pages_come_from_postgresql(
    weekly: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    """After a promotion of a standby, until a worker has noticed it."""
    Policy.objects.update(drawn_on=77)
    assert policy.current().generation is None
    item = say(star())
    workers.work()
    assert not Delivery.objects.exists()
    assert (read(weekly), sources(weekly)) == ([item.pk], ["sql"])
    assert policy.follow_timeline()
    assert not policy.follow_timeline()
    assert is_exact(weekly)
    workers.work()
    read(weekly)
    workers.work()
    assert sources(weekly) == ["inbox", "outbox"]
