import json
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
import redis
from django.conf import LazySettings, settings
from django.db import InterfaceError, OperationalError
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient

from accounts.models import User
from items.models import Item
from runtime.embedded import wait_for
from runtime.rate_table import parse_rate
from storage import connections
from tests.support import servers
from tests.support.api import API
from tests.support.factories import PASSWORD, ItemFactory
from tests.support.patience import waits_once_a_second
from tests.support.statements import statements
from web import rates
from web.rest import ApiView
from web.strict_json import BODY_BYTES, DEPTH, parse_json

pytestmark = pytest.mark.django_db

LISTS = ["/timeline/home", "/users/ann/items", "/users/ann/followers", "/users/ann/following", "/items/{item}/replies"]


@pytest.fixture
def item(ann: User) -> Item:
    return ItemFactory(sender=ann)


def is_problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/json"
    problem: dict[str, Any] = json.loads(response.content)
    assert problem
    return problem


# --- limit and last_id -----------------------------------------------------------------------------------
BAD_NUMBERS = ["0", "-1", "abc", "1_0", "1.5", "NaN", "%00", "1%00", "%FF", "+1", "%201", "1e2", "0x10"]
BAD_NUMBERS += ["٣", "\uff11\uff10", str(10**20), "9" * 5000]


@pytest.mark.slow
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("name", ["limit", "last_id"])
def test_bad_numbers(api: APIClient, item: Item, path: str, name: str) -> None:
    for value in [*BAD_NUMBERS, f"5&{name}=5"]:
        problem = is_problem(api.get(f"{API}{path.format(item=item.pk)}?{name}={value}"), 400)
        assert list(problem) == [name], value


def test_last_id_over_53_bits(api: APIClient) -> None:
    is_problem(api.get(f"{API}/timeline/home?last_id={2**53 + 1}"), 400)
    is_problem(api.get(f"{API}/timeline/home/new?since_id={2**53 + 1}"), 400)


@pytest.mark.parametrize("path", LISTS)
def test_last_id_is_a_position(api: APIClient, item: Item, path: str) -> None:
    """Deleted, unseen and future ids too."""
    for last_id in (1, 12345, 2**53):
        body = api.get(f"{API}{path.format(item=item.pk)}?last_id={last_id}").json()
        assert set(body) == {"items", "last_id", "has_more"}


@pytest.mark.parametrize("path", LISTS)
def test_empty_parameters_are_absent_and_unknown_ones_ignored(api: APIClient, item: Item, path: str) -> None:
    path = f"{API}{path.format(item=item.pk)}"
    assert api.get(f"{path}?limit=&last_id=&format=xml&x=%00%FF&limit[]=0").json() == api.get(path).json()


@pytest.mark.slow
def test_limit_is_clamped_to_100(api: APIClient, ann: User) -> None:
    ItemFactory.create_batch(102, sender=ann)
    for limit, count in [("", 20), ("?limit=7", 7), ("?limit=100", 100), ("?limit=101", 100), ("?limit=99999", 100)]:
        assert len(api.get(f"{API}/users/ann/items{limit}").json()["items"]) == count


# --- Bodies ----------------------------------------------------------------------------------------------
def nested(depth: int) -> str:
    """A body nested this deep."""
    return '{"content": ' + '{"text":' * (depth - 2) + "[]" + "}" * (depth - 2) + "}"


