from functools import partial
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.actions import delete_account
from accounts.models import User
from items import actions as items
from items.models import Item, Pin
from items.profiles import pins
from relations import actions as relations
from tests.support.api import API, client_of
from tests.support.at_once import at_once
from tests.support.deletions import settle
from tests.support.factories import UserFactory, say
from tests.support.pages import PART

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(author: User) -> APIClient:
    return client_of(author)


def shown(client: Any = None) -> list[str]:
    return [item["id"] for item in (client or APIClient()).get(f"{API}/users/author").json()["pinned"]]


@pytest.mark.slow
def test_pins_show_first_and_change_no_paging(client: Client, api: APIClient, author: User) -> None:
    said = [say(author, f"word{number}") for number in range(22)]
    before = client.get("/@author").context["page"]
    for item in (said[0], said[21]):
        assert api.put(f"{API}/items/{item.pk}/pin").status_code == 204
        assert api.put(f"{API}/items/{item.pk}/pin").status_code == 204
    assert shown() == [str(said[21].pk), str(said[0].pk)]
    first = client.get("/@author")
    page = first.context["page"]
    assert [item.id for item in page.items] == [item.id for item in before.items]
    assert (page.last_id, page.has_more) == (before.last_id, before.has_more)
    assert [card.item.id for card in first.context["pinned"]] == shown()
    text = first.content.decode()
    assert text.count(f'id="item-{said[21].pk}"') == 1, "no card stands twice on one page"
    assert text.index("word0") < text.index("word20")
    rest = client.get(f"/@author?last_id={page.last_id}", **PART).content.decode()
    assert "word1<" in rest
    assert "word0" not in rest, "it stands above, on the same page"
    alone = client.get(f"/@author?last_id={page.last_id}")
    assert "word0" in alone.content.decode(), "a page of its own has it in its place"
    assert alone.context["pinned"] == []
    assert client.get("/@author/replies").context["pinned"] == []
    api.delete(f"{API}/items/{said[0].pk}/pin")
    assert api.delete(f"{API}/items/{said[0].pk}/pin").status_code == 204
    assert shown() == [str(said[21].pk)]


@pytest.mark.slow
def test_items_that_cannot_be_pinned(api: APIClient, author: User) -> None:
    post, other = say(author), say(UserFactory())
    repost, _ = items.repost(sender=author, item=other)
    held = say(author)
    items.hold(item=held, reasons=["words"])
    for item in (
        say(author, reply_to=post),
        repost,
        held,
        *(say(author, visibility=visibility) for visibility in ("followers", "mutuals", "self")),
    ):
        assert api.put(f"{API}/items/{item.pk}/pin").status_code == 400
    assert api.put(f"{API}/items/{other.pk}/pin").status_code == 403
    assert api.delete(f"{API}/items/{other.pk}/pin").status_code == 403
    for number in ("12345678", "x", "0"):
        assert api.put(f"{API}/items/{number}/pin").status_code == 404
        assert api.delete(f"{API}/items/{number}/pin").status_code == 404
    assert APIClient().put(f"{API}/items/{post.pk}/pin").status_code == 401
    assert not Pin.objects.exists()


@pytest.mark.slow
def test_the_bound_holds_under_concurrent_calls(api: APIClient, author: User) -> None:
    said = [say(author) for _ in range(8)]
    made = at_once(*(partial(pins.pin, item=item) for item in said))
    assert sum(one is True for one in made) == pins.PINS
    assert sum(isinstance(one, pins.PinCapError) for one in made) == 3
    left = Item.objects.exclude(pk__in=Pin.objects.values("item")).first()
    assert left
    assert api.put(f"{API}/items/{left.pk}/pin").status_code == 409


@pytest.mark.parametrize(
    "act",
    [
        lambda item: items.delete(item=item),
        lambda item: items.hold(item=item, reasons=["words"]),
        lambda item: items.reject(item=item),
        lambda item: items.change_visibility(item=item, visibility="followers"),
    ],
)
def test_a_post_that_fewer_see_is_pinned_no_more(author: User, act: Any) -> None:
    item = say(author)
    pins.pin(item=item)
    act(item)
    assert not Pin.objects.exists()
    items.restore(item=item)
    items.change_visibility(item=item, visibility="public")
    assert shown() == []


def test_an_edit_leaves_the_pin(author: User) -> None:
    item = say(author)
    pins.pin(item=item)
    items.edit(item=item, content={"text": "other words"})
    assert shown() == [str(item.pk)]


def test_readers_see_no_more_than_anywhere(client: Client, author: User) -> None:
    reader = UserFactory()
    pins.pin(item=say(author))
    assert len(shown(client_of(reader))) == 1
    relations.block(blocker=reader, blocked=author)
    assert shown(client_of(reader)) == []


@pytest.mark.slow
def test_a_deleted_account_leaves_no_pins(author: User) -> None:
    pins.pin(item=say(author))
    delete_account(user=author)
    settle(author)
    assert not Pin.objects.exists()


@pytest.mark.slow
def test_the_menu_pins_and_unpins(client: Client, author: User) -> None:
    item = say(author)
    client.force_login(author)
    assert f'action="/items/{item.pk}/pin"' in client.get(f"/items/{item.pk}/menu").content.decode()
    assert client.post(f"/items/{item.pk}/pin")["Location"] == "/@author"
    assert f'action="/items/{item.pk}/unpin"' in client.get(f"/items/{item.pk}/menu").content.decode()
    assert client.post(f"/items/{item.pk}/unpin")["Location"] == "/@author"
    assert not Pin.objects.exists()
    for _ in range(pins.PINS):
        client.post(f"/items/{say(author).pk}/pin")
    assert "You can pin up to 5 posts" in client.post(f"/items/{item.pk}/pin", follow=True).content.decode()
    reply = say(author, reply_to=item)
    assert f"/items/{reply.pk}/pin" not in client.get(f"/items/{reply.pk}/menu").content.decode()
    assert "only pin public posts" in client.post(f"/items/{reply.pk}/pin", follow=True).content.decode()
    assert not Pin.objects.filter(item=reply).exists()
    client.force_login(UserFactory())
    for verb in ("pin", "unpin"):
        assert client.post(f"/items/{item.pk}/{verb}").status_code == 403
        assert client.post(f"/items/12345/{verb}").status_code == 404
    assert "/pin" not in client.get(f"/items/{item.pk}/menu").content.decode()
