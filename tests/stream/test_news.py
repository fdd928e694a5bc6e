"""Compared with the oracle and the rule for single items."""

import json
import random
from typing import Any

import pytest
from django.db.models import Model

from accounts.deactivation import deactivate
from accounts.models import User
from items import actions as items
from items.models import Item, ItemTag, Status, Visibility
from items.profiles.profile import find_item
from items.threads.hiding import hide_reply, show_reply
from relations import actions as relations
from relations import lists
from relations.models import Block, Follow, Mute
from relations.tags import follow_tag
from storage import keys
from storage.events import Edited, Entry, Event, Gap, Listener, Notified, Position, Published, Withdrawn, event_of
from stream.news import news_for
from tests.support.factories import ItemFactory, UserFactory
from tests.support.statements import statements
from timeline.oracle import home_ids

pytestmark = pytest.mark.django_db


def entries(*events: Event | None) -> list[Entry]:
    return [(Position(1, number), event) for number, event in enumerate(events)]


def heard(listeners: list[Listener], *events: Event) -> dict[Listener, list[tuple[str, str]]]:
    """(name, data) for each listener, in order."""
    told: dict[Listener, list[tuple[str, str]]] = {listener: [] for listener in listeners}
    for listener, _, data in news_for(listeners, entries(*events)):
        name, _, payload = data.decode().removeprefix("event: ").partition("\nid: ")
        for each in [listener] if listener else listeners:
            told[each].append((name, payload.partition("\ndata: ")[2].strip()))
    return told


def at_home(*users: User) -> list[Listener]:
    return [Listener(user.pk, 0) for user in users]


def test_members_of_exclusive_lists_are_told_of_and_marked() -> None:
    sender, listing, plain = UserFactory(), UserFactory(), UserFactory()
    for reader in (listing, plain):
        relations.follow(follower=reader, followee=sender)
        made = lists.create(owner=reader, title="a list", is_exclusive=reader == listing)
        lists.add(owner=reader, list_id=made.pk, member=sender)
    item = ItemFactory(sender=sender)
    told = heard(at_home(listing, plain), Published(item.pk), Edited(item.pk, "public"))
    edit = ("edit", f'{{"id":"{item.pk}"}}')
    assert told[Listener(listing.pk, 0)] == [("item", f'{{"id":"{item.pk}","exclusive":true}}'), edit]
    assert told[Listener(plain.pk, 0)] == [("item", f'{{"id":"{item.pk}"}}'), edit]
    items.delete(item=item)
    gone = heard(at_home(listing), Withdrawn(item.pk, "public"))
    assert gone[Listener(listing.pk, 0)] == [("delete", f'{{"id":"{item.pk}"}}')]


def test_followers_of_a_hashtag_are_told_while_its_posts_are_in_their_home() -> None:
    sender, plain, both, muting = UserFactory.create_batch(4)
    for reader in (plain, both, muting):
        follow_tag(user=reader, tag="tea")
    follow_tag(user=both, tag="milk")
    relations.follow(follower=both, followee=sender)
    relations.mute(muter=muting, muted=sender)
    item = items.publish(sender=sender, content={"text": "#tea with #milk"})
    told = heard(at_home(plain, both, muting), Published(item.pk))
    once = [("item", f'{{"id":"{item.pk}"}}')]
    assert list(told.values()) == [once, once, []]
    items.change_visibility(item=item, visibility="followers")
    told = heard(at_home(plain, both, muting), Edited(item.pk, "public"))
    assert list(told.values()) == [[("delete", f'{{"id":"{item.pk}"}}')], [("edit", f'{{"id":"{item.pk}"}}')], []]


def test_an_event_is_spelled_as_browsers_read_it() -> None:
    user = UserFactory()
    ((listener, position, data),) = news_for(at_home(user), entries(Notified(user.pk, {"text": "a\nb"})))
    assert (listener, position) == (Listener(user.pk, 0), Position(1, 0))
    assert data == b'event: notification\nid: 1-0\ndata: {"text":"a\\nb"}\n\n'


