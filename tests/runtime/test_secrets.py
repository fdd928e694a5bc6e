import logging
import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from accounts.actions import issue_token
from accounts.signing_in import grants
from accounts.signing_in.guard import COOKIE
from runtime.embedded import secret_key
from tests.support.clients import token_of
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_a_whole_session_leaves_no_secret_in_the_log(caplog: pytest.LogCaptureFixture, settings: Any) -> None:
    """This holds at every log level."""
    caplog.set_level(logging.DEBUG)
    settings.ACCESS_LOG, settings.STREAM_PORT = True, 8001
    client = Client(raise_request_exception=False)
    secrets = [PASSWORD, "wrong-guess-13", "another-word-17", settings.SECRET_KEY]
    account = {"username": "ann", "password": PASSWORD}
    api: dict[str, Any] = {"content_type": "application/json"}
    client.post("/signup", account)
    client.post("/logout")
    for path in ("/login", "/admin/login/"):
        client.post(path, account | {"password": "wrong-guess-13"})
        client.post(path, account)
    client.post("/api/v1/users", account, **api)
    client.post("/api/v1/auth/token", account | {"password": "wrong-guess-13"}, **api)
    client.post("/api/v1/auth/token", b'{"username": "ann", "password": "wrong-guess-13"', **api)
    token = client.post("/api/v1/auth/token", account, **api).json()["token"]
    secrets += [token, client.cookies[settings.SESSION_COOKIE_NAME].value, client.cookies[COOKIE].value]
    bearer = {"headers": {"Authorization": f"Token {token}"}}
    redirect = client.get("/api/v1/stream", **bearer)
    secrets.append(redirect["Location"].partition("ticket=")[2])
    client.get(f"/api/v1/stream?ticket={secrets[-1]}&item=x")
    client.get("/api/v1/users/me", headers={"Authorization": f"Token {token}x"})
    client.get("/nothing", **bearer)
    secrets.append(token_of(UserFactory.create()))
    for path in ("accounts/verify_credentials", "streaming", "streaming/user", "nowhere"):
        client.get(f"/api/v1/{path}?access_token={secrets[-1]}&stream=user")
        client.post(f"/api/v1/{path}?access_token={secrets[-1]}")
    client.get("/metrics", headers={"Authorization": "Bearer wrong-guess-13"})
    client.post("/settings/password", {"current": "wrong-guess-13", "new": "another-word-17"})
    body = {"current_password": PASSWORD, "new_password": "another-word-17"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accounts.actions.change_password", lambda **fields: 1 / 0)
        assert client.post("/api/v1/users/me/password", body, **api, **bearer).status_code == 500
    client.post("/api/v1/users/me/password", body, **api, **bearer)
    client.delete("/api/v1/auth/token", **bearer)
    log = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    said = "\n".join(log.format(record) for record in caplog.records)
    assert "ZeroDivisionError" in said
    assert said.count("\n") > 20
    assert [secret for secret in secrets if secret in said] == []
    ticket = grants.issue_ticket(user=UserFactory.create(), origin="http://a.example", token=0)
    assert issue_token(user=UserFactory.create()) not in ticket


def test_the_key_is_for_the_sites_user_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        key = secret_key(tmp_path / "data")
    finally:
        os.umask(before)
    assert (tmp_path / "data" / "secret_key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert len(key) >= 64
    assert secret_key(tmp_path / "data") == key
    assert secret_key(tmp_path / "other") != key


def test_no_secret_stands_in_the_code() -> None:
    assert settings.SECRET_KEY not in (Path(settings.BASE_DIR) / "feedsite" / "settings.py").read_text()
    assert "insecure" not in settings.SECRET_KEY
