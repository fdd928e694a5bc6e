from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
import redis
from django.core.management import call_command
from django.db.models.functions import Now

from accounts.models import User
from items import actions as items
from items.models import Item
from relations import actions as relations
from relations import lists
from relations.models import Tag
from relations.tags import follow_tag, unfollow_tag
from storage import keys
from storage.connections import TripCount, count_trips, feeds_for_tasks
from storage.window import OWN_MEMBERS, Window
from tests.support.factories import UserFactory
from tests.support.timelines import read, seen, sources
from tests.support.workers import Workers
from timeline import fanout, home
from timeline.above import page_above
from timeline.check import differences, repair
from timeline.home import home_page, new_count
from timeline.late import late_ids
from timeline.models import Delivery
from timeline.oracle import home_ids
from timeline.position import reading_state
from timeline.senders import Scope

pytestmark = pytest.mark.django_db(transaction=True)

Say = Callable[..., Item]


@pytest.fixture(autouse=True)
def _workers(workers: Workers) -> Workers:
    return workers


@pytest.fixture
def tagger(reader: User) -> User:
    follow_tag(user=reader, tag="tea")
    return User.objects.get(pk=reader.pk)


def key(tag: str = "tea") -> str:
    return keys.tag_outbox(Tag.objects.get(name=tag).pk)


def settle(reader: User, workers: Workers) -> None:
    for _ in range(2):
        read(reader)
        workers.work()


def time_passes() -> None:
    Delivery.objects.update(not_before=Now() - timedelta(seconds=1))
    for item_id in Delivery.objects.values_list("pk", flat=True):
        fanout.fan_out(item_id)


def reasons(reader: User) -> dict[int, str | None]:
    return {int(item.id): item.reason for item in home_page(User.objects.get(pk=reader.pk)).items}


def test_a_post_is_there_at_once_and_then_in_the_outbox_of_its_hashtag(
    tagger: User, say: Say, workers: Workers
) -> None:
    stranger = seen()
    first = say(stranger, "some #tea")
    assert reasons(tagger) == {first.pk: "#tea"}
    workers.work()
    assert sources(tagger) == ["inbox", "outbox"]
    second = say(stranger, "#Tea again")
    assert sources(tagger) == ["inbox", "outbox", "pending"]
    assert read(tagger) == [second.pk, first.pk]
    workers.work()
    assert not Delivery.objects.exists()
    assert sources(tagger) == ["inbox", "outbox"]
    assert read(tagger) == [second.pk, first.pk]
    say(stranger, "#coffee")
    say(stranger, "#tea among friends", visibility="followers")
    items.repost(sender=stranger, item=say(stranger, "no hashtag"))
    say(stranger, "an answer with #tea", reply_to=first)
    assert read(tagger) == [second.pk, first.pk] == home_ids(tagger.pk)
    unfollow_tag(user=tagger, tag="tea")
    assert read(tagger) == []


def test_an_item_is_there_once_and_by_its_sender_first(tagger: User, follow: Any, say: Say, workers: Workers) -> None:
    friend, stranger = seen(), seen()
    follow(tagger, friend)
    follow_tag(user=tagger, tag="milk")
    both, own = say(friend, "#tea with #milk"), say(tagger, "my #tea")
    by_tags = say(stranger, "#tea with #milk")
    expected = {by_tags.pk: "#milk", own.pk: "own", both.pk: "following"}
    for _ in range(3):
        assert reasons(tagger) == expected
        workers.work()
    relations.unfollow(follower=tagger, followee=friend)
    assert reasons(tagger) == expected | {both.pk: "#milk"}


@pytest.mark.sessions
@pytest.mark.slow
@pytest.mark.parametrize("tags", [1, 10, 40])
def test_a_page_costs_one_statement(tags: int, say: Say, workers: Workers) -> None:
    reader, stranger = seen(), seen()
    for number in range(tags):
        follow_tag(user=reader, tag=f"tag{number}")
    for number in range(60):
        say(stranger, f"#tag{number % tags} #tag{number % 7 % tags}")
    reader = User.objects.get(pk=reader.pk)
    settle(reader, workers)
    settle(reader, workers)
    with count_trips() as asked:
        page = home_page(reader)
    assert (page.sources, len(page.items), page.has_more) == (["sql"] if tags > 32 else ["inbox", "outbox"], 20, True)
    assert asked == TripCount(statements=1, round_trips=2)  # the hint, and the windows or its end
    assert [int(item.id) for item in page.items] == home_ids(reader.pk)[:20]


