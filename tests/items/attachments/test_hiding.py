from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import User
from items import actions, purge
from items.attachments import hiding
from items.bodies import ItemBody
from items.hydrate import hydrate
from items.models import Item
from media import sweeping
from media.models import NEVER, MediaFile
from tests.support.api import API, client_of
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.picture_posts import posted, sent
from tests.support.pictures import files_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder")]


@pytest.fixture
def client(ann: User) -> APIClient:
    return client_of(ann)


def body(item: Item, reader: User) -> ItemBody:
    return hydrate([item.pk], reader)[0]


def shown(item: Item) -> list[str]:
    return [each.id for each in body(item, item.sender).media]


def names(folder: Path) -> str:
    return " ".join(map(str, files_of(folder)))


def test_a_hidden_picture_is_gone_and_comes_back(ann: User, media_folder: Path) -> None:
    one, two = sent(ann), sent(ann)
    item = posted(ann, one, two, text="words")
    name = MediaFile.objects.get(pk=one).name
    assert hiding.hide_media(item=item, ids=[int(one)]) == [int(one)]
    assert hiding.hide_media(item=item, ids=[int(one)]) == []
    assert shown(item) == [two]
    assert name not in names(media_folder)
    hidden = MediaFile.objects.get(pk=one)
    assert hidden.name in names(media_folder)
    assert hidden.name not in body(item, ann).media[0].url
    item.refresh_from_db()
    assert item.status == "published"
    assert hiding.show_media(item=item, ids=[int(two)]) == []
    assert hiding.show_media(item=item) == [int(one)]
    assert shown(item) == [one, two]


@pytest.mark.slow
def test_others_are_told_where_nothing_is_left(ann: User) -> None:
    reader = UserFactory.create()
    for words, left in (("words", 0), ("", 2)):
        item = posted(ann, sent(ann), sent(ann), text=words)
        hiding.hide_media(item=item)
        assert (body(item, ann).removed, body(item, reader).removed) == (2, left)
        assert body(item, reader).media == []
    whole = posted(ann, sent(ann))
    assert (body(whole, ann).removed, body(whole, reader).removed) == (0, 0)


@pytest.mark.slow
def test_an_edit_brings_nothing_back(client: APIClient, ann: User) -> None:
    one, two, three = sent(ann), sent(ann), sent(ann)
    item = posted(ann, one, two, three, text="words")
    hiding.hide_media(item=item, ids=[int(two)])
    address = f"{API}/items/{item.pk}"
    for asked, told in (
        ([three, one], [three, one, two]),
        ([two, one, three], [two, one, three]),
        (None, [two, one, three]),
    ):
        content = {"text": f"more {asked}"} | ({"media": asked} if asked else {})
        answer = client.patch(address, {"content": content})
        assert answer.status_code == 200, answer.content
        assert answer.json()["content"]["media"] == told
        assert [each["id"] for each in answer.json()["media"]] == [number for number in told if number != two]
    for refused in ([one], [one, two], [one, three, three], [one, three, sent(ann)]):
        assert client.patch(address, {"content": {"text": "x", "media": refused}}).status_code == 400
    # Neither another post nor the media API gets it.
    again = client.post(f"{API}/items", {"type": "image", "content": {"media": [two]}})
    assert (again.status_code, list(again.json())) == (400, ["content.media"])
    for method in (client.get, client.patch, client.delete):
        assert method(f"{API}/me/media/{two}").status_code == 404
    client.patch(f"{API}/me/media/{one}", {"description": "a dog"})
    assert shown(item) == [one, three]
    hiding.show_media(item=item)
    assert shown(item) == [two, one, three]


@pytest.mark.slow
def test_hiding_stays_when_the_item_is_held_deleted_and_restored(ann: User) -> None:
    one, two = sent(ann), sent(ann)
    item = posted(ann, one, two)
    hiding.hide_media(item=item, ids=[int(one)])
    actions.hold(item=item, reasons=["words"])
    actions.approve(item=item)
    assert shown(item) == [two]
    actions.delete(item=item)
    assert hiding.hide_media(item=item) == hiding.show_media(item=item) == []
    actions.restore(item=item)
    assert shown(item) == [two]
    assert MediaFile.objects.get(pk=one).withdrawn_at == NEVER  # a sweep never takes it
    hiding.hide_media(item=item)
    actions.delete(item=item)
    actions.restore(item=item)
    assert shown(item) == []
    assert sorted(hiding.show_media(item=item)) == [int(one), int(two)]


@pytest.mark.slow
def test_hidden_files_go_with_their_item(ann: User, media_folder: Path) -> None:
    kept, gone = posted(ann, sent(ann)), posted(ann, sent(ann))
    for item in (kept, gone):
        hiding.hide_media(item=item)
    actions.delete(item=gone)
    MediaFile.objects.filter(item_id=gone.pk).update(withdrawn_at=timezone.now() - timedelta(days=31))
    sweeping.sweep()
    assert list(MediaFile.objects.values_list("item_id", flat=True)) == [kept.pk]
    purge.purge(user_id=ann.pk, limit=100)
    assert files_of(media_folder) == []


@pytest.mark.slow
def test_hiding_and_editing_at_the_same_time(ann: User) -> None:
    for _ in range(3):
        one, two = sent(ann), sent(ann)
        item = posted(ann, one, two, text="words")

        def hide(item: Item = item, one: str = one) -> None:
            hiding.hide_media(item=item, ids=[int(one)])
            connection.close()

        def edit(item: Item = item, one: str = one, two: str = two) -> None:
            actions.edit(item=item, content={"text": "more", "media": [two, one]})
            connection.close()

        at_once(hide, edit)
        assert shown(item) == [two]
