"""Bad input gets JSON in Mastodon's shape, never a 5xx, and changes nothing."""

import json
import re
import time
from datetime import datetime
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404
from django.test import Client, RequestFactory
from oauth2_provider.models import AccessToken

from accounts.about import site
from accounts.models import User
from items import actions as items
from items.models import Item, Visibility
from media.models import MediaFile, MediaKind
from relations import actions as relations
from storage.connections import count_trips
from tests.support import servers
from tests.support.addresses import client_patterns
from tests.support.clients import Caller, token_of
from tests.support.effort import some
from tests.support.factories import ItemFactory, UserFactory
from web import outage
from web.outage import OutageMiddleware

pytestmark = pytest.mark.django_db

NUMBERS = ["abc", "1.5", "NaN", "%00", "-1", "1_0", "\uff11", "9" * 20, "9" * 5000]
IDS = ["abc", "0", "-1", "1.5", "%00", "9" * 30, "1%0a", "..", "%F0%9F%98%80"]


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def caller(user: User) -> Caller:
    return Caller(user)


def refused(response: Any, *statuses: int) -> None:
    assert response.status_code in statuses, (response.status_code, response.content[:300])
    assert response.headers["Content-Type"].startswith("application/json")
    assert list(response.json()) == ["error"]
    assert isinstance(response.json()["error"], str)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["max_id", "since_id", "min_id", "limit"])
def test_numbers_that_are_none(caller: Caller, name: str) -> None:
    for path in ("timelines/home", "timelines/public", "notifications", "bookmarks", "blocks"):
        for value in [*NUMBERS, f"1&{name}=2"]:
            refused(caller.client.get(f"/api/v1/{path}?{name}={value}", **caller.headers), 400, 422)
        assert caller.get(f"v1/{path}?{name}=") == []


def test_large_limits_are_cut(caller: Caller, user: User) -> None:
    for _ in range(45):
        items.publish(sender=user, content={"text": "x"})
    assert len(caller.get("v1/timelines/home?limit=1000")) == 40


@pytest.mark.slow
@pytest.mark.parametrize("value", some(3, IDS))
def test_ids_that_are_none_are_not_found(caller: Caller, value: str) -> None:
    for prefix, pattern in client_patterns:
        route = prefix + str(pattern.pattern)
        if "_id>" not in route or not hasattr(pattern.callback, "cls"):  # a page
            continue
        view = pattern.callback.cls
        path = "/" + route.split("<")[0] + value + route.partition(">")[2]
        for method in ("get", "post", "put", "delete"):
            if hasattr(view, method):
                response = getattr(caller.client, method)(path, content_type="application/json", **caller.headers)
                refused(response, 404)


UNREADABLE = [b"{", b"[]", b'"x"', b"null", b'{"a":1,"a":2}', b'{"status":"\\u0000"}', b'{"status":"\\ud800"}', b"\xff"]
UNREADABLE += [b"NaN", b'{"status":NaN}', b'{"status":1e400}', b'{"a":' * 40 + b"1" + b"}" * 40]


def test_bodies_that_cannot_be_read(caller: Caller) -> None:
    for body in UNREADABLE:
        response = caller.client.post("/api/v1/statuses", body, content_type="application/json", **caller.headers)
        refused(response, 400)
    assert not Item.objects.exists()


def test_bodies_that_are_too_long_or_of_no_kind(caller: Caller) -> None:
    long = json.dumps({"status": "x" * 70_000})
    refused(caller.client.post("/api/v1/statuses", long, content_type="application/json", **caller.headers), 413)
    for kind in ("text/plain", "application/xml", "application/octet-stream"):
        refused(caller.client.post("/api/v1/statuses", "status=x", content_type=kind, **caller.headers), 415)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"status": ""},
        {"status": "   "},
        {"status": ["x"]},
        {"status": {"a": "b"}},
        {"status": "x" * 5_001},
        {"status": "x", "spoiler_text": "y" * 201},
        {"status": "x", "visibility": "unlisted"},
        {"status": "x", "visibility": "everybody"},
        {"status": "for @bob", "visibility": "direct"},
        {"status": "x", "poll": {"options": ["a"], "expires_in": 600}},
        {"status": "x", "scheduled_at": "2068-01-01T00:00:00Z"},  # too far ahead
        {"status": "x", "scheduled_at": ["x"]},
        {"status": "x", "quoted_status_id": "1"},
        {"status": "x", "quoted_status_id": "abc"},
        {"status": "x", "quote_approval_policy": "friends"},
        {"status": "x", "media_ids": ["1"]},
        {"status": "x", "media_ids": "abc"},
        {"status": "x", "media_ids": ["1", "2", "3", "4", "5"]},
        {"status": "x", "sensitive": "perhaps"},
        {"status": "x", "in_reply_to_id": "12345"},
        {"status": "x", "in_reply_to_id": "abc"},
    ],
)
def test_statuses_that_cannot_be(caller: Caller, fields: dict[str, Any]) -> None:
    response = caller.client.post("/api/v1/statuses", fields, content_type="application/json", **caller.headers)
    refused(response, 400, 404, 422)
    assert not Item.objects.exists()