@pytest.mark.parametrize("how", ["block", "be blocked", "mute", "list", "suspend"])
def test_what_a_sender_who_is_turned_away_says_is_hidden_and_comes_back(
    how: str, tagger: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    sender = seen()
    item = say(sender, "#tea")
    settle(tagger, workers)
    made = lists.create(owner=tagger, title="out", is_exclusive=True)
    if how == "list":
        relations.follow(follower=tagger, followee=sender)
        settle(tagger, workers)
    there = {"block": (tagger, sender), "be blocked": (sender, tagger)}
    if how in there:
        relations.block(blocker=there[how][0], blocked=there[how][1])
    elif how == "mute":
        relations.mute(muter=tagger, muted=sender)
    elif how == "list":
        lists.add(owner=tagger, list_id=made.pk, member=sender)
    else:
        User.objects.filter(pk=sender.pk).update(is_active=False)
    assert read(tagger) == [] == home_ids(tagger.pk)
    assert feeds.zscore(key(), f"{sender.pk}:{item.pk}") == item.pk, "other readers see it"
    if how in there:
        relations.unblock(blocker=there[how][0], blocked=there[how][1])
    elif how == "mute":
        relations.unmute(muter=tagger, muted=sender)
    elif how == "list":
        lists.remove(owner=tagger, list_id=made.pk, member=sender)
    else:
        User.objects.filter(pk=sender.pk).update(is_active=True)
    assert read(tagger) == [item.pk]


def test_a_repost_is_not_folded_into_a_post_that_is_hidden(tagger: User, say: Say, workers: Workers) -> None:
    friend, sender = seen(), seen()
    for followee in (friend, sender):
        relations.follow(follower=tagger, followee=followee)
    start = say(friend, "before")
    original = say(sender, "#tea")
    repost, _ = items.repost(sender=friend, item=original)
    both, alone = [original.pk, start.pk], [repost.pk, start.pk]
    made = lists.create(owner=tagger, title="out", is_exclusive=True)
    for change, wanted in ((None, both), (lists.add, alone), (lists.remove, both)):
        if change:
            change(owner=tagger, list_id=made.pk, member=sender)
        for _ in range(3):  # by PostgreSQL, and by windows
            assert read(tagger) == wanted == home_ids(tagger.pk)
            assert new_count(tagger, since_id=start.pk) == (1, False)
            page = page_above(tagger, min_id=start.pk)
            assert [int(item.id) for item in page.items] == wanted[:1]
            workers.work()


@pytest.mark.slow
def test_hidden_posts_are_passed_in_bounded_work(tagger: User, say: Say, workers: Workers) -> None:
    flooder, stranger = seen(), seen()
    shown = [say(stranger, "#tea").pk for _ in range(3)][::-1]
    for _ in range(260):
        say(flooder, "much #tea")
    relations.mute(muter=tagger, muted=flooder)
    settle(tagger, workers)
    walked: list[int] = []
    last_id, pages = None, 0
    while True:
        with count_trips() as asked:
            page = home_page(User.objects.get(pk=tagger.pk), last_id=last_id)
        assert asked.statements <= 4
        walked += [int(item.id) for item in page.items]
        pages += 1
        if not page.has_more:
            break
        assert page.last_id is not None
        assert last_id is None or page.last_id < last_id
        last_id = page.last_id
    assert walked == shown == home_ids(tagger.pk)
    assert pages > 1, "a page ends at its bound"


@pytest.mark.parametrize("cap", [3, 100])
def test_an_edit_that_adds_a_hashtag_brings_an_old_post(
    cap: int, tagger: User, follow: Any, say: Say, workers: Workers, settings: Any
) -> None:
    settings.OUTBOX_CAP, settings.LEVEL_CAPS = cap, {3: cap}
    stranger = seen()
    old = say(stranger, "words")
    newer = [say(stranger, "#tea").pk for _ in range(6)][::-1]
    settle(tagger, workers)
    pages = [read(tagger, limit=3), read(tagger, last_id=newer[2], limit=9)]
    assert pages == [newer[:3], newer[3:]]
    items.edit(item=old, content={"text": "words of #tea"})
    for _ in range(2):
        pages = [read(tagger, limit=3), read(tagger, last_id=newer[2], limit=9)]
        assert pages == [newer[:3], [*newer[3:], old.pk]]
        time_passes()
        workers.work()
    assert not Delivery.objects.exists()
    assert list(differences([tagger.pk])) == []


def test_a_hashtag_that_an_edit_removes_is_forgotten_by_its_outbox_alone(
    tagger: User, follow: Any, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    friend = seen()
    follow(tagger, friend)
    item = say(friend, "#tea")
    other = seen()
    follow_tag(user=other, tag="tea")
    settle(tagger, workers)
    member = f"{friend.pk}:{item.pk}"
    assert feeds.zscore(key(), member) == item.pk
    items.edit(item=item, content={"text": "no more"})
    assert read(other) == []
    assert reasons(tagger) == {item.pk: "following"}
    assert feeds.zscore(key(), member) is None
    assert feeds.zscore(keys.inbox(tagger.pk), member) == item.pk
    items.edit(item=item, content={"text": "#tea after all"})
    assert read(other) == [item.pk], "from the table of deliveries"
    time_passes()
    assert feeds.zscore(key(), member) == item.pk
    assert read(other) == [item.pk]


def test_who_follows_another_hashtag_forgets_nothing(
    tagger: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    """The hint in Redis may name the old ones."""
    stranger = seen()
    item = say(stranger, "#tea")
    follow_tag(user=tagger, tag="milk")
    settle(tagger, workers)
    assert feeds.zscore(key(), f"{stranger.pk}:{item.pk}") == item.pk
    unfollow_tag(user=tagger, tag="tea")
    assert read(tagger) == []
    assert feeds.zscore(key(), f"{stranger.pk}:{item.pk}") == item.pk


@pytest.mark.parametrize("at", ["_deliver_to_tags", "_finish"])
def test_a_first_follow_during_a_delivery_misses_nothing(at: str, reader: User, say: Say, workers: Workers) -> None:
    """The claim ran before the follow."""
    item = say(seen(), "#tea")
    then = getattr(fanout, at)

    def follow_and_build(claim: Any) -> None:
        assert at == "_finish" or claim.tags == []
        follow_tag(user=reader, tag="tea")
        assert read(reader) == [item.pk]
        for name, args in list(workers.queue):
            if name != "timeline.fan_out":
                workers.queue.remove((name, args))
                workers.tasks[name](*args)
        assert read(reader) == [item.pk]
        then(claim)

    with patch.object(fanout, at, follow_and_build):
        assert fanout.fan_out(item.pk)
    assert not Delivery.objects.exists()
    assert (read(reader), sources(reader)) == ([item.pk], ["inbox", "outbox"])


def test_only_readers_keep_an_outbox_alive(tagger: User, say: Say, workers: Workers, feeds: redis.Redis) -> None:
    stranger = seen()
    say(stranger, "#tea")
    settle(tagger, workers)
    feeds.expire(key(), 60)
    say(stranger, "#tea")
    workers.work()
    assert feeds.zcard(key()) == 2 + OWN_MEMBERS
    assert 0 < feeds.ttl(key()) <= 60
    read(tagger)
    assert feeds.ttl(key()) > Window.ttl - 60
    feeds.delete(key())
    say(stranger, "#tea #nobody")
    workers.work()
    assert not feeds.exists(key())
    assert len(read(tagger)) == 3


def test_news_are_counted(tagger: User, say: Say, workers: Workers) -> None:
    stranger, muted = seen(), seen()
    relations.mute(muter=tagger, muted=muted)
    top = say(stranger, "#tea").pk
    for _ in range(2):
        assert new_count(User.objects.get(pk=tagger.pk), since_id=top) == (0, False)
        workers.work()
    say(stranger, "#tea")
    say(muted, "#tea")
    say(stranger, "#coffee")
    for _ in range(2):
        assert new_count(User.objects.get(pk=tagger.pk), since_id=top) == (1, False)
        workers.work()
    feeds_for_tasks().flushall()
    assert new_count(User.objects.get(pk=tagger.pk), since_id=top) == (1, False)
    for _ in range(home.NEW_CAP + 1):
        say(stranger, "#tea")
    assert new_count(User.objects.get(pk=tagger.pk), since_id=top) == (home.NEW_CAP, True)


def test_what_is_approved_later_arrives_late(tagger: User, say: Say) -> None:
    stranger, muted = seen(), seen()
    held = [say(one, "#tea") for one in (stranger, muted)]
    relations.mute(muter=tagger, muted=muted)
    for item in held:
        items.hold(item=item, reasons=["reported"])
    top, since = say(stranger, "#tea").pk, reading_state(tagger).now
    for item in held:
        items.approve(item=item)
    assert late_ids(Scope.home_of(tagger), since=since, top=top) == [held[0].pk]
    assert late_ids(Scope(tagger.pk), since=since, top=top) == []


def test_the_check_finds_what_an_outbox_lacks(tagger: User, say: Say, workers: Workers, feeds: redis.Redis) -> None:
    stranger = seen()
    item = say(stranger, "#tea")
    settle(tagger, workers)
    assert list(differences([tagger.pk])) == []
    feeds.zrem(key(), f"{stranger.pk}:{item.pk}")
    assert read(tagger) == [], "what every reading would lack"
    (difference,) = differences([tagger.pk])
    assert (difference.key, difference.kind, difference.ids) == (key(), "missing", (item.pk,))
    repair([difference])
    assert read(tagger) == [item.pk]


def test_hashtags_that_come_without_deliveries_are_seen(tagger: User, say: Say, workers: Workers) -> None:
    item = say(seen(), "words")
    settle(tagger, workers)
    Item.objects.filter(pk=item.pk).update(content={"text": "words of #tea"})
    call_command("reindex", verbosity=0)
    assert read(tagger) == [item.pk] == home_ids(tagger.pk)


def test_a_reader_without_followed_hashtags_is_served_as_before(reader: User, say: Say, workers: Workers) -> None:
    say(seen(), "#tea")
    follow_tag(user=UserFactory(), tag="tea")
    settle(reader, workers)
    with (
        patch("timeline.truth.VERIFY_TAGGED", "no statement"),
        patch("timeline.truth.VERIFY_TAGGED_LAST", "no statement"),
    ):
        assert read(reader) == []
