"""Uploaded videos are converted by a worker, and posts wait for them."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as site
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import User
from items import actions, scheduling
from items.models import Failure, Item, ItemType, ScheduledPost
from media import processing, sweeping
from media.files import StoreError
from media.models import FileMove, MediaFile, MediaState, Use, VideoConversion
from media.processing import convert_waiting
from media.store import store
from notifications.feed import notifications_page
from tests.support.pictures import files_of, jpeg, mp4, upload

pytestmark = pytest.mark.django_db(transaction=True)

MEDIA = "/api/v1/me/media"


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run where a test says."""
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **options: True)


def send(client: APIClient, data: bytes = b"", **headers: Any) -> Any:
    file = upload(data or mp4(), "a.mp4", "video/mp4")
    return client.post(MEDIA, {"file": file, "description": "A cat"}, format="multipart", **headers)


def sent(owner: User) -> MediaFile:
    from media.actions import upload as taken

    return taken(owner_id=owner.pk, file=upload(mp4()))


def originals() -> list[str]:
    return [path.name for path in files_of(site.MEDIA_DIR) if path.name.endswith(".original")]


def test_a_video_from_upload_to_play(client: APIClient) -> None:
    answer = send(client)
    made = answer.json()
    assert (answer.status_code, made["state"], made["progress"], made["url"]) == (202, "processing", 0, "")
    assert made["meta"]["original"]["size"] == "640x360"
    (original,) = originals()
    conversion = VideoConversion.objects.get()
    assert client.get(f"/media/{conversion.original}.original").status_code == 404
    assert convert_waiting()
    made = client.get(f"{MEDIA}/{made['id']}").json()
    assert (made["state"], made["progress"], made["failure"], made["description"]) == ("ready", 100, None, "A cat")
    row = MediaFile.objects.get()
    with store().open(row.files[0]) as file:
        assert file.seek(0, 2) == row.size > 0
    assert originals() == []
    assert not convert_waiting()


def test_a_post_waits_for_its_video(client: APIClient, ann: User) -> None:
    medium = send(client).json()["id"]
    post = {"type": "video", "content": {"text": "look", "media": [medium]}}
    answers = [client.post("/api/v1/items", post, format="json", HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)]
    assert [one.status_code for one in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    held = answers[0].json()
    assert (held["publish_at"], held["awaits"], held["media"][0]["state"]) == (None, medium, "processing")
    assert scheduling.publish_due() == 0
    assert convert_waiting()
    assert scheduling.publish_due() == 1
    item = Item.objects.get()
    assert (item.text, item.media[0]["id"], item.media[0]["ext"]) == ("look", medium, "mp4")
    again = client.post("/api/v1/items", post, format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert (again.status_code, again.json()["id"]) == (201, str(item.pk))
    assert not ScheduledPost.objects.exists()
