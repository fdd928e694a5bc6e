import io
import json
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import OperationalError, connection
from django.test import Client
from oauth2_provider.models import AccessToken
from rest_framework.test import APIClient

from accounts import actions, export
from accounts.about import site
from accounts.models import User
from accounts.proofs import LoginEndedError
from items import actions as items
from items.filters import filters
from items.models import Item
from media import actions as media
from media.models import MediaFile
from notifications import actions as notifications
from relations import actions as relations
from relations import lists
from tests.support.api import API
from tests.support.at_once import at_once
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in
from tests.support.pictures import files_of, jpeg, upload
from web.strict_json import BODY_BYTES

pytestmark = pytest.mark.django_db

NEW = "sesame-seeds-7"


@pytest.fixture
def ann() -> User:
    return UserFactory(username="Ann")


@pytest.fixture
def page(client: Client, ann: User) -> Client:
    client.force_login(ann)
    return client


def works(password: str) -> bool:
    return Client().login(username="ann", password=password)


# --- Preferences ------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_language_and_time_zone(page: Client, ann: User) -> None:
    response = page.post("/settings/preferences", {"language": "zh-hans", "time_zone": "Asia/Shanghai"})
    assert response["Location"] == "/settings/preferences"
    shown = page.get("/settings/preferences").content.decode()
    assert "已保存。" in shown
    assert '<option value="Asia/Shanghai" selected>上海 (+08:00)</option>' in shown
    ann.refresh_from_db()
    assert (ann.language, ann.time_zone) == ("zh-hans", "Asia/Shanghai")
    page.post("/settings/preferences", {"language": "", "time_zone": ""})
    assert '<html lang="en"' in page.get("/settings/preferences").content.decode()
    assert '<html lang="zh-Hans"' in page.get("/settings", HTTP_ACCEPT_LANGUAGE="zh").content.decode()


@pytest.mark.slow
def test_the_theme_is_kept_in_the_browser(page: Client, ann: User) -> None:
    assert "data-theme" not in page.get("/settings/preferences").content.decode()
    page.post("/settings/preferences", {"language": "", "time_zone": "", "theme": "dark"})
    shown = page.get("/settings/preferences").content.decode()
    assert 'data-theme="dark"' in shown
    assert '<meta name="color-scheme" content="dark">' in shown
    assert '<option value="dark" selected>' in shown
    assert 'data-theme="dark"' in page.get("/nothing").content.decode()
    page.cookies["theme"] = '"><b>'
    assert "data-theme" not in page.get("/settings").content.decode()
    page.cookies["theme"] = "dark"
    page.post("/settings/preferences", {"language": "", "time_zone": "", "theme": ""})
    assert "data-theme" not in page.get("/settings").content.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {"language": "de"},
        {"language": "zh"},
        {"time_zone": "Mars/Base"},
        {"time_zone": "../etc"},
        {"language": "\x00"},
        {"time_zone": "x" * 5000},
    ],
)
def test_unknown_languages_and_zones(page: Client, ann: User, fields: dict[str, str]) -> None:
    assert page.post("/settings/preferences", {"language": "en", "time_zone": "UTC"} | fields).status_code == 422
    ann.refresh_from_db()
    assert (ann.language, ann.time_zone) == ("", "")


@pytest.mark.slow
def test_a_zone_that_is_not_listed_stays(page: Client) -> None:
    User.objects.update(time_zone="Etc/GMT+5")
    assert '<option value="Etc/GMT+5" selected>' in page.get("/settings/preferences").content.decode()
    assert page.post("/settings/preferences", {"language": "en", "time_zone": "Etc/GMT+5"}).status_code == 302


