import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from items import actions as items
from items.models import Item, Status
from relations import actions as relations
from relations.models import Mute
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pages import PART
from timeline.late import late_ids
from timeline.position import reading_state
from timeline.senders import Scope

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reader(author: User, client: Client) -> User:
    reader = UserFactory(username="reader")
    relations.follow(follower=reader, followee=author)
    client.force_login(reader)
    return reader


def publish(sender: User, text: str = "words", **fields: Any) -> Item:
    return items.publish(sender=sender, content={"text": text}, **fields)


@pytest.mark.slow
def test_restored_and_widened_posts_are_late(reader: User, author: User) -> None:
    deleted, hidden, stays, other, reply = (
        publish(author),
        publish(author, visibility="self"),
        publish(author),
        publish(UserFactory()),
        publish(author, reply_to=ItemFactory(sender=author)),
    )
    top = publish(author).pk
    for item in (deleted, other, reply):
        items.delete(item=item)
    before = reading_state(reader).now
    assert late_ids(Scope(reader.pk), since=before, top=top) == []
    for item in (deleted, other, reply):
        items.restore(item=item)
    items.change_visibility(item=hidden, visibility="followers")
    publish(author)
    assert late_ids(Scope(reader.pk), since=before, top=top) == [hidden.pk, deleted.pk]
    assert late_ids(Scope(reader.pk), since=before, top=deleted.pk) == [deleted.pk], (
        "what is above is counted by its id"
    )
    assert late_ids(Scope(reader.pk), since=reading_state(reader).now, top=top) == []
    assert stays.pk < top
    items.delete(item=hidden)
    assert late_ids(Scope(reader.pk), since=before, top=top) == [deleted.pk]
    Mute.objects.create(muter=reader, muted=author)
    assert late_ids(Scope(reader.pk), since=before, top=top) == []


@pytest.mark.slow
def test_the_pill_counts_them_and_they_are_marked(client: Client, reader: User, author: User) -> None:
    late = publish(author, "held back", visibility="self")
    publish(author, "top")
    page = client.get("/").content.decode()
    poll = re.search(r'hx-get="(/new[^"]+)"', page)
    assert poll
    address = poll[1].replace("&amp;", "&")
    assert client.get(address).status_code == 204
    items.change_visibility(item=late, visibility="public")
    part = client.get(address).content.decode()
    assert "1 new post<" in part
    publish(author, "newer")
    assert "2 new posts" in client.get(address).content.decode()
    link = re.search(r'hx-get="(/\?late=\d+)"', part)
    assert link
    shown = client.get(link[1], **PART)
    marked = [card.item.text for card in shown.context["cards"] if card.is_late]
    assert marked == ["held back"]
    assert shown.content.decode().count("mark fresh") == 1
    assert "mark fresh" not in client.get("/").content.decode()
    again = re.search(r'hx-get="(/new[^"]+)"', shown.content.decode())
    assert again
    assert client.get(again[1].replace("&amp;", "&")).status_code == 204


def test_the_count_of_the_api_stays_what_it_says(reader: User, author: User, client: Client) -> None:
    late = publish(author, visibility="self")
    top = publish(author)
    items.change_visibility(item=late, visibility="public")
    answer = client.get(f"/api/v1/timeline/home/new?since_id={top.pk}")
    assert answer.json() == {"count": 0, "capped": False}


@pytest.mark.slow
def test_more_than_the_cap(client: Client, reader: User, author: User) -> None:
    for _ in range(99):
        ItemFactory(sender=author, status=Status.DELETED)
    top = ItemFactory(sender=author)
    at = reading_state(reader).now
    for item in Item.objects.filter(status=Status.DELETED):
        items.restore(item=item)
    address = f"/new?since_id={top.pk}&at={at}"
    assert "99 new posts" in client.get(address).content.decode()
    ItemFactory(sender=author)
    assert ">100 new posts" in client.get(address).content.decode().replace("</svg>", "</svg>>").replace(">>", ">")
    ItemFactory(sender=author)
    assert "More than 100 new posts" in client.get(address).content.decode()
    for bad in ("x", "-1", "1&at=2"):
        assert client.get(f"/new?since_id=5&at={bad}").status_code == 400
