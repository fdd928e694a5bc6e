from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from accounts import addresses
from accounts.mail.letters import compose
from accounts.mail.models import Letter
from accounts.models import User
from accounts.signing_in_models import ClientApp
from tests.support.clients import OUT_OF_BAND, app_of, token_of
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def page() -> Client:
    return logged_in(UserFactory(username="ann"))


def address(client_id: str, redirect: str = OUT_OF_BAND, **fields: str) -> str:
    query = {"client_id": client_id, "redirect_uri": redirect, "response_type": "code", "scope": "read"}
    return reverse("oauth-authorize", query=query | fields)


def test_the_page_says_what_the_app_may_do_and_to_whom(page: Client) -> None:
    text = page.get(address(app_of().client_id, scope="read:statuses write:media")).content.decode()
    for part in ("An app", "@ann", "See all posts you can see", "Upload pictures and videos", "Allow"):
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


@pytest.mark.parametrize(("scope", "changes"), [("read", ""), ("read write:media", "yes")])
def test_a_letter_tells_of_a_new_app(scope: str, changes: str) -> None:
    """Not for an app that has a token. The app's own words are never in it."""
    user, page, app = UserFactory(username="ann"), Client(), app_of("read write")
    addresses.add(user=user, address="ann@example.org")
    addresses.prove_by_code(user=user, code=Letter.objects.get().context["code"])
    Letter.objects.all().delete()
    page.force_login(user)
    ClientApp.objects.update(name="Call +1 555 0100")
    page.post(address(app.client_id, scope=scope), {"answer": "deny"})
    assert not Letter.objects.exists()
    page.post(address(app.client_id, scope=scope), {"answer": "allow"}, REMOTE_ADDR="10.0.0.7")
    letter = Letter.objects.get()
    assert (letter.kind, letter.user_id, letter.context["changes"]) == ("new_app", user.pk, changes)
    sent = compose(letter)
    assert "10.0.0.7" in sent.body
    assert "/settings/devices" in sent.body
    assert ("change things" in sent.body) == bool(changes)
    assert "555" not in sent.subject + sent.body
    token_of(user, scope, app=app)
    page.post(address(app.client_id, scope=scope), {"answer": "allow"})
    assert Letter.objects.count() == 1


def test_a_denial_without_an_address_is_told_to_the_user(page: Client) -> None:
    response = page.post(address(app_of().client_id), {"answer": "deny"})
    assert response.status_code == 200
    assert "It can't use your account" in response.content.decode()


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


def test_an_address_that_asks_wrongly_leads_nowhere_by_itself(page: Client) -> None:
    app = app_of("read", "https://evil.example/cb")
    for fields in ({"scope": "write"}, {"scope": "bogus"}, {"code_challenge": "a" * 43, "code_challenge_method": "x"}):
        for method in (page.get, page.post):
            response = method(address(app.client_id, "https://evil.example/cb", **fields), {"answer": "allow"})
            assert response.status_code == 400
            assert "Location" not in response.headers


@pytest.mark.parametrize(
    "fields",
    [
        {"code_challenge": "a" * 200, "code_challenge_method": "S256"},
        {"state": "a" * 5_000},
        {"redirect_uri": "https://app.example:99999/"},
        {"redirect_uri": "http://[::1/"},
        {"client_id": "a" * 300},
        {"scope": "read " * 1_000},
    ],
)
def test_what_no_app_can_mean_is_refused(fields: dict[str, str], page: Client) -> None:
    where = reverse("oauth-authorize", query=dict(parse_qsl(urlsplit(address(app_of().client_id)).query)) | fields)
    for method in (page.get, page.post):
        assert method(where, {"answer": "allow"}).status_code == 400


@pytest.mark.parametrize(
    "fields",
    [{"nonce": "a" * 300}, {"resource": "https://a.example"}, {"response_mode": "fragment"}, {"claims": "[1]"}],
)
def test_what_the_site_does_not_serve_is_passed_over(fields: dict[str, str], page: Client) -> None:
    where = address(app_of().client_id, **fields)
    ((name, value),) = fields.items()
    assert f"{name}={value}" not in unquote(page.get(where).content.decode())
    assert page.post(where, {"answer": "allow"}).content.decode().count("<code>") == 1


def test_the_way_to_a_code_keeps_its_opener(page: Client) -> None:
    where = address(app_of("read", "https://app.example/cb").client_id, "https://app.example/cb")
    stranger = Client()
    sign_in = stranger.get(where)
    steps = [sign_in, stranger.get(sign_in.url), stranger.post(sign_in.url, {"username": "ann", "password": PASSWORD})]
    assert steps[-1].url == where
    steps += [page.get(where), page.post(where, {"answer": "allow"}), stranger.get(reverse("login-code"))]
    assert {step.headers["Cross-Origin-Opener-Policy"] for step in steps} == {"unsafe-none"}
    assert {step.headers["X-Frame-Options"] for step in steps} == {"DENY"}
    assert "frame-ancestors 'none'" in steps[3].headers["Content-Security-Policy"]
    assert page.get(reverse("home")).headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_a_forged_answer_of_another_site_is_refused() -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create(username="ann"))
    assert strict.post(address(app_of().client_id), {"answer": "allow"}).status_code == 403