# --- Password --------------------------------------------------------------------------------------------
def test_changing_the_password_ends_everything_else(page: Client, ann: User) -> None:
    other = logged_in(ann)
    actions.issue_token(user=ann)
    response = page.post("/settings/password", {"current": PASSWORD, "new": NEW})
    assert response["Location"] == "/settings/password"
    assert "Password changed." in page.get("/settings/password").content.decode()
    assert other.get("/settings").status_code == 302
    assert not AccessToken.objects.exists()
    assert works(NEW)
    assert not works(PASSWORD)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"current": "wrong"}, "Wrong password. Try again."),
        ({"current": ""}, "This field is required."),
        ({"current": PASSWORD + " "}, "Wrong password. Try again."),
        ({"current": "x" * 300}, "at most 256 characters"),
        ({"new": "short"}, "too short"),
        ({"new": "1234567890"}, "entirely numeric"),
        ({"new": "password"}, "too common"),
        ({"new": "x" * 257}, "at most 256 characters"),
        ({"new": "a\x00bcdefghij"}, "Null characters"),
        ({"new": ""}, "This field is required."),
    ],
)
def test_passwords_that_are_refused(page: Client, ann: User, fields: dict[str, str], words: str) -> None:
    actions.issue_token(user=ann)
    response = page.post("/settings/password", {"current": PASSWORD, "new": NEW} | fields)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert NEW not in response.content.decode()
    assert works(PASSWORD)
    assert AccessToken.objects.exists()


def test_guessing_the_password_is_limited(page: Client, api: APIClient, settings: Any) -> None:
    settings.RATES = settings.RATES | {"password": "3/hour"}
    wrong = {"current_password": "guess", "new_password": NEW}
    assert page.post("/settings/password", {"current": "guess", "new": NEW}).status_code == 422
    assert api.post(f"{API}/users/me/password", wrong).status_code == 400
    assert api.post(f"{API}/users/me/delete", {"password": "guess"}).status_code == 400
    answers = [
        page.post("/settings/password", {"current": PASSWORD, "new": NEW}),
        page.post("/settings/delete", {"username": "ann", "password": PASSWORD}),
        api.post(f"{API}/users/me/password", wrong | {"current_password": PASSWORD}),
        api.post(f"{API}/users/me/delete", {"password": PASSWORD}),
    ]
    for answer in answers:
        assert answer.status_code == 429
        assert 0 < int(answer["Retry-After"]) <= 3600
    assert page.get("/settings/password").status_code == 200
    assert works(PASSWORD)


def test_of_two_changes_with_the_same_password_one_counts(ann: User) -> None:
    stale = User.objects.get(pk=ann.pk)
    actions.change_password(user=ann, current=PASSWORD, new=NEW)
    with pytest.raises(LoginEndedError):
        actions.change_password(user=stale, current=PASSWORD, new="another-one-8")
    assert works(NEW)


def test_logging_out_everywhere(page: Client, ann: User) -> None:
    other = logged_in(ann)
    actions.issue_token(user=ann)
    assert page.post("/settings/log-out-everywhere")["Location"] == "/settings/devices"
    assert page.get("/settings").status_code == 200
    assert other.get("/settings").status_code == 302
    assert not AccessToken.objects.exists()
    assert works(PASSWORD)
    assert page.get("/settings/log-out-everywhere").status_code == 405


def test_the_password_over_the_api(api: APIClient, ann: User) -> None:
    other = logged_in(ann)
    token = actions.issue_token(user=ann)
    change = {"current_password": PASSWORD, "new_password": NEW}
    response = api.post(f"{API}/users/me/password", change)
    assert (response.status_code, response.content) == (204, b"")
    assert api.get(f"{API}/users/me").status_code == 200
    assert other.get("/settings").status_code == 302
    assert Client().get(f"{API}/users/me", headers={"authorization": f"Token {token}"}).status_code == 401
    assert works(NEW)


def test_a_session_that_asks_over_the_api_stays(ann: User) -> None:
    session = APIClient()
    session.force_login(ann)
    change = {"current_password": PASSWORD, "new_password": NEW}
    assert session.post(f"{API}/users/me/password", change).status_code == 204
    assert session.get(f"{API}/users/me").status_code == 200
    assert session.delete(f"{API}/users/me/sessions").status_code == 204
    assert session.get(f"{API}/users/me").status_code == 200


def test_all_tokens_but_the_one_that_asks(api: APIClient, ann: User) -> None:
    other = logged_in(ann)
    actions.issue_token(user=ann)
    assert api.delete(f"{API}/users/me/sessions").status_code == 204
    assert AccessToken.objects.count() == 1
    assert api.get(f"{API}/users/me").status_code == 200
    assert other.get("/settings").status_code == 302


