"""Stale or hostile data in Redis cannot change home."""

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
from items import actions as items
from items.models import Item
from relations import actions as relations
from runtime.embedded import wait_for
from storage import deliveries, keys
from storage.connections import TripCount, count_trips, feeds_for_tasks, pipelined
from storage.window import INFINITY, OWN_MEMBERS, Window, WindowEntry
from tests.support.factories import ItemFactory, UserFactory
from tests.support.servers import Valkey, restart
from tests.support.timelines import read, seen, sources
from tests.support.workers import Workers
from timeline import fanout, fold, home, reading
from timeline.home import home_page, new_count
from timeline.inbox import Inbox, Tail
from timeline.models import Delivery
from timeline.oracle import home_ids
from timeline.outbox import Outbox
from timeline.senders import Scope

pytestmark = pytest.mark.django_db(transaction=True)

Say = Callable[..., Item]


@pytest.fixture(autouse=True)
def _workers(workers: Workers) -> Workers:
    return workers


def test_a_published_item_is_in_every_home_before_any_worker_ran(reader: User, follow: Any, say: Say) -> None:
    sender = seen()
    follow(reader, sender)
    item = say(sender)
    assert read(reader) == [item.pk]
    assert read(sender) == [item.pk]


def test_a_home_is_built_when_it_is_read_and_then_served_from_the_inbox(
    reader: User, follow: Any, say: Say, workers: Workers
) -> None:
    sender = seen()
    follow(reader, sender)
    first = say(sender)
    assert sources(reader) == ["sql"]
    workers.work()
    assert sources(reader) == ["inbox"]
    second = say(sender)
    assert sources(reader) == ["inbox", "pending"]
    assert read(reader) == [second.pk, first.pk]
    workers.work()
    assert not Delivery.objects.exists()
    assert sources(reader) == ["inbox"]
    assert read(reader) == [second.pk, first.pk]