@pytest.mark.slow
def test_news_reach_whose_home_shows_it_and_nobody_else() -> None:
    sender, inactive = UserFactory(), UserFactory()
    readers = [sender, *UserFactory.create_batch(24)]
    chance = random.Random(7)  # noqa: S311 (a mix, not a secret)
    for reader in readers[1:]:
        standings: list[tuple[float, Model]] = [
            (0.8, Follow(follower=reader, followee=sender)),
            (0.5, Follow(follower=sender, followee=reader)),
            (0.1, Block(blocker=reader, blocked=sender)),
            (0.1, Block(blocker=sender, blocked=reader)),
            (0.1, Mute(muter=reader, muted=sender)),
        ]
        for share, standing in standings:
            if chance.random() < share:
                standing.save()
        for tag in ("tea", "milk"):
            if chance.random() < 0.2:
                follow_tag(user=reader, tag=tag)
    Follow.objects.get_or_create(follower=readers[1], followee=inactive)
    deactivate(user=inactive)
    published = [
        ItemFactory(sender=sender, visibility=visibility, status=status)
        for visibility in Visibility.values
        for status in Status.values
    ]
    reply = ItemFactory(sender=sender, reply_to=published[0])
    hidden = ItemFactory(sender=inactive)
    for item in [*published, reply, hidden]:
        ItemTag.objects.create(tag="tea", item=item)
        ItemTag.objects.create(tag="milk", item=item)
    told = heard(at_home(*readers), *(Published(item.pk) for item in [*published, reply, hidden]))
    audience = 0
    for reader in readers:
        expected = [str(item_id) for item_id in reversed(home_ids(reader.pk))]
        assert told[Listener(reader.pk, 0)] == [("item", f'{{"id":"{item_id}"}}') for item_id in expected]
        audience += bool(expected)
    assert 5 < audience < 20, "some do and some do not"


@pytest.mark.parametrize("status", [Status.DELETED, Status.REJECTED, Status.IN_REVIEW])
def test_readers_who_saw_it_are_told_that_it_is_gone(status: str) -> None:
    sender, fan, stranger, friend = UserFactory.create_batch(4)
    Follow.objects.create(follower=fan, followee=sender)
    Follow.objects.create(follower=friend, followee=sender)
    Follow.objects.create(follower=sender, followee=friend)
    public = ItemFactory(sender=sender, status=status)
    mutuals = ItemFactory(sender=sender, status=status, visibility="mutuals")
    told = heard(
        at_home(sender, fan, stranger, friend), Withdrawn(public.pk, "public"), Withdrawn(mutuals.pk, "mutuals")
    )
    both = [("delete", f'{{"id":"{item.pk}"}}') for item in (public, mutuals)]
    assert list(told.values()) == [both, both[:1], [], both]


def test_an_item_shown_to_fewer_is_gone_for_the_others() -> None:
    sender, fan, stranger, friend = UserFactory.create_batch(4)
    Follow.objects.create(follower=fan, followee=sender)
    Follow.objects.create(follower=friend, followee=sender)
    Follow.objects.create(follower=sender, followee=friend)
    item = ItemFactory(sender=sender, visibility="mutuals")
    data = f'{{"id":"{item.pk}"}}'
    told = heard(at_home(sender, fan, stranger, friend), Edited(item.pk, "public"))
    assert list(told.values()) == [[("edit", data)], [("delete", data)], [], [("edit", data)]]
    told = heard(at_home(sender, fan, stranger, friend), Edited(item.pk, "self"))
    assert list(told.values()) == [[("edit", data)], [], [], [("edit", data)]]


def test_an_item_that_was_restored_meanwhile_is_not_said_to_be_gone() -> None:
    sender = UserFactory()
    item = ItemFactory(sender=sender)
    assert heard(at_home(sender), Withdrawn(item.pk, "public")) == {
        Listener(sender.pk, 0): [("edit", f'{{"id":"{item.pk}"}}')]
    }


