"""Uploaded videos are converted by a worker, and posts wait for them."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as site
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.export import write_archive
from accounts.models import User
from items import scheduling
from items.models import Failure, Item, ItemType, ScheduledPost, Visibility
from media import actions, captioning, posters, processing, sweeping
from media.files import StoreError
from media.models import MediaFile, MediaState, VideoConversion
from media.processing import convert_waiting
from media.reasons import failure_of, video_reason
from media.store import store
from moderation.models import PictureAction, PictureRule
from notifications.feed import unread_count
from tests.support.api import client_of
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.pictures import files_of, jpeg, mp4, opened, upload
from tests.support.sites import until
from tests.support.streams import database_url
from tests.support.videos import film

pytestmark = pytest.mark.django_db(transaction=True)

MEDIA = "/api/v1/me/media"
MINUTE_AGO = timedelta(seconds=61)


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run where a test says."""
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **options: True)


def send(client: APIClient, data: bytes = b"", **headers: Any) -> Any:
    fields = {"file": upload(data or mp4(), "a.mp4", "video/mp4"), "description": "A cat"}
    return client.post(MEDIA, fields, format="multipart", **headers)


def sent(owner: User, data: bytes = b"") -> MediaFile:
    return actions.upload(owner_id=owner.pk, file=upload(data or mp4()))


def post(medium: MediaFile, **fields: Any) -> Item | ScheduledPost:
    owner = User.objects.get(pk=medium.owner_id)
    content = {"text": "look", "media": [str(medium.pk)]}
    return scheduling.publish_or_wait(sender=owner, type=ItemType.VIDEO, content=content, **fields)


def endings() -> list[str]:
    return sorted(path.name.partition(".")[2] for path in files_of(site.MEDIA_DIR))


def lapse() -> None:
    """Let the claims of dead workers end."""
    VideoConversion.objects.update(tried_at=timezone.now() - MINUTE_AGO)


# --- From upload to play ---------------------------------------------------------------------------------
def test_a_video_from_upload_to_play(client: APIClient, ann: User) -> None:
    answer = send(client)
    made = answer.json()
    assert (answer.status_code, made["state"], made["progress"], made["url"]) == (202, "processing", 0, "")
    assert made["meta"]["original"]["size"] == "64x36"
    assert endings() == ["original"]
    original = f"{VideoConversion.objects.get().original}.original"
    assert client.get(f"/media/{original}").status_code == 404
    assert not sweeping.orphaned_names([original])
    assert convert_waiting()
    made = client.get(f"{MEDIA}/{made['id']}").json()
    assert (made["state"], made["progress"], made["failure"], made["description"]) == ("ready", 100, None, "A cat")
    row = MediaFile.objects.get()
    with store().open(row.files[0]) as video, store().open(made["preview_url"].removeprefix("/media/")) as poster:
        assert video.seek(0, 2) == row.size > 0
        assert opened(poster.read()).size == (64, 36)
    assert len(made["blurhash"]) > 6
    assert endings() == ["mp4", "small.jpg"]
    assert sweeping.orphaned_names([original])
    assert not convert_waiting()
    item = post(row)
    assert isinstance(item, Item)
    page = logged_in(ann).get(f"/items/{item.pk}").content.decode()
    assert f'preload="none" src="{made["url"]}" poster="{made["preview_url"]}"' in page
    shown = Client().get(f"/items/{item.pk}").content.decode()
    assert f'{made["preview_url"]}"' in shown[shown.index("og:image") :]