# --- Bad input over the API ------------------------------------------------------------------------------
BODIES: dict[str, dict[str, Any]] = {
    "password": {"current_password": PASSWORD, "new_password": NEW},
    "delete": {"password": PASSWORD},
}


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (b"", 400),
        (b"{}", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b'{"a": NaN}', 400),
        (b'{"a": 1e400}', 400),
        (b"[" * 40 + b"]" * 40, 400),
        (b" " * (BODY_BYTES + 1), 413),
    ],
)
def test_bodies_that_are_refused(api: APIClient, route: str, bad: bytes, status: int, settings: Any) -> None:
    response = api.post(f"{API}/users/me/{route}", bad, content_type="application/json")
    assert response.status_code == status
    assert response["Content-Type"] == "application/json"
    assert works(PASSWORD)


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize(
    "wrong", [None, 1, [], {}, "", "a\x00b", "\ud800", "x" * 257, "x" * 5000, "wrong", PASSWORD + " ", True]
)
def test_fields_that_are_refused(api: APIClient, route: str, wrong: Any) -> None:
    for field in BODIES[route]:
        refused = "1234" if field == "new_password" and wrong in ("wrong", PASSWORD + " ") else wrong
        data = json.dumps(BODIES[route] | {field: refused})
        response = api.post(f"{API}/users/me/{route}", data, content_type="application/json")
        assert response.status_code == 400, field
        assert isinstance(response.json(), dict)
    assert works(PASSWORD)


@pytest.mark.parametrize("route", BODIES)
def test_what_else_is_refused(api: APIClient, ann: User, route: str) -> None:
    address, good = f"{API}/users/me/{route}", BODIES[route]
    more = api.post(address, good | {"is_superuser": True})
    assert more.status_code == 400
    assert more.json() == {"is_superuser": ["This field cannot be set."]}
    doubled = json.dumps(good)[:-1] + ', "password": "x", "password": "x"}'
    assert api.post(address, doubled, content_type="application/json").status_code == 400
    assert api.post(address, "a=b", content_type="application/x-www-form-urlencoded").status_code == 415
    assert APIClient().post(address, good).status_code == 401
    assert "WWW-Authenticate" in APIClient().post(address, good)
    strict = APIClient(enforce_csrf_checks=True)
    strict.force_login(ann)
    assert strict.post(address, good).status_code == 403
    for method in ("get", "put", "patch", "delete"):
        assert getattr(api, method)(address).status_code == 405
    assert works(PASSWORD)


# --- Leaving ---------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_deleting_the_account(page: Client, ann: User) -> None:
    item = items.publish(sender=ann, content={"text": "words"})
    response = page.post("/settings/delete", {"username": " @ANN ", "password": PASSWORD}, follow=True)
    assert response.redirect_chain == [("/login", 302)]
    assert "Your account is deleted." in response.content.decode()
    assert page.get("/settings").status_code == 302
    assert not works(PASSWORD)
    never = Client().get("/items/1").content
    assert Client().get(f"/items/{item.pk}").content == never
    assert Client().get("/@Ann").content == never


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"username": "bob"}, "s not your username."),
        ({"username": ""}, "This field is required."),
        ({"password": "wrong"}, "Wrong password. Try again."),
        ({"password": ""}, "This field is required."),
        ({"password": "x" * 5000}, "at most 256 characters"),
    ],
)
def test_deleting_that_is_refused(page: Client, ann: User, fields: dict[str, str], words: str) -> None:
    response = page.post("/settings/delete", {"username": "Ann", "password": PASSWORD} | fields)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert works(PASSWORD)


def test_deleting_over_the_api(api: APIClient, ann: User) -> None:
    response = api.post(f"{API}/users/me/delete", {"password": PASSWORD})
    assert (response.status_code, response.content) == (204, b"")
    assert api.get(f"{API}/users/me").status_code == 401
    assert not works(PASSWORD)


def test_the_last_superuser_is_told(page: Client, api: APIClient, ann: User) -> None:
    User.objects.update(is_superuser=True)
    response = page.post("/settings/delete", {"username": "Ann", "password": PASSWORD})
    assert response.status_code == 422
    assert "last admin" in response.content.decode()
    assert api.post(f"{API}/users/me/delete", {"password": PASSWORD}).status_code == 409
    assert works(PASSWORD)


