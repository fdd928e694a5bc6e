"""A token opens exactly what its scopes say, at every address."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from oauth2_provider.models import AccessToken

from accounts.about import announcing, site
from accounts.about.models import PublicAccess, SiteSettings
from accounts.actions import dismiss_announcement
from accounts.models import User
from clientapi.errors import ClientView, MissingView
from clientapi.oauth import scopes
from clientapi.oauth.scopes import WORDS, covers, grants_access, needed
from discover.models import PopularItem
from items.actions import bookmark, like, publish
from tests.support.clients import Caller, app_of, token_of
from tests.support.factories import UserFactory
from web.credentials import ANY_SCOPE
from web.rest import ApiView, NotFoundView

pytestmark = pytest.mark.django_db

WITHOUT = (MissingView, NotFoundView)


def routes() -> dict[str, ApiView]:
    found: dict[str, ApiView] = {}

    def walk(resolver: URLResolver, prefix: str) -> None:
        for each in resolver.url_patterns:
            if isinstance(each, URLResolver):
                walk(each, prefix + str(each.pattern))
            elif isinstance(each, URLPattern) and (prefix + str(each.pattern)).lstrip("^").startswith("api/v"):
                view = getattr(each.callback, "cls", None)
                if view is not None and not issubclass(view, WITHOUT):
                    found[prefix + str(each.pattern)] = view(**each.callback.view_initkwargs)

    walk(get_resolver(), "")
    return {route: view for route, view in found.items() if route.removesuffix("/") not in found.keys() - {route}}


ROUTES = routes()
OF_PROFILE = frozenset(scopes.PROFILE)
METHODS = ("get", "post", "put", "patch", "delete")
CASES = [(route, method) for route, view in ROUTES.items() for method in METHODS if hasattr(view, method)]
CASES.append(("api/v1/tags/<str:tag>/follow", "post"))  # an address of two views


def scope_of(route: str, method: str) -> str | None:
    """The scope that a method of an address needs."""
    asked = ROUTES[route].scopes
    return asked if asked in (None, ANY_SCOPE) else needed(asked, is_reading=method == "get")


def test_every_scope_of_a_view_is_known() -> None:
    assert len(ROUTES) > 80
    named = {scope for case in CASES if (scope := scope_of(*case)) is not None and scope != ANY_SCOPE}
    assert named <= set(WORDS)
    # Each scope that apps can request opens something.
    assert "push" in named
    whole = {scope for scope in WORDS if ":" in scope}
    assert whole - named == set()


def test_no_token_of_an_app_opens_what_ends_sessions_or_accounts() -> None:
    closed = {route.removeprefix("api/v1/") for route, view in ROUTES.items() if view.scopes is None}
    of_account = {f"users/me/{name}" for name in ("password", "sessions", "delete", "export")}
    assert closed == of_account | {"users", "auth/token", "auth/password-reset", "stream", "seen/plays/batch"}


@pytest.mark.parametrize("scope", WORDS)
def test_a_scope_includes_its_parts_and_no_others(scope: str) -> None:
    held = {other for other in WORDS if covers({scope}, other)}
    kind = scope.partition(":")[0]
    if scope == "follow":
        assert held == {"follow"} | {f"{way}:{part}" for way in ("read", "write") for part in scopes.FOLLOWS}
    elif ":" in scope:
        assert held == {scope}
    else:
        assert held == {other for other in WORDS if other.partition(":")[0] == kind}


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann", is_locked=True)


def asked(route: str, method: str, token: str) -> int:
    """The status of a call with a token. Its object need not exist."""
    path = re.sub("<[^>]*>", "1", route)
    options = {} if method == "get" else {"content_type": "application/json", "data": ""}
    return int(getattr(Client(), method)(f"/{path}", HTTP_AUTHORIZATION=f"Bearer {token}", **options).status_code)


def wrongly(route: str, method: str, tokens: dict[str, str]) -> str:
    """Wrong answers to tokens of different scopes. Empty if none."""
    view, scope = ROUTES[route], scope_of(route, method)
    if not view.authentication_classes or (route, method) == ("api/v1/auth/token", "post"):
        return ""  # open to everybody
    if scope is None:
        found = asked(route, method, tokens["all"])
        return "" if found in (401, 403) else f"no token opens it, and all scopes are answered {found}"
    if scope == ANY_SCOPE:
        found = asked(route, method, tokens["write:reports"])
        return f"every token opens it, and one is answered {found}" if found in (401, 403, 500) else ""
    held = next(other for other in tokens if other != "all" and not covers({other}, scope) and other not in OF_PROFILE)
    without, found = asked(route, method, tokens[held]), asked(route, method, tokens[scope])
    if without != (200 if view.opens_to_strangers and method == "get" else 403):
        return f"{held} is answered {without}"
    is_refused = found in (401, 500) or (found == 403 and isinstance(view, ClientView))
    return f"{scope} is answered {found}" if is_refused else ""


@pytest.mark.slow
def test_a_token_opens_an_address_by_its_scope(user: User) -> None:
    app = app_of()
    tokens = {scope: token_of(user, scope, app=app) for scope in WORDS} | {
        "all": token_of(user, " ".join(WORDS), app=app)
    }
    found = {(route, method): wrongly(route, method, tokens) for route, method in CASES}
    assert {case: why for case, why in found.items() if why} == {}


def test_a_view_without_scopes_opens_to_no_token() -> None:
    assert ApiView.scopes is None
    assert not any(grants_access(frozenset(WORDS), None, is_reading=is_reading) for is_reading in (True, False))


@pytest.mark.parametrize("kind", ["expired", "of another", "empty", "rubbish", "suspended"])
def test_a_token_that_is_none_is_refused(kind: str, user: User) -> None:
    made = token_of(user, "read", app=app_of("read"))
    token = {"empty": "", "rubbish": "\x7f" * 20}.get(kind, made)
    if kind == "of another":
        token = token[:-1] + ("a" if token[-1] != "a" else "b")
    if kind == "expired":
        AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1))
    if kind == "suspended":
        User.objects.filter(pk=user.pk).update(is_active=False)
    for path in ("/api/v1/accounts/verify_credentials", "/api/v1/users/me"):
        assert Client().get(path, HTTP_AUTHORIZATION=f"Bearer {token}").status_code == 401


@pytest.mark.slow
@pytest.mark.django_db
def test_an_app_with_few_scopes_uses_up_nothing_of_its_users(settings: Any) -> None:
    settings.RATES = settings.RATES | {"publish": "2/minute", "password": "2/hour", "attempt": "9/minute"}
    user = UserFactory()
    narrow, wide = Caller(user, "profile"), Caller(user)
    narrow.get("v1/accounts/verify_credentials")
    for _ in range(4):
        narrow.post("v1/statuses", {"status": "x"}, status=403)
        narrow.post("v1/users/me/password", {}, status=403)
    wide.post("v1/statuses", {"status": "x"})
    wide.post("v1/users/me/password", {}, status=403)
    narrow.post("v1/statuses", {"status": "x"}, status=429)


OPEN = [route for route, view in ROUTES.items() if view.opens_to_strangers or view.scopes == ANY_SCOPE]


def _body(route: str, caller: Caller) -> bytes:
    return bytes(caller.client.get("/" + re.sub("<[^>]*>", "1", route), **caller.headers).content)


@pytest.mark.parametrize(
    "route", [route for route in OPEN if "streaming" not in route and hasattr(ROUTES[route], "get")]
)
def test_a_token_without_the_scope_reads_what_strangers_read(route: str) -> None:
    SiteSettings.objects.update_or_create(pk=1, defaults={"announcement": "News"})
    site.site_copy.forget()
    item, user = publish(sender=UserFactory(), content={"text": "#cats"}), UserFactory()
    PopularItem.objects.create(item_id=item.pk, popularity=2)
    like(user=user, item=item)
    bookmark(user=user, item=item)
    dismiss_announcement(user=user, mark=announcing.news_digest("News"))
    of_app = Caller(None)
    of_app.headers = {"HTTP_AUTHORIZATION": f"Bearer {token_of(None, 'write:media')}"}
    if route == "api/v1/apps/verify_credentials":
        return  # it shows the app
    expected = _body(route, of_app)
    assert expected
    for held in ("write:media", "profile push"):
        assert _body(route, Caller(user, held)) == expected
    if route.endswith("trends/statuses"):
        assert b'"bookmarked":true' in _body(route, Caller(user, "read:statuses"))
        assert b'"bookmarked":true' not in _body(route, Caller(user, "read:bookmarks write"))


def test_a_site_for_members_alone_shows_strangers_lists_to_no_narrow_token(user: User) -> None:
    SiteSettings.objects.update_or_create(pk=1, defaults={"looking": PublicAccess.MEMBERS})
    site.site_copy.forget()
    Caller(user, "write:media").get("v1/trends/statuses", status=403)
    Caller(user, "read:statuses").get("v1/trends/statuses")
