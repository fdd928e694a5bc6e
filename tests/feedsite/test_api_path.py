"""API calls without a session pass fewer middlewares, with the same answers."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils.module_loading import import_string

from accounts.about import site
from accounts.about.models import PublicAccess
from accounts.actions import issue_token
from accounts.models import User
from tests.support.answers import whole
from tests.support.clients import token_of
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pages import logged_in
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

OWN_PATH = [
    "web.requests.RequestMiddleware",
    "web.proxy.ProxyMiddleware",
    "web.headers.HeadersMiddleware",
    "web.health.ProbeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "accounts.about.read_only.ReadOnlyMiddleware",
    "feedsite.api_path.ApiMiddleware",
    "web.compression.CompressionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "accounts.about.members_only.MembersOnlyMiddleware",
    "accounts.levels.presence.PresenceMiddleware",
    "web.outage.OutageMiddleware",
]
HOMES = {"Token": "/api/v1/timeline/home", "Bearer": "/api/v1/timelines/home"}


def credential(kind: str, user: User) -> str:
    return f"{kind} {issue_token(user=user) if kind == 'Token' else token_of(user)}"


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def noting(name: str) -> Any:
        def make(get_response: Any) -> Any:
            middleware = import_string(name)(get_response)

            def call(request: Any) -> Any:
                names.append(name)
                return middleware(request)

            for hook in ("process_view", "process_exception", "process_template_response"):
                if hasattr(middleware, hook):
                    setattr(call, hook, getattr(middleware, hook))
            return call

        return make

    monkeypatch.setattr("django.core.handlers.base.import_string", noting)
    monkeypatch.setattr("feedsite.api_path.import_string", noting)
    return names


@pytest.mark.parametrize("kind", HOMES)
def test_a_call_with_a_token_touches_no_session(kind: str, reader: User) -> None:
    client, headers = Client(), {"Authorization": credential(kind, reader)}
    client.get(HOMES[kind], headers=headers)  # records the reader as seen
    with statements() as asked:
        response = client.get(HOMES[kind], headers=headers)
    assert response.status_code == 200
    assert sum("oauth2_provider_accesstoken" in one for one in asked) == 1
    assert not any("django_session" in one for one in asked)
    assert not hasattr(response.wsgi_request, "session")
    assert "Cookie" not in response.headers["Vary"]
    assert not response.cookies


@pytest.mark.parametrize("kind", HOMES)
def test_a_call_with_a_token_passes_few_middlewares(kind: str, reader: User, passed: list[str]) -> None:
    assert Client().get(HOMES[kind], headers={"Authorization": credential(kind, reader)}).status_code == 200
    assert passed == OWN_PATH


def test_a_call_with_a_session_passes_all_middlewares(reader: User, passed: list[str]) -> None:
    client = logged_in(reader)
    assert client.get(HOMES["Token"]).status_code == 200
    assert passed == settings.MIDDLEWARE


def test_a_page_without_its_session_passes_all_middlewares(reader: User, passed: list[str]) -> None:
    page = {"X-Reader": str(reader.pk)}
    assert Client().get("/api/v1/live/feed", headers=page).status_code == 401
    assert passed == settings.MIDDLEWARE


@pytest.mark.parametrize("is_for_members", [False, True])
@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("GET", "/api/v1/timeline/home"),
        ("GET", "/api/v1/timelines/home"),
        ("GET", "/api/v1/timelines/public?limit=5"),
        ("GET", "/api/v1/items/{item}"),
        ("HEAD", "/api/v1/statuses/{item}"),
        ("DELETE", "/api/v1/statuses/{item}"),
        ("PUT", "/api/v1/timeline/home"),
        ("OPTIONS", "/api/v1/items/{item}"),
        ("GET", "/api/v1/timeline/home?last_id=x"),
        ("GET", "/api/v1/nowhere"),
        ("GET", "/api/v2/nowhere"),
        ("GET", "/api/v2/instance"),
        ("POST", "/api/v1/auth/token"),
        ("POST", "/api/v1/apps"),
    ],
)
def test_the_answer_is_that_of_the_whole_way(
    method: str, address: str, is_for_members: bool, settings: Any, reader: User
) -> None:
    if is_for_members:
        site.site_copy.set(site.Site(looking=PublicAccess.MEMBERS))
    address = address.format(item=ItemFactory(sender=UserFactory(username="sender")).pk)
    own = [{"Authorization": credential(kind, reader)} for kind in HOMES]
    wrong = [{"Authorization": f"{kind} wrong"} for kind in (*HOMES, "Basic")]
    ways = settings.MIDDLEWARE, [name for name in settings.MIDDLEWARE if name != "feedsite.api_path.ApiMiddleware"]
    for headers in ({}, *own, *wrong, {"Origin": "https://app.example"}, {"Host": "elsewhere.example"}):
        found = []
        for way in ways:
            settings.MIDDLEWARE = way
            response = Client().generic(method, address, b"{}", "application/json", headers=headers)
            body, said = whole(response)
            # API answers are not cached, so `Vary: Cookie` does not matter.
            assert ("Cache-Control", "no-store") in said or response.status_code == 400
            told = {(name, value.removeprefix("Cookie, ")) for name, value in said if "RateLimit" not in name}
            found.append((response.status_code, body, told))
        assert found[0][:2] == found[1][:2], headers
        assert found[0][2] ^ found[1][2] == set(), headers


PAGES_ONLY = {
    "web.static_files.StaticFiles": "serves files, which lie below no address of the APIs",
    "web.pages.RateMiddleware": "counts pages; views of the APIs count themselves",
    "django.contrib.sessions.middleware.SessionMiddleware": "such a call has no session",
    "django.middleware.csrf.CsrfViewMiddleware": "guards cookies, and such a call has none",
    "accounts.signing_in.sessions.AuthenticationMiddleware": "reads the session; DRF finds the caller",
    "accounts.locale.ReaderLocaleMiddleware": "the APIs speak English",
    "django.contrib.messages.middleware.MessageMiddleware": "messages stand on pages",
    "items.pages.open_pages.OpenPageMiddleware": "it keeps pages for strangers",
    "django.middleware.clickjacking.XFrameOptionsMiddleware": "JSON is shown in no frame, and the policy forbids it",
    "django_htmx.middleware.HtmxMiddleware": "htmx asks pages",
    "accounts.access.ReaderMiddleware": "a page that names its reader takes the long path",
}
"""Middlewares that calls of the APIs without a session do not pass, and why."""


def test_each_middleware_is_in_both_chains_or_excused() -> None:
    chain = settings.MIDDLEWARE
    after = chain[chain.index("feedsite.api_path.ApiMiddleware") + 1 :]
    assert [name for name in after if name not in PAGES_ONLY] == settings.API_MIDDLEWARE
    assert PAGES_ONLY.keys() <= set(after)
    assert all(PAGES_ONLY.values())
