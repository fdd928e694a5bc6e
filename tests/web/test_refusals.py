"""Over the rate they cost no query. Others at the address go on."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import LazySettings, settings
from django.test import Client
from django.urls import get_resolver
from oauth2_provider.models import AccessToken
from rest_framework.test import APIClient

from accounts import actions
from accounts.models import User
from items.models import Item
from runtime.embedded import Home, wait_for
from runtime.embedded import broker as broker_of
from runtime.embedded import feeds as feeds_of
from storage import keys
from storage.connections import client_of
from tests.support import servers
from tests.support.api import API
from tests.support.factories import PASSWORD, ItemFactory, UserFactory
from tests.support.pages import logged_in
from tests.support.statements import statements
from web import rates
from web.rest import scope_of

pytestmark = pytest.mark.django_db

COOKIE = settings.SESSION_COOKIE_NAME


@pytest.fixture
def few(settings: LazySettings) -> None:
    """Three of each within the hour."""
    settings.RATES = dict.fromkeys(settings.RATES, "3/hour")


def bearer(token: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    return client


def cookie(value: str) -> Client:
    client = Client()
    client.cookies[COOKIE] = value
    return client


@contextmanager
def round_trips(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    sent: list[Any] = []
    pipelined = rates.pipelined
    with monkeypatch.context() as patch:
        patch.setattr(rates, "pipelined", lambda client, some: sent.extend(some) or pipelined(client, some))
        yield sent


Ask = Callable[[int], Any]

REFUSED: dict[str, tuple[int, Ask]] = {
    "bad token": (401, lambda n: bearer(f"{n:064x}").get(f"{API}/users/me")),
    "malformed token": (401, lambda n: bearer(f"{n} {n}").get(f"{API}/users/me")),
    "bad token, public view": (401, lambda n: bearer(f"{n:064x}").get(f"{API}/users/ann")),
    "bad token, writing": (401, lambda n: bearer(f"{n:064x}").post(f"{API}/items", {"content": {"text": "a"}})),
    "bad session": (401, lambda n: cookie(f"{n:032x}").get(f"{API}/users/me")),
    "bad ticket": (401, lambda n: APIClient().get(f"{API}/stream?ticket={n}")),
    "no token": (401, lambda n: APIClient().get(f"{API}/users/me")),
    "no token, writing": (401, lambda n: APIClient().post(f"{API}/items", {})),
    "no such address": (404, lambda n: APIClient().get(f"{API}/nothing/{n}")),
    "no such version": (404, lambda n: APIClient().get(f"/api/v{n + 2}")),
    "wrong method": (405, lambda n: APIClient().put(f"{API}/users", {})),
    "too large": (413, lambda n: APIClient().post(f"{API}/users", {"username": "a" * 70_000})),
    "no JSON": (415, lambda n: APIClient().post(f"{API}/users", "a", content_type="text/plain")),
    "wrong length": (400, lambda n: APIClient().post(f"{API}/users", {}, CONTENT_LENGTH="x")),
    "page: login first": (302, lambda n: Client().get("/settings")),
    "page: login first, posting": (302, lambda n: Client().post("/settings", {})),
    "page: bad session": (302, lambda n: cookie(f"{n:032x}").get("/settings")),
    "page: bad session, public": (200, lambda n: cookie(f"{n:032x}").get("/@ann")),
    "page: no such item": (404, lambda n: Client().get(f"/items/{n + 1}")),
    "page: nowhere": (404, lambda n: Client().get(f"/nothing/{n}")),
    "page: nowhere, bad session": (404, lambda n: cookie(f"{n:032x}").get(f"/nothing/{n}")),
    "page: nowhere, posting": (404, lambda n: Client().post(f"/nothing/{n}")),
    "page: wrong method": (405, lambda n: Client().post("/search")),
    "page: without CSRF token": (403, lambda n: Client(enforce_csrf_checks=True).post("/signup")),
    "admin: login first": (302, lambda n: Client().get("/admin/")),
    "admin: log in": (200, lambda n: Client().post("/admin/login/", {"username": f"name{n}", "password": "wrong"})),
    "page: metrics": (404, lambda n: cookie(f"{n:032x}").get("/metrics", REMOTE_ADDR="10.0.0.1")),
    "admin: nowhere": (302, lambda n: Client().get(f"/admin/{n}/")),
}


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", REFUSED)
def test_refused_calls_are_counted_and_then_cost_no_query(ann: User, name: str) -> None:
    status, ask = REFUSED[name]
    assert [ask(number).status_code for number in range(3)] == [status] * 3
    with statements() as asked:
        refused = [ask(number) for number in range(3, 6)]
    assert [response.status_code for response in refused] == [429] * 3
    assert all(0 < int(response["Retry-After"]) <= 3600 for response in refused)
    assert asked == []
    for response in refused:
        kind = "text/html" if name.startswith(("page", "admin")) else "application/json"
        assert response["Content-Type"].startswith(kind)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_known_users_go_on_beside_a_stranger_who_guesses(ann: User) -> None:
    token, browser = bearer(actions.issue_token(user=ann)), Client()
    browser.force_login(ann)
    assert token.get(f"{API}/users/me").status_code == 200
    assert browser.get("/settings").status_code == 200
    for number in range(5):
        bearer(f"{number:064x}").get(f"{API}/users/me")
        Client().get("/nothing")
    assert Client().get("/@ann").status_code == bearer("0").get(f"{API}/users/me").status_code == 429
    assert token.get(f"{API}/users/me").status_code == 200
    assert browser.get("/settings").status_code == 429, "three a user, as before"
    bob = UserFactory(username="bob")
    answer = APIClient().post(f"{API}/auth/token", {"username": "bob", "password": PASSWORD})
    assert bearer(answer.json()["token"]).get(f"{API}/users/me").status_code == 200
    other = Client()
    assert other.post("/login", {"username": bob.username, "password": PASSWORD}).status_code == 302
    assert other.get("/settings").status_code == 200


@pytest.mark.usefixtures("few")
def test_a_session_that_ended_does_not_keep_its_user_out_beside_a_stranger_who_guesses(ann: User) -> None:
    calls, _ = rates.limit(rates.ATTEMPT)
    for guess in range(calls + 1):
        cookie(f"guess{guess}").get("/login")
    stale = cookie("ended")
    assert stale.get("/").status_code == 429
    assert stale.get("/login").status_code == 200
    answer = stale.post("/login", {"username": "ann", "password": PASSWORD})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert stale.get("/").status_code == 200, "the new session is marked"


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_attempts_that_prove_good_are_taken_back(ann: User) -> None:
    """Many may arrive from one address."""
    users = UserFactory.create_batch(5)
    for user in users:
        assert bearer(actions.issue_token(user=user)).get(f"{API}/users/me").status_code == 200
        browser = logged_in(user)
        assert browser.get("/settings").status_code == 200
    assert [bearer(f"{number:064x}").get(f"{API}/users/me").status_code for number in range(4)] == [401] * 3 + [429]


@pytest.mark.usefixtures("few")
def test_a_credential_that_ended_counts_against_its_user_once(ann: User, feeds: redis.Redis) -> None:
    """Others may keep sending it."""
    known = actions.issue_token(user=ann)
    ended, good, browser = bearer(known), bearer(actions.issue_token(user=ann)), Client()
    assert good.get(f"{API}/users/me").status_code == ended.get(f"{API}/users/me").status_code == 200
    actions.revoke_token(token_id=AccessToken.objects.earliest("pk").pk)
    assert [ended.get(f"{API}/users/me").status_code for _ in range(5)] == [401] * 3 + [429] * 2
    assert feeds.get(keys.rate("read", str(ann.pk))) == b"3", "the two that were good, and one"
    browser.force_login(UserFactory())
    elsewhere = {"REMOTE_ADDR": "10.0.0.2"}
    assert browser.get("/settings", **elsewhere).status_code == 200
    browser.session.flush()
    key = browser.cookies[COOKIE].value
    assert [cookie(key).get("/nothing", **elsewhere).status_code for _ in range(5)] == [404] * 3 + [429] * 2


@pytest.mark.usefixtures("few")
def test_a_user_over_the_rate_costs_no_query(ann: User) -> None:
    token, browser = bearer(actions.issue_token(user=ann)), Client()
    browser.force_login(ann)
    assert [token.get(f"{API}/nothing").status_code for _ in range(4)] == [404] * 3 + [429]
    assert [token.get(f"{API}/users/me").status_code for _ in range(3)] == [200] * 3
    browser.get("/settings")
    with statements() as asked:
        assert token.get(f"{API}/users/me").status_code == 429
        assert browser.get("/settings").status_code == 429
        assert browser.get("/nothing").status_code == 429
    assert asked == []


def test_forbidden_acts_are_the_users(ann: User, settings: LazySettings) -> None:
    settings.RATES = settings.RATES | {"write": "3/hour"}
    item: Item = ItemFactory()
    token = bearer(actions.issue_token(user=ann))
    assert [token.delete(f"{API}/items/{item.pk}").status_code for _ in range(4)] == [403] * 3 + [429]
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(UserFactory())
    assert browser.get(f"{API}/users/me").status_code == 200
    assert [browser.delete(f"{API}/items/{item.pk}").status_code for _ in range(4)] == [403] * 3 + [429]


@pytest.mark.slow
def test_an_ordinary_request_takes_one_round_trip(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first also marks the credential. A bad one costs a query too."""
    token, browser = bearer(actions.issue_token(user=ann)), Client()
    browser.force_login(ann)
    for get in (lambda: token.get(f"{API}/users/me"), lambda: browser.get("/settings")):
        counts = []
        for _ in range(3):
            with round_trips(monkeypatch) as sent:
                assert get().status_code == 200
            counts.append(len(sent))
        assert counts == [2, 1, 1]
    for client in (bearer("0" * 64), APIClient()):
        with round_trips(monkeypatch) as sent:
            client.get(f"{API}/users/me")
        assert len(sent) == 1
    given = bearer(APIClient().post(f"{API}/auth/token", {"username": "ann", "password": PASSWORD}).json()["token"])
    with round_trips(monkeypatch) as sent:
        assert given.get(f"{API}/users/me").status_code == 200
    assert len(sent) == 1


