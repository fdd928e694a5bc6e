import io
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from rest_framework.test import APIClient

from accounts.export import write_archive
from accounts.models import User
from items import actions as items
from media import actions, attaching, captioning, store
from media.files import NAME, PREFIXES, StoreError
from media.models import FileMove, MediaFile
from media.processing import upload_at_once
from media.serving import respond
from media.sweeping import sweep_files
from tests.support.api import client_of
from tests.support.factories import UserFactory
from tests.support.pictures import files_of, jpeg, mp4, upload

pytestmark = pytest.mark.django_db(transaction=True)

MEDIA = "/api/v1/me/media"
WORDS = b"WEBVTT\n\n00:01.000 --> 00:02.000\n<b>words</b>\n"
OTHERS = WORDS.replace(b"words", b"others")


@pytest.fixture
def film(ann: User) -> MediaFile:
    return upload_at_once(owner_id=ann.pk, file=upload(mp4()))


def put(client: APIClient, medium: MediaFile | int, data: bytes = WORDS) -> Any:
    number = medium.pk if isinstance(medium, MediaFile) else medium
    return client.put(f"{MEDIA}/{number}/captions", {"file": upload(data, "a.vtt", "text/vtt")}, format="multipart")


def read(url: str) -> bytes:
    with store.store().open(url.removeprefix("/media/")) as file:
        return file.read()


def names(folder: Path) -> list[str]:
    return sorted(path.suffix for path in files_of(folder))


def test_captions_are_given_replaced_and_removed(client: APIClient, film: MediaFile, media_folder: Path) -> None:
    assert client.get(f"{MEDIA}/{film.pk}").json()["captions_url"] is None
    answer = put(client, film)
    assert answer.status_code == 200, answer.content
    first = answer.json()["captions_url"]
    assert NAME.fullmatch(first.removeprefix("/media/"))
    assert read(first) == b"WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nwords\n"
    second = put(client, film, OTHERS).json()["captions_url"]
    assert second != first
    assert b"others" in read(second)
    with pytest.raises(FileNotFoundError):
        read(first)
    assert names(media_folder) == [".jpg", ".mp4", ".vtt"]
    assert client.get(f"{MEDIA}/{film.pk}").json()["captions_url"] == second
    for _ in range(2):
        assert client.delete(f"{MEDIA}/{film.pk}/captions").status_code == 204
    assert client.get(f"{MEDIA}/{film.pk}").json()["captions_url"] is None
    assert names(media_folder) == [".jpg", ".mp4"]


@pytest.mark.slow
def test_an_item_shows_the_captions_of_its_video(client: APIClient, film: MediaFile, media_folder: Path) -> None:
    url = put(client, film).json()["captions_url"]
    body = {"type": "video", "content": {"media": [str(film.pk)]}}
    item = client.post("/api/v1/items", body, format="json").json()
    assert item["media"][0]["captions_url"] == url
    page = client.get(f"/items/{item['id']}").content.decode()
    assert f'<track kind="captions" src="{url}"' in page
    url = put(client, film, OTHERS).json()["captions_url"]
    assert client.get(f"/api/v1/items/{item['id']}").json()["media"][0]["captions_url"] == url
    client.delete(f"{MEDIA}/{film.pk}/captions")
    assert client.get(f"/api/v1/items/{item['id']}").json()["media"][0]["captions_url"] is None
    assert "<track" not in client.get(f"/items/{item['id']}").content.decode()


def test_captions_are_withdrawn_and_come_back_with_their_item(
    client: APIClient, ann: User, film: MediaFile, media_folder: Path
) -> None:
    url = put(client, film).json()["captions_url"]
    item = items.publish(sender=ann, type="video", content={"media": [str(film.pk)]})
    items.hold(item=item, reasons=["words"])
    with pytest.raises(FileNotFoundError):
        read(url)
    row = MediaFile.objects.get()
    assert b"words" in read(row.files[-1])
    with transaction.atomic():
        attaching.hide(item.pk, None)
    assert put(client, film, OTHERS).status_code == 404  # hidden by moderators
    assert client.delete(f"{MEDIA}/{film.pk}/captions").status_code == 404
    verb = {"owner_id": ann.pk, "media_id": film.pk}
    with pytest.raises(MediaFile.DoesNotExist):
        captioning.set_captions(**verb, file=io.BytesIO(OTHERS))
    with pytest.raises(MediaFile.DoesNotExist):
        captioning.remove_captions(**verb)
    with transaction.atomic():
        attaching.forget_items([item.pk])
    assert names(media_folder) == []
    assert not FileMove.objects.exists()