def test_an_open_page_of_an_item_hears_of_it_and_of_its_replies() -> None:
    sender, other, blocked, stranger = UserFactory.create_batch(4)
    item = ItemFactory(sender=sender)
    elsewhere = ItemFactory(sender=sender)
    Block.objects.create(blocker=other, blocked=blocked)
    reply = ItemFactory(sender=other, reply_to=item)
    secret = ItemFactory(sender=other, reply_to=item, visibility="followers")
    gone = ItemFactory(sender=other, reply_to=item, status=Status.DELETED)
    watching = [Listener(user.pk, item.pk) for user in (stranger, blocked, other)]
    told = heard(
        [*watching, Listener(stranger.pk, 0), Listener(stranger.pk, elsewhere.pk)],
        Edited(item.pk, "public"),
        Published(reply.pk),
        Published(secret.pk),
        Withdrawn(gone.pk, "public"),
    )
    names = [[(name, int(json.loads(data)["id"])) for name, data in one] for one in told.values()]
    assert told[watching[0]][1] == ("item", f'{{"id":"{reply.pk}","reply_to":"{item.pk}"}}')
    mine = [("edit", item.pk), ("item", reply.pk), ("delete", gone.pk)]
    assert names[0] == mine
    assert names[1] == mine[:1]
    assert names[2] == [*mine[:2], ("item", secret.pk), mine[2]]
    assert names[3:] == [[], []]
    for user, told_of in zip((stranger, blocked, other), names, strict=False):
        for shown in (item, reply, secret):
            assert any(item_id == shown.pk for _, item_id in told_of) is (find_item(shown.pk, user) is not None)


def test_a_held_item_stays_on_its_senders_page() -> None:
    """Its own page shows the status."""
    sender = UserFactory()
    item = ItemFactory(sender=sender, status=Status.IN_REVIEW)
    told = heard([Listener(sender.pk, 0), Listener(sender.pk, item.pk)], Withdrawn(item.pk, "public"))
    assert [[name for name, _ in one] for one in told.values()] == [["delete"], ["edit"]]


def test_notifications_reach_all_pages_of_their_user_and_a_gap_everybody() -> None:
    user, other = UserFactory.create_batch(2)
    item = ItemFactory(sender=other)
    listeners = [*at_home(user, other), Listener(user.pk, item.pk)]
    told = heard(listeners, Notified(user.pk, {"unread": 3}), Gap())
    note, reset = ("notification", '{"unread":3}'), ("reset", "{}")
    assert list(told.values()) == [[note, reset], [reset], [note, reset]]


def test_unknown_events_are_passed_over() -> None:
    user = UserFactory()
    assert news_for(at_home(user), entries(None, Published(2**53 - 1), Withdrawn(5, "public"))) == []


def test_one_query_answers_for_everybody() -> None:
    senders, readers = UserFactory.create_batch(3), UserFactory.create_batch(30)
    Follow.objects.bulk_create(Follow(follower=reader, followee=sender) for reader in readers for sender in senders)
    made = [ItemFactory(sender=sender) for sender in senders for _ in range(10)]
    listeners = [*at_home(*readers), *(Listener(reader.pk, made[0].pk) for reader in readers)]
    with statements() as seen:
        messages = news_for(listeners, entries(*(Published(item.pk) for item in made)))
    assert len(seen) == 1
    assert len(messages) == 30 * 2 * 30
    with statements() as seen:
        assert news_for([], entries(Published(made[0].pk))) == []
        news_for(listeners, entries(Notified(readers[0].pk, {})))
    assert seen == []


def test_verbs_are_announced_when_they_commit(
    feeds: Any, django_capture_on_commit_callbacks: Any, say: Any, reader: User
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        item: Item = say(reader)
        reply = say(reader, reply_to=item)
        assert not feeds.exists(keys.events())
    with django_capture_on_commit_callbacks(execute=True):
        items.edit(item=item, content={"text": "other words"})
        items.change_repliable(item=item, repliable_by="nobody")
        hide_reply(user=reader, root_id=item.pk, reply_id=reply.pk)
        show_reply(user=reader, root_id=item.pk, reply_id=reply.pk)
        items.delete(item=item)
    announced = [event_of(fields) for _, fields in feeds.xrange(keys.events())]
    assert announced[:2] == [Published(item.pk), Published(reply.pk)]
    assert announced[2:4] == [Edited(item.pk, "public"), Edited(item.pk, "public")]
    assert announced[4:6] == [Edited(reply.pk, "public"), Published(reply.pk)]
    assert announced[6:] == [Withdrawn(item.pk, "public")]