def test_a_post_waits_for_its_video(client: APIClient) -> None:
    medium = send(client).json()["id"]
    body = {"type": "video", "content": {"text": "look", "media": [medium]}}
    answers = [client.post("/api/v1/items", body, format="json", HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)]
    assert [one.status_code for one in answers] == [202, 202]
    held = answers[0].json()
    assert answers[1].json() == held
    assert (held["publish_at"], held["awaits"], held["media"][0]["state"]) == (None, medium, "processing")
    assert client.get(f"{MEDIA}/{medium}").json()["state"] == "processing", "the composer still asks"
    assert client.get("/api/v1/me/scheduled").json()["items"] == [held]
    assert scheduling.publish_due() == 0
    assert convert_waiting()
    assert scheduling.publish_due() == 1
    item = Item.objects.get()
    assert (item.text, item.media[0]["id"], item.media[0]["ext"]) == ("look", medium, "mp4")
    again = client.post("/api/v1/items", body, format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert (again.status_code, again.json()["id"]) == (201, str(item.pk))
    assert not ScheduledPost.objects.exists()


def test_a_scheduled_post_waits_for_its_time_and_its_video(ann: User) -> None:
    medium, soon = sent(ann), timezone.now() + timedelta(hours=1)
    content = {"media": [str(medium.pk)]}
    planned = scheduling.schedule(sender=ann, publish_at=soon, type=ItemType.VIDEO, content=content)
    ScheduledPost.objects.update(publish_at=timezone.now())
    assert scheduling.publish_due() == 0, "its video is not ready"
    ScheduledPost.objects.update(publish_at=soon)
    assert convert_waiting()
    assert scheduling.publish_due() == 0, "its time has not come"
    planned.refresh_from_db()
    assert (planned.awaits, planned.publish_at) == (None, soon)
    ScheduledPost.objects.update(publish_at=timezone.now())
    assert scheduling.publish_due() == 1


def test_a_page_holds_a_post_until_its_video_is_ready(ann: User) -> None:
    """Without JavaScript, with the file in the form."""
    pages = logged_in(ann)
    form = {"text": "from a form", "visibility": "public", "file_1": upload(mp4(), "a.mp4", "video/mp4")}
    answer = pages.post("/items/new", form, follow=True)
    assert b"comes out when its video is ready" in answer.content
    (held,) = ScheduledPost.objects.all()
    assert b"When its video is ready" in pages.get("/scheduled").content
    assert b"0 %" in pages.get("/scheduled").content
    edited = pages.post(
        "/items/new", {"text": "other", "visibility": "public", "scheduled": held.pk, "media": held.awaits}
    )
    assert edited.status_code == 302, edited.content
    assert convert_waiting()
    assert scheduling.publish_due() == 1
    assert Item.objects.get().text == "other"


# --- What fails ------------------------------------------------------------------------------------------
def broken(conversion: VideoConversion) -> None:
    with store().open(f"{conversion.original}.original") as file:
        whole = file.read()
    path = site.MEDIA_DIR / "files" / f"{conversion.original}.original"
    path.write_bytes(whole[: len(whole) // 2])


def lost(conversion: VideoConversion) -> None:
    store().delete(f"{conversion.original}.original")


def tried_too_often(conversion: VideoConversion) -> None:
    VideoConversion.objects.update(attempts=processing.TRIES)


def spent(conversion: VideoConversion) -> None:
    facts = {"media_id": 1, "original": "x", "seconds": 1e6, "finished_at": timezone.now()}
    VideoConversion.objects.create(owner_id=conversion.owner_id, **facts)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (broken, "damaged or incomplete"),
        (lost, "Upload it again"),
        (tried_too_often, "Upload it again"),
        (spent, "many videos today"),
    ],
)
def test_a_failed_video_says_why(
    client: APIClient, ann: User, spoil: Callable[[VideoConversion], None], words: str
) -> None:
    medium = int(send(client).json()["id"])
    held = post(MediaFile.objects.get(), visibility=Visibility.FOLLOWERS)
    spoil(VideoConversion.objects.get(pk=medium))
    assert convert_waiting()
    told = client.get(f"{MEDIA}/{medium}").json()
    assert (told["state"], told["url"]) == ("failed", "")
    assert words in told["failure"]
    assert endings() == []
    (planned,) = ScheduledPost.objects.all()
    assert (planned.pk, planned.failure, planned.post["content"]["text"]) == (held.pk, Failure.VIDEO, "look")
    assert unread_count(ann).unread == 1
    page = logged_in(ann).get("/scheduled").content.decode()
    assert (
        "couldn&#x27;t be converted" in page or "couldn&#39;t be converted" in page or "couldn't be converted" in page
    )
    assert words in page
    assert logged_in(ann).get(f"/scheduled/{held.pk}").status_code == 200
    scheduling.change(sender=ann, post_id=held.pk, type=ItemType.TEXT, content={"text": "without it"})
    assert scheduling.publish_due() == 1
    assert Item.objects.get().text == "without it"


def test_a_failed_video_is_not_attached(client: APIClient, ann: User) -> None:
    medium = send(client).json()["id"]
    lost(VideoConversion.objects.get())
    assert convert_waiting()
    body = {"type": "video", "content": {"media": [medium]}}
    answer = client.post("/api/v1/items", body, format="json")
    assert answer.status_code == 400
    assert "Upload it again" in answer.json()["content.media"][0]
    assert client.delete(f"{MEDIA}/{medium}").status_code == 204


def test_the_store_is_tried_again(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    sent(ann)

    def fails(*args: Any) -> None:
        raise StoreError("full")

    for _ in range(processing.TRIES + 2):
        with monkeypatch.context() as patch:
            patch.setattr(type(store()), "save", fails)
            assert convert_waiting()
        assert not convert_waiting(), "it rests"
        lapse()
    assert endings() == ["original"]
    assert convert_waiting()
    assert MediaFile.objects.get().state == MediaState.READY


# --- What happens meanwhile ------------------------------------------------------------------------------
def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something while the next video is converted."""
    convert = processing.convert

    def converts(source: Any, draft: str, limits: Any, report: Callable[[int], None]) -> Any:
        act()
        monkeypatch.setattr(processing, "REPORT_SECONDS", 0.0)
        report(50)
        return convert(source, draft, limits, report)

    monkeypatch.setattr(processing, "convert", converts)


def test_a_video_is_deleted_while_it_is_converted(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    medium = sent(ann)
    meanwhile(monkeypatch, lambda: actions.remove_unused(owner_id=ann.pk, media_id=medium.pk))
    assert convert_waiting()
    assert endings() == []
    assert not MediaFile.objects.exists()
    assert not convert_waiting()


def test_an_export_leaves_an_unfinished_video_out(ann: User) -> None:
    medium = sent(ann)
    file = io.BytesIO()
    write_archive(ann, file)
    with zipfile.ZipFile(file) as archive:
        (row,) = map(json.loads, archive.read("media.jsonl").splitlines())
        assert (row["id"], row["file"]) == (str(medium.pk), "")
        assert not [name for name in archive.namelist() if name.startswith("media/")]


def test_an_account_is_purged(ann: User) -> None:
    sent(ann)
    assert actions.purge(owner_id=ann.pk, limit=10) == 1
    assert actions.purge(owner_id=ann.pk, limit=10) == 0
    assert endings() == []
    assert not VideoConversion.objects.exists()


@pytest.mark.parametrize("is_early", [True, False])
def test_an_own_poster_stays(ann: User, monkeypatch: pytest.MonkeyPatch, is_early: bool) -> None:
    medium = sent(ann)

    def act() -> None:
        posters.set_poster(owner_id=ann.pk, media_id=medium.pk, file=upload(jpeg(100, 50)))

    if is_early:
        act()
    else:
        meanwhile(monkeypatch, act)
    assert convert_waiting()
    row = MediaFile.objects.get()
    assert (row.state, row.small_width) == (MediaState.READY, 100)
    assert endings() == ["mp4", "small.jpg"]
    assert all(map(store().has, row.files))


def test_files_of_a_video_are_renamed_while_it_is_converted(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    medium = sent(ann)
    meanwhile(monkeypatch, lambda: actions.rename(list(MediaFile.objects.all())))
    assert convert_waiting()
    actions.finish_moves()
    row = MediaFile.objects.get()
    assert row.name != medium.name
    assert all(map(store().has, row.files))
    assert endings() == ["mp4", "small.jpg"]


def test_two_workers_at_one_video(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first was taken for dead. What the second stored stays."""
    medium = sent(ann)
    held = post(medium)
    stores = processing._store

    def store_late(*args: Any) -> None:
        monkeypatch.setattr(processing, "_store", stores)
        processing.process(VideoConversion.objects.get(pk=medium.pk))
        stores(*args)

    monkeypatch.setattr(processing, "_store", store_late)
    assert convert_waiting()
    row = MediaFile.objects.get()
    assert row.state == MediaState.READY
    assert all(map(store().has, row.files))
    assert endings() == ["mp4", "small.jpg"]
    assert scheduling.publish_due() == 1
    assert not ScheduledPost.objects.filter(pk=held.pk).exists()


def test_captions_of_an_unfinished_video_stay(ann: User) -> None:
    medium = sent(ann)
    words = io.BytesIO(b"WEBVTT\n\n00:01.000 --> 00:02.000\nwords\n")
    captioning.set_captions(owner_id=ann.pk, media_id=medium.pk, file=words)
    assert convert_waiting()
    row = MediaFile.objects.get()
    assert captioning.caption_text({"name": row.name, "captions": row.captions}) == "words"


def test_a_poster_is_replaced_in_a_post(ann: User) -> None:
    medium = processing.upload_at_once(owner_id=ann.pk, file=upload(mp4()))
    item = post(medium)
    posters.set_poster(owner_id=ann.pk, media_id=medium.pk, file=upload(jpeg(300, 200)))
    item.refresh_from_db()
    row = MediaFile.objects.get()
    assert (item.media[0]["name"], item.media[0]["small_width"], row.name != medium.name) == (row.name, 300, True)
    assert all(map(store().has, row.files))
    assert endings() == ["160.webp", "mp4", "small.jpg"]


# --- Shares ----------------------------------------------------------------------------------------------
def test_members_take_turns(ann: User, bob: User) -> None:
    first, second, third, other = (
        sent(ann),
        sent(ann, mp4(secret=b"2" * 17)),
        sent(ann, mp4(secret=b"3" * 17)),
        sent(bob),
    )
    order = []
    while convert_waiting():
        done = VideoConversion.objects.exclude(finished_at=None)
        order += [pk for pk in done.order_by("finished_at").values_list("pk", flat=True) if pk not in order]
    assert order == [first.pk, other.pk, second.pk, third.pk]


def test_one_video_at_a_time_on_a_machine(ann: User) -> None:
    sent(ann)
    with processing._only_one_on_this_machine() as is_free:
        assert is_free
        assert not convert_waiting()
    assert convert_waiting()


def test_a_member_has_so_many_videos_and_seconds(client: APIClient, ann: User, settings: Any) -> None:
    for number in range(actions.VIDEOS_WAITING):
        facts = {"owner_id": ann.pk, "media_id": number + 1, "original": str(number)}
        VideoConversion.objects.create(**facts)
    answer = send(client)
    assert (answer.status_code, answer["Retry-After"]) == (429, "60")
    assert answer.json() == {"file": ["Wait until your other videos are converted."]}
    form = {"text": "x", "visibility": "public", "file_1": upload(mp4(), "a.mp4", "video/mp4")}
    assert b"Wait until your other videos" in logged_in(ann).post("/items/new", form).content
    VideoConversion.objects.update(finished_at=timezone.now(), seconds=1.0)
    assert send(client).status_code == 202
    settings.MEDIA_VIDEO_DAY_SECONDS = float(actions.VIDEOS_WAITING)
    assert send(client).status_code == 429
    assert send(client_of(UserFactory.create())).status_code == 202
    VideoConversion.objects.update(created_at=timezone.now() - timedelta(days=1, minutes=1))
    assert send(client).status_code == 202


@pytest.mark.slow
def test_uploads_at_once_do_not_pass_the_bound(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(actions.VIDEOS_WAITING - 1):
        VideoConversion.objects.create(owner_id=ann.pk, media_id=number + 1, original=str(number))
    at_the_check = threading.Barrier(3)
    check = actions.check_video_budget
    passed = threading.local()

    def check_together(owner_id: int) -> None:
        check(owner_id)
        if not hasattr(passed, "first"):
            passed.first = True
            at_the_check.wait(30)

    def sent_or_refused(number: int) -> bool:
        try:
            sent(ann, mp4(secret=b"%d" % number * 17))
        except actions.VideoBudgetError:
            return False
        finally:
            connection.close()
        return True

    monkeypatch.setattr(actions, "check_video_budget", check_together)
    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(sent_or_refused, range(3))) == [False, False, True]
    assert VideoConversion.objects.filter(finished_at=None).count() == actions.VIDEOS_WAITING
    assert len(endings()) == 1, "what was refused is not stored"


@pytest.mark.parametrize("action", PictureAction.values)
def test_an_automatic_poster_is_compared_as_a_picture(ann: User, action: str) -> None:
    known = sent(ann)
    assert convert_waiting()
    known.refresh_from_db()
    assert known.phash is not None
    rule = PictureRule.objects.create(sha256="f" * 64, phash=known.phash, action=action)
    again = sent(ann, mp4(secret=b"7" * 17))
    post(again, visibility=Visibility.PUBLIC)
    assert convert_waiting()
    assert scheduling.publish_due() == (action == PictureAction.HOLD)
    again.refresh_from_db()
    rule.refresh_from_db()
    assert rule.attempts == 1
    if action == PictureAction.REJECT:
        assert (again.state, failure_of(again)) == ("failed", video_reason("blocked"))
        assert len(files_of(site.MEDIA_DIR)) == len(known.files)
    else:
        assert again.state == "ready"
        assert Item.objects.get().status == "in_review"


def test_a_long_video_is_refused_before_the_work(client: APIClient, settings: Any) -> None:
    settings.MEDIA_VIDEO_SECONDS = 0.2
    answer = send(client)
    assert answer.status_code == 400, answer.content
    assert "longer than" in answer.json()["file"][0]
    assert endings() == []


@pytest.mark.slow
@pytest.mark.long
def test_a_worker_that_is_killed(ann: User) -> None:
    """A real one, at work. Another begins anew."""
    data = film(codec="libx265", sound="aac", size=(640, 480), frames=600)
    medium = sent(ann, data)
    held = post(medium)
    code = "import django; django.setup(); from media.processing import convert_waiting; convert_waiting()"
    environ = os.environ | {"FEEDSITE_DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "feedsite.settings"}
    environ |= {"FEEDSITE_DATA_DIR": str(site.MEDIA_DIR.parent)}
    worker = subprocess.Popen([sys.executable, "-c", code], cwd=site.BASE_DIR, env=environ)
    until(lambda: MediaFile.objects.get().progress > 0, 60)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert MediaFile.objects.get().state == MediaState.PROCESSING
    assert not convert_waiting(), "it is still claimed"
    lapse()
    until(convert_waiting, 60)
    assert VideoConversion.objects.get().attempts == 2
    assert MediaFile.objects.get().state == MediaState.READY
    assert scheduling.publish_due() == 1
    assert not ScheduledPost.objects.filter(pk=held.pk).exists()
