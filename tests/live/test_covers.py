import io
import json
import threading
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from django.test import Client
from rest_framework.test import APIClient

from accounts import actions as accounts
from accounts.export import write_archive
from accounts.models import User
from items.text import ContentError
from live import actions
from live.hydrate import sessions_of
from live.models import LiveSession
from live.views import LOOKS
from media import sweeping
from media.models import MediaFile, Use
from media.store import store
from moderation import hashes
from moderation.models import Case, Decision, PictureAction, PictureRule, WordRule
from notifications.feed import notifications_page
from tests.support.api import API, client_of
from tests.support.at_once import at_once, until_one_waits
from tests.support.deletions import settle
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.picture_posts import posted, sent
from tests.support.pictures import jpeg, mp4, upload
from tests.support.statements import statements

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder")]

LIVE = f"{API}/live/sessions"


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def host() -> User:
    return UserFactory(username="host")


@pytest.fixture
def api(host: User) -> APIClient:
    return client_of(host)


@pytest.fixture
def browser(host: User) -> Client:
    return logged_in(host)


def plan(host: User, **fields: Any) -> LiveSession:
    return actions.create(host=host, now=now(), **{"title": "Show", "starts_at": now() + timedelta(hours=2)} | fields)


def covered(host: User, **fields: Any) -> LiveSession:
    return plan(host, cover_id=int(sent(host, description="a stage")), **fields)


def exists(name: str) -> bool:
    try:
        store().open(name).close()
    except FileNotFoundError:
        return False
    return True


def file_of(medium_id: str | int | None) -> str:
    return MediaFile.objects.get(pk=int(medium_id or 0)).files[0]


