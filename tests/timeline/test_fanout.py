import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import transaction
from django.utils import timezone

from accounts.levels import actions as levels
from accounts.levels import big_v
from accounts.models import User
from items import actions as items
from items.models import Item
from relations import actions as relations
from relations import followers as followers_of
from relations.followers import FIRST_PART
from storage import connections, deliveries, keys
from storage.connections import FeedsUnavailableError
from tests.support.at_once import at_once, until_one_waits
from tests.support.servers import Valkey, dead
from tests.support.statements import statements
from tests.support.timelines import read, seen, sources
from tests.support.windows import generation
from tests.support.workers import Workers
from timeline import active_fans, backfill, fanout
from timeline.check import differences
from timeline.models import Backfill, Delivery, DeliveryRange

pytestmark = pytest.mark.django_db(transaction=True)

Say = Callable[..., Item]


@pytest.fixture(autouse=True)
def _workers(workers: Workers) -> Workers:
    return workers


def members(feeds: redis.Redis, user: User) -> list[bytes]:
    return [member for member in feeds.zrange(keys.inbox(user.pk), 0, -1) if member[:1].isdigit()]


def materialise(workers: Workers, *readers: User) -> None:
    workers.work()
    for reader in readers:
        read(reader)
    workers.work()


def test_replies_are_delivered_to_nobody(reader: User, say: Say, workers: Workers) -> None:
    root = say(reader)
    workers.work()
    say(reader, reply_to=root)
    assert not Delivery.objects.exists()


def test_a_post_and_its_delivery_are_one_statement(reader: User, say: Say) -> None:
    with statements() as asked:
        item = say(reader)
    (one,) = [statement for statement in asked if "INSERT INTO timeline_delivery" in statement]
    assert "INSERT INTO items_item " in one
    row = Delivery.objects.get()
    assert (row.item_id, row.sender_id) == (item.pk, reader.pk)
    assert row.sweep_at > row.not_before, "the task has its time first"


def test_private_mentions_and_held_posts_are_delivered_to_nobody(reader: User, say: Say, settings: Any) -> None:
    friend = seen()
    items.publish(sender=reader, content={"text": "for you"}, visibility="mentioned", addressed=[friend.username])
    settings.MODERATION_BURST = 1
    assert say(reader).status == "in_review"
    assert not Delivery.objects.exists()


