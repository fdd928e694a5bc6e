"""All combinations of status, visibility and relation."""

from itertools import product

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction

from accounts.models import User
from items.models import Item, Status, Visibility
from relations import actions
from tests.support.factories import ItemFactory, UserFactory

pytestmark = pytest.mark.django_db

# Relation to the sender → visibilities that the reader may see.
MATRIX = {
    "nobody": {"public"},
    "stranger": {"public"},
    "follower": {"public", "followers"},
    "followed": {"public"},
    "mutual": {"public", "followers", "mutuals"},
    "follower who blocks": set(),
    "blocked follower": set(),
    "blocking each other": set(),
    "muting mutual": {"public", "followers", "mutuals"},
    "sender": {"public", "followers", "mutuals", "self", "mentioned"},
}


def related(relation: str, sender: User) -> User | AnonymousUser:
    if relation == "nobody":
        return AnonymousUser()
    if relation == "sender":
        return sender
    reader = UserFactory.create()
    if relation in {"follower", "mutual", "muting mutual", "follower who blocks", "blocked follower"}:
        actions.follow(follower=reader, followee=sender)
    if relation in {"followed", "mutual", "muting mutual"}:
        actions.follow(follower=sender, followee=reader)
    if relation in {"follower who blocks", "blocking each other"}:
        actions.block(blocker=reader, blocked=sender)
    if relation in {"blocked follower", "blocking each other"}:
        actions.block(blocker=sender, blocked=reader)
    if relation == "muting mutual":
        actions.mute(muter=reader, muted=sender)
    return reader


def of_all_kinds(sender: User) -> dict[tuple[str, str], int]:
    return {
        (status, visibility): ItemFactory.create(sender=sender, status=status, visibility=visibility).pk
        for status, visibility in product(Status.values, Visibility.values)
    }


@pytest.mark.parametrize("relation", MATRIX)
def test_visible_to(relation: str) -> None:
    sender = UserFactory.create()
    items = of_all_kinds(sender)
    reader = related(relation, sender)
    statuses = {"published", "in_review", "rejected"} if relation == "sender" else {"published"}
    expected = {items[kind] for kind in product(statuses, MATRIX[relation])}
    assert set(Item.objects.visible_to(reader).values_list("pk", flat=True)) == expected


@pytest.mark.parametrize("relation", MATRIX)
def test_an_inactive_sender_is_seen_by_themself_only(relation: str) -> None:
    sender = UserFactory.create()
    of_all_kinds(sender)
    reader = related(relation, sender)
    User.objects.filter(pk=sender.pk).update(is_active=False)
    assert Item.objects.visible_to(reader).count() == (3 * len(Visibility) if relation == "sender" else 0)


@pytest.mark.parametrize("relation", ["follower", "mutual", "blocked follower"])
def test_what_stands_between_others_does_not_matter(relation: str) -> None:
    sender = UserFactory.create()
    item = ItemFactory.create(sender=sender)
    hidden = ItemFactory.create(sender=sender, visibility=Visibility.FOLLOWERS)
    related(relation, sender)
    bystander = UserFactory.create()
    assert list(Item.objects.visible_to(bystander)) == [item]
    assert hidden not in Item.objects.visible_to(AnonymousUser())


def test_the_other_verbs_of_reading() -> None:
    sender = UserFactory.create()
    root = ItemFactory.create(sender=sender)
    reply = ItemFactory.create(reply_to=root)
    repost = ItemFactory.create(repost_of=root)
    ItemFactory.create(sender=sender, status=Status.DELETED)
    shown_to_fewer = ItemFactory.create(sender=sender, visibility=Visibility.FOLLOWERS)
    assert set(Item.objects.published()) == {root, reply, repost, shown_to_fewer}
    assert set(Item.objects.public_posts()) == {root}


@pytest.mark.parametrize("item_id", [0, -1, 2**53])
def test_an_id_has_53_bits(item_id: int) -> None:
    with pytest.raises(IntegrityError, match="item_id_53_bits"), transaction.atomic():
        ItemFactory.create(id=item_id)


@pytest.mark.parametrize(("content", "text"), [({"text": "a"}, "a"), ({}, ""), ({"text": 5}, "")])
def test_the_text_of_an_item(content: dict[str, object], text: str) -> None:
    assert Item(content=content).text == text