def form(**fields: Any) -> dict[str, Any]:
    at = (now() + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M")
    return {"title": "Show", "starts_at": at, "zone": "UTC", "minutes": "60"} | fields


# --- Over HTTP -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_cover_over_http(api: APIClient, host: User) -> None:
    first, second = sent(host, description="a stage"), sent(host)
    made = api.post(LIVE, {"title": "Show", "starts_at": (now() + timedelta(hours=1)).isoformat(), "cover": first})
    assert made.status_code == 201, made.content
    path, cover = f"{LIVE}/{made.json()['id']}", made.json()["cover"]
    assert (cover["id"], cover["type"], cover["description"]) == (first, "image", "a stage")
    assert APIClient().get(path).json()["cover"] == cover
    row = MediaFile.objects.get(pk=int(first))
    assert (row.use, str(row.session_id)) == (Use.COVER, made.json()["id"])
    version = made.json()["version"]
    assert api.patch(path, {"cover": first}).json()["version"] == version, "an equal value changes nothing"
    old = file_of(first)
    changed = api.patch(path, {"cover": second})
    assert changed.json()["cover"]["id"] == second
    assert not exists(old), "the picture before is withdrawn at once"
    assert MediaFile.objects.get(pk=int(first)).withdrawn_at is not None
    assert api.patch(path, {"title": "Other"}).json()["cover"]["id"] == second
    assert api.patch(path, {"cover": None}).json()["cover"] is None
    assert api.patch(path, {"cover": first}).status_code == 400, "what was withdrawn is not taken again"


def refused_cover(host: User, kind: str) -> Any:
    if kind == "another's":
        return sent(UserFactory())
    if kind == "used by an item":
        medium = sent(host)
        posted(host, medium)
        return medium
    if kind == "used by a session":
        return str(covered(host).cover_id)
    if kind == "a video":
        return sent(host, mp4())
    if kind in ("blocked", "to be looked at"):
        medium = sent(host)
        row = MediaFile.objects.get(pk=int(medium))
        action = PictureAction.REJECT if kind == "blocked" else PictureAction.HOLD
        rule = PictureRule(sha256=row.sha256, phash=row.phash, action=action, note="no")
        hashes.block(rule=rule, by=UserFactory())
        return medium
    return {"gone": "123", "a number": 5, "words": "abc", "too long": "9" * 40, "a list": ["1"], "empty": ""}[kind]


REFUSED = ["another's", "used by an item", "used by a session", "a video", "blocked", "to be looked at"]
REFUSED += ["gone", "a number", "words", "too long", "a list", "empty"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", REFUSED)
def test_covers_that_are_refused(api: APIClient, host: User, kind: str) -> None:
    cover = refused_cover(host, kind)
    before = set(LiveSession.objects.values_list("pk", flat=True))
    made = api.post(LIVE, {"title": "Show", "starts_at": (now() + timedelta(hours=1)).isoformat(), "cover": cover})
    assert made.status_code == 400, made.content
    assert set(made.json()) == {"cover"}
    assert set(LiveSession.objects.values_list("pk", flat=True)) == before
    session = plan(host, title="Another")
    assert api.patch(f"{LIVE}/{session.pk}", {"cover": cover}).status_code == 400
    session.refresh_from_db()
    assert session.cover is None


def test_words_and_focus_of_a_cover(api: APIClient, host: User) -> None:
    session = covered(host)
    medium = f"{API}/me/media/{session.cover_id}"
    assert api.patch(medium, {"description": "two chairs", "focus": "1,0"}).status_code == 200
    told = api.get(f"{LIVE}/{session.pk}").json()
    assert (told["cover"]["description"], told["cover"]["meta"]["focus"]) == ("two chairs", {"x": 1.0, "y": 0.0})
    assert told["version"] == session.version + 1
    assert api.delete(medium).status_code == 404, "one that is used is not removed by itself"


@pytest.mark.slow
def test_words_of_a_cover_are_looked_at(api: APIClient, host: User) -> None:
    WordRule.objects.create(text="spam")
    assert plan(host, cover_id=int(sent(host, description="a tin of spam"))).review == "in_review"
    session = covered(host, title="Another")
    old = file_of(session.cover_id)
    medium = f"{API}/me/media/{session.cover_id}"
    for change in ({"focus": "1,0"}, {"description": "two chairs"}, {"description": "https://chairs.example"}):
        assert api.patch(medium, change).status_code == 200
        session.refresh_from_db()
        assert session.hidden_at is None
    assert api.patch(medium, {"description": "Spam on a chair"}).status_code == 200
    session.refresh_from_db()
    assert session.review == "in_review"
    assert Case.objects.get(session_id=session.pk).reasons == ["words: spam"]
    assert not exists(old)
    assert [one.id for one in sessions_of(host, UserFactory()).items] == []
    worded_at = session.worded_at
    assert api.patch(medium, {"description": "a chair"}).status_code == 200
    session.refresh_from_db()
    assert session.worded_at > worded_at, "a moderator who looks at it is told"


def test_covers_cost_no_statement(host: User) -> None:
    plan(host)
    with statements() as without:
        sessions_of(host, host)
    covered(host)
    covered(host)
    with statements() as with_covers:
        page = sessions_of(host, host)
    assert [bool(one.cover) for one in page.items] == [True, True, False]
    assert len(with_covers) == len(without) == 1


# --- Withdrawing -----------------------------------------------------------------------------------------
HIDING: dict[str, Callable[..., Any]] = {
    "hide": actions.hide,
    "hold": actions.hide_for_review,
    "reject": actions.reject,
}


@pytest.mark.parametrize("verb", HIDING)
def test_a_hidden_session_takes_its_picture_away(host: User, verb: str) -> None:
    session = covered(host)
    old = file_of(session.cover_id)
    assert HIDING[verb](session=session, now=now())
    assert not exists(old)
    [seen] = sessions_of(host, host).items
    assert seen.cover is not None
    assert exists(seen.cover.url.removeprefix("/media/")), "its host sees it by another address"
    assert not sessions_of(host, UserFactory()).items
    show = actions.show_again if verb == "hide" else actions.approve
    assert show(session=session, now=now())
    [shown] = sessions_of(host, UserFactory()).items
    assert shown.cover is not None
    assert exists(shown.cover.url.removeprefix("/media/"))


def test_a_cancelled_session_has_no_picture(api: APIClient, host: User) -> None:
    session = covered(host)
    old = file_of(session.cover_id)
    assert api.delete(f"{LIVE}/{session.pk}").status_code == 204
    assert api.get(f"{LIVE}/{session.pk}").json()["cover"] is None
    assert not exists(old)
    MediaFile.objects.update(withdrawn_at=now() - timedelta(days=31))
    assert sweeping.sweep() == 1
    assert not MediaFile.objects.exists()


def test_new_words_that_are_held_take_the_picture_away(host: User) -> None:
    session = covered(host)
    actions.reject(session=session, now=now())
    kept = file_of(session.cover_id)
    actions.edit(session=session, now=now(), cover_id=int(sent(host)))
    session.refresh_from_db()
    assert session.review == "in_review", "another picture asks for another look"
    assert not exists(kept)


@pytest.mark.slow
def test_a_deleted_account_takes_its_covers_along(host: User) -> None:
    session = covered(host)
    name = file_of(session.cover_id)
    accounts.delete_account(user=host)
    settle(host)
    assert not MediaFile.objects.exists()
    assert not exists(name)


def test_covers_are_exported(host: User) -> None:
    session = covered(host)
    target = io.BytesIO()
    write_archive(host, target)
    archive = zipfile.ZipFile(target)
    [row] = [json.loads(line) for line in archive.read("media.jsonl").splitlines()]
    assert (row["use"], row["session_id"], row["description"]) == ("cover", str(session.pk), "a stage")
    assert row["file"] in archive.namelist()
    [own] = [json.loads(line) for line in archive.read("live_sessions.jsonl").splitlines()]
    assert own["cover"] == str(session.cover_id)


# --- Concurrent ------------------------------------------------------------------------------------------
def test_one_medium_for_a_cover_and_an_item_at_the_same_time(host: User) -> None:
    medium = sent(host)
    results = at_once(lambda: plan(host, cover_id=int(medium)), lambda: posted(host, medium))
    assert sum(isinstance(one, ValidationError | ContentError) for one in results) == 1, results
    row = MediaFile.objects.get()
    session = LiveSession.objects.first()
    assert (row.use, row.session_id is None, row.item_id is None) in (
        [(Use.COVER, False, True)] if session else [(Use.ITEM, True, False)]
    )


def test_a_cover_waits_for_an_item_that_takes_the_medium(host: User) -> None:
    medium, taken = sent(host), threading.Event()

    def publish() -> None:
        with transaction.atomic():
            posted(host, medium)
            taken.set()
            until_one_waits()

    def cover() -> LiveSession:
        assert taken.wait(30)
        return plan(host, cover_id=int(medium))

    published, refused = at_once(publish, cover)
    assert published is None
    assert isinstance(refused, ValidationError)
    assert MediaFile.objects.get().use == Use.ITEM
    assert not LiveSession.objects.exists()


def test_one_medium_for_two_sessions_at_the_same_time(host: User) -> None:
    medium = int(sent(host))
    results = at_once(lambda: plan(host, cover_id=medium), lambda: plan(host, title="Other", cover_id=medium))
    assert sum(isinstance(one, ValidationError) for one in results) == 1, results
    assert LiveSession.objects.count() == 1


# --- The form --------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_form_takes_a_picture(browser: Client, host: User) -> None:
    response = browser.post("/live/new", form(picture=upload(jpeg()), description="a stage"))
    session = LiveSession.objects.get()
    assert response["Location"] == f"/live/{session.pk}"
    page = browser.get(response["Location"]).content.decode()
    cover = sessions_of(host, host).items[0].cover
    assert cover is not None
    assert cover.preview_url in page
    assert 'alt="a stage"' in page
    for look in LOOKS:
        card = browser.get(f"/live/{session.pk}?look={look}", headers={"HX-Request": "true"}).content.decode()
        assert cover.preview_url in card, look
    edited = browser.post(f"/live/{session.pk}/edit", form(description="two chairs"))
    assert edited.status_code == 302
    assert sessions_of(host, host).items[0].cover.description == "two chairs"  # type: ignore[union-attr]
    other = browser.post(f"/live/{session.pk}/edit", form(picture=upload(jpeg(90, 90)), description="one chair"))
    assert other.status_code == 302
    assert sessions_of(host, host).items[0].cover.description == "one chair"  # type: ignore[union-attr]
    assert browser.post(f"/live/{session.pk}/edit", form(without_picture="on")).status_code == 302
    assert sessions_of(host, host).items[0].cover is None


@pytest.mark.slow
def test_a_form_that_is_refused_keeps_its_picture(browser: Client, host: User) -> None:
    refused = browser.post("/live/new", form(title="", picture=upload(jpeg()), description="a stage"))
    assert refused.status_code == 422
    medium = MediaFile.objects.get()
    page = refused.content.decode()
    assert f'name="cover" value="{medium.pk}"' in page
    assert medium.files[-1] in page
    assert "a stage" in page
    assert browser.post("/live/new", form(cover=str(medium.pk), description="a hall")).status_code == 302
    assert LiveSession.objects.get().cover_id == medium.pk
    assert sessions_of(host, host).items[0].cover.description == "a hall"  # type: ignore[union-attr]


@pytest.mark.parametrize("data", [b"", b"no picture", mp4(), jpeg()[:200]])
def test_files_that_the_form_refuses(browser: Client, data: bytes) -> None:
    refused = browser.post("/live/new", form(picture=upload(data)))
    assert refused.status_code == 422
    assert "errorlist" in refused.content.decode()
    assert not LiveSession.objects.exists()


@pytest.mark.parametrize("cover", ["abc", "-1", "0", "9" * 30, "5"])
def test_made_up_covers_of_the_form(browser: Client, cover: str) -> None:
    assert browser.post("/live/new", form(cover=cover)).status_code == 422
    assert not LiveSession.objects.exists()


def test_a_cover_of_another_is_refused_by_the_form(browser: Client) -> None:
    stranger = UserFactory()
    medium = sent(stranger, description="mine")
    assert browser.post("/live/new", form(cover=medium, description="theirs")).status_code == 422
    assert MediaFile.objects.get().description == "mine"


# --- Staff -----------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_staff_sees_covers(host: User, client: Client) -> None:
    session = covered(host)
    case = Case.objects.create(session_id=session.pk, host=host, source="report", opened_at=now())
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    for path in (
        f"/admin/live/livesession/{session.pk}/change/",
        f"/admin/moderation/case/{case.pk}/change/",
        "/admin/moderation/case/",
    ):
        assert f"/staff/media/{session.cover_id}/preview" in client.get(path).content.decode(), path
    assert "Remove for good" in client.get(f"/admin/moderation/case/{case.pk}/change/").content.decode()
    actions.cancel(session=session, now=now())
    assert "Remove for good" not in client.get(f"/admin/moderation/case/{case.pk}/change/").content.decode()
    page = client.get(f"/admin/live/livesession/{session.pk}/change/").content.decode()
    assert f"/staff/media/{session.cover_id}/preview" in page, "a withdrawn one too"


@pytest.mark.slow
def test_moderators_remove_a_cover_alone(host: User, client: Client) -> None:
    session = covered(host)
    old, medium = file_of(session.cover_id), session.cover_id
    case = Case.objects.create(session_id=session.pk, host=host, source="report", opened_at=now())
    client.force_login(UserFactory(is_staff=True, is_superuser=True))

    def press(verb: str) -> str:
        fields = {
            "verb": verb,
            "text": "Not your stage.",
            "note": "for colleagues",
            "state": "open",
            "modified_at": session.worded_at.isoformat(),
        }
        return client.post(f"/admin/moderation/case/{case.pk}/change/", fields, follow=True).content.decode()

    for other in (f"hide-{medium + 1}", f"show-{medium}", "hide-all", "show-all"):  # type: ignore[operator]
        assert "Nothing changed: the pictures were already like this." in press(other)
    assert "1 picture hidden." in press(f"hide-{medium}")
    assert not exists(old)
    [shown] = sessions_of(host, UserFactory()).items
    assert (shown.cover, shown.title) == (None, session.title)
    [entry] = notifications_page(host).items
    assert entry.kind == "warning"
    assert session.title in entry.text
    assert "Not your stage." in entry.text
    line = Decision.objects.get()
    assert (line.verb, line.session_id, line.after) == ("hide", session.pk, {"pictures": [str(medium)]})
    assert "Nothing changed: the pictures were already like this." in press(f"hide-{medium}")
    actions.edit(session=session, now=now(), cover_id=int(sent(host)))
    assert sessions_of(host, host).items[0].cover is not None, "another may be given"