def test_marks_hold_neither_token_nor_session_and_go(ann: User, feeds: redis.Redis) -> None:
    token = actions.issue_token(user=ann)
    bearer(token).get(f"{API}/users/me")
    browser = logged_in(ann)
    browser.get("/settings")
    marks = [key.decode() for key in feeds.keys(keys.credential("*"))]
    assert len(marks) == 2
    for mark in marks:
        assert len(mark) < 64
        assert token not in mark
        assert feeds.get(mark) == str(ann.pk).encode()
        assert rates.MARK_SECONDS - 60 < feeds.ttl(mark) <= rates.MARK_SECONDS


@pytest.mark.slow
def test_without_the_cache_server_nobody_is_refused_but_who_guesses(
    ann: User, settings: LazySettings, feeds_server: servers.Valkey
) -> None:
    settings.RATES = dict.fromkeys(settings.RATES, "3/hour")
    token, browser = bearer(actions.issue_token(user=ann)), Client()
    browser.force_login(ann)
    with servers.dead(feeds_server):
        assert [bearer("0").get(f"{API}/users/me").status_code for _ in range(5)] == [401] * 5
        assert [token.get(f"{API}/users/me").status_code for _ in range(5)] == [200] * 5
        wrong = {"current_password": "guess", "new_password": "long enough"}
        statuses = [token.post(f"{API}/users/me/password", wrong).status_code for _ in range(2)]
        statuses += [browser.post("/settings/password", {"current": "x", "new": "y"}).status_code for _ in range(2)]
        assert statuses == [400, 400, 422, 429]


