import re
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client
from rest_framework.test import APIClient

from accounts.deactivation import deactivate
from accounts.models import User
from accounts.signing_in.guard import COOKIE
from storage.connections import count_trips
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db

Way = Callable[[Client, str, str, str], Any]


def by_page(client: Client, username: str, password: str, address: str) -> Any:
    return client.post("/login", {"username": username, "password": password}, REMOTE_ADDR=address)


def by_admin(client: Client, username: str, password: str, address: str) -> Any:
    return client.post("/admin/login/", {"username": username, "password": password}, REMOTE_ADDR=address)


def by_api(client: Client, username: str, password: str, address: str) -> Any:
    body = {"username": username, "password": password}
    return client.post("/api/v1/auth/token", body, "application/json", REMOTE_ADDR=address)


WAYS = [by_page, by_admin, by_api]
REFUSED = {by_page: 422, by_admin: 200, by_api: 400}


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann", is_staff=True)


@pytest.fixture
def limits(settings: Any) -> dict[str, str]:
    """Only the limit that a test sets applies."""
    settings.RATES = settings.RATES | dict.fromkeys(("login", "login_address", "login_name"), "1000/hour")
    limits: dict[str, str] = settings.RATES
    return limits


@pytest.mark.parametrize("way", WAYS)
def test_one_address_at_one_name_however_it_is_written(way: Way, ann: User, limits: dict[str, str]) -> None:
    limits["login"] = "3/hour"
    names = ["ann", "ANN", " ann ", "\uff41nn", "\U0001d41ann", "a\u24ddn"]
    assert by_page(Client(), "\U0001d41ann", PASSWORD, "10.0.0.9").status_code == 302  # the form normalizes it
    statuses = [way(Client(), name, "wrong", "2001:db8::1").status_code for name in names]
    assert statuses == [REFUSED[way]] * 3 + [429] * 3
    assert way(Client(), "ann", PASSWORD, "2001:db8::2").status_code == 429
    assert way(Client(), "bob", "wrong", "2001:db8::1").status_code == REFUSED[way]
    assert way(Client(), "ann", "wrong", "2001:db8:0:1::1").status_code == REFUSED[way]


def test_an_attempt_is_counted_in_one_round_trip_up_to_the_limit_that_refuses(
    ann: User, limits: dict[str, str]
) -> None:
    limits |= {"login": "1/hour", "login_name": "3/hour"}
    with count_trips() as asked:
        assert by_api(Client(), "ann", "wrong", "10.0.0.1").status_code == 400
    assert asked.round_trips == 2  # the call, and the attempt
    assert {by_api(Client(), "ann", "wrong", "10.0.0.1").status_code for _ in range(5)} == {429}
    statuses = [by_api(Client(), "ann", "wrong", f"10.0.0.{number}").status_code for number in (2, 3, 4)]
    assert statuses == [400, 400, 429]


@pytest.mark.parametrize("way", WAYS)
def test_one_address_at_many_names(way: Way, limits: dict[str, str]) -> None:
    limits["login_address"] = "3/hour"
    statuses = [way(Client(), f"name{number}", "wrong", "10.0.0.1").status_code for number in range(4)]
    assert statuses == [REFUSED[way]] * 3 + [429]
    assert way(Client(), "name9", "wrong", "10.0.0.2").status_code == REFUSED[way]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_many_addresses_at_one_name_do_not_keep_its_owner_out(way: Way, ann: User, limits: dict[str, str]) -> None:
    limits["login_name"] = "4/hour"
    owner = Client()
    assert way(owner, "ann", PASSWORD, "10.0.0.1").status_code in (200, 302)
    cookie = owner.cookies[COOKIE]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert "ann" not in cookie.value
    for name in ("ann", "nobody"):
        statuses = [way(Client(), name, "wrong", f"10.0.1.{number}").status_code for number in range(5)]
        assert statuses[-1] == 429
        assert set(statuses) == {REFUSED[way], 429}
    assert way(Client(), "ann", PASSWORD, "10.0.2.1").status_code == 429
    owner.post("/logout")
    assert way(owner, "ann", PASSWORD, "10.0.2.1").status_code in (200, 302)
    thief = Client()
    thief.cookies[COOKIE] = owner.cookies[COOKIE].value
    limits["login"] = "3/hour"  # a stolen cookie allows no faster guessing
    statuses = [by_api(thief, "ann", "wrong", f"10.0.3.{number}").status_code for number in range(4)]
    assert statuses[-1] == 429
    limits["login_name"] = "1/hour"  # the cookie is valid for ann only
    assert [by_api(thief, "bob", "wrong", f"10.0.4.{number}").status_code for number in range(2)] == [400, 429]