BAD_JSON: dict[str, bytes] = {
    "nothing that is JSON": b"{",
    "NUL in a string": b'{"content": {"text": "a\\u0000b"}}',
    "NUL in a key": b'{"content": {"text": "a", "b\\u0000": 1}}',
    "a raw NUL": b'{"content": {"text": "a\x00b"}}',
    "a lone surrogate": b'{"content": {"text": "\\ud800"}}',
    "a lone low surrogate in a key": b'{"content": {"text": "a", "\\udfff": 1}}',
    "a lone surrogate in a top key": b'{"\\ud800": 1}',
    "too deep": nested(DEPTH + 1).encode(),
    "deep as a well": b'{"content":' + b"[" * 60_000,
    "deep and whole": b'{"content":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "a key twice": b'{"content": {"text": "a", "text": "b"}}',
    "a field twice": b'{"title": "a", "title": "a", "content": {"text": "a"}}',
    "a list": b'[{"content": {"text": "a"}}]',
    "a string": b'"text"',
    "null": b"null",
    "a number": b"1",
    "content is a list": b'{"content": ["a"]}',
    "content is text": b'{"content": "a"}',
    "content is null": b'{"content": null}',
    "extra_info is a list": b'{"content": {"text": "a"}, "extra_info": []}',
    "NaN": b'{"content": {"text": "a", "n": NaN}}',
    "-Infinity": b'{"content": {"text": "a", "n": -Infinity}}',
    "1e400": b'{"content": {"text": "a", "n": 1e400}}',
    "more digits than a number has": b'{"content": {"text": "a", "n": ' + b"9" * 5000 + b"}}",
    "10^20": b'{"content": {"text": "a", "n": 100000000000000000000}}',
    "small here, large in the database": b'{"content": {"text": "a", "n": [' + b",".join([b"1e308"] * 5000) + b"]}}",
    "broken UTF-8": b'{"content": {"text": "\xff"}}',
    "UTF-16": '{"content": {"text": "a"}}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"content": {"text": "a"}}',
    "an empty body": b"",
    "no content": b"{}",
    "text is a number": b'{"content": {"text": 1}}',
    "text is blank": b'{"content": {"text": " "}}',
    "text is too long": b'{"content": {"text": "' + b"a" * 5001 + b'"}}',
    "title is a number": b'{"content": {"text": "a"}, "title": 1}',
    "title is too long": b'{"content": {"text": "a"}, "title": "' + b"a" * 201 + b'"}',
    "url is not https": b'{"type": "link", "content": {"url": "javascript:alert(1)"}}',
    "a type that is none": b'{"type": "poem", "content": {"text": "a"}}',
    "type is a list": b'{"type": [], "content": {"text": "a"}}',
    "a visibility that is none": b'{"visibility": "all", "content": {"text": "a"}}',
    "reply to no id": b'{"reply_to": "x", "content": {"text": "a"}}',
    "reply to a number": b'{"reply_to": 1, "content": {"text": "a"}}',
    "reply to nothing": b'{"reply_to": "1", "content": {"text": "a"}}',
    "reply to a huge id": b'{"reply_to": "' + b"9" * 5000 + b'", "content": {"text": "a"}}',
}


@pytest.mark.slow
def test_bad_bodies(api: APIClient) -> None:
    for name, body in BAD_JSON.items():
        is_problem(api.generic("POST", f"{API}/items", body, "application/json"), 400)
        assert not Item.objects.exists(), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/users"), ("POST", "/auth/token"), ("PATCH", "/users/me"), ("PATCH", "/items/{item}")],
)
def test_bad_bodies_anywhere(api: APIClient, item: Item, method: str, path: str) -> None:
    path = f"{API}{path.format(item=item.pk)}"
    for name in ("NUL in a string", "a lone surrogate in a top key", "deep as a well", "a list", "NaN"):
        is_problem(api.generic(method, path, BAD_JSON[name], "application/json"), 400)


def test_limits_that_are_just_allowed(api: APIClient) -> None:
    for body in [nested(DEPTH), '{"n": [18446744073709551615, -9223372036854775808, 1e308, 5e-324, -0.0]}']:
        assert parse_json(body.encode())
    body = {"content": {"text": "ü 中文 😀 \u0001", "n": [1e22, 2**63, None, True]}, "extra_info": {"": {"a": []}}}
    shown = api.post(f"{API}/items", body)
    assert shown.status_code == 201
    assert shown.json()["content"] == body["content"]
    assert shown.json()["extra_info"] == body["extra_info"]