def test_unknown_fields_are_passed_over(caller: Caller, user: User) -> None:
    fields = {"status": "x", "sender": "2", "id": "7", "is_superuser": True, "local_only": False, "community_id": "en"}
    status = caller.post("v1/statuses", fields)
    item = Item.objects.get()
    assert (status["id"], item.sender_id, item.content) == (str(item.pk), user.pk, {"text": "x"})


def test_forms_are_read_as_json_is(caller: Caller) -> None:
    status = caller.client.post(
        "/api/v1/statuses",
        "status=x&sensitive=1&spoiler_text=&visibility=private&media_ids[]=",
        content_type="application/x-www-form-urlencoded",
        **caller.headers,
    )
    assert status.status_code in (200, 400), status.content
    status = caller.client.post("/api/v1/statuses", {"status": "y", "sensitive": "false"}, **caller.headers)
    assert (status.status_code, status.json()["sensitive"]) == (200, False)


def test_anothers_medium_and_status_are_not_ones_own(caller: Caller) -> None:
    other = UserFactory()
    medium = MediaFile.objects.create(
        owner_id=other.pk, kind=MediaKind.IMAGE, sha256="0" * 64, name="n", ext="jpg", width=9, height=9, size=9
    )
    item = items.publish(sender=other, content={"text": "x"})
    caller.get(f"v1/media/{medium.pk}", status=404)
    caller.post("v1/statuses", {"status": "x", "media_ids": [str(medium.pk)]}, status=422)
    caller.put(f"v1/statuses/{item.pk}", {"status": "y"}, status=403)
    caller.delete(f"v1/statuses/{item.pk}", status=403)
    caller.post(f"v1/statuses/{item.pk}/pin", status=422)
    assert Item.objects.get().text == "x"


@pytest.mark.parametrize("visibility", ["public", "private", "direct"])
def test_no_visibility_is_wider_than_it_says(caller: Caller, user: User, visibility: str) -> None:
    friend, stranger, named = UserFactory(), UserFactory(), UserFactory(username="named")
    relations.follow(follower=friend, followee=user)
    status = caller.post("v1/statuses", {"status": "secret @named", "visibility": visibility})
    assert status["visibility"] == visibility
    seen = {
        name: Client().get(f"/api/v1/statuses/{status['id']}", **(Caller(one).headers if one else {})).status_code
        == 200
        for name, one in (("friend", friend), ("stranger", stranger), ("named", named), ("nobody", None))
    }
    assert seen == {
        "friend": visibility != "direct",
        "stranger": visibility == "public",
        "named": visibility in ("public", "direct"),
        "nobody": visibility == "public",
    }


@pytest.mark.parametrize("visibility", Visibility.values)
def test_a_visibility_that_is_shown_is_no_wider_either(visibility: str, caller: Caller, user: User) -> None:
    UserFactory(username="bob")
    item = items.publish(sender=user, content={"text": "x @bob"}, visibility=visibility)
    shown = caller.get(f"v1/statuses/{item.pk}")["visibility"]
    assert shown == {"public": "public", "mentioned": "direct"}.get(visibility, "private")


def test_oneself_is_nobody_to_follow(caller: Caller, user: User) -> None:
    for act in ("follow", "block", "mute", "unfollow", "remove_from_followers"):
        caller.post(f"v1/accounts/{user.pk}/{act}", status=422)


def test_a_blocker_is_not_found_and_not_told(caller: Caller, user: User) -> None:
    other = UserFactory(username="bob")
    relations.block(blocker=other, blocked=user)
    for path in (f"accounts/{other.pk}", "accounts/lookup?acct=bob", f"accounts/{other.pk}/statuses"):
        caller.get(f"v1/{path}", status=404)
    caller.post(f"v1/accounts/{other.pk}/follow", status=404)
    assert caller.get(f"v1/accounts/relationships?id[]={other.pk}") == []
    assert caller.get("v2/search?q=bob")["accounts"] == []


