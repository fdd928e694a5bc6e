from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.db import IntegrityError

from accounts.levels import big_v, policy
from accounts.models import Policy, User
from items.models import Item
from relations import actions as relations
from runtime import metrics
from storage import keys
from storage.connections import fetch
from storage.window import BUILD_SECONDS
from tests.support.timelines import read, seen, sources
from tests.support.workers import Workers
from timeline import active_fans, fanout, inbox
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


@pytest.mark.slow
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
    """The first inbox lacks what was pulled in between."""
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


@pytest.mark.slow
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
    for _ in range(2):  # the policy changed, then the inbox is missing
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_without_a_generation_pages_come_from_postgresql(
    weekly: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    """This lasts after a promotion until a worker notices."""
    Policy.objects.update(drawn_on=77)
    assert policy.current().generation is None
    item = say(star())
    workers.work()
    assert not Delivery.objects.exists()
    assert (read(weekly), sources(weekly)) == ([item.pk], ["sql"])
    assert policy.renew_after_failover()
    assert not policy.renew_after_failover()
    assert is_exact(weekly)
    workers.work()
    read(weekly)
    workers.work()
    assert sources(weekly) == ["inbox", "outbox"]


# --- Readers with few followees --------------------------------------------------------------------------
@pytest.fixture
def pair(follow: Any, workers: Workers) -> tuple[User, User]:
    """One reader has two followees, the other one."""
    many, few, second = seen(level=3), seen(level=3), seen(username="second")
    follow(many, second)
    for reader in (many, few):
        follow(reader, seen(username="star", is_big_v=True) if reader is many else star())
        read(reader)
    workers.work()
    return many, few


def has_window(user: User, feeds: redis.Redis) -> bool:
    return bool(feeds.exists(keys.inbox(user.pk)))


@pytest.mark.slow
def test_fan_out_and_builders_pass_readers_without_an_inbox(
    pair: tuple[User, User], say: Say, workers: Workers, feeds: redis.Redis, inbox_from: InboxFrom
) -> None:
    many, few = pair
    inbox_from(2)
    feeds.flushall()
    read(many), read(few)
    workers.work()
    assert (has_window(many, feeds), has_window(few, feeds)) == (True, False)
    told = metrics.fanout_entries._value.get()
    say(star())
    workers.work()
    assert active_fans.members(star().pk, list(range(16)), policy.current().generation) == [many.pk]
    say(User.objects.get(username="second"))
    workers.work()
    assert metrics.fanout_entries._value.get() == told + 2, "one window each"
    say(few)
    workers.work()
    assert not inbox.deepen_or_build(few.pk)
    assert not has_window(few, feeds)
    big_v.demote(user=star())
    workers.work()
    assert not star().is_big_v
    assert not has_window(few, feeds)
    assert is_exact(many)
    assert is_exact(few)
    assert sources(many) == ["inbox"]


def test_a_construction_under_way_ends_where_there_is_to_be_no_inbox(
    pair: tuple[User, User], workers: Workers, feeds: redis.Redis, inbox_from: InboxFrom
) -> None:
    few = pair[1]
    feeds.flushall()
    read(few)
    assert has_window(few, feeds), "begun"
    inbox_from(2)
    workers.work()
    assert feeds.zscore(keys.inbox(few.pk), "floor") == float("inf")
    assert 0 < feeds.ttl(keys.inbox(few.pk)) <= BUILD_SECONDS


@pytest.mark.slow
def test_remains_of_an_inbox_are_no_difference_and_not_kept_alive(
    pair: tuple[User, User], say: Say, workers: Workers, feeds: redis.Redis, inbox_from: InboxFrom
) -> None:
    many = pair[0]
    inbox_from(2)
    read(many)
    workers.work()
    feeds.expire(keys.inbox(many.pk), 1000)
    relations.unfollow(follower=many, followee=User.objects.get(username="second"))
    say(star())
    workers.work()
    assert is_exact(many)
    assert 0 < feeds.ttl(keys.inbox(many.pk)) <= 1000
    assert list(differences([many.pk])) == []


@pytest.mark.slow
def test_followees_come_and_go_amid_a_walk(
    pair: tuple[User, User], say: Say, workers: Workers, inbox_from: InboxFrom
) -> None:
    few, second = pair[1], User.objects.get(username="second")
    inbox_from(2)
    said = [say(sender).pk for _ in range(12) for sender in (star(), second)]
    workers.work()
    crossings = [relations.follow, relations.unfollow] * 3
    walked: list[int] = []
    expected: list[int] = []
    below = None
    for number, cross in enumerate(crossings):
        cross(follower=few, followee=second)
        if number % 3:
            workers.work()
        page = read(few, last_id=below, limit=3)
        expected += [item_id for item_id in home_ids(few.pk) if below is None or item_id < below][:3]
        walked += page
        below = page[-1]
        said.append(say(star()).pk)
        say(second)
        if number % 2:
            workers.work()
    assert walked == expected
    assert len(set(walked)) == len(walked) == 18
    assert is_exact(few)


@pytest.mark.slow
@pytest.mark.parametrize("values", [(0, 2), (2, 0), (2, 0, 2), (0, 2, 0)])
@pytest.mark.parametrize("is_big_v", [True, False])
def test_a_fan_out_claimed_before_a_change_and_served_after_it(
    pair: tuple[User, User],
    say: Say,
    workers: Workers,
    inbox_from: InboxFrom,
    values: tuple[int, ...],
    is_big_v: bool,
) -> None:
    policy.change(inbox_from=values[0])
    User.objects.filter(pk=star().pk).update(is_big_v=is_big_v)
    for reader in pair:
        read(reader)
    workers.work()
    item = say(star())
    workers.queue.clear()
    claim = fanout._claim(item.pk)
    for value in values[1:]:
        inbox_from(value)
        for reader in pair:
            assert read(reader)[0] == item.pk
        workers.work()
    assert claim is not None
    assert fanout._fan_out(claim)
    assert not Delivery.objects.exists()
    for reader in pair:
        assert read(reader)[0] == item.pk
        assert is_exact(reader)
    assert list(differences([reader.pk for reader in pair])) == []


@pytest.mark.slow
def test_a_follow_between_claim_and_service(
    pair: tuple[User, User], say: Say, workers: Workers, inbox_from: InboxFrom
) -> None:
    """The inbox starts after the fan-out passed the reader."""
    few, second = pair[1], User.objects.get(username="second")
    inbox_from(2)
    item = say(second)
    later = say(star())
    workers.queue.clear()
    claims = [fanout._claim(each.pk) for each in (item, later)]
    relations.follow(follower=few, followee=second)
    assert read(few)[:2] == [later.pk, item.pk]
    workers.work()
    for claim in claims:
        assert claim is not None
        assert fanout._fan_out(claim)
    assert is_exact(few)
    assert "inbox" in sources(few)


# --- Two versions side by side ---------------------------------------------------------------------------
BEFORE_GENERATION = "SELECT p.generation # 2 FROM accounts_policy p WHERE p.timeline = feedsite_timeline()"
BEFORE_STATEMENTS = {
    "change": """
        UPDATE accounts_policy SET push_level = 2, generation = feedsite_draw(), timeline = feedsite_timeline()
        WHERE push_level <> 2 RETURNING id
    """,
    "renew": "UPDATE accounts_policy SET generation = feedsite_draw(), timeline = feedsite_timeline() RETURNING id",
    "follow": """
        INSERT INTO accounts_policy AS p (id, push_level) VALUES (1, 3)
        ON CONFLICT (id) DO UPDATE SET generation = feedsite_draw(), timeline = feedsite_timeline()
        WHERE p.timeline <> feedsite_timeline() RETURNING p.id
    """,
}
"""Statements of the version before `inbox_from`."""


def test_the_version_before_uses_no_window_while_readers_are_passed(inbox_from: InboxFrom) -> None:
    shared = fetch(BEFORE_GENERATION)
    assert shared
    assert shared[0][0] is not None
    inbox_from(2)
    assert fetch(BEFORE_GENERATION) == []
    assert policy.current().generation is not None
    policy.renew_generation()
    assert fetch(BEFORE_GENERATION) == []
    inbox_from(0)
    assert fetch(BEFORE_GENERATION) not in ([], shared)


@pytest.mark.parametrize("name", ["change", "renew"])
def test_a_command_of_the_version_before_is_refused_while_readers_are_passed(inbox_from: InboxFrom, name: str) -> None:
    inbox_from(2)
    with pytest.raises(IntegrityError, match="policy_for_older_versions"):
        fetch(BEFORE_STATEMENTS[name])
    inbox_from(0)
    before = policy.current()
    assert fetch(BEFORE_STATEMENTS[name])
    assert policy.current().generation not in (None, before.generation)


@pytest.mark.parametrize("value", [0, 2])
def test_the_version_before_notices_a_failover(value: int) -> None:
    policy.change(inbox_from=value)
    Policy.objects.update(drawn_on=77)
    Policy.objects.filter(inbox_from=0).update(timeline=77)
    assert bool(fetch(BEFORE_STATEMENTS["follow"])) == (value == 0)
    assert policy.current().generation is None
    assert policy.renew_after_failover()
    assert policy.current().generation is not None
    assert bool(fetch(BEFORE_GENERATION)) == (value == 0)
    policy.change(inbox_from=0)
