from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from accounts.models import User
from items import actions, purge
from items.hydrate import hydrate
from items.models import Item, Status, Visibility
from items.text import ContentError
from media.models import MediaFile
from tests.support.api import API, client_of
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.picture_posts import posted, sent
from tests.support.pictures import files_of, mp4
from tests.support.statements import statements

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder")]


@pytest.fixture
def client(ann: User) -> APIClient:
    return client_of(ann)


def test_a_post_with_pictures(client: APIClient, ann: User) -> None:
    ids = [sent(ann, description=f"picture {number}") for number in range(4)]
    answer = client.post(f"{API}/items", {"type": "image", "content": {"media": ids}})
    assert answer.status_code == 201, answer.content
    told = answer.json()
    assert [each["id"] for each in told["media"]] == ids
    assert [each["description"] for each in told["media"]] == [f"picture {number}" for number in range(4)]
    assert told["content"] == {"media": ids}
    assert client.get(f"{API}/items/{told['id']}").json()["media"] == told["media"]
    assert client.get(f"{API}/users/ann/items").json()["items"][0]["media"] == told["media"]
    (shown,) = hydrate([int(told["id"])], ann)
    assert [picture.url for picture in shown.media] == [each["url"] for each in told["media"]]
    assert client.delete(f"{API}/me/media/{ids[0]}").status_code == 404
    assert client.post(f"{API}/items", {"content": {"text": "words"}}).json()["media"] == []


def test_a_post_with_a_video(client: APIClient, ann: User) -> None:
    video = sent(ann, mp4())
    answer = client.post(f"{API}/items", {"type": "video", "content": {"text": "look", "media": [video]}})
    assert answer.json()["media"][0]["meta"]["duration"] == pytest.approx(1 / 3, abs=0.01)


def test_an_article(client: APIClient) -> None:
    words = {"type": "article", "title": "A title", "content": {"text": "x" * 20_000}}
    assert client.post(f"{API}/items", words).status_code == 201
    assert "title" in client.post(f"{API}/items", {**words, "title": " "}).json()
    assert "content" in client.post(f"{API}/items", {**words, "content": {"text": "x" * 20_001}}).json()


@pytest.mark.slow
def test_what_cannot_be_used(client: APIClient, ann: User) -> None:
    mine, video, others = sent(ann), sent(ann, mp4()), sent(UserFactory.create())
    used = sent(ann)
    posted(ann, used)
    for kind, ids in (
        ("image", [others]),
        ("image", [used]),
        ("image", ["12345"]),
        ("image", [mine, mine]),
        ("image", [mine, video]),
        ("image", [video]),
        ("video", [mine]),
        ("video", [video, mine]),
        ("text", [mine]),
        ("image", [str(number) for number in range(1, 6)]),
        ("image", "1"),
        ("image", [1]),
        ("image", [{"id": mine}]),
        ("image", ["0"]),
        ("image", [None]),
    ):
        answer = client.post(f"{API}/items", {"type": kind, "content": {"text": "words", "media": ids}})
        assert answer.status_code == 400, (kind, ids, answer.content)
        assert list(answer.json()) == ["content.media"], (kind, ids)
    assert Item.objects.count() == 1
    assert MediaFile.objects.filter(use="").count() == 3
    assert client.post(f"{API}/items", {"type": "image", "content": {"media": []}}).status_code == 400


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"warning": "x" * 201}, "content.warning"),
        ({"warning": 1}, "content.warning"),
        ({"sensitive": "yes"}, "content.sensitive"),
        ({"sensitive": None}, "content.sensitive"),
    ],
)
def test_warnings(client: APIClient, content: dict[str, Any], field: str) -> None:
    answer = client.post(f"{API}/items", {"content": {"text": "words", **content}})
    assert answer.status_code == 400
    assert field in answer.json()


def test_one_medium_for_two_posts_at_the_same_time(ann: User) -> None:
    wanted = sent(ann)

    def publish() -> bool:
        try:
            posted(ann, wanted)
        except ContentError:
            return False
        finally:
            connection.close()
        return True

    assert sorted(at_once(publish, publish)) == [False, True]
    assert Item.objects.count() == 1


def test_an_idempotency_key(client: APIClient, ann: User) -> None:
    words = {"type": "image", "content": {"media": [sent(ann)]}}
    first = client.post(f"{API}/items", words, headers={"Idempotency-Key": "one"})
    assert client.post(f"{API}/items", words, headers={"Idempotency-Key": "one"}).json() == first.json()


@pytest.mark.slow
def test_an_edit_changes_order_and_words(client: APIClient, ann: User) -> None:
    one, two, three = sent(ann), sent(ann), sent(ann)
    item = posted(ann, one, two)
    answer = client.patch(f"{API}/items/{item.pk}", {"content": {"text": "new", "media": [two, one]}})
    assert [each["id"] for each in answer.json()["media"]] == [two, one]
    answer = client.patch(f"{API}/items/{item.pk}", {"content": {"text": "newer"}})
    assert [each["id"] for each in answer.json()["media"]] == [two, one]
    assert answer.json()["content"]["media"] == [two, one]
    for other in ([one], [one, two, three], []):
        answer = client.patch(f"{API}/items/{item.pk}", {"content": {"text": "more", "media": other}})
        assert (answer.status_code, list(answer.json())) == (400, ["content.media"])
    client.patch(f"{API}/me/media/{one}", {"description": "a dog", "focus": "1,0"})
    told = client.get(f"{API}/items/{item.pk}").json()["media"]
    assert (told[1]["description"], told[1]["meta"]["focus"]) == ("a dog", {"x": 1.0, "y": 0.0})
    words = actions.publish(sender=ann, content={"text": "words"})
    answer = client.patch(f"{API}/items/{words.pk}", {"content": {"text": "words", "media": [three]}})
    assert (answer.status_code, list(answer.json())) == (400, ["content.media"])


def addresses(item: Item) -> set[str]:
    item.refresh_from_db()
    return {entry["name"] for entry in item.media}


def test_a_deleted_post_takes_its_files_along(ann: User, media_folder: Path) -> None:
    item = posted(ann, sent(ann))
    before = addresses(item)
    actions.delete(item=item)
    assert addresses(item) == set()
    assert not any(name in str(path) for path in files_of(media_folder) for name in before)
    assert actions.restore(item=item)
    after = addresses(item)
    assert len(after) == 1
    assert not after & before
    assert all((media_folder / "files" / f"{name}.jpg").exists() for name in after)


def test_a_held_post_has_new_addresses(ann: User, media_folder: Path) -> None:
    item = posted(ann, sent(ann))
    before = addresses(item)
    actions.hold(item=item, reasons=["words"])
    after = addresses(item)
    assert len(after) == 1
    assert not after & before
    assert all((media_folder / "files" / f"{name}.jpg").exists() for name in after)
    actions.approve(item=item)
    assert addresses(item) == after
    item.refresh_from_db()
    assert item.status == Status.PUBLISHED


def test_a_deleted_account_takes_its_files_along(ann: User, media_folder: Path) -> None:
    posted(ann, sent(ann))
    purge.purge(user_id=ann.pk, limit=100)
    assert not MediaFile.objects.exists()
    assert files_of(media_folder) == []


def test_pages_ask_no_more(ann: User) -> None:
    ids = [actions.publish(sender=ann, content={"text": "words"}, visibility=Visibility.PUBLIC).pk for _ in range(3)]
    pictures = [posted(ann, sent(ann)).pk for _ in range(3)]
    for some in (ids, pictures):
        with statements() as asked:
            assert len(hydrate(some, ann)) == 3
        assert len(asked) == 1, asked