# --- Data ------------------------------------------------------------------------------------------------
def opened(content: bytes) -> tuple[zipfile.ZipFile, dict[str, list[Any]]]:
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert archive.testzip() is None
    rows = {
        name: [json.loads(line) for line in archive.read(name).decode().splitlines()]
        for name in archive.namelist()
        if name != "README.txt"
    }
    return archive, rows


@pytest.fixture
def known(ann: User) -> dict[str, Any]:
    actions.edit_profile(user=ann, display_name="安", bio="b")
    bob, cat, dan = (UserFactory(username=name) for name in ("bob", "cat", "dan"))
    relations.follow(follower=ann, followee=bob)
    relations.follow(follower=cat, followee=ann)
    relations.block(blocker=ann, blocked=dan)
    relations.block(blocker=dan, blocked=ann)
    relations.mute(muter=ann, muted=cat)
    filters.create(owner=ann, phrase="zebra", whole_word=True)
    lists.add(owner=ann, list_id=lists.create(owner=ann, title="Friends", is_exclusive=True).pk, member=bob)
    notifications.silence(user=ann, kinds=["like"])
    said = items.publish(sender=bob, content={"text": "liked"})
    made = [
        items.publish(sender=ann, content={"text": "第一"}, title="T", extra_info={"a": [1]}),
        items.publish(sender=ann, content={"text": "mine"}, visibility="self"),
        items.publish(sender=ann, content={"text": "an answer"}, reply_to=said),
        items.repost(sender=ann, item=said)[0],
    ]
    items.delete(item=items.publish(sender=ann, content={"text": "deleted"}))
    held = items.publish(sender=ann, content={"text": "held"})
    items.hold(item=held, reasons=["x"])
    items.like(user=ann, item=said)
    items.like(user=bob, item=made[0])
    hidden = items.publish(sender=bob, content={"text": "not for all"})
    items.like(user=ann, item=hidden)
    items.change_visibility(item=hidden, visibility="self")
    return {"said": said, "made": [*made, held], "bob": bob, "cat": cat, "dan": dan}


@pytest.mark.parametrize(
    ("name", "said"), [("Reading room!", "reading-room"), ("读书会", "读书会"), ("☕", "feedsite")]
)
def test_the_archive_is_called_by_the_site(page: Client, name: str, said: str) -> None:
    site.site_copy.set(site.Site(name=name))
    response = page.post("/settings/data")
    response.close()
    assert response["Content-Disposition"].split("=", 1)[1].removeprefix("utf-8''").strip('"').startswith(quote(said))