def test_captions_go_with_an_unused_video(client: APIClient, film: MediaFile, media_folder: Path) -> None:
    put(client, film)
    assert sweep_files(PREFIXES) == 0
    assert client.delete(f"{MEDIA}/{film.pk}").status_code == 204
    assert names(media_folder) == []


def test_the_archive_of_a_member_has_them(client: APIClient, ann: User, film: MediaFile) -> None:
    put(client, film)
    target = io.BytesIO()
    write_archive(ann, target)
    with zipfile.ZipFile(target) as archive:
        assert b"words" in archive.read(f"media/{film.pk}.vtt")
        assert f'"captions":"media/{film.pk}.vtt"'.encode() in archive.read("media.jsonl")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 415),
        (b"<svg onload=alert(1)>", 415),
        (jpeg(), 415),
        (b"WEBVTT\n", 400),
        (WORDS.replace(b"<b>", b"<script>"), 400),
        (WORDS.replace(b"words", b"w\0rds"), 400),
        (WORDS.replace(b"words", b"w\xffrds"), 400),
        (WORDS + b"x" * 256 * 1024, 413),
        (WORDS + b"x" * 1024 * 1024, 413),
    ],
)
def test_files_that_are_refused(
    client: APIClient, film: MediaFile, media_folder: Path, data: bytes, status: int
) -> None:
    kept = put(client, film).json()["captions_url"]
    answer = put(client, film, data)
    assert answer.status_code == status, answer.content
    assert client.get(f"{MEDIA}/{film.pk}").json()["captions_url"] == kept
    assert names(media_folder) == [".jpg", ".mp4", ".vtt"]


def test_other_bodies(client: APIClient, film: MediaFile) -> None:
    path = f"{MEDIA}/{film.pk}/captions"
    assert client.put(path, {"file": "words"}, format="json").status_code == 415
    assert client.put(path, {}, format="multipart").status_code == 400
    twice = {"file": upload(WORDS, "a.vtt"), "description": "x"}
    assert client.put(path, twice, format="multipart").status_code == 400
    assert client.post(path, {"file": upload(WORDS)}, format="multipart").status_code == 405
    assert client.get(path).status_code == 405


def test_media_that_take_none(client: APIClient, ann: User, film: MediaFile) -> None:
    picture = actions.upload(owner_id=ann.pk, file=upload(jpeg()))
    assert put(client, picture).status_code == 400
    assert client.delete(f"{MEDIA}/{picture.pk}/captions").status_code == 204
    stranger = client_of(UserFactory.create())
    assert put(stranger, film).status_code == 404
    assert put(stranger, 1).content == put(stranger, film).content
    assert stranger.delete(f"{MEDIA}/{film.pk}/captions").status_code == 404
    assert put(APIClient(), film).status_code == 401
    assert client.put(f"{MEDIA}/x/captions", {"file": upload(WORDS)}, format="multipart").status_code == 404


def test_a_store_that_is_full_leaves_the_captions_before(
    client: APIClient, film: MediaFile, media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = put(client, film).json()["captions_url"]

    def full(self: Any, source: Path, name: str) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store.Folder, "save", full)
        answer = put(client, film, OTHERS)
    assert (answer.status_code, "Retry-After" in answer) == (503, True)
    assert b"words" in read(url)
    assert names(media_folder) == [".jpg", ".mp4", ".vtt"]
    row = captioning.set_captions(owner_id=film.owner_id, media_id=film.pk, file=upload(OTHERS))
    assert row is not None


def test_captions_are_sent_as_text_that_does_nothing(client: APIClient, film: MediaFile) -> None:
    url = put(client, film).json()["captions_url"]
    told: dict[str, str] = {}

    def begin(status: str, headers: list[tuple[str, str]]) -> None:
        told.update(headers, status=status)

    environ = {"PATH_INFO": url, "REQUEST_METHOD": "GET"}
    body = b"".join(respond(url.removeprefix("/media/"), environ, begin, threading.BoundedSemaphore(1)))
    assert body.startswith(b"WEBVTT")
    assert (told["status"], told["Content-Type"]) == ("200 OK", "text/vtt; charset=utf-8")
    assert told["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in told["Content-Security-Policy"]
