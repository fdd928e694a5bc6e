from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.utils import timezone

from accounts.levels import actions as levels
from accounts.levels import big_v
from accounts.levels.actions import touch
from accounts.models import User
from community import demo
from items import actions as items
from items.models import Item
from relations import actions as relations
from storage import keys
from storage.connections import pipelined
from storage.window import BUILD_SECONDS, Window
from tests.support.statements import statements
from tests.support.timelines import TASKS, read, seen, sources
from tests.support.windows import epoch_of
from tests.support.workers import Workers
from timeline import active_fans, inbox, pull
from timeline.check import differences
from timeline.inbox import Inbox
from timeline.models import Delivery
from timeline.oracle import home_ids

pytestmark = pytest.mark.django_db(transaction=True)

Say = Callable[..., Item]
DAYS = {1: 20, 2: 3}


@pytest.fixture
def star(workers: Workers) -> User:
    user = seen()
    big_v.make_big_v(user=user)
    workers.work()
    return user


@pytest.fixture
def friend() -> User:
    return seen()


@pytest.fixture
def reader(star: User, friend: User, follow: Any, workers: Workers, settings: Any) -> User:
    """Seen within a day, and takes the star's pushes."""
    settings.LEVEL_CAPS = {1: 3, 2: 5, 3: 50}
    user = seen()
    follow(user, star)
    follow(user, friend)
    read(user)
    workers.work()
    return user


def leave(user: User, level: int) -> None:
    User.objects.filter(pk=user.pk).update(last_seen_at=timezone.now() - timedelta(days=DAYS[level]))
    levels.lower_levels()
    assert User.objects.get(pk=user.pk).level == level


def window(client: redis.Redis, user: User) -> Any:
    reply = pipelined(client, [Inbox(user.pk).read_command(2**53, 100)])[0]
    return Window.slice(reply, 100)


