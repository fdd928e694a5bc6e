from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from accounts import actions, faces
from accounts.avatars import small_avatar_url
from accounts.models import User
from items import actions as items
from media.models import MediaFile, Use
from media.store import store
from relations import actions as relations
from tests.support.api import API, client_of
from tests.support.factories import UserFactory
from tests.support.pictures import animation, encoded, files_of, jpeg, mp4, opened, picture, upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder")]


@pytest.fixture
def client(ann: User) -> APIClient:
    return client_of(ann)


def put(client: APIClient, face: str, file: SimpleUploadedFile) -> Any:
    return client.put(f"{API}/users/me/{face}", {"file": file}, format="multipart")


def sizes(url: str) -> list[tuple[int, int]]:
    found = []
    for address in (url, small_avatar_url(url)):
        with store().open(address.removeprefix("/media/")) as file:
            found.append(opened(file.read()).size)
    return found


@pytest.mark.slow
def test_an_avatar(client: APIClient, ann: User, media_folder: Path) -> None:
    drawn = client.get(f"{API}/users/me").json()["avatar_url"]
    assert drawn.startswith("/avatars/")
    first = put(client, "avatar", upload(jpeg(1200, 900))).json()["avatar_url"]
    assert sizes(first) == [(400, 400), (160, 160)]
    second = put(client, "avatar", upload(encoded(picture(90, 300), "PNG"))).json()["avatar_url"]
    assert sizes(second) == [(90, 90), (90, 90)]
    assert len(files_of(media_folder)) == 5
    item = client.post(f"{API}/items", {"content": {"text": "words"}}).json()
    assert item["sender"]["avatar_url"] == second
    assert client.get(f"{API}/users/ann").json()["avatar_url"] == second
    page = client.get("/@ann").content.decode()
    assert f'src="{second.removesuffix(".jpg")}' in page
    assert client.delete(f"{API}/users/me/avatar").status_code == 204
    assert client.delete(f"{API}/users/me/avatar").status_code == 204
    assert client.get(f"{API}/items/{item['id']}").json()["sender"]["avatar_url"] == drawn
    assert files_of(media_folder) == []


@pytest.mark.slow
def test_a_banner(client: APIClient) -> None:
    drawn = client.get(f"{API}/users/me").json()["banner_url"]
    assert client.get(drawn)["Content-Type"] == "image/png"
    assert client.get(drawn.replace("banner-", "banner-9")).status_code == 404
    url = put(client, "banner", upload(jpeg(3000, 1000))).json()["banner_url"]
    assert sizes(url) == [(1500, 500), (640, 214)]
    assert client.get(f"{API}/users/ann").json()["banner_url"] == url


def test_an_animation_stands_still(client: APIClient) -> None:
    url = put(client, "avatar", upload(animation(4))).json()["avatar_url"]
    assert url.endswith(".jpg")


@pytest.mark.parametrize(("data", "status"), [(mp4(), 415), (b"<svg/>", 415), (jpeg()[:400], 400)])
def test_other_files(client: APIClient, data: bytes, status: int, media_folder: Path) -> None:
    answer = put(client, "avatar", upload(data))
    assert (answer.status_code, list(answer.json())) == (status, ["file"])
    assert files_of(media_folder) == []


def test_avatars_are_shown_where_names_are(client: APIClient, ann: User) -> None:
    bob = UserFactory.create(username="bob")
    faces.set_face(user=bob, use=Use.AVATAR, file=upload(jpeg()))
    bob.refresh_from_db()
    relations.follow(follower=bob, followee=ann)
    relations.follow(follower=ann, followee=bob)
    item = items.publish(sender=ann, content={"text": "words"})
    items.like(user=bob, item=item)
    items.publish(sender=bob, content={"text": "an answer"}, reply_to=item)
    for path in ("me/notifications", "users/ann/followers", "search?q=bob", f"items/{item.pk}/replies"):
        assert bob.avatar_url in client.get(f"{API}/{path}").content.decode(), path


@pytest.mark.slow
def test_a_deleted_account_has_no_face(client: APIClient, ann: User, media_folder: Path) -> None:
    put(client, "avatar", upload(jpeg()))
    put(client, "banner", upload(jpeg()))
    ann.refresh_from_db()
    actions.delete_account(user=ann)
    assert not MediaFile.objects.exists()
    assert files_of(media_folder) == []
    ann.refresh_from_db()
    assert (ann.avatar, ann.banner) == (None, None)
