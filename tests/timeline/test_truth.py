"""A page's first check agrees with the conditions asked row by row."""

import pytest

from accounts.models import User
from items import actions as items
from items.models import Item, Status, Visibility
from relations.models import Block, Follow, List, ListMember, Mute
from storage.window import INFINITY
from tests.support.factories import ItemFactory, UserFactory
from timeline.models import Delivery
from timeline.senders import Scope
from timeline.truth import Truth, fetch_items, verify

pytestmark = pytest.mark.django_db


def asked(reader: User, found: list[Item], *, senders: list[int] | None = None) -> Truth:
    ids = [item.pk for item in found]
    known = [item.sender_id for item in found] if senders is None else senders
    return verify(Scope(reader.pk), ids, known, before=INFINITY, count=50, pushes=0)


def everyone(reader: User) -> dict[str, User]:
    names = ("stranger", "followed", "mutual", "blocked", "blocker", "muted", "suspended", "listed", "unreposted")
    senders = {name: UserFactory(is_active=name != "suspended") for name in names}
    for name, sender in senders.items():
        if name != "stranger":
            Follow.objects.create(follower=reader, followee=sender)
    Follow.objects.create(follower=senders["mutual"], followee=reader)
    Block.objects.create(blocker=reader, blocked=senders["blocked"])
    Block.objects.create(blocker=senders["blocker"], blocked=reader)
    Mute.objects.create(muter=reader, muted=senders["muted"])
    exclusive = List.objects.create(owner=reader, title="out of home", is_exclusive=True)
    ListMember.objects.create(list=exclusive, owner=reader, member=senders["listed"])
    other = List.objects.create(owner=reader, title="in home")
    ListMember.objects.create(list=other, owner=reader, member=senders["followed"])
    Follow.objects.filter(followee=senders["unreposted"]).update(reposts=False)
    return senders | {"reader": reader}


@pytest.mark.slow
def test_the_first_look_at_a_page_says_of_each_item_what_its_own_row_says() -> None:
    reader = UserFactory()
    senders = everyone(reader)
    found = [
        ItemFactory(sender=sender, visibility=visibility, status=status)
        for sender in senders.values()
        for visibility in Visibility.values
        for status in (Status.PUBLISHED, Status.DELETED)
    ]
    post = found[0]
    found += [ItemFactory(sender=sender, reply_to=post) for sender in senders.values()]
    for sender in (reader, senders["stranger"]):
        items.like(user=sender, item=post)
        items.bookmark(user=sender, item=post)
    ItemFactory(sender=reader, repost_of=post, type="repost")
    rows = asked(reader, found).rows
    assert rows == fetch_items(Scope(reader.pk), [item.pk for item in found])
    entries = {row.item.said.sender_id for row in rows.values() if row.is_entry}
    assert entries == {reader.pk, *(senders[name].pk for name in ("followed", "mutual", "unreposted"))}
    assert rows[post.pk].item.counts[0] == 2
    met = rows[post.pk].item
    assert (met.is_liked, met.is_reposted, met.is_bookmarked) == (True, True, True)


def test_reposts_belong_as_their_own_rows_say() -> None:
    reader = UserFactory()
    senders = everyone(reader)
    original = ItemFactory()
    found = {name: ItemFactory(sender=one, repost_of=original, type="repost") for name, one in senders.items()}
    rows = asked(reader, list(found.values())).rows
    alone = fetch_items(Scope(reader.pk), [item.pk for item in found.values()])
    assert {name for name, item in found.items() if rows[item.pk].is_entry} == {"reader", "followed", "mutual"}
    assert {pk: row.belongs for pk, row in rows.items()} == {pk: row.belongs for pk, row in alone.items()}


def test_a_repost_has_its_original_asked_for_later() -> None:
    reader, sender = UserFactory(), UserFactory()
    Follow.objects.create(follower=reader, followee=sender)
    repost = ItemFactory(sender=sender, repost_of=ItemFactory(), type="repost")
    row = asked(reader, [repost]).rows[repost.pk]
    assert (row.is_entry, row.shown) == (True, None)
    assert (row.has_shown_original, row.item.original) == (None, None)
    assert fetch_items(Scope(reader.pk), [repost.pk])[repost.pk].shown


def test_pending_items_are_verified_with_senders_of_their_own() -> None:
    reader = UserFactory()
    senders = everyone(reader)
    pending = {name: ItemFactory(sender=sender) for name, sender in senders.items()}
    for item in pending.values():
        Delivery.objects.create(item=item, sender=item.sender)
    truth = asked(reader, [])
    assert truth.pending == {item.pk for name, item in pending.items() if name != "stranger"}
    assert truth.rows == fetch_items(Scope(reader.pk), sorted(truth.pending))
    shown = {item_id for item_id, row in truth.rows.items() if row.shown}
    assert shown == {pending[name].pk for name in ("reader", "followed", "mutual", "unreposted")}


def test_pending_items_end_at_the_newest_that_were_asked_for() -> None:
    reader, stranger = UserFactory(), UserFactory()
    mine = [ItemFactory(sender=reader) for _ in range(4)]
    for item in [*mine, *(ItemFactory(sender=stranger) for _ in range(3))]:
        Delivery.objects.create(item=item, sender=item.sender)
    few = verify(Scope(reader.pk), [], [], before=INFINITY, count=2, pushes=0)
    assert few.pending == {item.pk for item in mine[2:]}
    assert few.pending_bound == mine[2].pk - 1
    all_of_them = verify(Scope(reader.pk), [], [], before=INFINITY, count=5, pushes=0)
    assert (all_of_them.pending, all_of_them.pending_bound) == ({item.pk for item in mine}, 0)
    below = verify(Scope(reader.pk), [], [], before=mine[1].pk, count=5, pushes=0)
    assert below.pending == {mine[0].pk}


def test_an_item_of_another_sender_than_a_window_says_does_not_belong() -> None:
    reader = UserFactory()
    senders = everyone(reader)
    blocked, followed = (ItemFactory(sender=senders[name]) for name in ("blocked", "followed"))
    rows = asked(reader, [blocked, followed], senders=[followed.sender_id]).rows
    assert not rows[blocked.pk].belongs
    assert rows[followed.pk].shown
    assert not asked(reader, [followed], senders=[blocked.sender_id]).rows[followed.pk].belongs