def exact(user: User) -> None:
    walked: list[int] = []
    while True:
        page = read(user, last_id=walked[-1] if walked else None, limit=4)
        walked += page
        if len(page) < 4:
            break
    assert walked == home_ids(user.pk)
    assert list(differences([user.pk])) == []


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2])
def test_a_returning_reader_reads_what_was_kept(
    level: int, reader: User, star: User, friend: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    epoch = epoch_of(reader.pk)
    leave(reader, level)
    published = [say(sender).pk for sender in (star, friend, star)][::-1]
    workers.work()
    assert keys.inbox(reader.pk) in str(feeds.keys("inbox:*"))
    assert f"{star.pk}:{published[0]}".encode() not in feeds.zrange(keys.inbox(reader.pk), 0, -1), "it was not pushed"
    assert read(reader, limit=3) == published
    assert sources(reader, limit=2) == ["inbox", "outbox"]

    assert touch([reader.pk]) == [reader.pk]
    assert epoch_of(reader.pk) == epoch
    assert sources(reader, limit=2) == ["inbox", "outbox"], "the level has risen, the window not yet"
    workers.work()
    assert sources(reader, limit=2) == ["inbox"]
    assert window(feeds, reader).pushes == User.objects.get(pk=reader.pk).push_generation
    exact(reader)
    later = say(star)
    workers.work()
    assert feeds.zscore(keys.inbox(reader.pk), f"{star.pk}:{later.pk}") == later.pk
    exact(reader)


def test_the_first_page_of_a_dormant_reader_is_one_pull(
    reader: User, friend: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    say(friend)
    workers.work()
    User.objects.filter(pk=reader.pk).update(level=0, last_seen_at=None)
    feeds.flushall()
    user = User.objects.get(pk=reader.pk)
    with statements() as asked:
        assert sources(user) == ["sql"]
    assert len([one for one in asked if "SELECT" in one]) <= 3, "the test's own look at the reader among them"
    assert not workers.queue
    assert touch([reader.pk]) == [reader.pk]
    workers.work()
    assert sources(reader) == ["inbox"]
    exact(reader)


def interrupt(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], *, before: bool = False) -> None:
    """Act once, right after or before the next deepening's snapshot."""
    acts = [act]

    def pulled(reader_id: int, count: int) -> Any:
        if before and acts:
            acts.pop()()
        snapshot = pull.pull_entries(reader_id, count)
        if acts:
            acts.pop()()
        return snapshot

    monkeypatch.setattr(inbox, "pull_entries", pulled)


def delivered(workers: Workers) -> None:
    Delivery.objects.update(not_before=timezone.now())
    for item_id in list(Delivery.objects.values_list("pk", flat=True)):
        workers.send_task("timeline.fan_out", [item_id])
    while workers.queue and workers.queue[-1][0].startswith("timeline.fan_out"):
        name, args = workers.queue.pop()
        TASKS[name](*args)
    assert not Delivery.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("of", ["star", "friend"])
def test_items_restored_below_the_floor_amid_a_deepening_are_not_lost(
    of: str,
    reader: User,
    star: User,
    friend: User,
    say: Say,
    workers: Workers,
    feeds: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sender = {"star": star, "friend": friend}[of]
    hidden = say(sender)
    published = [say(friend) for _ in range(8)]
    items.hold(item=hidden, reasons=["reported"])
    workers.work()
    leave(reader, 1)
    assert window(feeds, reader).floor > hidden.pk
    touch([reader.pk])
    workers.queue.clear()

    def restore() -> None:
        items.approve(item=Item.objects.get(pk=hidden.pk))
        delivered(workers)

    interrupt(monkeypatch, restore)
    assert not inbox.deepen_or_build(reader.pk), "its snapshot lacks what the window refused"
    assert window(feeds, reader).floor > hidden.pk
    exact(reader)
    workers.work()
    assert inbox.deepen_or_build(reader.pk) or window(feeds, reader).floor < hidden.pk
    assert window(feeds, reader).floor < hidden.pk
    assert read(reader, limit=50) == [item.pk for item in reversed(published)] + [hidden.pk]
    exact(reader)


@pytest.mark.slow
def test_a_deepening_that_another_has_followed_is_refused(
    reader: User, star: User, friend: User, say: Say, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first snapshot lacks what removed its token. The second's token does not fit it."""
    hidden = say(star)
    for _ in range(8):
        say(friend)
    items.hold(item=hidden, reasons=["reported"])
    workers.work()
    leave(reader, 1)
    touch([reader.pk])
    workers.queue.clear()

    def follow_up() -> None:
        items.approve(item=Item.objects.get(pk=hidden.pk))
        delivered(workers)
        read(reader)
        assert [name for name, _ in workers.queue] == ["timeline.deepen_inbox"], "the second has begun"

    interrupt(monkeypatch, follow_up)
    assert not inbox.deepen_or_build(reader.pk)
    workers.work()
    assert sources(reader) == ["inbox"]
    exact(reader)


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("lost", ["missing", "rebuilt"])
def test_the_active_fans_are_lost_or_built_anew_around_the_rise(
    lost: str,
    before: bool,
    reader: User,
    star: User,
    say: Say,
    workers: Workers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave(reader, 2)
    active_fans.build(star.pk)
    (active_fans.drop if lost == "missing" else active_fans.build)(star.pk)
    touch([reader.pk])
    workers.queue.clear()

    def publish() -> None:
        (active_fans.drop if lost == "missing" else active_fans.build)(star.pk)
        say(star)
        delivered(workers)

    interrupt(monkeypatch, publish, before=before)
    assert inbox.deepen_or_build(reader.pk)
    assert sources(reader) == ["inbox"]
    exact(reader)
    say(star)
    workers.work()
    assert sources(reader) == ["inbox"]
    exact(reader)


@pytest.mark.slow
def test_a_window_of_before_a_lowering_merges_outboxes_after_the_next_rise(
    reader: User, star: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    old = window(feeds, reader).pushes
    leave(reader, 2)
    missed = say(star)
    workers.work()
    touch([reader.pk])
    workers.queue.clear()  # the deepening is lost with its worker
    assert window(feeds, reader).pushes == old != User.objects.get(pk=reader.pk).push_generation
    assert read(reader) == [missed.pk]
    assert [name for name, _ in workers.queue] == ["timeline.deepen_inbox"], "the page asks again"
    exact(reader)
    workers.work()
    assert sources(reader) == ["inbox"]
    exact(reader)


@pytest.mark.slow
def test_a_lowering_amid_a_deepening_shows(
    reader: User, star: User, say: Say, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(reader, 2)
    touch([reader.pk])
    workers.queue.clear()

    def fall() -> None:
        leave(reader, 2)
        say(star)
        delivered(workers)

    interrupt(monkeypatch, fall)
    inbox.deepen_or_build(reader.pk)
    touch([reader.pk])
    workers.queue.clear()
    exact(reader)


@pytest.mark.slow
def test_a_follow_amid_a_construction_does_not_cost_another(
    reader: User, workers: Workers, feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds.delete(keys.inbox(reader.pk))
    interrupt(monkeypatch, lambda: relations.follow(follower=reader, followee=seen()), before=True)
    assert inbox.deepen_or_build(reader.pk)
    assert sources(reader) == ["inbox"]
    exact(reader)


@pytest.mark.slow
def test_a_window_that_was_lost_and_built_anew_with_an_equal_floor_refuses_the_deepening(
    reader: User, friend: User, say: Say, workers: Workers, feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(8):
        say(friend)
    workers.work()
    leave(reader, 2)
    floor = window(feeds, reader).floor
    User.objects.filter(pk=reader.pk).update(level=3)

    def rebuild() -> None:
        feeds.delete(keys.inbox(reader.pk))
        User.objects.filter(pk=reader.pk).update(level=2)
        read(reader)
        monkeypatch.undo()
        monkeypatch.setattr("feedsite.celery.app.send_task", workers.send_task)
        workers.work()
        assert window(feeds, reader).floor == floor
        User.objects.filter(pk=reader.pk).update(level=3)

    interrupt(monkeypatch, rebuild)
    assert not inbox.deepen_or_build(reader.pk)
    assert window(feeds, reader).floor == floor
    exact(reader)


@pytest.mark.slow
def test_however_many_pages_miss_the_deepening_one_task_does_it(
    reader: User, workers: Workers, feeds: redis.Redis
) -> None:
    leave(reader, 2)
    touch([reader.pk])
    workers.queue.clear()
    for _ in range(20):
        read(reader)
    assert [name for name, _ in workers.queue] == ["timeline.deepen_inbox"]
    workers.queue.clear()  # and that is lost too
    begun = feeds.zscore(keys.inbox(reader.pk), "deepen")
    assert begun is not None
    feeds.zadd(keys.inbox(reader.pk), {"deepen": begun + BUILD_SECONDS * 1000 * 4096})
    read(reader)
    assert [name for name, _ in workers.queue] == ["timeline.deepen_inbox"]
    workers.work()
    assert sources(reader) == ["inbox"]


@pytest.mark.slow
def test_a_tail_of_before_the_rise_is_not_used_after_it(
    reader: User, star: User, friend: User, say: Say, workers: Workers, feeds: redis.Redis, settings: Any
) -> None:
    """No tail hears of the item while the level is low."""
    settings.LEVEL_CAPS = {1: 3, 2: 5, 3: 5}
    hidden = say(star)
    for _ in range(12):
        say(friend)
    items.hold(item=hidden, reasons=["reported"])
    workers.work()
    pipelined(feeds, [Inbox(reader.pk).trim(5)])
    below = read(reader, limit=6)[-1]
    read(reader, last_id=below, limit=3)
    assert feeds.zscore(keys.tail(reader.pk), "floor") is not None
    leave(reader, 2)
    active_fans.build(star.pk)  # without the reader
    items.approve(item=Item.objects.get(pk=hidden.pk))
    delivered(workers)
    touch([reader.pk])
    workers.work()
    assert hidden.pk in read(reader, last_id=below, limit=20)
    exact(reader)


@pytest.mark.slow
def test_a_tail_that_is_written_amid_a_deepening_is_not_used_above_the_new_floor(
    reader: User,
    star: User,
    friend: User,
    say: Say,
    workers: Workers,
    feeds: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tail starts at the old floor."""
    relations.unfollow(follower=reader, followee=star)  # with merged outboxes no tail is read
    said = [say(friend) for _ in range(12)]
    hidden = said[6]
    items.hold(item=hidden, reasons=["reported"])
    workers.work()
    leave(reader, 1)
    floor = window(feeds, reader).floor
    assert hidden.pk < floor
    below = said[-3].pk
    deepen = Inbox.deepen

    def late(*args: Any, **kwargs: Any) -> Any:
        read(reader, last_id=below, limit=3)
        assert feeds.zscore(keys.tail(reader.pk), "top") is not None
        return deepen(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Inbox, "deepen", late)
        touch([reader.pk])
        workers.queue.clear()
        assert inbox.deepen_or_build(reader.pk)
    assert window(feeds, reader).floor < hidden.pk
    items.approve(item=Item.objects.get(pk=hidden.pk))
    delivered(workers)
    assert feeds.zscore(keys.tail(reader.pk), "top") is not None
    assert hidden.pk in read(reader, last_id=floor + 1, limit=6)
    exact(reader)


# --- Outboxes --------------------------------------------------------------------------------------------
def test_an_outbox_begins_with_the_promotion(friend: User, workers: Workers, feeds: redis.Redis, say: Say) -> None:
    item = say(friend)
    workers.work()
    assert not feeds.exists(keys.outbox(friend.pk))
    big_v.make_big_v(user=friend)
    workers.work()
    assert feeds.zscore(keys.outbox(friend.pk), f"{friend.pk}:{item.pk}") == item.pk
    assert list(differences([friend.pk])) == []


def test_a_publication_brings_a_lost_outbox_back(star: User, workers: Workers, feeds: redis.Redis, say: Say) -> None:
    say(star)
    workers.work()
    feeds.delete(keys.outbox(star.pk))
    said = [say(star).pk for _ in range(2)]
    assert not feeds.exists(keys.outbox(star.pk))
    workers.work()
    assert {int(member.split(b":")[1]) for member in feeds.zrange(keys.outbox(star.pk), 4, -2)} <= set(said)
    assert feeds.zscore(keys.outbox(star.pk), f"{star.pk}:{said[0]}") == said[0]
    assert feeds.zscore(keys.outbox(star.pk), "floor") == 0
    assert list(differences([star.pk])) == []


@pytest.mark.slow
def test_the_big_vs_of_a_demo_have_outboxes(db: None, workers: Workers, feeds: redis.Redis) -> None:
    demo.make(size=12)
    workers.work()
    big_vs = User.objects.filter(is_big_v=True)
    assert big_vs.exists()
    for user in big_vs:
        assert feeds.zscore(keys.outbox(user.pk), "floor") == 0, user
    assert list(differences(user.pk for user in big_vs)) == []


@pytest.mark.slow
def test_an_outbox_of_an_earlier_promotion_is_not_used(
    reader: User, star: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    leave(reader, 2)
    say(star)
    workers.work()
    copy = feeds.dump(keys.outbox(star.pk))
    big_v.demote(user=star)
    workers.work()
    star.refresh_from_db()
    assert not star.is_big_v
    assert not feeds.exists(keys.outbox(star.pk)), "it goes with the flag"
    say(star)
    workers.work()
    big_v.make_big_v(user=star)
    workers.queue.clear()  # its building is lost
    feeds.restore(keys.outbox(star.pk), 0, copy, replace=True)
    feeds.delete(keys.inbox(reader.pk))
    exact(reader)
    workers.work()
    assert sources(reader) == ["inbox", "outbox"]
    exact(reader)


@pytest.mark.slow
def test_a_promotion_or_a_demotion_amid_a_walk_loses_nothing(
    reader: User, star: User, friend: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    leave(reader, 2)
    for _ in range(6):
        say(star)
        say(friend)
    workers.work()
    expected = home_ids(reader.pk)
    walked = read(reader, limit=3)
    big_v.make_big_v(user=friend)
    walked += read(reader, last_id=walked[-1], limit=3)
    workers.work()
    walked += read(reader, last_id=walked[-1], limit=2)
    big_v.demote(user=star)
    workers.work()
    walked += read(reader, last_id=walked[-1], limit=2)
    feeds.delete(keys.outbox(friend.pk))
    walked += read(reader, last_id=walked[-1], limit=20)
    assert walked == expected