@pytest.mark.parametrize("charset", ["", "; charset=utf-8", ";charset=UTF-8"])
def test_a_body_of_64_kib(api: APIClient, charset: str) -> None:
    frame = b'{"content": {"text": "a", "more": "%s"}}'
    fits = frame % (b"a" * (BODY_BYTES - len(frame) + 2))
    assert len(fits) == BODY_BYTES
    kind = f"application/json{charset}"
    assert api.generic("POST", f"{API}/items", fits, kind).status_code == 201
    is_problem(api.generic("POST", f"{API}/items", fits + b" ", kind), 413)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/users"), ("POST", "/auth/token"), ("POST", "/items"), ("PUT", "/users/bob/follow")]
)
def test_too_large_is_said_first(method: str, path: str) -> None:
    for kind in ("application/json", "multipart/form-data; boundary=x", "text/plain"):
        is_problem(APIClient().generic(method, f"{API}{path}", b"x" * (BODY_BYTES + 1), kind), 413)


def test_a_content_length_that_lies(api: APIClient) -> None:
    for length in ["2000000000", "abc", "-5"]:
        response = api.generic("POST", f"{API}/items", b'{"content": {}}', "application/json", CONTENT_LENGTH=length)
        assert response.status_code in (400, 413)
    body = b'{"content": {"text": "a"}}' + b" " * 2 * BODY_BYTES
    is_problem(api.generic("POST", f"{API}/items", body, "application/json", CONTENT_LENGTH="9"), 400)


def test_not_json(api: APIClient) -> None:
    for method, path in (("POST", "/items"), ("POST", "/users"), ("POST", "/auth/token"), ("PATCH", "/users/me")):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "a/b", ""):
            is_problem(api.generic(method, f"{API}{path}", b'{"content": {"text": "a"}}', kind), 415)


