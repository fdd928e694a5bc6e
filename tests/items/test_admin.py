from typing import Any

import pytest
from django.test import Client

from items import actions
from items.admin import ItemAdmin
from items.models import Item, Status
from tests.support.admin import act, text
from tests.support.factories import ItemFactory, UserFactory

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_items_are_found_by_their_words_whatever_their_status(admin_client: Client) -> None:
    sender = UserFactory.create(username="sender")
    post = actions.publish(sender=sender, content={"text": "buy cheap watches #sale"})
    gone = actions.publish(sender=sender, content={"text": "cheap tickets"}, visibility="self")
    actions.delete(item=gone)
    actions.publish(sender=sender, content={"text": "nothing of it"})
    assert shown(admin_client, q="cheap") == [gone, post]
    assert shown(admin_client, q="cheap watches") == [post]
    assert shown(admin_client, q='"cheap watches"') == [post]
    assert shown(admin_client, q="#sale") == [post]
    assert shown(admin_client, q="cheap", status__exact="deleted") == [gone]
    assert shown(admin_client, q="@cheap") == []


def test_words_of_too_many_are_told(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("items.admin.FOUND", 2)
    sender = UserFactory.create()
    sent = [actions.publish(sender=sender, content={"text": f"cheap {number}"}) for number in range(4)]
    page = text(admin_client.get(ITEMS, {"q": "cheap"}))
    assert "More than 2 posts match" in page
    assert str(sent[3].pk) in page
    assert str(sent[0].pk) not in page


def test_words_too_frequent_to_be_looked_for_everywhere_are_told(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = UserFactory.create()
    sent = [actions.publish(sender=sender, content={"text": f"cheap {number}"}) for number in range(20)]
    monkeypatch.setattr("items.search.search.WALK", 2)
    monkeypatch.setattr("items.search.search.STEP", 2)
    monkeypatch.setattr("items.search.search.INDEXED", -1)
    page = text(admin_client.get(ITEMS, {"q": "cheap"}))
    assert "These words are very common. Only the newest posts are searched" in page
    assert str(sent[-1].pk) in page
    assert str(sent[0].pk) not in page


def test_the_page_of_an_item_is_for_people(admin_client: Client) -> None:
    sender = UserFactory.create(username="sender")
    root = ItemFactory.create(sender=sender)
    item = ItemFactory.create(
        sender=sender, content={"text": "a <b>\nline", "url": "https://x.example"}, reply_to=root, root=root
    )
    page = text(admin_client.get(f"{ITEMS}{item.pk}/change/"))
    assert "a &lt;b&gt;<br>line" in page
    assert "url: https://x.example" in page
    assert f'href="{ITEMS}{root.pk}/change/"' in page
    assert f'href="/items/{item.pk}"' in page
    assert "{&#x27;text" not in page
    assert f"post {item.pk}" in page


def test_the_list_of_items_names_senders_without_asking_for_each(
    admin_client: Client, items: list[Item], django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(3):  # estimate, count, rows
        page = text(admin_client.get(ITEMS))
    assert "first words" in page


@pytest.mark.slow
def test_items_are_hidden_and_brought_back(admin_client: Client, items: list[Item]) -> None:
    first, deleted, _ = items
    asked = text(act(admin_client, ITEMS, "delete", first, deleted))
    assert "2 posts disappear for everyone" in asked
    assert "@sender: first words" in asked
    assert Item.objects.get(pk=first.pk).status == Status.PUBLISHED
    page = text(act(admin_client, ITEMS, "delete", first, deleted, confirmed="yes"))
    assert "1 post deleted." in page
    assert "1 post was already deleted." in page
    assert set(Item.objects.filter(status=Status.DELETED)) == {first, deleted}
    assert "2 posts restored." in text(act(admin_client, ITEMS, "restore", first, deleted))
    assert not Item.objects.filter(status=Status.DELETED).exists()


@pytest.mark.slow
def test_earlier_versions_are_hidden(admin_client: Client, items: list[Item]) -> None:
    first, second, _ = items
    actions.edit(item=first, content={"text": "other words"})
    answer = text(act(admin_client, ITEMS, "hide_versions", first, second))
    assert "Earlier versions of 1 post hidden." in answer
    assert "1 post has no earlier versions to hide." in answer
    assert first.versions.get().is_hidden


def test_too_many_at_once(admin_client: Client, items: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ItemAdmin, "at_once", 2)
    page = text(act(admin_client, ITEMS, "delete", *items, confirmed="yes"))
    assert "Nothing changed: choose 2" in page
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