@pytest.mark.slow
def test_refusals_do_not_tell_which_names_exist(
    ann: User, limits: dict[str, str], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong, unknown, deactivated: same status and bytes. A password is hashed each time."""
    gone = UserFactory(username="gone")
    hashed: list[str] = []
    encode = PBKDF2PasswordHasher.encode

    def count(self: Any, password: str, *args: Any, **options: Any) -> str:
        hashed.append(password)
        return encode(self, password, *args, **options)

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", count)
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    for user in (ann, gone):
        user.set_password(PASSWORD)
        user.save()
    deactivate(user=gone)
    tries = [("ann", "wrong"), ("nobody", "wrong"), ("gone", "wrong"), ("gone", PASSWORD), ("a\u0130", "wrong")]
    for way in (by_api, by_page):
        answers = set()
        for name, password in tries:
            hashed.clear()
            client = Client()
            client.cookies["csrftoken"] = "a" * 32
            answer = way(client, name, password, "10.0.0.1")
            assert len(hashed) == 1, name
            body = answer.content.decode().replace(f'value="{name}"', "")
            answers.add((answer.status_code, _without_secrets(body)))
        assert len(answers) == 1, way
    signed_in, stranger = APIClient(), APIClient()
    signed_in.force_authenticate(ann)
    for client in (signed_in, stranger):
        for path in ("", "/items", "/followers", "/following"):
            never, once = (client.get(f"/api/v1/users/{name}{path}") for name in ("nobody", "gone"))
            assert (never.status_code, never.content) == (once.status_code, once.content)
    for verb in ("follow", "block", "mute"):
        for method in (signed_in.put, signed_in.delete):
            never, once = (method(f"/api/v1/users/{name}/{verb}") for name in ("nobody", "gone"))
            assert never.status_code == once.status_code == 404
            assert never.content == once.content
    taken = [stranger.post("/api/v1/users", {"username": name, "password": PASSWORD}) for name in ("ann", "gone")]
    assert taken[0].content == taken[1].content  # a held name looks like a used one


def _without_secrets(page: str) -> str:
    return re.sub(r'(nonce|value)="[^"]*"|X-CSRFToken": "[^"]*"', "", page)


def test_a_session_that_was_planted_is_nobodys(ann: User) -> None:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = "planted" * 4
    assert by_page(client, "ann", PASSWORD, "10.0.0.1").status_code == 302
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert key != "planted" * 4
    assert client.get("/settings").status_code == 200
    client.post("/logout")
    thief = Client()
    for kept in ("planted" * 4, key):
        thief.cookies[settings.SESSION_COOKIE_NAME] = kept
        assert thief.get("/settings").status_code == 302


def device_of(username: str, password: str = PASSWORD) -> str:
    browser = Client()
    assert by_page(browser, username, password, "10.0.0.1").status_code == 302
    return browser.cookies[COOKIE].value


def guess(way: Way, device: str, address: str, password: str = "") -> int:
    client = Client()
    client.cookies[COOKIE] = device
    status: int = way(client, "ann", password or "wrong", address).status_code
    return status


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["/settings/password", "/settings/log-out-everywhere", "password", "sessions"])
def test_old_devices_get_no_guesses_of_their_own(ann: User, limits: dict[str, str], ends: str) -> None:
    """The browser that ended the others stays trusted."""
    old, here = device_of("ann"), Client()
    by_page(here, "ann", PASSWORD, "10.0.0.1")
    new = "another long password"
    if ends == "password":
        body = {"current_password": PASSWORD, "new_password": new}
        assert here.post("/api/v1/users/me/password", body, "application/json").status_code == 204
    elif ends == "sessions":
        assert here.delete("/api/v1/users/me/sessions").status_code == 204
    else:
        assert here.post(ends, {"current": PASSWORD, "new": new}).status_code == 302
    password = new if "password" in ends.rpartition("/")[2] else PASSWORD
    limits["login_name"] = "1/hour"
    assert guess(by_api, "", "10.0.1.1") in (400, 429)
    assert guess(by_api, "", "10.0.1.2") == 429
    assert [guess(way, old, "10.0.1.3", password) for way in WAYS] == [429] * 3
    assert guess(by_page, here.cookies[COOKIE].value, "10.0.1.4", password) == 302


def test_a_password_set_by_an_admin_ends_devices(ann: User, limits: dict[str, str]) -> None:
    old = device_of("ann")
    ann.set_password("another long password")
    ann.save()
    limits["login_name"] = "1/hour"
    guess(by_api, "", "10.0.1.1")
    assert guess(by_api, old, "10.0.1.2", "another long password") == 429


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_many_devices_guess_no_more_than_one(way: Way, ann: User, limits: dict[str, str]) -> None:
    """The owner still gets in without a cookie, and other users are not counted."""
    devices = [device_of("ann") for _ in range(4)]
    limits["login_devices"] = "5/hour"
    statuses = [guess(way, device, f"10.0.1.{place}") for place, device in enumerate(devices * 3)]
    assert statuses == [REFUSED[way]] * 5 + [429] * 7
    assert guess(by_page, "", "10.0.2.1", PASSWORD) == 302
    UserFactory(username="bob")
    browser = Client()
    assert by_page(browser, "bob", PASSWORD, "10.0.2.2").status_code == 302
    browser.post("/logout")
    assert by_page(browser, "bob", PASSWORD, "10.0.2.2").status_code == 302
