"""tests/discover/test_history.py checks what counts as opening."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from items import actions as items
from items.hydrate import hydrate
from items.models import Item
from items.signals import item_viewed
from items.viewing import announce_view
from tests.support.factories import ItemFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def told() -> Iterator[list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []

    def listen(sender: type[Item], **kwargs: Any) -> None:
        said.append(kwargs)

    item_viewed.connect(listen)
    yield said
    item_viewed.disconnect(listen)


def test_of_the_original_and_of_the_replies_in_their_order(client: Client, told: list[dict[str, Any]]) -> None:
    reader = UserFactory()
    client.force_login(reader)
    root: Item = ItemFactory()
    replies = [str(ItemFactory(reply_to=root).pk) for _ in range(3)]
    repost, _ = items.repost(sender=UserFactory(), item=root)
    for prefix, shown in (("", replies), ("/api/v1", [])):
        told.clear()
        assert client.get(f"{prefix}/items/{repost.pk}").status_code == 200
        (one,) = told
        assert (one["reader"], one["item"].id) == (reader, str(root.pk))
        assert [reply.id for reply in one["replies"]] == shown


def test_it_is_told_when_the_answer_has_been_sent(told: list[dict[str, Any]]) -> None:
    reader = UserFactory()
    item: Item = ItemFactory()
    request = RequestFactory().get(f"/items/{item.pk}")
    response = HttpResponse("the page")
    announce_view(request, response, hydrate([item.pk], reader)[0], reader)
    assert told == [], "the reader does not have the page yet"
    response.close()
    assert [one["item"].id for one in told] == [str(item.pk)]


@pytest.mark.slow
def test_views_of_own_items_and_by_strangers_are_not_told(client: Client, told: list[dict[str, Any]]) -> None:
    own: Item = ItemFactory()
    repost, _ = items.repost(sender=UserFactory(), item=own)
    client.get(f"/items/{own.pk}")
    client.force_login(own.sender)
    for item in (own, repost):
        client.get(f"/items/{item.pk}")
    assert told == []
    client.force_login(repost.sender)
    client.get(f"/items/{repost.pk}")
    assert len(told) == 1, "what one reposted is by somebody else"
