"""What every page has in common: error pages, positions, going on safely, parts for htmx."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.template import loader
from django.test import Client

from items import views
from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db

PART: Any = {"HTTP_HX_REQUEST": "true"}
BAD_POSITIONS = ["abc", "1.5", "NaN", "\x00", "-1", "0", str(2**53 + 1), "1" * 5000, "1_0", "\uff11\uff12"]


@pytest.fixture
def reader(client: Client) -> Any:
    reader = UserFactory.create(username="reader")
    client.force_login(reader)
    return reader


@pytest.mark.parametrize("position", BAD_POSITIONS)
@pytest.mark.parametrize("page", ["/", "/@reader", "/@reader/followers", "/@reader/following"])
def test_a_bad_position_is_a_bad_request(client: Client, reader: Any, page: str, position: str) -> None:
    response = client.get(page, {"last_id": position})
    assert response.status_code == 400
    assert "cannot be read" in response.content.decode()


def test_a_position_is_given_once_and_may_be_empty(client: Client, reader: Any) -> None:
    assert client.get("/?last_id=1&last_id=2").status_code == 400
    assert client.get("/?last_id=").status_code == 200
    assert client.get(f"/?last_id={2**53}").status_code == 200
    assert client.get("/new?since_id=x").status_code == 400


@pytest.mark.parametrize(
    "address", ["/nothing", "/@nobody", "/@no..body", "/@nobody/followers", "/items/7", f"/items/{10**30}"]
)
def test_what_is_not_there_is_the_same_page(client: Client, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 404
    assert response.content == client.get("/items/1").content


def test_a_post_without_csrf_token_is_refused_with_a_page(reader: Any) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(reader)
    response = strict.post("/items/new", {"text": "words", "visibility": "public"})
    assert response.status_code == 403
    assert "was refused" in response.content.decode()
    assert not reader.items.exists()


def test_an_outage_is_a_page_that_says_when_to_come_back(
    client: Client, reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(views, "user_or_404", fail)
    response = client.get("/@reader")
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert "Back in a moment" in response.content.decode()


@pytest.mark.parametrize("name", ["500.html", "503.html"])
def test_pages_for_broken_times_need_nothing(name: str) -> None:
    page = loader.get_template(name).render()
    assert settings.STATIC_URL not in page
    assert "{%" not in (settings.BASE_DIR / "templates" / name).read_text()


def test_who_is_not_signed_in_is_asked_to_and_comes_back(client: Client) -> None:
    assert client.get("/")["Location"] == "/login"
    assert client.get("/settings")["Location"] == "/login?next=%2Fsettings"
    assert client.post("/items/new", {"text": "words"})["Location"] == "/login"
    UserFactory.create(username="reader")
    response = client.post("/login", {"username": "READER", "password": PASSWORD, "next": "/settings"})
    assert response["Location"] == "/settings"


def test_a_session_that_ended_sends_the_whole_page_to_the_login(client: Client) -> None:
    response = client.get("/new", **PART, HTTP_HX_CURRENT_URL="http://testserver/settings")
    assert response["HX-Redirect"] == "/login?next=%2Fsettings"


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_nobody_is_sent_to_another_site(client: Client, target: str) -> None:
    UserFactory.create(username="reader")
    credentials = {"username": "reader", "password": PASSWORD, "next": target}
    assert client.post("/login", credentials)["Location"] == "/"
    assert client.get("/signup", {"next": target})["Location"] == "/"
    fields = {"text": "words", "visibility": "public", "next": target}
    assert client.post("/items/new", fields)["Location"].startswith("/items/")
    UserFactory.create(username="other")
    assert client.post("/@other/follow", {"next": target})["Location"] == "/@other"


def test_a_part_is_not_kept_as_the_page(client: Client, reader: Any) -> None:
    page, part = client.get("/"), client.get("/", **PART)
    assert "<html" in page.content.decode()
    assert "<html" not in part.content.decode()
    for response in (page, part):
        assert "HX-Request" in response["Vary"]
        assert "private" in response["Cache-Control"]
    restored = client.get("/", **PART, HTTP_HX_HISTORY_RESTORE_REQUEST="true")
    assert "<html" in restored.content.decode()


def test_pages_hold_no_inline_scripts_or_styles() -> None:
    """The Content-Security-Policy would not let them be, and lets only those scripts be that carry its nonce."""
    templates = Path(settings.BASE_DIR) / "templates"
    for template in templates.rglob("*.html"):
        text = template.read_text()
        assert " style=" not in text, template
        assert not re.search(r"\son[a-z]+=", text), template
        if "admin" not in template.parts:
            assert not re.search(r"<(script|style)(?![^>]*nonce)", text), template
