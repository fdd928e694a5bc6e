"""Items in the admin: found by id and sender, hidden and brought back, never edited."""

from typing import Any

import pytest
from django.test import Client

from items.models import Item, Status
from tests.admin import act, text
from tests.factories import ItemFactory, UserFactory

pytestmark = pytest.mark.django_db

ITEMS = "/admin/items/item/"


@pytest.fixture
def items() -> list[Item]:
    sender, other = UserFactory.create(username="sender"), UserFactory.create(username="42")
    return [
        ItemFactory.create(sender=sender, content={"text": "first words"}),
        ItemFactory.create(sender=sender, status=Status.DELETED),
        ItemFactory.create(sender=other, visibility="followers"),
    ]


def shown(admin_client: Client, **query: str) -> list[Item]:
    response = admin_client.get(ITEMS, query)
    assert response.status_code == 200
    return list(response.context["cl"].result_list)


def test_items_are_found_by_id_and_sender(admin_client: Client, items: list[Item]) -> None:
    first, deleted, other = items
    assert shown(admin_client) == [other, deleted, first]
    assert shown(admin_client, q=str(first.pk)) == [first]
    assert shown(admin_client, q="SENDER") == [deleted, first]
    assert shown(admin_client, q="@sender") == [deleted, first]
    assert shown(admin_client, q="42") == [other]
    assert shown(admin_client, q="nobody") == []
    assert shown(admin_client, q="9" * 40) == []
    assert shown(admin_client, status__exact="deleted") == [deleted]
    assert shown(admin_client, visibility__exact="followers") == [other]


def test_the_list_of_items_names_senders_without_asking_for_each(
    admin_client: Client, items: list[Item], django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(5):  # session, user, estimate, count, rows
        page = text(admin_client.get(ITEMS))
    assert "first words" in page


def test_items_are_hidden_and_brought_back(admin_client: Client, items: list[Item]) -> None:
    first, deleted, _ = items
    assert "1 item deleted." in text(act(admin_client, ITEMS, "delete", first, deleted))
    assert set(Item.objects.filter(status=Status.DELETED)) == {first, deleted}
    assert "2 items restored." in text(act(admin_client, ITEMS, "restore", first, deleted))
    assert not Item.objects.filter(status=Status.DELETED).exists()


def test_too_many_at_once(admin_client: Client, items: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("items.admin.AT_ONCE", 2)
    assert "At most 2 items at once." in text(act(admin_client, ITEMS, "delete", *items))
    assert Item.objects.filter(status=Status.DELETED).count() == 1


def test_what_was_said_is_neither_edited_nor_removed(admin_client: Client, items: list[Item]) -> None:
    item = items[0]
    url = f"{ITEMS}{item.pk}/change/"
    assert "first words" in text(admin_client.get(url))
    assert admin_client.post(url, {"title": "another"}).status_code == 403
    assert admin_client.post(f"{ITEMS}{item.pk}/delete/", {"post": "yes"}).status_code == 403
    assert admin_client.get(f"{ITEMS}add/").status_code == 403
    act(admin_client, ITEMS, "delete_selected", item, post="yes")
    assert Item.objects.get(pk=item.pk).title == ""