def test_not_json_from_a_session(ann: User) -> None:
    """Django reads forms for CSRF tokens."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    for kind in ["multipart/form-data; boundary=x", "multipart/form-data", "application/x-www-form-urlencoded"]:
        is_problem(client.generic("POST", f"{API}/items", b"garbage", kind), 415)


FOREIGN = ["id", "sender", "status", "created_at", "modified_at", "counts", "repost_of", "liked", "x" * 99]
FOREIGN_OF_USERS = ["id", "is_superuser", "is_staff", "is_big_v", "level", "email"]


def test_fields_that_cannot_be_set_on_items(api: APIClient, item: Item) -> None:
    before = Item.objects.values().get()
    for method, path, more in [(api.post, "/items", []), (api.patch, f"/items/{item.pk}", ["type", "reply_to"])]:
        for field in [*FOREIGN, *more]:
            problem = is_problem(method(f"{API}{path}", {"content": {"text": "new"}, field: "1"}), 400)
            assert list(problem) == [field[:64]]
    assert Item.objects.values().get() == before


def test_fields_that_cannot_be_set_on_users(api: APIClient, ann: User) -> None:
    before = User.objects.values().get()
    for field in (*FOREIGN_OF_USERS, "username", "password"):
        is_problem(api.patch(f"{API}/users/me", {"bio": "new", field: "1"}), 400)
    for field in FOREIGN_OF_USERS:
        is_problem(api.post(f"{API}/users", {"username": "bob", "password": PASSWORD, field: "1"}), 400)
    assert User.objects.values().get() == before


# --- Callers ---------------------------------------------------------------------------------------------
BAD_AUTHORIZATION = ["Token", "Token x", "Token a b", "Token \xff\xfe", "Token " + "a" * 5000]
NO_AUTHORIZATION = ["", "Bearer x", "Basic YW5uOng="]
PRIVATE = [("GET", "/users/me"), ("GET", "/timeline/home"), ("GET", "/timeline/home/new"), ("POST", "/items")]
PRIVATE += [("PUT", "/items/1/like"), ("DELETE", "/items/1/like"), ("POST", "/items/1/repost")]
PRIVATE += [("PATCH", "/users/me"), ("DELETE", "/auth/token"), ("PUT", "/users/ann/follow"), ("DELETE", "/items/1")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [(*call, BAD_AUTHORIZATION + NO_AUTHORIZATION) for call in PRIVATE]
    + [("GET", path, BAD_AUTHORIZATION) for path in ("/users/ann", "/users/ann/items")],
)
def test_a_bad_token(ann: User, method: str, path: str, headers: list[str]) -> None:
    for header in headers:
        response = APIClient().generic(method, f"{API}{path}", HTTP_AUTHORIZATION=header)
        is_problem(response, 401)
        assert response["WWW-Authenticate"] == "Token"


def test_an_inactive_user_has_no_token(api: APIClient, ann: User) -> None:
    User.objects.update(is_active=False)
    is_problem(api.get(f"{API}/users/me"), 401)
    is_problem(APIClient().post(f"{API}/auth/token", {"username": "ann", "password": PASSWORD}), 400)


def test_a_session_writes_with_its_csrf_token_only(ann: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    body = {"content": {"text": "a"}}
    is_problem(client.post(f"{API}/items", body, "application/json"), 403)
    is_problem(client.delete(f"{API}/users/ann/mute"), 403)
    client.cookies["csrftoken"] = token = "a" * 32
    sent = client.post(f"{API}/items", body, "application/json", headers={"X-CSRFToken": token})
    assert sent.status_code == 201
    assert client.get(f"{API}/users/me").json()["username"] == "ann"


def test_a_request_is_authenticated_by_one_query_and_no_write(api: APIClient) -> None:
    assert api.get(f"{API}/users/me").status_code == 200  # counts as a visit, which is written
    with statements() as asked:
        assert api.get(f"{API}/users/me").status_code == 200
    (statement,) = asked
    assert "token_checksum" in statement
    assert "UPDATE" not in statement


# --- Addresses -------------------------------------------------------------------------------------------
BAD_NAMES = ["nobody", "%00", "a%00b", "%FF%FE", "%ED%A0%80", "ünï", "x" * 5000, "a b", "ann%0A", "..", "%2e%2e", "'"]
BAD_IDS = ["1", "0", "-1", "abc", "1_0", "٣", "%00", "%FF", "1.5", "NaN", "9" * 5000, str(2**53), str(2**64), "01"]


@pytest.mark.slow
def test_unknown_users_and_items_are_one_404(api: APIClient, item: Item) -> None:
    paths = [f"/users/{name}{rest}" for name in BAD_NAMES for rest in ["", "/items", "/followers", "/following"]]
    paths += [f"/items/{number}{rest}" for number in BAD_IDS for rest in ["", "/replies"]]
    paths += ["/items/", "/users/me/nothing", f"/items/{item.pk}/", "/users/ann/"]
    assert {is_problem(api.get(f"{API}{path}"), 404)["detail"] for path in paths} == {"Not found."}
    assert {api.get(f"{API}{path}").content for path in ("/", "/nothing")} == {b'{"error":"Record not found"}'}
    for path in ["/api", "/api/", "/api/v2/items", "/api/v1", "/api/%00"]:
        if path != "/api":
            is_problem(api.get(path), 404)


@pytest.mark.slow
def test_what_is_unknown_cannot_be_changed(api: APIClient) -> None:
    changes = [f"/users/{name}/{relation}" for name in BAD_NAMES for relation in ("follow", "block", "mute")]
    calls = [(method, path) for path in changes for method in ("PUT", "DELETE")]
    for number in BAD_IDS:
        acts = [("PATCH", ""), ("DELETE", ""), ("PUT", "/like"), ("DELETE", "/like"), ("POST", "/repost")]
        calls += [(method, f"/items/{number}{act}") for method, act in acts]
    for method, path in calls:
        body = b'{"title": "a"}' if method == "PATCH" else b""
        is_problem(api.generic(method, f"{API}{path}", body, "application/json"), 404)


WRONG_METHODS = [("DELETE", "/users"), ("GET", "/items"), ("PUT", "/items/1"), ("POST", "/timeline/home")]
WRONG_METHODS += [("GET", "/auth/token"), ("POST", "/users/ann/follow"), ("POST", "/items/1/like")]
WRONG_METHODS += [("PUT", "/items/1/repost"), ("FOO", "/users/me"), ("TRACE", "/users/me")]


def test_a_wrong_method(api: APIClient) -> None:
    for method, path in WRONG_METHODS:
        for client in [api, APIClient()]:
            response = client.generic(method, f"{API}{path}")
            is_problem(response, 405)
            assert "Allow" in response
    for path in ("/api/schema", "/.well-known/nodeinfo", "/nodeinfo/2.0"):
        for method in ("POST", "PUT", "PATCH", "DELETE", "FOO"):
            response = Client(enforce_csrf_checks=True).generic(method, path)
            assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")


def test_a_wrong_host(api: APIClient) -> None:
    is_problem(api.get(f"{API}/users/ann", HTTP_HOST="evil.example"), 400)
    is_problem(api.get(f"{API}/users/ann", HTTP_HOST="a\x00b"), 400)


def test_more_parameters_than_a_query_may_have(api: APIClient) -> None:
    is_problem(api.get(f"{API}/timeline/home?{'a=1&' * 1001}"), 400)


def test_whatever_is_accepted_is_json(api: APIClient) -> None:
    for accept in ("text/html", "application/xml", "*/*", "nonsense", "application/json; indent=9"):
        assert api.get(f"{API}/users/ann", HTTP_ACCEPT=accept)["Content-Type"] == "application/json"
        is_problem(api.get(f"{API}/users/bob", HTTP_ACCEPT=accept), 404)


def test_answers_are_kept_by_nobody(api: APIClient, item: Item) -> None:
    for path in ["/users/me", "/timeline/home", "/users/nobody", f"/items/{item.pk}"]:
        assert api.get(f"{API}{path}")["Cache-Control"] == "no-store"


def test_every_view_of_the_api_keeps_the_rules() -> None:
    def views(patterns: list[URLPattern | URLResolver], prefix: str = "") -> list[tuple[str, Any]]:
        found = []
        for pattern in patterns:
            path = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                found += views(pattern.url_patterns, path)
            elif path.startswith("api/v1"):
                found.append((path, getattr(pattern.callback, "cls", None)))
        return found

    assert len(views(get_resolver().url_patterns)) > 10
    for path, view in views(get_resolver().url_patterns):
        assert issubclass(view, ApiView), path


# --- Outages ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize("path", ["/users/ann", "/timeline/home", "/users/me"])
def test_an_outage(api: APIClient, monkeypatch: pytest.MonkeyPatch, path: str, error: type[Exception]) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise error("server closed the connection unexpectedly")

    for place in ["accounts.signing_in.tokens.fetch", "relations.visibility.fetch", "timeline.truth.fetch"]:
        monkeypatch.setattr(place, fail)
    response = api.get(f"{API}{path}")
    is_problem(response, 503)
    assert int(response["Retry-After"]) >= 1


def test_an_outage_before_any_view(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise OperationalError

    client = Client(raise_request_exception=False)
    client.force_login(ann)
    monkeypatch.setattr("accounts.signing_in.sessions.SessionStore.load", fail)
    is_problem(client.get(f"{API}/timeline/home"), 503)
    monkeypatch.setattr("django.middleware.common.CommonMiddleware.process_request", fail)
    is_problem(client.get(f"{API}/timeline/home"), 503)
    page = client.get("/admin/")
    assert page.status_code == 503
    assert page["Content-Type"].startswith("text/html")
    assert "Retry-After" in page


def test_a_bug_is_a_500_of_json(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timeline.home.home_page", lambda *args, **options: 1 / 0)
    api.raise_request_exception = False
    is_problem(api.get(f"{API}/timeline/home"), 500)


# --- Rates -----------------------------------------------------------------------------------------------
def test_over_the_rate(api: APIClient, settings: LazySettings) -> None:
    settings.RATES = settings.RATES | {"publish": "2/minute"}
    body = {"content": {"text": "a"}}
    assert [api.post(f"{API}/items", body).status_code for _ in range(2)] == [201, 201]
    response = api.post(f"{API}/items", body)
    is_problem(response, 429)
    assert 1 <= int(response["Retry-After"]) <= 60
    assert api.get(f"{API}/users/me").status_code == 200
    assert Item.objects.count() == 2


@pytest.mark.parametrize(
    ("scope", "path", "body"),
    [
        ("signup", "/users", {"username": "a b", "password": PASSWORD}),
        ("login", "/auth/token", {"username": "ann", "password": "wrong"}),
        ("read", "/users/ann", None),
        ("write", "/auth/token", {}),
    ],
)
def test_every_rate(ann: User, settings: LazySettings, scope: str, path: str, body: Any) -> None:
    settings.RATES = settings.RATES | {scope: "2/hour"}
    client = APIClient()
    answers = [client.get(API + path) if body is None else client.post(API + path, body) for _ in range(3)]
    assert [one.status_code == 429 for one in answers] == [False, False, True]
    elsewhere = {"REMOTE_ADDR": "10.0.0.2"}
    again = client.get(API + path, **elsewhere) if body is None else client.post(API + path, body, **elsewhere)
    assert again.status_code != 429


def test_a_right_password_does_not_pass_the_login_rate(ann: User, settings: LazySettings) -> None:
    settings.RATES = settings.RATES | {"login": "1/minute"}
    client = APIClient()
    is_problem(client.post(f"{API}/auth/token", {"username": "ANN", "password": "wrong"}), 400)
    is_problem(client.post(f"{API}/auth/token", {"username": "ann", "password": PASSWORD}), 429)


CALLER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from django.conf import settings
from storage import connections
from web import rates
settings.RATES = dict.fromkeys(settings.RATES, "10/minute")
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.readline()
for scope in settings.RATES:
    with ThreadPoolExecutor(50) as pool:
        print(scope, list(pool.map(lambda _: rates.hit(scope, "everybody"), range(50))).count(None))
"""


