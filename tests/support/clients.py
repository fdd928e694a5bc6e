"""Apps for Mastodon's API, and their tokens."""

import re
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

import requests
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken, set_token_value

from accounts.models import User
from accounts.signing_in_models import ClientApp
from clientapi.oauth import actions
from tests.support.changed_settings import changed
from tests.support.factories import PASSWORD
from tests.support.web import WebServer

ALL = "read write follow push profile"
UNMODERATED = ("FEEDSITE_MODERATION_LINK_DAYS", "FEEDSITE_MODERATION_BURST", "FEEDSITE_MODERATION_SAME_TEXT")
OUT_OF_BAND = actions.OUT_OF_BAND


def app_of(scopes: str = ALL, *addresses: str) -> ClientApp:
    return actions.register(name="An app", addresses=list(addresses) or [OUT_OF_BAND], asked=scopes).app


def token_of(user: User | None, scopes: str = ALL, *, app: ClientApp | None = None) -> str:
    """Ask the token address for it."""
    token = secrets.token_urlsafe(24)
    row = AccessToken(
        user=user, application=app or app_of(), scope=scopes, expires=timezone.now() + timedelta(days=1), resource=[]
    )
    set_token_value(row, token)
    row.save()
    return token


class Caller:
    def __init__(self, user: User | None, scopes: str = ALL) -> None:
        self.user = user
        self.client = Client()
        self.headers = {"HTTP_AUTHORIZATION": f"Bearer {token_of(user, scopes)}"} if user else {}

    def ask(
        self, method: str, path: str, data: Any = None, *, status: int = 200, form: bool = False, **named: Any
    ) -> Any:
        """The decoded answer. Fails on another status."""
        data = "" if data is None and method == "delete" else data
        options: dict[str, Any] = {} if form or method == "get" else {"content_type": "application/json"}
        response = getattr(self.client, method)(f"/api/{path}", data, **options, **self.headers, **named)
        assert response.status_code == status, (method, path, response.status_code, response.content[:500])
        self.response = response
        return response.json() if response.content else None

    def get(self, path: str, data: Any = None, **options: Any) -> Any:
        return self.ask("get", path, data, **options)

    def post(self, path: str, data: Any = None, **options: Any) -> Any:
        return self.ask("post", path, data, **options)

    def put(self, path: str, data: Any = None, **options: Any) -> Any:
        return self.ask("put", path, data, **options)

    def delete(self, path: str, data: Any = None, **options: Any) -> Any:
        return self.ask("delete", path, data, **options)


class ClientSite(WebServer):
    """Links lead to its own port."""

    def __init__(self, folder: Path, **environ: str) -> None:
        super().__init__(folder, **environ)
        self.address = f"http://127.0.0.1:{self.port}"
        self.environ |= dict.fromkeys(UNMODERATED, "0")
        self.environ |= {"FEEDSITE_URL": self.address, "FEEDSITE_DEBUG": "1", **changed(MEDIA_WAIT_SECONDS=60)}

    def let_in(self, address: str, user: User) -> str:
        """Sign in and approve the app at this address. Returns the code."""
        # The site does not know the tests' hasher.
        known = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1_000)
        User.objects.filter(pk=user.pk).update(password=known)
        browser = requests.Session()
        page = browser.get(address)
        assert "/login" in page.url, page.url
        form = {"username": user.username, "password": PASSWORD, "csrfmiddlewaretoken": _token(page.text)}
        page = browser.post(page.url, form, headers={"Referer": page.url})
        assert page.status_code == 200, page.text
        assert "/oauth/authorize" in page.url, page.url
        form = {"answer": "allow", "csrfmiddlewaretoken": _token(page.text)}
        page = browser.post(page.url, form, headers={"Referer": page.url})
        found = re.search("<code>([^<]+)</code>", page.text)
        assert found is not None, page.text
        return found[1]


def _token(page: str) -> str:
    found = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found is not None, page
    return found[1]