@pytest.mark.slow
def test_the_archive_holds_everything(page: Client, api: APIClient, ann: User, known: dict[str, Any]) -> None:
    response = page.post("/settings/data")
    assert response["Content-Type"] == "application/zip"
    assert response["Content-Disposition"].startswith('attachment; filename="feedsite-Ann-')
    assert response["Cache-Control"] == "no-store"
    content = b"".join(response.streaming_content)  # type: ignore[attr-defined]
    assert int(response["Content-Length"]) == len(content)
    archive, rows = opened(content)
    assert set(rows) == {
        "account.json",
        "logins.jsonl",
        "second_factors.jsonl",
        "media.jsonl",
        "invitations.jsonl",
        "items.jsonl",
        "votes.jsonl",
        "scheduled.jsonl",
        "muted-conversations.jsonl",
        "hidden_replies.jsonl",
        "edits.jsonl",
        "likes.jsonl",
        "filters.jsonl",
        "bookmarks.jsonl",
        "conversations.jsonl",
        "follows.jsonl",
        "followers.jsonl",
        "follow_requests.jsonl",
        "followed_hashtags.jsonl",
        "follow_requests_to_you.jsonl",
        "list_imports.jsonl",
        "archive_imports.jsonl",
        "blocks.jsonl",
        "mutes.jsonl",
        "lists.jsonl",
        "reports.jsonl",
        "decisions.jsonl",
        "plays.jsonl",
        "issued.jsonl",
        "played_months.jsonl",
        "history.jsonl",
        "not_interested.jsonl",
        "live_sessions.jsonl",
        "live_reminders.jsonl",
        "reading_position.jsonl",
        "account_notes.jsonl",
        "read_notifications.jsonl",
        "silenced_notifications.jsonl",
        "push_devices.jsonl",
        "quiet_hours.jsonl",
    }
    assert rows["silenced_notifications.jsonl"] == [{"kind": "like"}]
    (account,) = rows["account.json"]
    assert (account["username"], account["display_name"], account["bio"]) == ("Ann", "安", "b")
    assert "password" not in str(rows)
    assert [int(row["id"]) for row in rows["items.jsonl"]] == [item.pk for item in known["made"]]
    first, mine, answer, repost, held = rows["items.jsonl"]
    assert first["content"] == {"text": "第一"}
    assert first["extra_info"] == {"a": [1]}
    assert first["counts"] == {"likes": 1, "replies": 0, "reposts": 0, "quotes": 0}
    assert (first["quote_of"], first["quotable_by"]) == (None, "everyone")
    assert first["created_at"].endswith("Z")
    assert mine["visibility"] == "self"
    assert answer["reply_to"] == repost["repost_of"] == str(known["said"].pk)
    assert held["status"] == "in_review"
    assert [(row["item_id"], row["by"]) for row in rows["likes.jsonl"]] == [(str(known["said"].pk), "bob")]
    assert [row["username"] for row in rows["follows.jsonl"]] == ["bob"]
    assert [row["username"] for row in rows["followers.jsonl"]] == ["cat"]
    assert [row["username"] for row in rows["blocks.jsonl"]] == ["dan"]
    assert [row["username"] for row in rows["mutes.jsonl"]] == ["cat"]
    assert [(row["phrase"], row["action"]) for row in rows["filters.jsonl"]] == [("zebra", "warn")]
    (listed,) = rows["lists.jsonl"]
    assert (listed["title"], listed["exclusive"], listed["members"]) == ("Friends", True, ["bob"])
    read_me = archive.read("README.txt").decode()
    assert "The data of @Ann" in read_me
    for name in rows:
        assert name in read_me
    assert "5 entries." in read_me
    again = api.get(f"{API}/users/me/export")
    assert again.status_code == 200
    assert opened(b"".join(again.streaming_content))[1] == rows


@pytest.mark.slow
def test_the_archive_explains_itself_in_the_readers_language(page: Client, known: dict[str, Any]) -> None:
    User.objects.filter(username="Ann").update(language="zh-hans", time_zone="Asia/Shanghai")
    response: Any = page.post("/settings/data")
    read_me = opened(b"".join(response.streaming_content))[0].read("README.txt").decode()
    assert "@Ann" in read_me
    assert "共 5 条。" in read_me
    assert "+0800" in read_me


@pytest.mark.slow
def test_the_archive_tells_nothing_of_who_left_or_hides(ann: User, page: Client, known: dict[str, Any]) -> None:
    relations.follow(follower=ann, followee=known["dan"])
    actions.delete_account(user=known["bob"])
    response: Any = page.post("/settings/data")
    _, rows = opened(b"".join(response.streaming_content))
    assert rows["follows.jsonl"] == rows["likes.jsonl"] == []
    assert "deleted-" not in str(rows)


def test_archives_are_limited_and_for_oneself(page: Client, api: APIClient, settings: Any) -> None:
    settings.RATES = settings.RATES | {"export": "2/hour"}
    for _ in range(2):
        response = page.post("/settings/data")
        assert response.status_code == 200
        assert b"".join(response.streaming_content).startswith(b"PK")
    assert page.post("/settings/data").status_code == 429
    refused = api.get(f"{API}/users/me/export")
    assert refused.status_code == 429
    assert refused["Content-Type"] == "application/json"
    assert page.get("/settings/data").status_code == 200
    assert APIClient().get(f"{API}/users/me/export").status_code == 401
    assert api.post(f"{API}/users/me/export", {}).status_code == 400
    assert api.post(f"{API}/users/me/export", {"password": PASSWORD}).status_code == 429


