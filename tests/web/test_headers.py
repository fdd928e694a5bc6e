import re
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from accounts.models import User
from tests.support.factories import ItemFactory, UserFactory
from web.headers import HEADERS, NO_PAGE, HeadersMiddleware

pytestmark = pytest.mark.django_db


def is_page(response: Any) -> bool:
    return str(response.get("Content-Type", "")).startswith("text/html")


def directives(response: Any) -> dict[str, list[str]]:
    return {name: sources for name, *sources in map(str.split, response["Content-Security-Policy"].split(";"))}


@pytest.fixture
def paths() -> list[str]:
    """Pages, redirects, JSON, files, missing and refused addresses."""
    item = ItemFactory(sender=UserFactory(username="ann"))
    return [
        "/login",
        "/",
        "/@ann",
        f"/items/{item.pk}",
        "/items/1",
        "/?last_id=x",
        "/nothing",
        "/admin/login/",
        "/api/docs",
        "/api/schema",
        "/api/v1/users/ann",
        "/api/v1/users/me",
        "/api/v1/nothing",
        "/static/feedsite/icons.svg",
        "/static/feedsite/none.svg",
        "/healthz",
        "/readyz",
        "/favicon.ico",
    ]


@pytest.mark.slow
def test_every_answer_carries_them(client: Client, paths: list[str]) -> None:
    client.raise_request_exception = False
    answers = {path: client.get(path) for path in paths}
    answers["a wrong host"] = client.get("/login", HTTP_HOST="evil.example")
    answers["without the token of the form"] = Client(enforce_csrf_checks=True).post("/login")
    for path, response in answers.items():
        for name, value in HEADERS.items():
            is_way_to_app = name == "Cross-Origin-Opener-Policy" and path == "/login" and response.status_code == 200
            assert response[name] == ("unsafe-none" if is_way_to_app else value), (path, name)
        if is_page(response):
            policy = directives(response)
            assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == ["'none'"], path
            assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "http:", "https:"} & set(policy["script-src"]), path
            assert "'unsafe-inline'" not in policy["style-src"], path
        else:
            assert response["Content-Security-Policy"] == NO_PAGE, path
        response.close()  # a static file is open until then


def test_nonces_are_of_one_answer_and_scripts_carry_them(client: Client, paths: list[str]) -> None:
    seen = set()
    for path in ["/login", "/login", "/api/docs"]:
        response = client.get(path)
        (source,) = directives(response)["script-src"]
        nonce = source.removeprefix("'nonce-").removesuffix("'")
        assert len(nonce) >= 22
        seen.add(nonce)
        tags = re.findall(r"<(?:script|style)\b[^>]*>", response.content.decode())
        assert tags
        assert all(f'nonce="{nonce}"' in tag for tag in tags)
    assert len(seen) == 3
    without_scripts = client.post("/language", {"language": "xx"})
    assert directives(without_scripts)["script-src"] == ["'none'"]
    assert directives(client.get("/admin/login/"))["script-src"] == ["'self'"]


def test_pages_of_last_resort_keep_their_style(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(ann)
    for error, status in [(OperationalError, 503), (ZeroDivisionError, 500)]:

        def fail(*args: Any, error: type[Exception] = error, **options: Any) -> Any:
            raise error

        monkeypatch.setattr("web.pages.render", fail)
        response = client.get("/")
        assert response.status_code == status
        _, source = directives(response)["style-src"]
        nonce = source.removeprefix("'nonce-").rstrip("'")
        assert f'<style nonce="{nonce}">' in response.content.decode()


@pytest.mark.parametrize(
    ("host", "secure", "listens"),
    [
        ("localhost:8000", False, ["http://localhost:8001"]),
        ("127.0.0.1", True, ["https://127.0.0.1:8001"]),
        ("[::1]:8000", False, ["http://*:8001"]),
        ("evil.example", False, []),
    ],
)
def test_pages_may_listen_to_the_stream_process(settings: Any, host: str, secure: bool, listens: list[str]) -> None:
    settings.STREAM, settings.STREAM_PORT = True, 8001
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
    request: HttpRequest = RequestFactory().get("/", secure=secure, HTTP_HOST=host)
    request.user = AnonymousUser()
    answer: Any = HeadersMiddleware(lambda request: HttpResponse("", content_type="text/html"))(request)
    assert directives(answer)["connect-src"] == ["'self'", *listens]
    settings.STREAM_PORT = 0
    assert directives(HeadersMiddleware(lambda request: HttpResponse(""))(request))["connect-src"] == ["'self'"]
