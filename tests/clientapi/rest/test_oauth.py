import base64
import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from oauth2_provider.models import AccessToken, Grant

from accounts import actions as accounts
from accounts.models import TokenOrigin, User
from accounts.signing_in import places
from accounts.signing_in.tokens import NOTED, digest_of
from accounts.signing_in_models import FORBIDDEN_SCHEMES, OWN_APP, ClientApp
from clientapi.oauth import actions, scopes
from clientapi.oauth.bearer import OF_APP_LIFE
from clientapi.oauth.validator import OF_APP, secret_digest
from tests.support.clients import ALL, OUT_OF_BAND, Caller, app_of, token_of
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db

VERIFIER = "a" * 50
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann")


def registered(**fields: Any) -> dict[str, Any]:
    asked = {"client_name": "An app", "redirect_uris": OUT_OF_BAND, "scopes": "read write"} | fields
    response = Client().post("/api/v1/apps", json.dumps(asked), content_type="application/json")
    assert response.status_code == 200, response.content
    app: dict[str, Any] = response.json()
    return app


def query_of(app: dict[str, Any], **fields: str) -> dict[str, str]:
    asked = {"client_id": app["client_id"], "redirect_uri": OUT_OF_BAND, "response_type": "code", "scope": "read"}
    return asked | fields


def code_of(app: dict[str, Any], user: User, **fields: str) -> str:
    page = logged_in(user)
    response = page.post(reverse("oauth-authorize", query=query_of(app, **fields)), {"answer": "allow"})
    return response.content.decode().partition("<code>")[2].partition("</code>")[0]


def asked_for(app: dict[str, Any], **fields: str) -> Any:
    form = {"client_id": app["client_id"], "client_secret": app["client_secret"], "redirect_uri": OUT_OF_BAND}
    return Client().post("/oauth/token", form | fields)


def me(token: str) -> int:
    return int(Client().get("/api/v1/accounts/verify_credentials", HTTP_AUTHORIZATION=f"Bearer {token}").status_code)


# --- Registering -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("addresses", [f"https://a.example/cb\n{OUT_OF_BAND}", ["https://a.example/cb", OUT_OF_BAND]])
def test_an_app_registers(addresses: Any) -> None:
    app = registered(redirect_uris=addresses, website="https://a.example", scopes="read write:statuses")
    assert app["redirect_uris"] == ["https://a.example/cb", OUT_OF_BAND]
    assert (app["name"], app["website"], app["scopes"]) == ("An app", "https://a.example", ["read", "write:statuses"])
    row = ClientApp.objects.get(client_id=app["client_id"])
    assert row.client_secret == secret_digest(app["client_secret"])
    assert app["client_secret"] not in str(vars(row))