@pytest.mark.slow
def test_addresses_that_are_none_speak_mastodons_errors(caller: Caller) -> None:
    for path in ("v1/statuses/1/nowhere", "v1/push/nowhere", "v2/nowhere", "v1/polls/1/nowhere"):
        for method in ("get", "post", "delete"):
            refused(getattr(caller.client, method)(f"/api/{path}", **caller.headers), 404)
    assert "detail" in caller.client.get("/api/v1/items/1/nowhere").json()


@pytest.mark.parametrize(
    ("path", "word"),
    [("/api/v1/statuses/1", "error"), ("/oauth/token", "error"), ("/api/v1/items/1", "detail"), ("/login", "")],
)
def test_errors_outside_the_views_have_the_shape_of_their_address(path: str, word: str) -> None:
    request = RequestFactory().get(path)
    for answer in (
        outage.not_found(request, Http404()),
        outage.server_error(request),
        outage.unavailable(request),
        outage.bad_request(request, SuspiciousOperation()),
        outage.permission_denied(request, PermissionDenied()),
    ):
        if word:
            assert list(json.loads(answer.content)) == [word]
        else:
            assert answer.headers["Content-Type"].startswith("text/html")


def test_a_failure_of_a_middleware_speaks_mastodons_errors(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: Any) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(OutageMiddleware, "__call__", fail)
    caller.client.raise_request_exception = False
    refused(caller.client.get("/api/v1/timelines/home", **caller.headers), 500)


def test_wrong_methods(caller: Caller) -> None:
    refused(caller.client.put("/api/v1/timelines/home", **caller.headers), 405)
    refused(caller.client.patch("/api/v1/statuses", **caller.headers), 405)


def test_a_token_asks_for_the_methods_of_every_address(user: User) -> None:
    for caller in (Caller(user), Caller(user, "push")):
        for path in ("/api/v1/notifications/clear", "/api/v1/statuses", "/api/v1/users/me"):
            response = caller.client.options(path, **caller.headers)
            assert (response.status_code, "OPTIONS" in response["Allow"]) == (200, True), path


@pytest.mark.parametrize("body", [b"status=%ff", b"status=\xff", b"status=a&%ff=b", b"status=%ED%A0%80"])
@pytest.mark.parametrize("kind", ["", "; charset=latin-1", "; charset=hex"])
def test_forms_that_are_no_utf8(caller: Caller, body: bytes, kind: str) -> None:
    kind = "application/x-www-form-urlencoded" + kind
    refused(caller.client.generic("POST", "/api/v1/statuses", body, content_type=kind, **caller.headers), 400)
    assert not Item.objects.exists()
    body = "status=a+%E7%8C%AB+猫".encode()
    said = caller.client.generic("POST", "/api/v1/statuses", body, content_type=kind, **caller.headers)
    assert said.json()["content"] == "<p>a 猫 猫</p>"


@pytest.mark.parametrize(("value", "status"), [(b"\xff", 400), (b"\xed\xa0\x80", 400), ("猫".encode(), 200)])
@pytest.mark.parametrize("kind", ["", "; charset=latin-1"])
def test_forms_with_files_that_are_no_utf8(caller: Caller, value: bytes, status: int, kind: str) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="status"\r\n\r\n' + value + b"\r\n--x--\r\n"
    kind = f"multipart/form-data; boundary=x{kind}"
    said = caller.client.generic("POST", "/api/v1/statuses", body, content_type=kind, **caller.headers)
    assert said.status_code == status, said.content
    assert [item.text for item in Item.objects.all()] == (["猫"] if status == 200 else [])


@pytest.mark.parametrize(
    ("acct", "is_own"),
    [
        ("bob", True),
        ("@bob", True),
        ("bob@testserver", True),
        ("@Bob@TESTSERVER:80", True),
        ("bob@", True),
        ("bob@other.example", False),
        ("@bob@other.example", False),
        ("bob@testserver@other.example", False),
        ("bob@testserver.other.example", False),
    ],
)
def test_an_account_of_another_site_is_none_of_ours(caller: Caller, acct: str, is_own: bool) -> None:
    UserFactory(username="bob")
    found = caller.client.get(f"/api/v1/accounts/lookup?acct={acct}", **caller.headers)
    assert found.status_code == (200 if is_own else 404)
    assert len(caller.get(f"v2/search?q={acct}")["accounts"]) == is_own
    assert len(caller.get(f"v1/accounts/search?q={acct}")) == is_own


def test_strangers_of_a_site_for_members_see_the_instance_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    site.site_copy.set(site.Site(looking="members"))
    item = ItemFactory()
    for path in ("v1/timelines/public", f"v1/statuses/{item.pk}", f"v1/accounts/{item.sender_id}", "v2/search?q=x"):
        refused(Client().get(f"/api/{path}"), 401)
    assert Client().get("/api/v1/instance").status_code == 200
    assert Client().get("/api/v2/instance").status_code == 200
    token = token_of(UserFactory())
    site.site_copy.set(site.Site(looking="members"))
    assert Client().get("/api/v1/timelines/public", HTTP_AUTHORIZATION=f"Bearer {token}").status_code == 200


