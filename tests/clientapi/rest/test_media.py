"""Videos as Mastodon's clients wait for them."""

import threading
from typing import Any

import pytest
from django.db import connection
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from accounts.models import User
from clientapi.rest import media as views
from media import processing
from media.models import MediaFile, VideoConversion
from media.processing import convert_waiting
from media.store import store
from tests.support.clients import Caller
from tests.support.factories import UserFactory
from tests.support.pictures import files_of, jpeg, mp4, opened, upload
from web import rates

pytestmark = pytest.mark.django_db(transaction=True)

NOT_READY = "Cannot attach files that have not finished processing. Try again in a moment!"


@pytest.fixture(autouse=True)
def _alone(media_folder: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **options: True)


@pytest.fixture
def caller() -> Caller:
    return Caller(UserFactory(username="ann"))


def video() -> Any:
    return upload(mp4(), "a.mp4", "video/mp4")


def test_an_app_waits_for_its_video(caller: Caller) -> None:
    made = caller.post("v2/media", {"file": video(), "description": "a cat"}, form=True, status=202)
    assert (made["type"], made["url"], made["preview_url"], made["description"]) == ("video", None, None, "a cat")
    assert caller.get(f"v1/media/{made['id']}", status=206)["url"] is None
    status = {"status": "look", "media_ids": [made["id"]]}
    assert caller.post("v1/statuses", status, status=422)["error"] == NOT_READY
    assert caller.put(f"v1/media/{made['id']}", {"description": "two cats"}, status=206)["description"] == "two cats"
    assert convert_waiting()
    ready = caller.get(f"v1/media/{made['id']}")
    assert ready["url"].endswith(".mp4")
    assert ready["preview_url"].endswith(".small.jpg")
    assert (ready["blurhash"] is not None, ready["meta"]["original"]["duration"] > 0) == (True, True)
    (attached,) = caller.post("v1/statuses", status)["media_attachments"]
    assert attached == ready


def test_a_failed_video(caller: Caller) -> None:
    made = caller.post("v2/media", {"file": video()}, form=True, status=202)
    store().delete(f"{VideoConversion.objects.get().original}.original")
    assert convert_waiting()
    assert "Upload it again" in caller.get(f"v1/media/{made['id']}", status=422)["error"]
    assert "Upload it again" in caller.post("v1/statuses", {"media_ids": [made["id"]]}, status=422)["error"]
    caller.delete(f"v1/media/{made['id']}")


def test_version_1_waits(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = threading.Thread(target=lambda: (processing.time.sleep(1), convert_waiting(), connection.close()))
    worker.start()
    assert caller.post("v1/media", {"file": video()}, form=True)["url"].endswith(".mp4")
    worker.join()
    monkeypatch.setattr(views, "WAIT_SECONDS", 0.1)
    assert caller.post("v1/media", {"file": video()}, form=True, status=202)["url"] is None


def poster_of(attachment: dict[str, Any]) -> tuple[int, int]:
    with store().open(attachment["preview_url"].partition("/media/")[2]) as file:
        return opened(file.read()).size


def test_a_thumbnail_is_the_poster(caller: Caller, media_folder: Any) -> None:
    files = {"file": video(), "thumbnail": upload(jpeg(100, 50))}
    made = caller.post("v2/media", files, form=True, status=202)
    assert poster_of(made) == (100, 50)
    assert convert_waiting()
    assert poster_of(caller.get(f"v1/media/{made['id']}")) == (100, 50)
    status = caller.post("v1/statuses", {"status": "x", "media_ids": [made["id"]]})
    body = encode_multipart(BOUNDARY, {"thumbnail": upload(jpeg(200, 90)), "description": "new"})
    headers = caller.headers | {"content_type": MULTIPART_CONTENT}
    answer = caller.client.put(f"/api/v1/media/{made['id']}", body, **headers)
    assert (answer.status_code, answer.json()["description"]) == (200, "new")
    assert answer["X-RateLimit-Limit"] == str(rates.limit("upload")[0])
    assert poster_of(answer.json()) == (200, 90)
    (shown,) = caller.get(f"v1/statuses/{status['id']}")["media_attachments"]
    assert shown == answer.json()
    assert len(files_of(media_folder)) == len(MediaFile.objects.get().files)
    for bad, words in (
        ({"thumbnail": upload(mp4())}, "Choose a picture"),
        ({"thumbnail": upload(b"x")}, "Use a picture"),
    ):
        body = encode_multipart(BOUNDARY, bad)
        answer = caller.client.put(f"/api/v1/media/{made['id']}", body, **headers)
        assert (answer.status_code, words in answer.json()["error"]) == (415, True), answer.content
    caller.put(f"v1/media/{made['id']}", {"thumbnail": "text"}, status=422)
    other = Caller(UserFactory())
    answer = other.client.put(f"/api/v1/media/{made['id']}", body, **other.headers, content_type=MULTIPART_CONTENT)
    assert answer.status_code == 404


def test_strangers_see_no_unfinished_video(caller: Caller) -> None:
    made = caller.post("v2/media", {"file": video()}, form=True, status=202)
    Caller(UserFactory()).get(f"v1/media/{made['id']}", status=404)
    assert User.objects.count() == 2