@pytest.mark.long
def test_concurrent_calls_of_two_processes_do_not_slip_past() -> None:
    command = [sys.executable, "-c", CALLER]
    environ = os.environ | {
        "FEEDSITE_REDIS_TIMEOUT_SECONDS": "60"
    }  # a request that the server does not answer in time passes
    processes = [
        subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    passed: Counter[str] = Counter()
    for process in processes:
        for line in process.communicate(timeout=120)[0].splitlines():
            scope, count = line.split()
            passed[scope] += int(count)
    assert passed == dict.fromkeys(settings.RATES, 10)


def test_a_slot_ends(settings: LazySettings, feeds: redis.Redis) -> None:
    settings.RATES = {"once": "1/minute"}
    assert rates.hit("once", "ann") is None
    assert rates.hit("once", "ann")
    assert rates.hit("once", "bob") is None
    for key in feeds.keys("rate:*"):
        assert 0 < feeds.pttl(key) <= 60_000
        feeds.delete(key)
    assert rates.hit("once", "ann") is None


def test_over_the_edge_of_two_slots_at_most_twice_the_limit(settings: LazySettings, feeds: redis.Redis) -> None:
    settings.RATES = {"some": "5/minute"}
    passed = sum(rates.hit("some", "ann") is None for _ in range(20))
    feeds.pexpire("rate:some:ann", 1)  # the slot ends just after its last calls
    assert wait_for(lambda: not feeds.exists("rate:some:ann"), 60)
    passed += sum(rates.hit("some", "ann") is None for _ in range(20))
    assert passed == 2 * 5
    assert 30_000 < feeds.pttl("rate:some:ann") <= 60_000


def test_names_of_any_kind_are_counted(settings: LazySettings, feeds: redis.Redis) -> None:
    settings.RATES = {"once": "1/minute"}
    for who in ["", "a" * 5000, "ü", "\ud800", "a\x00 b\r\n", ":"]:
        assert rates.hit("once", who) is None
        assert rates.hit("once", who)
    assert all(len(key) < 100 for key in feeds.keys("rate:*"))


def test_rates_are_scaled(settings: LazySettings) -> None:
    settings.RATES = {"some": "20/hour"}
    for scale, calls in [(1, 20), (2.5, 50), (0.5, 10), (0, 1)]:
        settings.RATE_SCALE = scale
        assert rates.limit("some") == (calls, 3600)


@pytest.mark.parametrize("rate", ["", "20", "20/year", "x/hour", "-1/hour", "0/hour", "1.5/hour", "٣/hour"])
def test_malformed_rates(rate: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the option says what is allowed)
        parse_rate(rate)


@pytest.mark.slow
def test_without_the_cache_server_calls_pass(api: APIClient, feeds_server: servers.Valkey) -> None:
    """Only one call a second waits for it."""
    with servers.frozen(feeds_server), waits_once_a_second("cache"):
        for _ in range(3):
            assert api.get(f"{API}/users/me").status_code == 200
    connections.cache_breaker.reset()
    with servers.dead(feeds_server), waits_once_a_second("cache"):
        for _ in range(3):
            assert rates.hit("read", "ann") is None
    connections.cache_breaker.reset()
    assert rates.hit("read", "ann") is None
    assert not connections.cache_breaker.is_open


def test_without_the_cache_server_guesses_are_counted_all_the_same(
    settings: LazySettings, feeds_server: servers.Valkey
) -> None:
    settings.RATES = dict.fromkeys(settings.RATES, "3/minute")
    with servers.dead(feeds_server):
        for scope in settings.RATES:
            passed = [rates.hit(scope, "ann") is None for _ in range(5)]
            assert passed == [True, True, True, *[scope not in rates.GUARDED] * 2], scope
        assert 0 < (rates.hit("login", "ann") or 0) <= 60
        assert rates.hit("login", "bob") is None


def test_a_processs_own_slots_end_and_are_bounded() -> None:
    slots = rates.ProcessSlots(100)
    assert [slots.count("a", 1, 3600) is None for _ in range(2)] == [True, False]
    assert [slots.count("b", 1, 0) is None for _ in range(3)] == [True] * 3
    for number in range(500):
        slots.count(str(number), 1, 7200)
    assert len(slots._slots) <= 100


@pytest.mark.parametrize(
    ("seen", "counted"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix:", "unix:"),
        ("", ""),
    ],
)
def test_one_customer_of_ipv6_is_one_caller(rf: RequestFactory, seen: str, counted: str) -> None:
    assert rates.address(rf.get("/", REMOTE_ADDR=seen)) == counted


@pytest.mark.slow
def test_pages_are_read_at_a_rate(ann: User, settings: LazySettings) -> None:
    """Readers share their API rate. Probes do not count."""
    settings.RATES = settings.RATES | {"read": "2/hour"}
    stranger, reader = Client(), Client()
    reader.force_login(ann)
    assert [stranger.get("/@ann", REMOTE_ADDR="2001:db8::1").status_code for _ in range(2)] == [200, 200]
    refused = stranger.get("/search", REMOTE_ADDR="2001:db8::2")
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    is_problem(APIClient().get(f"{API}/users/ann", REMOTE_ADDR="2001:db8::3"), 429)
    assert stranger.get("/api/docs", REMOTE_ADDR="2001:db8::3").status_code == 429
    assert stranger.get("/healthz", REMOTE_ADDR="2001:db8::1").status_code == 200
    assert stranger.get("/@ann", REMOTE_ADDR="2001:db8:0:1::").status_code == 200
    assert reader.get("/", REMOTE_ADDR="2001:db8::1").status_code == 200
    assert reader.get(f"{API}/users/me").status_code == 200
    assert reader.get("/settings").status_code == 429