CALLER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from django.conf import settings
from web import rates
settings.RATES = dict.fromkeys(settings.RATES, "10/minute")
def call(number):
    call = rates.CountedCall("read", "10.0.0.1", credential=f"token {sys.argv[1]} {number}")
    return call.wait is None and call.prove(number if number % 5 == 0 else None) is None
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.readline()
with ThreadPoolExecutor(50) as pool:
    print(sum(passed for number, passed in enumerate(pool.map(call, range(1, 51)), 1) if number % 5))
"""


@pytest.mark.long
def test_concurrent_attempts_of_two_processes_do_not_slip_past(feeds: redis.Redis) -> None:
    environ = os.environ | {"FEEDSITE_REDIS_TIMEOUT_SECONDS": "60"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CALLER, str(number)],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    passed = sum(int(process.communicate(timeout=120)[0]) for process in processes)
    assert passed <= 10, "beside those that proved good, no more"
    assert int(feeds.get(keys.rate("attempt", "10.0.0.1")) or 0) >= 10


@pytest.mark.slow
@pytest.mark.parametrize(("make", "is_forgotten"), [(feeds_of, True), (broker_of, False)])
def test_filling_the_feeds_server_makes_no_counter_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings, make: Any, is_forgotten: bool
) -> None:
    monkeypatch.setenv("FEEDSITE_FEEDS_MEMORY", "8mb")
    settings.RATES = {"once": "1/hour"}
    home = Home(tmp_path)
    home.make()
    server = make(home)
    server.start()
    try:
        assert wait_for(server.answers, 30), server.last_words()
        client = client_of(f"unix://{server.socket}", 30)
        monkeypatch.setattr(rates, "_client", lambda: client)
        assert rates.hit("once", "ann") is None
        assert rates.hit("once", "ann")
        counter = keys.rate("once", "ann")
        for number in range(80_000):  # eviction samples a few keys
            client.set(keys.inbox(number), "x" * 5000, ex=1800)
            if number % 4000 == 3999 and (not is_forgotten or not client.exists(counter)):
                break
        assert (rates.hit("once", "ann") is None) is is_forgotten
    finally:
        server.stop()


# --- One rate for all ways to ask for a thing ------------------------------------------------------------
@pytest.mark.slow
def test_head_and_get_are_one_rate(ann: User, settings: LazySettings) -> None:
    """Another method does not bypass it."""
    settings.RATES = settings.RATES | {"export": "5/hour", "search": "5/hour"}
    client = bearer(actions.issue_token(user=ann))
    for path in ("/users/me/export", "/search?q=a"):
        answers = [getattr(client, method)(f"{API}{path}") for method in ("get", "head") * 4]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 3
        assert not any(answer.content for answer in answers[1:5:2])
        assert all(answer.getvalue() for answer in answers[:5:2])
        override = {"HTTP_X_HTTP_METHOD_OVERRIDE": "GET", "HTTP_X_METHOD_OVERRIDE": "GET"}
        assert client.post(f"{API}{path}", {}, **override).status_code == (400 if "export" in path else 405)
        assert client.options(f"{API}{path}").status_code == 200
    stranger = Client()
    statuses = [getattr(stranger, method)("/search?q=a").status_code for method in ("get", "head") * 4]
    assert statuses == [200] * 5 + [429] * 3


def test_every_view_counts_head_as_get() -> None:
    for pattern in get_resolver().url_patterns:
        for each in getattr(pattern, "url_patterns", [pattern]):
            view_rates = getattr(getattr(each.callback, "cls", each.callback), "rates", {})
            assert scope_of(view_rates, "HEAD") == scope_of(view_rates, "GET")
            assert set(view_rates) <= {"GET", "POST", "PUT", "PATCH", "DELETE"}


def test_a_made_up_session_is_no_way_around_the_rate_of_strangers(settings: LazySettings) -> None:
    settings.RATES = settings.RATES | {"search": "3/hour", "attempt": "50/hour"}
    plain = [APIClient(REMOTE_ADDR="203.0.113.9").get(f"{API}/search?q=a").status_code for _ in range(4)]
    assert plain == [200, 200, 200, 429]
    for number in range(5):
        client = APIClient(REMOTE_ADDR="203.0.113.9")
        client.cookies[COOKIE] = f"{number:032x}"
        assert client.get(f"{API}/search?q=a").status_code == 429
