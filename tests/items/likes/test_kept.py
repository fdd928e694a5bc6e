from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import User
from items import actions
from items.likes import saved
from items.likes.saved import SavedKind, saved_page
from items.models import Bookmark, Item
from relations import actions as relations
from tests.support.answers import whole
from tests.support.api import API, client_of
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pages import logged_in
from tests.support.statements import statements

pytestmark = pytest.mark.django_db
VERBS: dict[SavedKind, Any] = {"bookmark": actions.bookmark, "like": actions.like}
LISTS = [("bookmark", "bookmarks"), ("like", "likes")]


@pytest.fixture
def api(reader: User) -> APIClient:
    return client_of(reader)


def walked(reader: User, name: SavedKind, limit: int) -> list[int]:
    found: list[int] = []
    last_id: int | None = None
    for _ in range(50):
        page = saved_page(reader, name, last_id=last_id, limit=limit)
        found += [int(item.id) for item in page.items]
        if not page.has_more:
            return found
        assert page.last_id is not None
        last_id = int(page.last_id)
    raise AssertionError("the walk does not end")


@pytest.mark.slow
def test_a_bookmark_is_private_and_idempotent(api: APIClient, reader: User) -> None:
    item = ItemFactory()
    path = f"{API}/items/{item.pk}"
    for method, count in [(api.delete, 0), (api.put, 1), (api.put, 1), (api.delete, 0), (api.put, 1)]:
        response = method(f"{path}/bookmark")
        assert (response.status_code, response.content, Bookmark.objects.count()) == (204, b"", count)
        assert api.get(path).json()["bookmarked"] is bool(count)
    other = client_of(item.sender)
    assert other.get(path).json()["bookmarked"] is False
    assert APIClient().get(path).json()["bookmarked"] is False
    assert APIClient().put(f"{path}/bookmark").status_code == 401
    assert api.get(path).json()["counts"] == {"likes": 0, "replies": 0, "reposts": 0, "quotes": 0}


def test_hidden_items_cannot_be_kept_and_can_be_let_go(api: APIClient, reader: User) -> None:
    item, hidden = ItemFactory(), ItemFactory(visibility="self")
    api.put(f"{API}/items/{item.pk}/bookmark")
    relations.block(blocker=item.sender, blocked=reader)
    answers = [api.put(f"{API}/items/{one}/bookmark") for one in (item.pk, hidden.pk, 5, "x", 2**53 + 1)]
    assert [one.status_code for one in answers] == [404] * 5
    assert len(set(map(whole, answers))) == 1
    assert [api.delete(f"{API}/items/{item.pk}/bookmark").status_code for _ in range(2)] == [204, 404]


def test_a_repost_is_kept_as_its_original(api: APIClient) -> None:
    item = ItemFactory()
    repost, _ = actions.repost(sender=UserFactory(), item=item)
    api.put(f"{API}/items/{repost.pk}/bookmark")
    assert api.get(f"{API}/items/{repost.pk}").json()["bookmarked"] is True
    assert [one["id"] for one in api.get(f"{API}/me/bookmarks").json()["items"]] == [str(item.pk)]


@pytest.mark.parametrize(("name", "path"), LISTS)
def test_lists_are_in_the_order_of_the_acts(api: APIClient, reader: User, name: SavedKind, path: str) -> None:
    items = ItemFactory.create_batch(5)
    order = [items[place] for place in (2, 0, 4, 1, 3)]
    for item in order:
        VERBS[name](user=reader, item=item)
    expected = [item.pk for item in reversed(order)]
    for limit in (1, 2, 4, 5, 20):
        assert walked(reader, name, limit) == expected
    with statements() as asked:
        answer = api.get(f"{API}/me/{path}?limit=2").json()
    assert sum("items_item i" in one for one in asked) == 1
    assert ([one["id"] for one in answer["items"]], answer["has_more"]) == ([str(pk) for pk in expected[:2]], True)
    assert api.get(f"{API}/me/{path}?last_id=0").status_code == 400
    assert APIClient().get(f"{API}/me/{path}").status_code == 401


@pytest.mark.parametrize("name", VERBS)
def test_hidden_items_leave_and_come_back(reader: User, name: SavedKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "SCAN", 3)
    hater = UserFactory()
    items: list[Item] = [ItemFactory(sender=hater) if place in range(1, 8) else ItemFactory() for place in range(10)]
    for item in items:
        VERBS[name](user=reader, item=item)
    newest = [item.pk for item in reversed(items)]
    relations.block(blocker=hater, blocked=reader)
    for limit in (1, 2, 3, 20):
        assert walked(reader, name, limit) == [items[9].pk, items[8].pk, items[0].pk]
    page = saved_page(reader, name, limit=2)
    assert not saved_page(reader, name, last_id=int(page.last_id or 0), limit=2).items, "it answers short at its bound"
    relations.unblock(blocker=hater, blocked=reader)
    actions.delete(item=items[5])
    newest.remove(items[5].pk)
    assert walked(reader, name, 2) == newest


@pytest.mark.slow
def test_pages_of_what_is_kept(reader: User) -> None:
    client = logged_in(reader)
    item = ItemFactory(content={"text": "zebra"})
    for path, verb, undo in (("/bookmarks", "bookmark", "remove-bookmark"), ("/likes", "like", "unlike")):
        assert "zebra" not in client.get(path).content.decode()
        client.post(f"/items/{item.pk}/{verb}")
        assert "zebra" in client.get(path).content.decode()
        client.post(f"/items/{item.pk}/{undo}")
        assert "zebra" not in client.get(path).content.decode()
        assert Client().get(path).headers["Location"].startswith("/login")
    assert client.post("/items/5/bookmark").status_code == 404