@pytest.mark.sessions
@pytest.mark.slow
@pytest.mark.parametrize("followees", [1, 30])
def test_a_page_costs_one_statement_and_one_round_trip(
    reader: User, follow: Any, say: Say, workers: Workers, followees: int
) -> None:
    for _ in range(followees):
        sender = seen()
        follow(reader, sender)
        for _ in range(60 // followees):
            say(sender)
    read(reader)
    workers.work()
    reader = User.objects.get(pk=reader.pk)
    for trips in (2, 1):  # deliveries completed since the last query, or not
        with count_trips() as asked:
            page = home_page(reader)
        assert (page.sources, len(page.items), page.has_more) == (["inbox"], 20, True)
        assert asked == TripCount(statements=1, round_trips=trips)


@pytest.mark.slow
@pytest.mark.sessions
def test_pages_below_the_floor_cost_a_statement_more(
    reader: User, follow: Any, say: Say, workers: Workers, settings: Any
) -> None:
    settings.LEVEL_CAPS = {3: 10}
    sender = seen()
    follow(reader, sender)
    published = [say(sender).pk for _ in range(90)][::-1]
    read(reader)
    workers.work()
    read(reader)
    last_id = published[9]
    found = []
    for statements in (2, 1, 1):  # the first page's rows are the others' tail
        with count_trips() as asked:
            page = home_page(reader, last_id=last_id)
        found += [int(item.id) for item in page.items]
        assert page.last_id
        last_id = page.last_id
        assert page.sources == ["sql"]
        assert asked.statements == statements
        assert asked.round_trips <= 2
    assert found == published[10:70]


@pytest.mark.slow
@pytest.mark.parametrize("older", [True, False])
def test_a_page_that_ends_with_the_inbox_knows_whether_more_follows(
    reader: User, follow: Any, say: Say, workers: Workers, settings: Any, older: bool
) -> None:
    settings.LEVEL_CAPS = {3: 20}
    sender = seen()
    follow(reader, sender)
    published = [say(sender) for _ in range(30)][::-1]
    read(reader)
    workers.work()
    if not older:
        for item in published[20:]:
            items.delete(item=item)
    with count_trips() as asked:
        page = home_page(reader)
    assert (page.sources, page.has_more) == (["inbox"], older)
    assert [int(item.id) for item in page.items] == [item.pk for item in published[:20]]
    assert asked.statements == 1
    assert read(reader, last_id=page.last_id) == [item.pk for item in published[20:] if older]


@pytest.mark.slow
def test_one_cursor_to_the_first_item_ever(
    reader: User, follow: Any, say: Say, workers: Workers, settings: Any
) -> None:
    settings.LEVEL_CAPS = {3: 25}
    senders = [seen() for _ in range(3)]
    for sender in senders:
        follow(reader, sender)
    published = [say(senders[number % 3]).pk for number in range(250)][::-1]
    read(reader)
    workers.work()
    walked: list[int] = []
    last_id, kinds = None, set()
    for _ in range(100):
        page = home_page(reader, last_id=last_id, limit=7)
        kinds.update(page.sources)
        walked += [int(item.id) for item in page.items]
        if not page.has_more:
            break
        last_id = page.last_id
    assert walked == published
    assert kinds == {"inbox", "sql"}


@pytest.mark.slow
def test_deleted_items_leave_the_inbox_when_it_is_read(
    reader: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    sender = seen()
    follow(reader, sender)
    published = [say(sender) for _ in range(30)]
    read(reader)
    workers.work()
    for item in published[5:25]:
        items.delete(item=item)
    expected = [item.pk for item in published[25:] + published[:5]]
    expected.sort(reverse=True)
    assert read(reader) == expected, "the page is refilled"
    assert feeds.zcard(keys.inbox(reader.pk)) == 10 + OWN_MEMBERS + 1
    assert sources(reader) == ["inbox"]


def test_restored_items_are_there_again_although_they_were_forgotten(
    reader: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    sender = seen()
    follow(reader, sender)
    item = say(sender)
    read(reader)
    workers.work()
    items.delete(item=item)
    assert read(reader) == []
    items.restore(item=item)
    assert read(reader) == [item.pk], "from the delivery table"
    workers.work()
    assert Delivery.objects.filter(item=item).exists(), "nothing completes before a lazy delete can be over"
    Delivery.objects.update(not_before=timezone.now(), sweep_at=timezone.now())
    assert deliveries.sweep(Delivery, fanout.fan_out) == 1
    workers.work()
    assert not Delivery.objects.exists()
    assert feeds.zscore(keys.inbox(reader.pk), f"{sender.pk}:{item.pk}") == item.pk
    assert read(reader) == [item.pk]


@pytest.mark.parametrize(
    ("hide", "undo"),
    [
        (relations.mute, relations.unmute),
        (relations.block, relations.unblock),
    ],
)
def test_hiding_and_undoing_are_exact_on_the_next_request(
    reader: User, follow: Any, say: Say, workers: Workers, hide: Any, undo: Any
) -> None:
    sender = seen()
    follow(reader, sender)
    item = say(sender)
    read(reader)
    workers.work()
    verb = "mute" if hide is relations.mute else "block"
    names = {"mute": ("muter", "muted"), "block": ("blocker", "blocked")}[verb]
    pair = dict(zip(names, (reader, sender), strict=True))
    hide(**pair)
    assert read(reader) == []
    workers.work()
    assert read(reader) == [], "and forgotten by the window"
    undo(**pair)
    assert read(reader) == [item.pk]
    workers.work()
    assert sources(reader) == ["inbox"]
    assert read(reader) == [item.pk]


@pytest.mark.slow
def test_being_blocked_hides_too(reader: User, follow: Any, say: Say, workers: Workers) -> None:
    sender = seen()
    follow(reader, sender)
    item = say(sender)
    read(reader)
    workers.work()
    relations.block(blocker=sender, blocked=reader)
    assert read(reader) == []
    relations.unblock(blocker=sender, blocked=reader)
    assert read(reader) == [item.pk]


def test_mutuals_see_when_they_follow_each_other_and_not_before(
    reader: User, follow: Any, say: Say, workers: Workers
) -> None:
    sender = seen()
    follow(reader, sender)
    item = say(sender, visibility="mutuals")
    read(reader)
    workers.work()
    assert (read(reader), sources(reader)) == ([], ["inbox"])
    relations.follow(follower=sender, followee=reader)
    assert (read(reader), sources(reader)) == ([item.pk], ["inbox"]), "the inbox had kept it"
    relations.unfollow(follower=sender, followee=reader)
    assert read(reader) == []


def test_a_follow_shows_all_and_an_unfollow_hides_all(reader: User, follow: Any, say: Say, workers: Workers) -> None:
    sender = seen()
    item = say(sender)
    read(reader)
    workers.work()
    assert read(reader) == []
    follow(reader, sender)
    assert read(reader) == [item.pk]
    relations.unfollow(follower=reader, followee=sender)
    assert read(reader) == []


def test_a_window_of_before_a_change_is_not_used_even_if_redis_never_heard_of_it(
    reader: User, follow: Any, say: Say, workers: Workers
) -> None:
    sender = seen()
    item = say(sender)
    read(reader)
    workers.work()
    copy = feeds_for_tasks().dump(keys.inbox(reader.pk))
    follow(reader, sender)
    feeds_for_tasks().restore(keys.inbox(reader.pk), 0, copy, replace=True)
    assert read(reader) == [item.pk]


def test_lies_in_the_inbox_are_verified_away(reader: User, say: Say, workers: Workers, feeds: redis.Redis) -> None:
    stranger = seen()
    item = say(stranger)
    own = say(reader)
    read(reader)
    workers.work()
    inbox = keys.inbox(reader.pk)
    feeds.zadd(inbox, {f"{stranger.pk}:{item.pk}": item.pk, f"{reader.pk}:{item.pk + 5}": item.pk + 5})
    assert read(reader) == [own.pk]
    assert sources(reader) == ["inbox"]
    assert feeds.zcard(inbox) == 1 + OWN_MEMBERS + 1, "and forgotten"


def test_a_big_vs_items_are_pulled_by_readers_below_the_push_level(
    follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    reader, star, friend = seen(level=2), seen(is_big_v=True), seen()
    follow(reader, star)
    follow(reader, friend)
    read(reader)
    workers.work()
    ids = [say(sender).pk for sender in (star, friend, star, friend)][::-1]
    workers.work()
    read(reader)
    workers.work()  # a missed outbox is built
    assert sources(reader) == ["inbox", "outbox"]
    assert read(reader) == ids
    latest = say(star).pk
    workers.work()
    assert read(reader) == [latest, *ids]
    assert feeds.zscore(keys.inbox(reader.pk), f"{star.pk}:{latest}") is None, "nothing was pushed"


@pytest.mark.slow
@pytest.mark.sessions
@pytest.mark.parametrize(("most", "newest", "trips"), [(32, 6, 2), (32, 20, 3), (8, 6, 3)])
def test_big_vs_cost_one_round_trip_more_and_two_if_one_of_many_fills_the_page(
    most: int,
    newest: int,
    trips: int,
    follow: Any,
    say: Say,
    workers: Workers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "OUTBOXES_MOST", most)
    monkeypatch.setattr(reading, "FOLLOWEES_FOR_ONE", 1)
    reader = seen(level=2)
    stars = [seen(is_big_v=True) for _ in range(25)]
    for star in stars:
        follow(reader, star)
    for number in range(100 + newest):
        say(stars[number % len(stars) if number < 100 else 0])
    workers.work()
    read(reader)
    workers.work()
    reader.refresh_from_db()
    with count_trips() as asked:
        page = home_page(reader)
    assert page.sources == ["inbox", "outbox"]
    assert [int(item.id) for item in page.items] == home_ids(reader.pk)[:20]
    assert asked == TripCount(statements=1, round_trips=trips)  # the hint, inbox and outboxes, and some deeper


@pytest.mark.slow
@pytest.mark.parametrize("hint", ["", "{}", "{},7", "7,8", "{}, x,,-1", "\xff", "9" * 5000, None])
def test_a_hint_of_the_followed_big_vs_may_say_anything(
    hint: str | None, follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    reader, stars = seen(level=2), [seen(is_big_v=True) for _ in range(2)]
    for star in stars:
        follow(reader, star)
        say(star)
    for _ in range(2):
        workers.work()
        read(reader)
    key = keys.merged_outboxes(reader.pk)
    right = feeds.get(key)
    assert right == ",".join(str(star.pk) for star in stars).encode()
    if hint is None:
        feeds.delete(key)
    else:
        feeds.set(key, hint.format(stars[0].pk))
    with count_trips() as asked:
        page = home_page(reader)
    assert page.sources == ["inbox", "outbox"]
    assert [int(item.id) for item in page.items] == home_ids(reader.pk)
    assert asked.statements <= 2
    assert feeds.get(key) == right, "the page corrects it"
    assert 0 < feeds.ttl(key) <= Window.ttl
    with count_trips() as asked:
        home_page(reader)
    assert asked.statements == 1


@pytest.mark.slow
def test_a_hint_of_too_many_big_vs_does_not_outlive_its_truth(
    follow: Any, say: Say, workers: Workers, feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "OUTBOXES_MOST", 2)
    reader, stars = seen(level=2), [seen(is_big_v=True) for _ in range(3)]
    for star in stars:
        follow(reader, star)
        say(star)
    for _ in range(2):
        workers.work()
        read(reader)
    key = keys.merged_outboxes(reader.pk)
    feeds.set(key, ",".join(str(star.pk) for star in stars), ex=Window.ttl)
    relations.unfollow(follower=reader, followee=stars[0])
    assert sources(reader) == ["sql"], "the hint says that there are too many"
    assert 0 < feeds.ttl(key) <= reading.TOO_MANY_SECONDS
    for _ in range(2):
        read(reader)
    feeds.pexpire(key, 1)
    assert wait_for(lambda: not feeds.exists(key), 10)
    for _ in range(2):
        workers.work()
        page = home_page(User.objects.get(pk=reader.pk))
    assert page.sources == ["inbox", "outbox"]
    assert [int(item.id) for item in page.items] == home_ids(reader.pk)


@pytest.mark.slow
def test_a_hint_of_another_type_is_taken_away(follow: Any, say: Say, workers: Workers, feeds: redis.Redis) -> None:
    reader, star = seen(level=2), seen(is_big_v=True)
    follow(reader, star)
    say(star)
    for _ in range(2):
        workers.work()
        read(reader)
    key = keys.merged_outboxes(reader.pk)
    feeds.delete(key)
    feeds.rpush(key, "7")
    for _ in range(3):
        page = home_page(User.objects.get(pk=reader.pk))
        assert [int(item.id) for item in page.items] == home_ids(reader.pk)
        workers.work()
    assert page.sources == ["inbox", "outbox"]


def test_a_lowered_level_notes_whose_outboxes_will_be_merged(
    follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    reader, star = seen(), seen(is_big_v=True)
    follow(reader, star)
    User.objects.filter(pk=reader.pk).update(last_seen_at=timezone.now() - timedelta(days=3))
    levels.lower_levels()
    assert feeds.get(keys.merged_outboxes(reader.pk)) == str(star.pk).encode()


@pytest.mark.slow
def test_more_outboxes_than_a_pull_costs_are_not_merged(
    follow: Any, say: Say, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "OUTBOXES_MOST", 2)
    reader, stars = seen(level=2), [seen(is_big_v=True) for _ in range(3)]
    for star in stars:
        follow(reader, star)
        say(star)
    workers.work()
    for statements in (2, 1):  # the first page learns how many there are
        with count_trips() as asked:
            page = home_page(User.objects.get(pk=reader.pk))
        assert page.sources == ["sql"]
        assert [int(item.id) for item in page.items] == home_ids(reader.pk)
        assert asked.statements == statements
    assert read(reader, limit=1) == home_ids(reader.pk)[:1]


@pytest.mark.slow
def test_a_page_with_too_many_pending_comes_from_postgresql(
    reader: User, follow: Any, say: Say, workers: Workers, settings: Any
) -> None:
    settings.PENDING_CAP = 5
    sender = seen()
    follow(reader, sender)
    read(reader)
    workers.work()
    ids = [say(sender).pk for _ in range(30)][::-1]
    assert sources(reader) == ["sql"]
    assert read(reader) == ids[:20]


def test_a_dormant_reader_who_comes_back_has_no_inbox_before(
    follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    reader, sender = seen(), seen()
    User.objects.filter(pk=reader.pk).update(level=0, last_seen_at=None)
    follow(reader, sender)
    item = say(sender)
    workers.work()
    assert not feeds.exists(keys.inbox(reader.pk))
    assert read(reader) == [item.pk]
    assert not workers.queue, "the page itself asks for nothing"
    assert touch([reader.pk]) == [reader.pk]
    workers.work()
    assert sources(reader) == ["inbox"]


def test_however_many_readers_miss_a_window_one_task_builds_it(reader: User, workers: Workers) -> None:
    for _ in range(20):
        read(reader)
    assert [name for name, _ in workers.queue] == ["timeline.materialise_inbox"]


@pytest.mark.slow
def test_a_tail_lacks_nothing_that_was_delivered_since(
    reader: User, follow: Any, say: Say, workers: Workers, settings: Any, feeds: redis.Redis
) -> None:
    settings.LEVEL_CAPS = {3: 5}
    sender = seen()
    follow(reader, sender)
    published = [say(sender) for _ in range(80)][::-1]
    items.delete(item=published[40])
    read(reader)
    workers.work()
    ids = [item.pk for item in published]
    assert read(reader, last_id=ids[9]) == ids[10:30]
    assert feeds.exists(keys.tail(reader.pk))
    items.restore(item=published[40])
    Delivery.objects.update(not_before=timezone.now())
    assert fanout.fan_out(ids[40])
    assert read(reader, last_id=ids[29]) == ids[30:50]


@pytest.mark.slow
def test_a_tail_lacks_nothing_that_was_delivered_above_the_inboxs_floor_since(
    reader: User, follow: Any, say: Say, workers: Workers, settings: Any, feeds: redis.Redis
) -> None:
    """The inbox takes the restored item. Later its floor rises above it."""
    settings.LEVEL_CAPS, settings.WINDOW_SLACK = {3: 5}, 0
    sender = seen()
    follow(reader, sender)
    published = [say(sender) for _ in range(40)][::-1]
    read(reader)
    workers.work()
    items.delete(item=published[3])
    ids = [item.pk for item in published]
    assert read(reader, last_id=ids[1]) == [*ids[2:3], *ids[4:23]]
    assert feeds.exists(keys.tail(reader.pk))
    items.restore(item=published[3])
    Delivery.objects.update(not_before=timezone.now())
    assert fanout.fan_out(ids[3])
    assert feeds.exists(keys.tail(reader.pk)), "the inbox has it, so the tail need not know"
    for _ in range(20):
        say(sender)
        workers.work()
    assert float(feeds.zscore(keys.inbox(reader.pk), "floor") or 0) > ids[3]
    assert read(reader, last_id=ids[2]) == ids[3:23]
    assert sources(reader, last_id=ids[9]) == ["sql"]


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["inbox", "epoch"])
def test_a_tail_is_used_beside_a_usable_inbox_only(
    reader: User, follow: Any, say: Say, workers: Workers, settings: Any, feeds: redis.Redis, lost: str
) -> None:
    """Otherwise nothing shows which deliveries the tail has."""
    settings.LEVEL_CAPS = {3: 5}
    sender = seen()
    follow(reader, sender)
    ids = [say(sender).pk for _ in range(80)][::-1]
    read(reader)
    workers.work()
    read(reader, last_id=ids[9])
    key = keys.tail(reader.pk)
    feeds.zrem(key, f"{sender.pk}:{ids[40]}")
    assert ids[40] not in read(reader, last_id=ids[29]), "it came from the tail"
    if lost == "inbox":
        feeds.delete(keys.inbox(reader.pk))
    else:
        follow(reader, seen())
    assert read(reader, last_id=ids[29]) == ids[30:50]


@pytest.mark.slow
def test_a_new_inbox_drops_the_tail_before_it_is_in_use(
    reader: User, follow: Any, say: Say, workers: Workers, settings: Any, feeds: redis.Redis
) -> None:
    settings.LEVEL_CAPS = {3: 5}
    sender = seen()
    follow(reader, sender)
    ids = [say(sender).pk for _ in range(80)][::-1]
    read(reader)
    workers.work()
    read(reader, last_id=ids[9])
    feeds.delete(keys.inbox(reader.pk))
    settings.LEVEL_CAPS = {3: 60}
    read(reader)
    assert feeds.exists(keys.tail(reader.pk))
    workers.work()
    assert not feeds.exists(keys.tail(reader.pk)), "the new inbox begins below its top"


@pytest.mark.slow
def test_a_tail_of_another_run_of_the_server_is_not_used(
    reader: User, follow: Any, say: Say, workers: Workers, settings: Any, feeds: redis.Redis, feeds_server: Valkey
) -> None:
    settings.LEVEL_CAPS = {3: 5}
    sender = seen()
    follow(reader, sender)
    ids = [say(sender).pk for _ in range(80)][::-1]
    read(reader, last_id=ids[9])
    key = keys.tail(reader.pk)
    feeds.zrem(key, f"{sender.pk}:{ids[40]}")
    saved = feeds.dump(key)
    restart(feeds_server)
    feeds.restore(key, 0, saved)
    assert read(reader, last_id=ids[29]) == ids[30:50]


def test_a_tail_that_was_pulled_before_a_delivery_is_not_written_after_it(reader: User, feeds: redis.Redis) -> None:
    tail = Tail(reader.pk)
    pipelined(feeds, [tail.read_command(100, 5, 1, "t")])
    pipelined(feeds, [tail.drop()])  # as a delivery below the inbox's floor does
    assert pipelined(feeds, [tail.complete("t", 1, 0, 100, [WindowEntry(50, 7)])]) == [0]


@pytest.mark.slow
def test_new_count(reader: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis) -> None:
    sender = seen()
    follow(reader, sender)
    first = say(sender)
    read(reader)
    workers.work()
    assert new_count(reader, since_id=first.pk) == (0, False)
    say(sender)
    say(sender, visibility="mutuals")
    say(sender, reply_to=first)
    deleted = say(sender)
    items.delete(item=deleted)
    assert new_count(reader, since_id=first.pk) == (1, False)
    workers.work()
    assert new_count(reader, since_id=first.pk) == (1, False)
    feeds.flushall()
    assert new_count(reader, since_id=first.pk) == (1, False)
    for _ in range(home.NEW_CAP):
        say(sender)
    workers.work()
    assert new_count(reader, since_id=first.pk) == (home.NEW_CAP, True)
    read(reader)
    workers.work()
    assert new_count(reader, since_id=first.pk) == (home.NEW_CAP, True)


def test_own_reposts_are_not_new_and_own_posts_not_on_the_page(reader: User, follow: Any, say: Say) -> None:
    sender, stranger = seen(), seen()
    follow(reader, sender)
    far, near, top = say(stranger), say(sender), say(sender)
    for item in (far, near):
        items.repost(sender=reader, item=item)
    assert new_count(reader, since_id=top.pk) == (0, False)
    items.repost(sender=sender, item=near)  # already listed below
    assert new_count(reader, since_id=top.pk) == (0, False)
    items.repost(sender=sender, item=say(stranger))
    assert new_count(reader, since_id=top.pk) == (1, False)
    say(reader)
    assert new_count(reader, since_id=top.pk) == (2, False)
    assert new_count(reader, since_id=top.pk, of_others=True) == (1, False)


@pytest.mark.slow
def test_reposts_are_there_as_far_as_their_originals(
    reader: User, follow: Any, say: Say, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "REACH", 1)  # the originals are not close
    friend, stranger = seen(), seen()
    follow(reader, friend)
    original = say(stranger, "the original")
    inner = say(stranger, "inner", visibility="followers")
    reposts = [items.repost(sender=friend, item=item)[0] for item in (original, inner)]
    assert [item.repost_of.text for item in home_page(reader).items if item.repost_of] == ["the original"]
    workers.work()
    read(reader)
    workers.work()
    assert sources(reader) == ["inbox"]
    # No window records an act that hides or shows the original.
    follow(reader, stranger)
    relations.unfollow(follower=reader, followee=friend)
    follow(reader, friend)
    read(reader)
    workers.work()
    assert read(reader) == [repost.pk for repost in reversed(reposts)] + [inner.pk, original.pk]
    for hide, show in (
        (lambda: relations.mute(muter=reader, muted=stranger), lambda: relations.unmute(muter=reader, muted=stranger)),
        (
            lambda: relations.block(blocker=stranger, blocked=reader),
            lambda: relations.unblock(blocker=stranger, blocked=reader),
        ),
    ):
        hide()
        assert read(reader) == []
        show()
        assert len(read(reader)) == 4


def test_neighbours_are_read_only_for_shown_reposts(reader: User, follow: Any, say: Say) -> None:
    friend, other = UserFactory.create_batch(2)
    follow(reader, friend)
    original = say(other)
    repost, _ = items.repost(sender=friend, item=original)
    asked = {"last_id": INFINITY, "count": 1, "reposts": [repost.pk]}
    folds, verified = fold.folds_and_originals(Scope.home_of(reader), **asked)
    assert (folds, verified[repost.pk].has_shown_original) == ({repost.pk: 0}, True)
    items.delete(item=original)
    folds, verified = fold.folds_and_originals(Scope.home_of(reader), **asked)
    assert (folds, verified[repost.pk].has_shown_original) == ({}, False)


@pytest.mark.slow
def test_reposts_close_by_are_folded_into_the_newest(reader: User, follow: Any, say: Say, workers: Workers) -> None:
    friends = [seen(display_name=f"Friend {number}") for number in range(4)]
    author = seen()
    for friend in friends:
        follow(reader, friend)
    item = say(author, "the original")
    far = items.repost(sender=friends[0], item=item)[0]
    for _ in range(40):
        say(friends[3])
    near = [items.repost(sender=friend, item=item)[0] for friend in friends[1:]]
    for _ in range(2):  # from the delivery table, then the inbox
        page = home_page(reader, limit=42)
        assert int(page.items[0].id) == near[-1].pk
        assert page.others[page.items[0].id] == 2
        assert page.items[0].reason == "Friend 3 and 2 others reposted"
        assert int(page.items[-1].id) == far.pk
        assert (page.items[-1].id in page.others, page.items[-1].reason) == (False, "Friend 0 reposted")
        assert not page.has_more
        assert new_count(reader, since_id=far.pk - 1) == (42, False)
        assert home_page(reader, last_id=near[-1].pk, limit=40).items[-1].repost_of is None
        workers.work()
    items.delete(item=Item.objects.get(pk=home_page(reader, limit=5).items[3].id))
    # 39 entries now lie between it and the nearest.
    assert home_page(reader, limit=1).items[0].reason == "Friend 3 and 2 others reposted"
    assert home_page(reader, last_id=far.pk + 1).items == []
    assert far.pk not in read(reader, limit=100)


def test_own_windows_are_written_by_the_fan_out(reader: User, say: Say, workers: Workers, feeds: redis.Redis) -> None:
    read(reader)
    workers.work()
    pipelined(feeds, [Outbox(reader.pk).begin("t", 1), Outbox(reader.pk).complete("t", 1, 0, [])])
    item = say(reader)
    assert read(reader) == [item.pk], "at once"
    workers.work()
    member = f"{reader.pk}:{item.pk}"
    assert feeds.zscore(Inbox(reader.pk).key, member) == item.pk
    assert feeds.zscore(Outbox(reader.pk).key, member) is None, "readers pull nothing of those who are no big-Vs"

    big_v.make_big_v(user=reader)
    workers.work()
    feeds.expire(Outbox(reader.pk).key, 60)
    item = say(reader)
    workers.work()
    assert feeds.zscore(Outbox(reader.pk).key, f"{reader.pk}:{item.pk}") == item.pk
    assert feeds.ttl(Outbox(reader.pk).key) > 60, "it lives as long as they publish"


@pytest.mark.slow
@pytest.mark.parametrize("news", [1, 3])
def test_a_repost_is_shown_whatever_is_published_while_it_is_asked_about(
    reader: User, follow: Any, monkeypatch: pytest.MonkeyPatch, news: int
) -> None:
    sender = seen()
    follow(reader, sender)
    items.repost(sender=sender, item=ItemFactory())
    for _ in range(3):
        ItemFactory(sender=sender)
    shown = read(reader)
    ask = home.folds

    def late(reader_id: int, **place: int) -> dict[int, int]:
        for _ in range(news):
            ItemFactory(sender=sender)
        return ask(reader_id, **place)

    monkeypatch.setattr(home, "folds", late)
    assert len(shown) == 4
    assert read(reader) == shown