def test_items_for_their_sender_only_go_to_nobody_else(
    reader: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    sender = seen()
    follow(reader, sender)
    materialise(workers, reader, sender)
    item = say(sender, visibility="self")
    workers.work()
    assert members(feeds, reader) == []
    assert members(feeds, sender) == [f"{sender.pk}:{item.pk}".encode()]


def test_dormant_followers_get_nothing(
    reader: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    sender = seen()
    follow(reader, sender)
    materialise(workers, reader)
    User.objects.filter(pk=reader.pk).update(last_seen_at=timezone.now() - timedelta(days=40))
    assert levels.lower_levels() == 1
    assert not feeds.exists(keys.inbox(reader.pk)), "the memory is given back"
    say(sender)
    workers.work()
    assert not feeds.exists(keys.inbox(reader.pk))


@pytest.mark.slow
def test_lowering_a_level_trims(
    reader: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis, settings: Any
) -> None:
    settings.LEVEL_CAPS = {1: 3, 2: 5, 3: 8}
    sender = seen()
    follow(reader, sender)
    published = [say(sender).pk for _ in range(12)][::-1]
    materialise(workers, reader)
    assert len(members(feeds, reader)) == 8
    User.objects.filter(pk=reader.pk).update(last_seen_at=timezone.now() - timedelta(days=3))
    levels.lower_levels()
    assert len(members(feeds, reader)) == 5
    User.objects.filter(pk=reader.pk).update(last_seen_at=timezone.now())
    assert (read(reader, limit=1), sources(reader, limit=1)) == (published[:1], ["inbox"])
    assert read(reader) == published, "the rest comes from PostgreSQL"


@pytest.mark.slow
def test_a_large_audience_is_split_into_ranges(
    follow: Any, say: Say, workers: Workers, feeds: redis.Redis, settings: Any
) -> None:
    settings.FAN_OUT_RANGE = 4
    sender = seen()
    readers = [seen() for _ in range(11)]
    for reader in readers:
        follow(reader, sender)
    materialise(workers, *readers)
    relations.fold_follower_counts()
    item = say(sender)
    assert not fanout.fan_out(item.pk)
    assert DeliveryRange.objects.count() == 3
    assert [name for name, _ in workers.queue].count("timeline.fan_out_range") == 3
    assert not fanout.fan_out(item.pk), "a second attempt splits nothing again"
    assert DeliveryRange.objects.count() == 3
    workers.work()
    assert not Delivery.objects.exists()
    assert all(members(feeds, reader) == [f"{sender.pk}:{item.pk}".encode()] for reader in readers)


@pytest.mark.slow
def test_a_lost_range_is_swept(follow: Any, say: Say, workers: Workers, settings: Any) -> None:
    settings.FAN_OUT_RANGE = 2
    sender = seen()
    for _ in range(5):
        follow(seen(), sender)
    relations.fold_follower_counts()
    item = say(sender)
    fanout.fan_out(item.pk)
    workers.queue.clear()
    Delivery.objects.update(sweep_at=timezone.now())
    assert deliveries.sweep(Delivery, fanout.fan_out) == 1
    workers.work()
    assert not Delivery.objects.exists()


def test_what_was_published_again_is_not_completed_by_the_work_for_the_first_time(
    reader: User, say: Say, workers: Workers
) -> None:
    item = say(reader)
    claim = fanout._claim(item.pk)
    assert claim is not None
    items.delete(item=item)
    items.restore(item=item)
    fanout._fan_out(claim)
    assert Delivery.objects.get().revision != claim.work.revision


def test_items_visible_again_are_delivered_as_soon_as_they_may_be(say: Say, reader: User, workers: Workers) -> None:
    """No worker gets a message. The lag counts from then."""
    item = say(reader)
    workers.work()
    items.delete(item=item)
    items.restore(item=item)
    row = Delivery.objects.get()
    assert row.sweep_at == row.not_before


@pytest.mark.slow
@pytest.mark.sessions
def test_a_claim_that_waits_for_who_publishes_again_takes_nothing(
    say: Say, reader: User, follow: Any, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the item and followers too early."""
    monkeypatch.setattr(fanout, "AGAIN_AFTER", timedelta(0))
    sender = seen()
    item = say(sender)
    items.delete(item=item)
    began = threading.Event()

    def publish_again() -> None:
        with transaction.atomic():
            items.restore(item=item)
            began.set()
            until_one_waits()
            follow(reader, sender)

    def claim() -> bool:
        assert began.wait(30)
        return fanout.fan_out(item.pk)

    assert at_once(publish_again, claim) == [None, False]
    assert Delivery.objects.get().attempts == 0
    materialise(workers, reader)
    assert not Delivery.objects.exists()
    assert read(reader) == [item.pk]


def test_a_small_fan_out_is_two_statements(
    say: Say, reader: User, follow: Any, workers: Workers, feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More followers take one more read."""
    sender, *others = (seen() for _ in range(3))
    for one in (reader, *others):
        follow(one, sender)
    materialise(workers, reader, sender, *others)
    for first, count in ((FIRST_PART, 2), (1, 3)):
        item = say(sender)
        monkeypatch.setattr(fanout, "CLAIM", fanout.CLAIM.replace(f"LIMIT {FIRST_PART}", f"LIMIT {first}"))
        monkeypatch.setattr(followers_of, "FIRST_PART", first)
        with statements() as asked:
            assert fanout.fan_out(item.pk)
        assert len(asked) == count, asked
        for one in (reader, sender, *others):
            assert f"{sender.pk}:{item.pk}".encode() in members(feeds, one)


def test_an_attempt_that_stalled_completes_no_later_delivery(
    reader: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    """The first publication's row is gone."""
    sender = seen()
    follow(reader, sender)
    materialise(workers, reader)
    item = say(sender)
    stalled = fanout._claim(item.pk)
    assert stalled is not None
    workers.work()
    items.delete(item=item)
    assert read(reader) == []
    assert members(feeds, reader) == [], "and forgotten"
    items.restore(item=item)
    fanout._finish(stalled.work)
    assert Delivery.objects.exists()
    assert read(reader) == [item.pk]


@pytest.mark.slow
def test_outages_in_ranges_take_back_no_attempt(
    follow: Any, say: Say, workers: Workers, settings: Any, feeds_server: Valkey
) -> None:
    """A range counts no attempt before its work."""
    settings.FAN_OUT_RANGE = 2
    sender = seen()
    for _ in range(9):
        follow(seen(), sender)
    relations.fold_follower_counts()
    item = say(sender)
    fanout.fan_out(item.pk)
    assert Delivery.objects.get().attempts == 1
    with dead(feeds_server):
        for part in DeliveryRange.objects.all():
            connections.feeds_breaker.reset()
            assert not fanout.fan_out_range(part.pk)
    assert Delivery.objects.get().attempts == 1
    connections.feeds_breaker.reset()
    workers.work()
    assert not Delivery.objects.exists()


def test_a_delivery_of_something_deleted_is_just_completed(
    reader: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    sender = seen()
    follow(reader, sender)
    materialise(workers, reader)
    item = say(sender)
    items.delete(item=item)
    workers.work()
    assert not Delivery.objects.exists()
    assert members(feeds, reader) == []


def test_a_poison_item_is_parked_and_read_all_the_same(
    reader: User, follow: Any, say: Say, workers: Workers, monkeypatch: pytest.MonkeyPatch, feeds: redis.Redis
) -> None:
    sender = seen(is_big_v=True)
    follow(reader, sender)
    materialise(workers, reader)
    feeds.set(keys.outbox(sender.pk), "no window at all")  # every delivery to it fails
    item = say(sender)
    for _ in range(10):
        fanout.fan_out(item.pk)
    row = Delivery.objects.get()
    assert (row.attempts, row.parked_at is not None) == (5, True)
    assert "WRONGTYPE" in row.last_error
    assert read(reader) == [item.pk]
    assert deliveries.sweep(Delivery, fanout.fan_out) == 0
    feeds.delete(keys.outbox(sender.pk))
    assert deliveries.retry(Delivery.objects.all(), fanout.fan_out) == 1
    workers.work()
    assert not Delivery.objects.exists()
    assert read(reader) == [item.pk]


def test_attempts_that_died_count(reader: User, say: Say, workers: Workers) -> None:
    item = say(reader)
    for _ in range(5):
        assert fanout._claim(item.pk) is not None  # and the worker is killed
    assert not fanout.fan_out(item.pk)
    assert Delivery.objects.get().parked_at is not None


def test_an_outage_of_redis_parks_nothing(reader: User, say: Say, workers: Workers, feeds_server: Valkey) -> None:
    with dead(feeds_server):
        item = say(reader)
        for attempt in range(10):
            if attempt % 2:  # else the breaker skips it
                connections.feeds_breaker.reset()
            assert not fanout.fan_out(item.pk)
        row = Delivery.objects.get()
        assert (row.attempts, row.parked_at) == (0, None)
        assert read(reader) == [item.pk]
    connections.feeds_breaker.reset()
    assert fanout.fan_out(item.pk)


def test_sweeping_backs_off(reader: User, say: Say, workers: Workers) -> None:
    say(reader)
    assert deliveries.sweep(Delivery, fanout.fan_out) == 0, "the message of the publishing has its time first"
    waits = []
    for _ in range(4):
        now = timezone.now()
        Delivery.objects.update(sweep_at=now)
        assert deliveries.sweep(Delivery, fanout.fan_out) == 1
        waits.append((Delivery.objects.get().sweep_at - now).total_seconds())
    assert [round(wait / 10) for wait in waits] == [1, 2, 4, 8]


# --- Big-V -----------------------------------------------------------------------------------------------
@pytest.fixture
def star(follow: Any, workers: Workers) -> User:
    """Three followers of level 3, two of level 2, one dormant."""
    star = seen()
    big_v.make_big_v(user=star)
    for level in (3, 3, 3, 2, 2, 0):
        follow(seen(level=level), star)
    workers.work()
    return star


def followers(star: User, level: int) -> list[User]:
    return list(User.objects.filter(follows__followee=star, level=level))


@pytest.mark.slow
def test_a_big_vs_items_are_pushed_to_active_followers_only(
    star: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    materialise(workers, *followers(star, 3), *followers(star, 2))
    for _ in range(2):  # the first finds no set of active fans and builds it
        item = say(star)
        workers.work()
        member = f"{star.pk}:{item.pk}".encode()
        assert all(member in members(feeds, fan) for fan in followers(star, 3))
        assert not any(member in members(feeds, fan) for fan in followers(star, 2))
    assert sum(active_fans.sizes(star.pk, generation()) or []) == 3


@pytest.mark.slow
def test_a_set_that_is_gone_is_built_by_who_needs_it(
    star: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    materialise(workers, *followers(star, 3))
    item = say(star)
    workers.queue.clear()
    active_fans.drop(star.pk)
    assert fanout.fan_out(item.pk)
    assert workers.queue == [], "nobody else has to"
    assert all(f"{star.pk}:{item.pk}".encode() in members(feeds, fan) for fan in followers(star, 3))
    assert sum(active_fans.sizes(star.pk, generation()) or []) == 3


def test_a_fan_who_becomes_active_is_known_before_their_inbox_is_used(
    star: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    active_fans.build(star.pk)
    fan = followers(star, 0)[0]
    levels.touch([fan.pk])
    workers.work()
    assert sources(fan) == ["inbox"]
    item = say(star)
    workers.work()
    assert members(feeds, fan) == [f"{star.pk}:{item.pk}".encode()]


def test_a_new_follower_is_known_before_their_inbox_is_used(
    star: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    active_fans.build(star.pk)
    fan = seen()
    follow(fan, star)
    read(fan)
    workers.work()
    item = say(star)
    workers.work()
    assert members(feeds, fan) == [f"{star.pk}:{item.pk}".encode()]
    assert read(fan) == [item.pk]


@pytest.mark.slow
def test_a_set_that_lost_a_shard_is_not_believed(star: User, say: Say, workers: Workers, feeds: redis.Redis) -> None:
    materialise(workers, *followers(star, 3))
    active_fans.build(star.pk)
    fan = followers(star, 3)[0]
    feeds.delete(keys.active_fans(star.pk, active_fans.shard_of(fan.pk)))
    active_fans.add(fan.pk)  # some member, but not the mark
    assert active_fans.sizes(star.pk, generation()) is None
    say(star)
    workers.work()
    assert all(len(members(feeds, one)) == 1 for one in followers(star, 3))
    assert active_fans.sizes(star.pk, generation()) is not None, "and it is built again"


@pytest.mark.slow
def test_many_active_fans_are_served_by_shards(
    star: User, say: Say, workers: Workers, feeds: redis.Redis, settings: Any
) -> None:
    settings.FAN_OUT_RANGE = 2
    materialise(workers, *followers(star, 3), *followers(star, 2))
    active_fans.build(star.pk)
    item = say(star)
    fanout.fan_out(item.pk)
    assert DeliveryRange.objects.filter(shard__isnull=False).count() == settings.ACTIVE_FANS_SHARDS
    lost, *_ = followers(star, 3)
    feeds.delete(keys.active_fans(star.pk, active_fans.shard_of(lost.pk)))
    with statements() as asked:
        workers.work()
    assert not any("WITH part" in one and "UPDATE" not in one for one in asked), "all followers are looked through"
    assert not Delivery.objects.exists()
    assert all(len(members(feeds, one)) == 1 for one in followers(star, 3))
    assert not any(members(feeds, one) for one in followers(star, 2))


@pytest.mark.slow
def test_a_demotion_fills_the_inboxes_before_the_flag_falls(
    star: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    fans = followers(star, 2)
    materialise(workers, *fans)
    before = say(star)
    workers.work()
    assert big_v.demote(user=star)
    during = say(star)
    fanout.fan_out(during.pk)
    assert all(members(feeds, fan) == [f"{star.pk}:{during.pk}".encode()] for fan in fans)
    assert User.objects.get(pk=star.pk).is_big_v, "readers still pull"
    assert all(read(fan) == [during.pk, before.pk] for fan in fans)
    workers.work()
    star.refresh_from_db()
    assert not star.is_big_v
    job = Backfill.objects.get()
    assert (job.done, job.finished_at is not None) == (job.followers, True)
    assert all(len(members(feeds, fan)) == 2 for fan in fans)
    assert all((read(fan), sources(fan)) == ([during.pk, before.pk], ["inbox"]) for fan in fans)


@pytest.mark.slow
def test_a_demotion_of_somebody_who_said_more_than_an_outbox_holds(
    star: User, follow: Any, say: Say, workers: Workers, settings: Any
) -> None:
    settings.OUTBOX_CAP = 3
    fan, friend = followers(star, 2)[0], seen()
    follow(fan, friend)
    say(friend)
    materialise(workers, fan)
    for _ in range(6):
        say(star)
    workers.work()
    big_v.demote(user=star)
    workers.work()
    ids = list(Item.objects.order_by("-id").values_list("pk", flat=True))
    assert read(fan) == ids
    assert list(differences([fan.pk])) == []


def test_making_big_v_again_cancels_the_demotion(star: User, workers: Workers) -> None:
    big_v.demote(user=star)
    big_v.make_big_v(user=star)
    workers.work()
    star.refresh_from_db()
    assert star.is_big_v
    assert Backfill.objects.get().cancelled_at is not None


@pytest.mark.slow
def test_one_worker_runs_a_backfill(star: User, say: Say, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "PART", 2)
    materialise(workers, *followers(star, 2))
    big_v.demote(user=star)
    job = Backfill.objects.get()
    pulls = []

    def delivered_again(*args: Any, **kwargs: Any) -> Any:
        pulls.append(args)
        assert not backfill.run(job.pk), "another has it"
        return pull(*args, **kwargs)

    pull = backfill.pull
    monkeypatch.setattr(backfill, "pull", delivered_again)
    assert backfill.run(job.pk)
    assert len(pulls) == -(-job.followers // 2)
    assert not User.objects.get(pk=star.pk).is_big_v
    assert not backfill.run(job.pk), "it is done"


def test_a_worker_that_was_too_slow_leaves_a_backfill_to_its_successor(
    star: User, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "PART", 2)
    big_v.demote(user=star)
    job = Backfill.objects.get()

    def slow(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(backfill, "pull", pull)
        Backfill.objects.update(leased_until=timezone.now())
        assert backfill.run(job.pk), "the successor"
        return pull(*args, **kwargs)

    pull = backfill.pull
    monkeypatch.setattr(backfill, "pull", slow)
    assert not backfill.run(job.pk)
    found = Backfill.objects.get()
    assert (found.done, found.lease, found.finished_at is not None) == (found.followers, None, True)


@pytest.mark.slow
def test_every_key_of_active_fans_expires(
    star: User, say: Say, workers: Workers, feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fan in followers(star, 3):
        active_fans.add(fan.pk)
    assert feeds.keys("fans:active:*") == [], "what is not complete need not hold anybody"
    with monkeypatch.context() as dying:
        dying.setattr(active_fans, "fans_by_shard", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            active_fans.build(star.pk)
    assert active_fans.sizes(star.pk, generation()) is None
    for state in ("begun", "complete"):
        if state == "complete":
            assert active_fans.build(star.pk)
        for fan in followers(star, 3):
            active_fans.add(fan.pk)
        found = feeds.keys("fans:active:*")
        assert found
        assert all(0 < feeds.ttl(key) <= active_fans.TTL_SECONDS for key in found), state


@pytest.mark.slow
def test_a_backfill_that_lost_its_worker_goes_on_where_it_was(
    star: User, say: Say, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "PART", 2)
    materialise(workers, *followers(star, 2))
    big_v.demote(user=star)
    workers.queue.clear()
    job = Backfill.objects.get()

    def dies(*args: Any, **kwargs: Any) -> Any:
        if Backfill.objects.get().done:
            raise FeedsUnavailableError("killed")
        return pull(*args, **kwargs)

    pull = backfill.pull
    monkeypatch.setattr(backfill, "pull", dies)
    assert not backfill.run(job.pk)
    assert Backfill.objects.get().done == 2
    monkeypatch.setattr(backfill, "pull", pull)
    Backfill.objects.update(sweep_at=timezone.now())
    assert backfill.sweep() == 1
    workers.work()
    assert not User.objects.get(pk=star.pk).is_big_v


@pytest.mark.slow
def test_a_window_that_was_built_amid_many_deliveries_is_no_longer_than_its_cap(
    reader: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis, settings: Any
) -> None:
    settings.LEVEL_CAPS = {3: 5}
    sender = seen()
    follow(reader, sender)
    for _ in range(10):
        say(sender)
    read(reader)  # begins
    building = [message for message in workers.queue if message[0] == "timeline.materialise_inbox"]
    workers.queue = [message for message in workers.queue if message not in building]
    for _ in range(10):
        say(sender)
    workers.work()
    assert len(members(feeds, reader)) == 20
    workers.queue = building
    workers.work()
    assert len(members(feeds, reader)) == 5
    assert list(differences([reader.pk])) == []
