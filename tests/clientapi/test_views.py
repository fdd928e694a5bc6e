"""The page on which a user lets an app in."""

from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from tests.support.clients import OUT_OF_BAND, app_of
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def page() -> Client:
    client = Client()
    client.force_login(UserFactory(username="ann"))
    return client


def address(client_id: str, redirect: str = OUT_OF_BAND, **fields: str) -> str:
    query = {"client_id": client_id, "redirect_uri": redirect, "response_type": "code", "scope": "read"}
    return reverse("oauth-authorize", query=query | fields)


def test_the_page_says_what_the_app_may_do_and_to_whom(page: Client) -> None:
    text = page.get(address(app_of().client_id, scope="read:statuses write:media")).content.decode()
    for part in ("An app", "@ann", "See all posts that you can see", "Send pictures and videos", "Let it in"):
        assert part in text
    assert "Follow people" not in text


def test_a_stranger_signs_in_first_and_comes_back() -> None:
    where = address(app_of().client_id)
    response = Client().get(where)
    assert response.status_code == 302
    assert parse_qs(urlsplit(response.url).query)["next"] == [where]


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_code_is_shown_alone(page: Client, slash: str) -> None:
    where = address(app_of().client_id).replace("/authorize?", f"/authorize{slash}?")
    text = page.post(where, {"answer": "allow"}).content.decode()
    assert text.count("<code>") == 1


@pytest.mark.parametrize(
    ("redirect", "source"),
    [("https://app.example:8443/cb?a=1", "https://app.example:8443"), ("myapp://cb", "myapp:")],
)
def test_an_app_is_led_back_to(page: Client, redirect: str, source: str) -> None:
    where = address(app_of("read", redirect).client_id, redirect, state="abc")
    policy = page.get(where).headers["Content-Security-Policy"]
    assert f"form-action 'self' {source};" in policy
    allowed = page.post(where, {"answer": "allow"})
    query = parse_qs(urlsplit(allowed.headers["Location"]).query)
    assert allowed.headers["Location"].startswith(redirect)
    assert (query["state"], len(query["code"])) == (["abc"], 1)
    denied = page.post(where, {"answer": "deny"})
    query = parse_qs(urlsplit(denied.headers["Location"]).query)
    assert (query["error"], query["state"]) == (["access_denied"], ["abc"])
    assert "code" not in query


def test_a_denial_without_an_address_is_told_to_the_user(page: Client) -> None:
    response = page.post(address(app_of().client_id), {"answer": "deny"})
    assert response.status_code == 200
    assert "It has no access" in response.content.decode()


@pytest.mark.parametrize(
    ("client_id", "redirect", "kind"),
    [
        ("nobody", OUT_OF_BAND, "code"),
        ("\0", OUT_OF_BAND, "code"),
        ("", "https://evil.example/", "code"),
        ("", "https://app.example/cb/other", "code"),
        ("", "https://app.example@evil.example/cb", "code"),
        ("", "javascript:alert(1)", "code"),
        ("", "https://evil.example/", "token"),
    ],
)
def test_an_app_that_asks_wrongly_is_led_nowhere(page: Client, client_id: str, redirect: str, kind: str) -> None:
    app = app_of("read", "https://app.example/cb")
    for method in (page.get, page.post):
        response = method(address(client_id or app.client_id, redirect, response_type=kind), {"answer": "allow"})
        assert response.status_code in (400, 404)
        assert "Location" not in response.headers


def test_an_app_hears_of_what_it_asked_wrongly_at_its_own_address(page: Client) -> None:
    app = app_of("read", "https://app.example/cb")
    response = page.get(address(app.client_id, "https://app.example/cb", scope="write"))
    assert response.headers["Location"].startswith("https://app.example/cb?")
    assert parse_qs(urlsplit(response.headers["Location"]).query)["error"] == ["invalid_scope"]


def test_a_forged_answer_of_another_site_is_refused() -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create(username="ann"))
    assert strict.post(address(app_of().client_id), {"answer": "allow"}).status_code == 403