def test_an_archive_that_fails_is_an_error_and_not_half_a_file(
    page: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise OperationalError("connection lost")

    monkeypatch.setattr(export, "_write", fail)
    response = page.post("/settings/data")
    assert response.status_code == 503
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_archive_is_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items published meanwhile must be in no file, or the files disagree."""
    ann = UserFactory(username="ann")
    items.publish(sender=ann, content={"text": "before"})

    write = export._write
    done: list[Any] = []

    def slow(archive: Any, file: Any) -> int:
        if not done:
            done.extend(at_once(lambda: items.publish(sender=ann, content={"text": "meanwhile"}).pk))
        return write(archive, file)

    monkeypatch.setattr(export, "_write", slow)
    target = io.BytesIO()
    export.write_archive(ann, target)
    assert Item.objects.count() == 2
    assert len(opened(target.getvalue())[1]["items.jsonl"]) == 1
    assert not connection.in_atomic_block


def test_every_page_asks_who_it_is_for(client: Client) -> None:
    for path in ("", "/preferences", "/password", "/data", "/delete"):
        assert client.get(f"/settings{path}")["Location"].startswith("/login?next=")
        assert client.post(f"/settings{path}")["Location"] == "/login"
    assert client.post("/settings/log-out-everywhere")["Location"] == "/login"


@pytest.mark.slow
@pytest.mark.usefixtures("media_folder")
def test_the_archive_holds_pictures(page: Client, ann: User) -> None:
    row = media.upload(owner_id=ann.pk, file=upload(jpeg()), description="a cat")
    response: Any = page.post("/settings/data")
    archive = zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content)))
    (told,) = [json.loads(line) for line in archive.read("media.jsonl").decode().splitlines()]
    assert (told["id"], told["description"], told["file"]) == (str(row.pk), "a cat", f"media/{row.pk}.jpg")
    assert archive.read(told["file"])[:3] == b"\xff\xd8\xff"


@pytest.mark.slow
@pytest.mark.usefixtures("media_folder")
def test_a_picture_and_a_banner_are_set_and_removed(client: Client) -> None:
    ann = UserFactory.create(username="ann")
    client.force_login(ann)
    own = {"display_name": "Ann", "bio": ""}
    files = {"avatar": upload(jpeg()), "banner": upload(jpeg(300, 100))}
    assert client.post("/settings", own | files).status_code == 302
    ann.refresh_from_db()
    assert ann.display_name == "Ann"
    page = client.get("/@ann").content.decode()
    assert ann.avatar_url.removesuffix(".jpg") in page
    assert f'class="banner" src="{ann.banner_url}"' in page
    refused = client.post("/settings", own | {"avatar": upload(b"no picture")})
    assert refused.status_code == 422
    assert "Use a picture" in refused.content.decode()
    kept = ann.avatar_url
    ann.refresh_from_db()
    assert ann.avatar_url == kept
    assert client.post("/settings", own | {"remove_avatar": "on", "remove_banner": "on"}).status_code == 302
    ann.refresh_from_db()
    assert (ann.avatar, ann.banner) == (None, None)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_form_of_oneself_is_one_act(client: Client, media_folder: Path) -> None:
    """If the name, picture or banner is refused, the others stay unchanged."""
    ann = UserFactory.create(username="ann")
    client.force_login(ann)
    client.post("/settings", {"display_name": "Ann", "bio": "", "avatar": upload(jpeg()), "banner": upload(jpeg())})
    ann.refresh_from_db()
    before, files = (ann.display_name, ann.avatar, ann.banner), files_of(media_folder)
    new = {"display_name": "Anna", "bio": "words"}
    for sent, field in [
        ({"avatar": upload(jpeg(90)), "banner": upload(b"no picture")}, "banner"),
        ({"avatar": upload(b"no picture"), "banner": upload(jpeg(90))}, "avatar"),
        ({"remove_avatar": "on", "banner": upload(jpeg()[:-200])}, "banner"),
        ({"avatar": upload(jpeg(90)), "display_name": "\u202e"}, "display_name"),
    ]:
        answer = client.post("/settings", new | sent)
        assert answer.status_code == 422
        assert list(answer.context["form"].errors) == [field]
        ann.refresh_from_db()
        assert (ann.display_name, ann.avatar, ann.banner) == before
        assert files_of(media_folder) == files
    both = client.post("/settings", new | {"avatar": upload(b"no picture"), "banner": upload(b"none either")})
    assert list(both.context["form"].errors) == ["avatar", "banner"]
    assert client.post("/settings", new | {"avatar": upload(jpeg(90)), "remove_banner": "on"}).status_code == 302
    ann.refresh_from_db()
    assert (ann.display_name, ann.banner) == ("Anna", None)
    assert ann.avatar != before[1]
    assert len(files_of(media_folder)) == len(MediaFile.objects.get().files)
