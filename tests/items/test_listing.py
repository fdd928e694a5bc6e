"""Hidden items must not make work unbounded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from accounts.models import User
from items import actions as items
from items import listing
from items.hydrate import hydrate
from items.listing import ItemPage
from items.models import Item, ItemType
from items.profiles.profile import own_replies_page, pictured_page, profile_page, replies_page
from relations.actions import block
from tests.support.factories import ItemFactory, UserFactory
from tests.support.picture_posts import sent

pytestmark = pytest.mark.django_db

STRANGER = AnonymousUser()


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SCAN", 6)


def walk(page_from: Callable[[int | None], ItemPage]) -> list[list[int]]:
    pages: list[list[int]] = []
    last_id = None
    for _ in range(20):
        page = page_from(last_id)
        pages.append([int(item.id) for item in page.items])
        if not page.has_more:
            return pages
        assert page.last_id is not None
        last_id = int(page.last_id)
    raise AssertionError("the walk does not end")


def hidden_reposts(sender: User, count: int) -> None:
    for _ in range(count):
        ItemFactory(sender=sender, repost_of=ItemFactory(status="deleted"))


@pytest.mark.slow
def test_a_profile_ends_short_at_its_bound_and_goes_on() -> None:
    sender = UserFactory()
    first = ItemFactory(sender=sender)
    hidden_reposts(sender, 20)
    last = ItemFactory(sender=sender)
    pages = walk(lambda last_id: profile_page(sender, STRANGER, last_id=last_id, limit=4))
    assert pages == [[last.pk], [], [], [first.pk]]


@pytest.mark.parametrize("visibility", ["followers", "mutuals", "self"])
def test_a_profile_does_not_pass_what_is_for_others_one_by_one(visibility: str) -> None:
    sender = UserFactory()
    shown = [ItemFactory(sender=sender).pk for _ in range(3)]
    for _ in range(20):
        ItemFactory(sender=sender, visibility=visibility)
    assert walk(lambda last_id: profile_page(sender, STRANGER, last_id=last_id, limit=4)) == [shown[::-1]]


def test_every_visibility_of_a_profile_in_one_order() -> None:
    sender = UserFactory()
    for visibility in ("public", "followers", "mutuals", "self") * 3:
        ItemFactory(sender=sender, visibility=visibility)
    ItemFactory(sender=sender, status="in_review")
    seen = [
        item_id for page in walk(lambda last: profile_page(sender, sender, last_id=last, limit=4)) for item_id in page
    ]
    assert seen == list(Item.objects.filter(sender=sender).order_by("-pk").values_list("pk", flat=True))


@pytest.mark.slow
def test_threads_and_answers_end_short_too() -> None:
    writer = UserFactory()
    root = ItemFactory(sender=writer)
    items.publish(sender=writer, content={"text": "first"}, reply_to=root)
    for _ in range(20):
        items.delete(item=items.publish(sender=writer, content={"text": "gone"}, reply_to=root))
    for _ in range(20):
        items.publish(sender=writer, content={"text": "psst"}, reply_to=root, visibility="self")
    items.publish(sender=writer, content={"text": "last"}, reply_to=root)
    ids = list(Item.objects.filter(content__text__in=["first", "last"]).order_by("pk").values_list("pk", flat=True))
    body = hydrate([root.pk], STRANGER)[0]
    for page_from, expected in [
        (lambda last_id: replies_page(body, STRANGER, last_id=last_id, limit=4), ids),
        (lambda last_id: own_replies_page(writer, STRANGER, last_id=last_id, limit=4), ids[::-1]),
    ]:
        pages = walk(page_from)
        assert [item_id for page in pages for item_id in page] == expected
        assert len(pages) > 3


@pytest.mark.slow
def test_pictures_are_found_however_little_of_a_profile_has_any(media_folder: Path) -> None:
    writer: User = UserFactory.create(username="writer")

    def pictured(**fields: Any) -> Item:
        return items.publish(sender=writer, type=ItemType.IMAGE, content={"media": [sent(writer)]}, **fields)

    root = items.publish(sender=writer, content={"text": "first"})
    first = pictured()
    for _ in range(20):
        items.publish(sender=writer, content={"text": "words"})
    for _ in range(2):
        items.delete(item=pictured())
        pictured(visibility="self")
    last = pictured(reply_to=root)
    pages = walk(lambda last_id: pictured_page(writer, STRANGER, last_id=last_id, limit=1))
    assert pages == [[last.pk], [first.pk]]
    assert len(pictured_page(writer, writer).items) == 4
    reader: User = UserFactory.create()
    block(blocker=writer, blocked=reader)
    assert pictured_page(writer, reader).items == []


def test_a_short_page_is_not_said_to_be_empty(client: Client) -> None:
    sender = UserFactory(username="sender")
    ItemFactory(sender=sender)
    hidden_reposts(sender, 20)
    page = client.get("/@sender").content.decode()
    assert "Nothing here yet." not in page
    assert 'rel="next"' in page