BAD_ADDRESSES = ["", "javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "intent:x", "//a.example/cb"]
BAD_ADDRESSES += ["Intent://a.example/cb#Intent;scheme=https;end", "view-source:https://a.example/", "/cb", "https://"]
BAD_ADDRESSES += ["https://user:word@a.example/", "https://a.example/#part", "https://evil.example\\.a.example/"]
BAD_ADDRESSES += ["https://a.example;sandbox/", "https://a.example,b/", "https://*/", "http://*:*/", "urn:other"]
BAD_ADDRESSES += ["https://a.example:99999/", "https://a.example:x/"]


def test_an_app_that_cannot_be_is_refused(settings: Any) -> None:
    settings.RATE_SCALE = 1e6
    wrong: list[dict[str, Any]] = [{"redirect_uris": address} for address in (*BAD_ADDRESSES, 5)]
    wrong += [{"redirect_uris": " ".join(f"https://a.example/{n}" for n in range(11))}]
    wrong += [{"client_name": name} for name in ("", "a" * 101, "a\0b", {"a": 1})]
    wrong += [{"scopes": scopes} for scopes in ("admin:read crypto", "everything")]
    wrong += [{"website": address} for address in ("javascript:alert(1)", "ftp://a.example")]
    for fields in wrong:
        asked = {"client_name": "An app", "redirect_uris": OUT_OF_BAND} | fields
        response = Client().post("/api/v1/apps", json.dumps(asked), content_type="application/json")
        assert response.status_code in (400, 422), fields
        assert list(response.json()) == ["error"]
    assert not ClientApp.objects.exists()


@pytest.mark.parametrize("other", ["admin:read", "crypto", "read:profile profile:read", "openid email"])
def test_scopes_that_the_site_lacks_are_left_out(other: str, user: User) -> None:
    app = registered(scopes=f"read {other} write:statuses")
    assert app["scopes"] == ["read", "write:statuses"]
    code = code_of(app, user, scope=f"read {other}")
    assert asked_for(app, grant_type="authorization_code", code=code).json()["scope"] == "read"
    token = asked_for(app, grant_type="client_credentials", scope=f"{other} read").json()
    assert token["scope"] == "read"


def test_registering_has_a_rate(settings: Any) -> None:
    settings.RATES = settings.RATES | {"app": "2/hour"}
    form = {"client_name": "An app", "redirect_uris": OUT_OF_BAND}
    found = [Client().post("/api/v1/apps", form) for _ in range(3)]
    assert [response.status_code for response in found] == [200, 200, 429]
    assert found[2].json() == {"error": "Too many requests"}
    assert found[2].headers["Retry-After"].isdigit()


def test_registering_has_a_rate_for_networks(settings: Any) -> None:
    settings.RATES = settings.RATES | {"app_network": "2/hour"}
    form = {"client_name": "An app", "redirect_uris": OUT_OF_BAND}

    def ask(address: str) -> int:
        return Client(REMOTE_ADDR=address).post("/api/v1/apps", form).status_code

    assert [ask(f"192.0.2.{host}") for host in (1, 2, 3)] == [200, 200, 429]
    assert ask("192.0.3.1") == 200
    assert [ask(f"2001:db8:1:{site}::1") for site in (1, 2, 3)] == [200, 200, 429]
    assert ask("2001:db8:2::1") == 200


# --- Codes and tokens ------------------------------------------------------------------------------------
def test_a_code_becomes_one_token_and_counts_once(user: User) -> None:
    app = registered()
    code = code_of(app, user)
    response = asked_for(app, grant_type="authorization_code", code=code)
    token = response.json()
    assert sorted(token) == ["access_token", "created_at", "scope", "token_type"]
    assert (token["scope"], token["token_type"]) == ("read", "Bearer")
    assert me(token["access_token"]) == 200
    row = AccessToken.objects.get()
    assert (row.token, row.token_checksum) == ("", digest_of(token["access_token"]))
    assert not row._meta.model.objects.filter(token__contains=token["access_token"]).exists()


def test_a_code_that_comes_again_ends_its_token_and_no_other(user: User) -> None:
    app, other = registered(), registered()
    grants = [{"grant_type": "authorization_code", "code": code_of(app, user)} for _ in range(2)]
    first, second = (asked_for(app, **grant).json()["access_token"] for grant in grants)
    for wrong in (other, app | {"client_secret": "x"}):
        assert asked_for(wrong, **grants[0]).status_code in (400, 401)
    assert (me(first), me(second)) == (200, 200)
    assert asked_for(app, **grants[0]).status_code == 400
    assert (me(first), me(second)) == (401, 200)
    assert asked_for(app, **grants[0]).status_code == 400
    assert asked_for(app, grant_type="authorization_code", code="never").status_code == 400
    assert me(second) == 200


@pytest.mark.parametrize("back", [OUT_OF_BAND, "https://a.example/cb"])
def test_sentences_of_the_question_stand_apart(user: User, back: str) -> None:
    query = query_of(registered(redirect_uris=back), redirect_uri=back)
    asked = logged_in(user).get(reverse("oauth-authorize", query=query)).content.decode()
    assert re.search(r"\.</p>\s*<p class=\"quiet\">It never sees your password\. You", asked)


@pytest.mark.parametrize("addresses", ["https://a.example/cb", f"https://a.example/cb {OUT_OF_BAND}"])
def test_the_address_is_named_again_for_the_token(user: User, addresses: str) -> None:
    app, page = registered(redirect_uris=addresses), Client()
    page.force_login(user)
    query = query_of(app, redirect_uri="https://a.example/cb")
    unnamed = {name: value for name, value in query.items() if name != "redirect_uri"}
    assert page.get(reverse("oauth-authorize", query=unnamed)).status_code == 400
    led = page.post(reverse("oauth-authorize", query=query), {"answer": "allow"})["Location"]
    fields = {"grant_type": "authorization_code", "code": parse_qs(urlsplit(led).query)["code"][0]}
    fields |= {"client_id": app["client_id"], "client_secret": app["client_secret"]}
    for wrong in ("", "https://a.example/cb/", "https://a.example/cb?x=1", "https://A.example/cb", OUT_OF_BAND):
        assert Client().post("/oauth/token", fields | {"redirect_uri": wrong}).status_code == 400
    assert Client().post("/oauth/token", fields).status_code == 400
    assert Client().post("/oauth/token", fields | {"redirect_uri": "https://a.example/cb"}).status_code == 200


def test_an_app_that_registered_a_forbidden_address_before_gets_no_code_there(user: User, settings: Any) -> None:
    settings.RATE_SCALE = 1e6
    row, page = app_of(), logged_in(user)
    for scheme in FORBIDDEN_SCHEMES:
        address = f"{scheme}://a.example/cb"
        ClientApp.objects.filter(pk=row.pk).update(redirect_uris=address)
        query = query_of({"client_id": row.client_id}, redirect_uri=address)
        assert page.get(reverse("oauth-authorize", query=query)).status_code == 400, scheme
        assert page.post(reverse("oauth-authorize", query=query), {"answer": "allow"}).status_code == 400, scheme
        form = {"client_name": "An app", "redirect_uris": address.replace(scheme, scheme.title())}
        assert Client().post("/api/v1/apps", form).status_code == 422, scheme
    assert not Grant.objects.exists()


@pytest.mark.slow
def test_a_code_is_its_apps_and_its_addresses(user: User) -> None:
    app, other = registered(redirect_uris=f"{OUT_OF_BAND} https://a.example/"), registered()
    code = code_of(app, user)
    grant = {"grant_type": "authorization_code", "code": code}
    assert asked_for(other, **grant).status_code == 400
    assert asked_for(app, **grant, redirect_uri="https://a.example/").status_code == 400
    assert asked_for(app | {"client_secret": "x"}, **grant).status_code == 401
    assert asked_for(app | {"client_secret": secret_digest(app["client_secret"])}, **grant).status_code == 401
    Grant.objects.update(expires=timezone.now())
    assert asked_for(app, **grant).status_code == 400
    assert not AccessToken.objects.exists()


@pytest.mark.slow
def test_a_challenge_is_held_to_and_plain_ones_are_refused(user: User) -> None:
    app = registered()
    grant = {"grant_type": "authorization_code"}
    asked = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
    assert asked_for(app, **grant, code=code_of(app, user, **asked)).status_code == 400
    assert asked_for(app, **grant, code=code_of(app, user, **asked), code_verifier="b" * 50).status_code == 400
    assert asked_for(app, **grant, code=code_of(app, user, **asked), code_verifier=VERIFIER).status_code == 200
    assert code_of(app, user, code_challenge=VERIFIER, code_challenge_method="plain") == ""
    assert code_of(app, user, code_challenge=VERIFIER) == ""


@pytest.mark.slow
def test_no_app_gets_more_scopes_than_it_registered_with(user: User) -> None:
    app = registered(scopes="read write:statuses")
    for scope in ("write", "write:media", "read push", "admin:read", "nonsense", "follow"):
        assert code_of(app, user, scope=scope) == ""
    for scope in ("read:statuses write:statuses", "read"):
        assert code_of(app, user, scope=scope)
    token = asked_for(app, grant_type="client_credentials", scope="write")
    assert token.status_code == 400


def test_a_token_in_no_users_name_reads_what_everybody_reads(user: User) -> None:
    app = registered()
    token = asked_for(app, grant_type="client_credentials", scope="read").json()["access_token"]
    caller = Caller(None)
    caller.headers = {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    assert caller.get("v1/apps/verify_credentials")["name"] == "An app"
    assert caller.get("v1/timelines/public") == []
    assert caller.get(f"v1/accounts/{user.pk}")["username"] == "ann"
    assert caller.get("v1/timelines/home", status=422) == {"error": "This method requires an authenticated user"}
    assert Client().get("/api/v1/users/me", **caller.headers).status_code in (401, 403)


@pytest.mark.slow
def test_an_app_has_so_many_tokens_in_no_users_name(user: User, settings: Any) -> None:
    settings.TOKEN_CAP = 2
    app, other, own = registered(), registered(), token_of(user)
    tokens = [asked_for(each, grant_type="client_credentials").json()["access_token"] for each in (other, *[app] * 4)]
    asked = [{"HTTP_AUTHORIZATION": f"Bearer {token}"} for token in tokens]
    found = [Client().get("/api/v1/apps/verify_credentials", **headers).status_code for headers in asked]
    assert found == [200, 401, 401, 200, 200]
    assert me(own) == 200


def test_an_apps_own_tokens_are_few_and_short(user: User) -> None:
    app = registered()
    tokens = [asked_for(app, grant_type="client_credentials").json()["access_token"] for _ in range(9)]
    assert AccessToken.objects.count() == OF_APP
    assert not AccessToken.objects.filter(expires__gt=timezone.now() + OF_APP_LIFE).exists()
    AccessToken.objects.update(updated=timezone.now() - NOTED * 2, expires=timezone.now() + timedelta(hours=1))
    asked = [{"HTTP_AUTHORIZATION": f"Bearer {token}"} for token in tokens]
    found = [Client().get("/api/v1/apps/verify_credentials", **headers).status_code for headers in asked]
    assert found == [401] * (9 - OF_APP) + [200] * OF_APP
    assert AccessToken.objects.filter(expires__gt=timezone.now() + OF_APP_LIFE / 2).count() == OF_APP
    assert not AccessToken.objects.filter(expires__gt=timezone.now() + OF_APP_LIFE).exists()
    mine = asked_for(app, grant_type="authorization_code", code=code_of(app, user)).json()["access_token"]
    assert me(mine) == 200
    assert AccessToken.objects.get(user=user).expires > timezone.now() + OF_APP_LIFE


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_code_that_comes_eight_times_at_once_counts_once_and_its_token_ends(user: User) -> None:
    app = registered()
    code = code_of(app, user)

    def ask(_turn: int) -> tuple[int, str]:
        try:
            response = asked_for(app, grant_type="authorization_code", code=code)
            return response.status_code, response.json().get("error", "")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        found = sorted(pool.map(ask, range(8)))
    assert found == [(200, "")] + [(400, "invalid_grant")] * 7
    assert not AccessToken.objects.exists()


@pytest.mark.parametrize("name", [b"a\0b:c", b"a%00b:c"])
def test_an_app_that_cannot_be_asked_for_is_unknown(name: bytes) -> None:
    headers = {"HTTP_AUTHORIZATION": f"Basic {base64.b64encode(name).decode()}"}
    for address in ("/oauth/token", "/oauth/revoke"):
        response = Client().post(address, {"grant_type": "client_credentials", "token": "x"}, **headers)
        assert response.status_code == 401


DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.mark.parametrize("grant", ["password", "refresh_token", "implicit", "", DEVICE])
def test_other_grants_are_refused(grant: str, user: User) -> None:
    fields = {"username": "ann", "password": PASSWORD, "refresh_token": "x", "device_code": "x"}
    response = asked_for(registered(), grant_type=grant, **fields)
    assert response.status_code in (400, 401)
    assert not AccessToken.objects.exists()


def test_tokens_are_asked_for_in_json_and_by_basic_too(user: User) -> None:
    app = registered()
    asked = {"grant_type": "client_credentials", "client_id": app["client_id"], "client_secret": app["client_secret"]}
    assert Client().post("/oauth/token", asked, content_type="application/json").status_code == 200
    basic = base64.b64encode(f"{app['client_id']}:{app['client_secret']}".encode()).decode()
    response = Client().post("/oauth/token", {"grant_type": "client_credentials"}, HTTP_AUTHORIZATION=f"Basic {basic}")
    assert response.status_code == 200


# --- Revoking tokens -------------------------------------------------------------------------------------
def test_an_app_revokes_its_own_tokens_alone(user: User) -> None:
    app, other = registered(), registered()
    row = ClientApp.objects.get(client_id=app["client_id"])
    token = token_of(user, app=row)
    fields = {"token": token, "client_id": other["client_id"], "client_secret": other["client_secret"]}
    assert Client().post("/oauth/revoke", fields).status_code == 200
    assert me(token) == 200
    fields |= {"client_id": app["client_id"], "client_secret": "x"}
    assert Client().post("/oauth/revoke", fields).status_code == 401
    fields |= {"client_secret": app["client_secret"]}
    assert Client().post("/oauth/revoke", fields).status_code == 200
    assert Client().post("/oauth/revoke", fields).status_code == 200
    assert me(token) == 401


@pytest.mark.parametrize("act", ["password", "everywhere", "suspended", "deleted"])
def test_a_token_ends_with_what_ends_sessions(act: str, user: User) -> None:
    token, others = token_of(user), token_of(UserFactory())
    Grant.objects.create(user=user, application=app_of(), code="1", expires=timezone.now() + timedelta(hours=1))
    if act == "password":
        accounts.change_password(user=user, current=PASSWORD, new="another long passphrase")
    elif act == "everywhere":
        accounts.log_out_everywhere(user=user)
    elif act == "suspended":
        User.objects.filter(pk=user.pk).update(is_active=False)
    else:
        accounts.delete_account(user=user)
    assert (me(token), me(others)) == (401, 200)
    if act != "suspended":
        assert not Grant.objects.exists()
        assert not AccessToken.objects.filter(user=user).exists()


def test_devices_lists_apps_and_logs_them_out(user: User) -> None:
    token, _other = token_of(user, "read push"), token_of(UserFactory())
    (place,) = places.apps(user)
    assert (place.name, place.allowed) == ("An app", [scopes.WORDS["read"], scopes.WORDS["push"]])
    page = logged_in(user)
    session = page.session
    session["proven"] = timezone.now().timestamp()
    session.save()
    shown = page.get(reverse("settings-devices"), follow=True)
    assert "An app" in shown.content.decode()
    assert shown.redirect_chain == []
    assert not places.end_token(user=user, key="0" * 32)
    assert not places.end_token(user=UserFactory(), key=place.key)
    assert places.end_token(user=user, key=place.key)
    assert me(token) == 401


def test_the_use_of_a_token_is_noted_and_prolongs_it(user: User) -> None:
    token = token_of(user)
    assert me(token) == 200
    fresh = AccessToken.objects.get()
    AccessToken.objects.update(updated=timezone.now() - NOTED * 2)
    assert me(token) == 200
    noted = AccessToken.objects.get()
    assert noted.updated > timezone.now() - timedelta(minutes=1)
    assert noted.expires > fresh.expires


@pytest.mark.slow
def test_a_user_holds_so_many_tokens_and_the_oldest_goes(user: User, settings: Any) -> None:
    settings.TOKEN_CAP = 2
    app = registered()
    codes = [code_of(app, user) for _ in range(3)]
    tokens = [asked_for(app, grant_type="authorization_code", code=code).json()["access_token"] for code in codes]
    assert [me(token) for token in tokens] == [401, 200, 200]


def test_apps_that_no_user_let_in_are_forgotten(user: User) -> None:
    used, unused, new = app_of(), app_of(), app_of()
    token_of(user, app=used)
    old = token_of(user, app=new)
    AccessToken.objects.filter(token_checksum=digest_of(old)).update(expires=timezone.now())
    ClientApp.objects.exclude(pk=new.pk).update(created=timezone.now() - actions.UNUSED * 2)
    assert actions.forget_unused() == 2
    assert set(ClientApp.objects.values_list("pk", flat=True)) == {used.pk, new.pk}
    assert unused.pk not in ClientApp.objects.values_list("pk", flat=True)


def test_an_app_whose_code_is_on_its_way_is_kept(user: User) -> None:
    app = app_of()
    ClientApp.objects.update(created=timezone.now() - actions.UNUSED * 2)
    code = Grant.objects.create(user=user, application=app, code="1", expires=timezone.now() + timedelta(minutes=5))
    assert actions.forget_unused() == 0
    code.delete()
    assert actions.forget_unused() == 1


def test_a_token_of_its_own_keeps_an_app_while_it_is_used(user: User) -> None:
    idle, busy, of_user = app_of(), app_of(), app_of()
    for app, owner in ((idle, None), (busy, None), (of_user, user)):
        token_of(owner, app=app)
    ClientApp.objects.update(created=timezone.now() - actions.UNUSED * 2)
    AccessToken.objects.exclude(application=busy).update(updated=timezone.now() - actions.UNUSED * 2)
    actions.forget_unused()
    assert set(ClientApp.objects.values_list("pk", flat=True)) == {busy.pk, of_user.pk}


def test_the_built_in_app_stays_and_its_expired_tokens_go(user: User) -> None:
    """Also tokens of users who never return, with their recorded origin."""
    for agent in ("kept", "expired", "expired"):
        accounts.issue_token(user=user, user_agent=agent, ip="10.0.0.1")
    expired = AccessToken.objects.filter(origin__user_agent="expired")
    expired.update(expires=timezone.now() - timedelta(days=1))
    ClientApp.objects.update(created=timezone.now() - actions.UNUSED * 2)
    actions.forget_unused()
    assert [row.user_agent for row in TokenOrigin.objects.all()] == ["kept"]
    accounts.end_tokens(user=user)
    assert actions.forget_unused() == 0
    assert ClientApp.objects.get().pk == OWN_APP


def test_no_token_comes_by_oauth_in_the_name_of_the_built_in_app(user: User) -> None:
    own = ClientApp.objects.own()
    page = logged_in(user)
    for address in ("", OUT_OF_BAND):
        query = query_of({"client_id": own.client_id}, redirect_uri=address)
        assert page.get(reverse("oauth-authorize", query=query)).status_code == 400
    for secret in ("", own.client_secret, secret_digest("")):
        app = {"client_id": own.client_id, "client_secret": secret}
        assert asked_for(app, grant_type="client_credentials", scope="read").status_code == 401
    assert not AccessToken.objects.exists()


def test_tokens_of_apps_and_of_the_api_are_capped_apart(user: User, settings: Any) -> None:
    settings.TOKEN_CAP = 1
    own = accounts.issue_token(user=user)
    app = registered()
    first, second = (
        asked_for(app, grant_type="authorization_code", code=code_of(app, user)).json()["access_token"]
        for _ in range(2)
    )
    assert (me(first), me(second)) == (401, 200)
    client = Client(headers={"authorization": f"Token {own}"})
    assert client.get("/api/v1/users/me").status_code == 200
    accounts.issue_token(user=user)
    assert client.get("/api/v1/users/me").status_code == 401
    assert me(second) == 200


def test_a_token_opens_nothing_under_the_word_of_the_other_kind(user: User) -> None:
    """Otherwise an app's token would exceed its scopes, and one of the API would lack scopes."""
    own, of_app = accounts.issue_token(user=user), token_of(user, ALL)
    for words in (f"Bearer {own}", f"Token {of_app}", f"Token {token_of(None, ALL)}"):
        assert Client(headers={"authorization": words}).get("/api/v1/users/me").status_code == 401


def test_devices_end_both_kinds_of_tokens_apart(user: User) -> None:
    accounts.issue_token(user=user)
    token_of(user)
    (own,), (app,) = places.tokens(user), places.apps(user)
    assert places.end_token(user=user, key=own.key)
    assert not places.tokens(user)
    assert places.apps(user) == [app]


def test_the_metadata_is_told_over_https_alone() -> None:
    address = "/.well-known/oauth-authorization-server"
    assert Client().get(address).status_code == 404
    assert Client().get(address, secure=True).json()["code_challenge_methods_supported"] == ["S256"]


def test_an_app_in_a_browser_may_ask_from_any_site_without_cookies(user: User) -> None:
    preflight = Client().options(
        "/api/v1/timelines/home",
        HTTP_ORIGIN="https://app.example",
        HTTP_ACCESS_CONTROL_REQUEST_METHOD="GET",
        HTTP_ACCESS_CONTROL_REQUEST_HEADERS="authorization",
    )
    assert preflight.status_code == 200
    assert preflight.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in preflight.headers
    answer = Client().get("/api/v1/timelines/public", HTTP_ORIGIN="https://app.example")
    assert "link" in answer.headers["Access-Control-Expose-Headers"].lower()
    page = logged_in(user)
    assert page.get("/api/v1/timelines/home").status_code == 401
    assert "Access-Control-Allow-Origin" not in page.get("/settings", HTTP_ORIGIN="https://app.example").headers


def test_all_scopes_are_of_mastodon() -> None:
    assert set(ALL.split()) <= set(registered(scopes=ALL)["scopes"])


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", (">Apps</a>", "Redirect URIs:")), ("zh-hans", (">应用</a>", "回调地址:"))],
)
def test_the_admin_calls_apps_as_the_site_does(language: str, words: tuple[str, str]) -> None:
    app, browser = app_of("read"), Client()
    browser.force_login(UserFactory(is_staff=True, is_superuser=True))
    browser.cookies["language"] = language
    page = browser.get(f"/admin/accounts/clientapp/{app.pk}/change/").content.decode()
    sidebar = page[page.index('id="nav-sidebar"') :]
    assert words[0] in sidebar
    assert words[1] in page
    assert "Django OAuth Toolkit" not in page
