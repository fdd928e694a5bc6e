from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client

from accounts.models import User
from tests.support.factories import UserFactory, say
from tests.support.pages import logged_in
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

Ask = Callable[[Client], Any]


def missing(client: Client) -> Any:
    return client.get("/nothing")


def missing_item(client: Client) -> Any:
    return client.get("/items/7")


def without_token(client: Client) -> Any:
    return client.post("/login", {"username": "ann"})


def of_another(client: Client) -> Any:
    return client.get(f"/items/{say(UserFactory.create()).pk}/edit")


def unreadable(client: Client) -> Any:
    return client.post("/language", {"language": "xx"})


def too_often(client: Client) -> Any:
    """The middleware refuses before the session is read."""
    for _ in range(3):
        response = client.get("/about")
    return response


def too_often_in_a_view(client: Client) -> Any:
    """The view's own rate refuses."""
    for _ in range(3):
        response = client.post("/password-reset", {"username_or_email": "nobody"})
    return response


ERRORS: dict[str, tuple[int, Ask]] = {
    "no such address": (404, missing),
    "no such item": (404, missing_item),
    "unreadable": (400, unreadable),
    "no token": (403, without_token),
    "another's": (403, of_another),
    "too often": (429, too_often),
    "too often in a view": (429, too_often_in_a_view),
}


@pytest.fixture
def rates(settings: LazySettings) -> None:
    settings.RATES = settings.RATES | {"read": "2/hour", "attempt": "2/hour", "reset": "2/hour"}


@pytest.fixture
def ann(db: None) -> User:
    return UserFactory.create(username="ann")


def answer(ask: Ask, reader: User | None = None) -> HttpResponse:
    client = Client(enforce_csrf_checks=ask is without_token, HTTP_ACCEPT_LANGUAGE="zh-Hans")
    client.cookies["theme"] = "dark"
    if reader:
        client.force_login(reader)
        client.get("/settings")  # marks the session
    response: HttpResponse = ask(client)
    return response


@pytest.mark.parametrize("error", [name for name in ERRORS if name != "another's"])
def test_a_stranger_has_the_frame(error: str, rates: None) -> None:
    status, ask = ERRORS[error]
    response = answer(ask)
    page = response.content.decode()
    assert response.status_code == status
    assert 'href="/signup"' in page
    assert 'href="/login"' in page
    assert 'href="/settings"' not in page
    assert 'data-theme="dark"' in page
    assert 'lang="zh-Hans"' in page


@pytest.mark.parametrize("error", [name for name in ERRORS if name != "too often in a view"])
def test_a_member_has_the_frame(error: str, rates: None, ann: User) -> None:
    status, ask = ERRORS[error]
    response = answer(ask, ann)
    page = response.content.decode()
    assert response.status_code == status
    for address in (
        "/",
        "/search",
        "/notifications",
        "/conversations",
        "/bookmarks",
        "/settings",
        "/items/new",
        "/privacy",
    ):
        assert f'href="{address}"' in page, address
    assert ('href="/@ann"' in page) == (error != "too often"), "who the reader is would cost a query"
    assert 'href="/signup"' not in page
    assert 'data-theme="dark"' in page
    assert 'lang="zh-Hans"' in page


def test_a_member_has_the_frame_where_a_view_counts(settings: LazySettings, ann: User) -> None:
    settings.RATES = settings.RATES | {"write": "1/hour"}
    client = logged_in(ann)
    client.get("/settings")
    for _ in range(2):
        response = client.post("/settings", {"display_name": "Ann"})
    assert response.status_code == 429
    assert 'href="/settings"' in response.content.decode()


@pytest.mark.parametrize("name", ["nobody", "ann"])
def test_too_often_costs_no_query(name: str, rates: None, ann: User) -> None:
    client = Client()
    if name == "ann":
        client.force_login(ann)
    for _ in range(2):
        assert client.get("/about").status_code == 200
    with statements() as asked:
        assert client.get("/about").status_code == 429
    assert not asked