def left_of(response: Any) -> tuple[int, int, float]:
    """Limit, remaining calls, seconds until the reset."""
    ends = response["X-RateLimit-Reset"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", ends)
    seconds = datetime.fromisoformat(ends).timestamp() - time.time()
    return int(response["X-RateLimit-Limit"]), int(response["X-RateLimit-Remaining"]), seconds


def test_answers_say_what_is_left_of_the_rate(caller: Caller, settings: LazySettings) -> None:
    settings.RATES = settings.RATES | {"read": "3/hour", "publish": "2/minute"}
    for remaining in (2, 1, 0):
        caller.get("v1/timelines/home")
        most, left, seconds = left_of(caller.response)
        assert (most, left) == (3, remaining)
        assert 3_590 < seconds < 3_601
    refusal = caller.client.get("/api/v1/statuses/1", **caller.headers)
    refused(refusal, 429)
    assert left_of(refusal)[:2] == (3, 0)
    assert abs(left_of(refusal)[2] - int(refusal["Retry-After"])) < 5
    caller.post("v1/statuses", {"status": "x"})
    assert left_of(caller.response)[:2] == (2, 1)
    wrong = caller.client.post("/api/v1/statuses", {"status": ""}, **caller.headers)
    refused(wrong, 422)
    assert left_of(wrong)[:2] == (2, 0)


def test_refusals_of_strangers_say_what_is_left_too(settings: LazySettings) -> None:
    settings.RATES = settings.RATES | {"read": "9/hour", "attempt": "5/hour"}
    assert left_of(Client().get("/api/v1/timelines/home"))[:2] == (9, 8)
    assert left_of(Client().get("/api/v1/statuses/1/nowhere"))[:2] == (9, 7)
    assert left_of(Client().get("/api/v2/search"))[1] > 0
    bad = {"HTTP_AUTHORIZATION": "Bearer nothing"}
    refusal = Client().get("/api/v1/timelines/home", **bad)
    refused(refusal, 401)
    assert left_of(refusal)[:2] == (5, 4)


def test_of_several_rates_the_scarcest_is_told(settings: LazySettings) -> None:
    """A token without a user counts as an attempt of its address and as an anonymous call."""
    token = {"HTTP_AUTHORIZATION": f"Bearer {token_of(None)}"}
    settings.RATES = settings.RATES | {"read": "9/hour", "attempt": "5/hour"}
    assert left_of(Client().get("/api/v1/timelines/public", **token))[:2] == (5, 4)
    settings.RATES = settings.RATES | {"read": "4/hour"}
    assert left_of(Client().get("/api/v1/timelines/public", **token))[:2] == (4, 2)


def test_a_token_that_is_new_here_tells_its_users_rate(user: User, settings: LazySettings) -> None:
    """A first call is an attempt until PostgreSQL knows the token. An ended token does not show its user's rate."""
    settings.RATES = settings.RATES | {"read": "9/hour", "attempt": "2/hour"}
    caller, other = Caller(user), Caller(user)
    for remaining, one in zip((8, 7, 6, 5), (caller, other, caller, other), strict=True):
        one.get("v1/timelines/home")
        assert left_of(one.response)[:2] == (9, remaining)
    AccessToken.objects.all().delete()
    assert left_of(caller.client.get("/api/v1/timelines/home", **caller.headers))[:2] == (2, 1)


def test_browsers_may_read_the_rates(caller: Caller) -> None:
    caller.get("v1/timelines/home", HTTP_ORIGIN="https://app.example")
    exposed = caller.response["Access-Control-Expose-Headers"]
    assert {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Link"} <= set(exposed.split(", "))


def test_the_rest_of_a_rate_costs_no_round_trip(caller: Caller) -> None:
    for expected in (2, 1, 1):  # the first call marks its token
        with count_trips() as asked:
            caller.get("v1/preferences")
        assert (asked.round_trips, "X-RateLimit-Reset" in caller.response) == (expected, True)


@pytest.mark.slow
def test_without_the_cache_server_no_rate_is_told(caller: Caller, feeds_server: servers.Valkey) -> None:
    with servers.dead(feeds_server):
        for path in ("v1/timelines/home", "v1/timelines/public", "v1/instance"):
            caller.get(path)
            assert "X-RateLimit-Limit" not in caller.response
            assert Client().get(f"/api/{path}").headers.get("X-RateLimit-Reset") is None
