import itertools
from typing import Any

import pytest
from django.db import connection

from accounts.models import User
from items import actions as items
from items.models import Item, ItemTag, Status, Visibility
from items.search.indexing import reindex
from items.visibility import public_post
from tests.support.factories import ItemFactory, UserFactory, say

pytestmark = pytest.mark.django_db


def told(item: Item) -> set[bool]:
    return set(ItemTag.objects.filter(item=item).values_list("is_public_post", flat=True))


def is_public_post(item: Item) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {public_post('i')} FROM items_item i WHERE i.id = %s", [item.pk])
        row: Any = cursor.fetchone()
    return bool(row[0])


@pytest.fixture
def sender() -> User:
    return UserFactory()


@pytest.mark.parametrize("kind", ["post", "reply", "repost"])
def test_whatever_state_an_item_is_written_in_and_brought_to(sender: User, kind: str) -> None:
    other = ItemFactory()
    fields = {"post": {}, "reply": {"reply_to": other, "root": other}, "repost": {"repost_of": other}}[kind]
    states = list(itertools.product(Status.values, Visibility.values))
    for status, visibility in states:
        item = ItemFactory(sender=UserFactory(), status=status, visibility=visibility, **fields)
        ItemTag.objects.create(tag="one", item=item)
        ItemTag.objects.create(tag="two", item=item)
        assert told(item) == {is_public_post(item)}, (status, visibility)
        for later in (("published", "public"), *states[:: 1 + len(states) // 5], (status, visibility)):
            Item.objects.filter(pk=item.pk).update(status=later[0], visibility=later[1])
            assert told(item) == {is_public_post(item)}, (status, visibility, later)


def test_the_verbs(sender: User) -> None:
    item = say(sender, "#tea and #coffee")
    assert told(item) == {True}
    items.hold(item=item, reasons=["reported"])
    assert told(item) == {False}
    items.edit(item=item, content={"text": "#tea and #cocoa"})
    assert told(item) == {False}
    items.approve(item=item)
    assert told(item) == {True}
    items.change_visibility(item=item, visibility="followers")
    assert told(item) == {False}
    items.change_visibility(item=item, visibility="public")
    items.edit(item=item, content={"text": "#tea and #milk"})
    assert set(ItemTag.objects.values_list("tag", "is_public_post")) == {("tea", True), ("milk", True)}
    items.delete(item=item)
    assert told(item) == {False}
    assert told(say(sender, "#tea", reply_to=say(sender))) == {False}
    assert told(say(sender, "#tea", visibility="followers")) == {False}
    items.restore(item=item)
    reindex()
    assert told(item) == {True}
