"""Files for staff, in every state. No cache keeps them."""

import io
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from accounts.models import User
from items import actions as items
from media import views
from media.captioning import set_captions
from media.models import MediaFile
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.picture_posts import posted, sent
from tests.support.pictures import mp4, opened

pytestmark = pytest.mark.django_db(transaction=True)


def of(codename: str, **fields: Any) -> Client:
    user = UserFactory.create(**{"is_staff": True, **fields})
    user.user_permissions.set(Permission.objects.filter(codename=codename))
    return logged_in(user)


def address(medium: str, size: str = "whole") -> str:
    return f"/staff/media/{medium}/{size}"


def asked(client: Client, path: str, **headers: str) -> tuple[Any, bytes]:
    answer = client.get(path, headers=headers)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    answer.close()
    return answer, body


@pytest.mark.slow
@pytest.mark.parametrize("codename", ["view_mediafile", "view_item", "change_item", "decide_case"])
def test_staff_see_a_file_in_every_state(ann: User, codename: str) -> None:
    client, medium = of(codename), sent(ann)
    item = posted(ann, medium)
    for change in (lambda: None, lambda: items.reject(item=item), lambda: items.delete(item=item)):
        change()
        for size, width in (("whole", 80), ("preview", 80)):
            answer, body = asked(client, address(medium, size))
            assert answer.status_code == 200
            assert opened(body).width == width
            assert answer["Content-Type"] == "image/jpeg"
            assert answer["Cache-Control"] == "private, no-store"
            assert answer["X-Content-Type-Options"] == "nosniff"
            assert "sandbox" in answer["Content-Security-Policy"]


@pytest.mark.slow
def test_all_others_find_nothing(ann: User) -> None:
    medium = sent(ann)
    owner, staff_without, stranger_with = Client(), of("view_follow"), of("view_item", is_staff=False)
    owner.force_login(ann)
    never = of("view_item").get(address("1"))
    for client in (Client(), owner, staff_without, stranger_with):
        answer = client.get(address(medium))
        assert (answer.status_code, never.status_code) == (404, 404)
        assert "cache-control" not in answer.headers or "public" not in answer["Cache-Control"]
    banned = of("view_item", is_active=False)
    assert banned.get(address(medium)).status_code == 404


@pytest.mark.slow
def test_parts_of_a_video(ann: User) -> None:
    client, medium = of("view_item"), sent(ann, mp4())
    items.publish(sender=ann, type="video", content={"media": [medium]})
    whole = asked(client, address(medium))[1]
    part, body = asked(client, address(medium), Range="bytes=4-7")
    assert (part.status_code, body, part["Content-Range"]) == (206, b"ftyp", f"bytes 4-7/{len(whole)}")
    assert client.get(address(medium), headers={"Range": f"bytes={len(whole)}-"}).status_code == 416
    head = client.head(address(medium))
    assert (head.status_code, head["Content-Length"], head.content) == (200, str(len(whole)), b"")
    assert client.post(address(medium)).status_code == 405
    assert asked(client, address(medium, "preview"))[0]["Content-Type"] == "image/jpeg"


@pytest.mark.slow
def test_captions_of_a_video(ann: User) -> None:
    client, medium = of("view_item", is_superuser=True), sent(ann, mp4())
    assert client.get(address(medium, "captions")).status_code == 404
    assert asked(client, address(medium, "preview"))[0]["Content-Type"] == "image/jpeg"
    subtitles = io.BytesIO(b"WEBVTT\n\n00:01.000 --> 00:02.000\nwords\n")
    assert set_captions(owner_id=ann.pk, media_id=int(medium), file=subtitles)
    items.delete(item=items.publish(sender=ann, type="video", content={"media": [medium]}))
    answer, body = asked(client, address(medium, "captions"))
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/vtt; charset=utf-8")
    assert b"words" in body
    assert "sandbox" in answer["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path", ["0/whole", f"{2**53}/whole", "99999999999999999/whole", "1/large", "x/whole", "-1/whole"]
)
def test_an_unknown_medium(path: str) -> None:
    assert of("view_item").get(f"/staff/media/{path}").status_code == 404


def test_slow_readers_take_so_many_threads(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "WAIT_SECONDS", 0.01)
    client, medium = of("view_item"), sent(ann)
    posted(ann, medium)
    open_ones = [client.get(address(medium)) for _ in range(views.PLACES)]
    assert (answer := client.get(address(medium))).status_code == 503
    assert answer["Retry-After"]
    for one in open_ones:
        one.close()
    assert asked(client, address(medium))[0].status_code == 200


def test_a_proxy_sends_it(ann: User, settings: Any) -> None:
    settings.MEDIA_ACCEL_PATH = "/files/"
    posted(ann, medium := sent(ann))
    answer = of("view_item").get(address(medium))
    assert answer["X-Accel-Redirect"] == f"/files/{MediaFile.objects.get().name}.jpg"
    assert answer["Cache-Control"] == "private, no-store"


def test_a_file_that_is_gone(ann: User, media_folder: Any) -> None:
    medium = sent(ann)
    for path in media_folder.rglob("*.jpg"):
        path.unlink()
    assert of("view_item").get(address(medium)).status_code == 404


def test_a_server_in_the_group_of_the_site_may_read_the_files(ann: User, media_folder: Any) -> None:
    """nginx needs this (FEEDSITE_MEDIA_ACCEL_PATH), or it answers 403."""
    sent(ann)
    files = [path for path in (media_folder / "files").rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert path.stat().st_mode & 0o777 == 0o640
        assert path.parent.stat().st_mode & 0o050 == 0o050
