import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.template import loader
from django.test import Client
from django.utils import timezone
from django.utils.encoding import iri_to_uri

from items.actions import publish
from items.pages import views
from live import actions as live
from tests.support.answers import lasting
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import PART, logged_in

pytestmark = pytest.mark.django_db

NOWHERE = [
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "\n/settings",
    "/settings\n",
    "javascript:alert(1)",
    "foo",
    "home",
    "items.pages.search_views.search",
    "settings",
    "?q=x",
    "#item-7",
    "http://testserver/settings",
    "/" + "x" * 2_000,
    "",
]
"""Values of `next` outside this site."""
HOUR = timedelta(hours=1)
BAD_POSITIONS = ["abc", "1.5", "NaN", "\x00", "-1", "0", str(2**53 + 1), "1" * 5000, "1_0", "\uff11\uff12"]


@pytest.fixture
def reader(client: Client) -> Any:
    reader = UserFactory.create(username="reader")
    client.force_login(reader)
    return reader


@pytest.mark.slow
@pytest.mark.parametrize("page", ["/", "/@reader", "/@reader/followers", "/@reader/following"])
def test_a_bad_position_is_a_bad_request(client: Client, reader: Any, page: str) -> None:
    for position in BAD_POSITIONS:
        response = client.get(page, {"last_id": position})
        assert response.status_code == 400, position
        assert "This link doesn't work" in response.content.decode()


def test_a_position_is_given_once_and_may_be_empty(client: Client, reader: Any) -> None:
    assert client.get("/?last_id=1&last_id=2").status_code == 400
    assert client.get("/?last_id=").status_code == 200
    assert client.get(f"/?last_id={2**53}").status_code == 200
    assert client.get("/new?since_id=x").status_code == 400


@pytest.mark.parametrize(
    "address", ["/nothing", "/@nobody", "/@no..body", "/@nobody/followers", "/items/7", f"/items/{10**30}"]
)
def test_missing_pages_are_the_same_page(client: Client, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 404
    assert lasting(response) == lasting(client.get("/items/1"))
    assert "script-src http://testserver/static/feedsite/beside" in response["Content-Security-Policy"]


def test_the_address_of_a_form_is_a_page_in_the_frame_of_the_site(client: Client, reader: Any) -> None:
    response = client.get("/items/1/like")
    assert (response.status_code, response["Allow"]) == (405, "POST")
    shown = response.content.decode()
    assert "You can't open this page directly" in shown
    assert 'href="/@reader"' in shown
    client.logout()
    assert 'href="/signup"' in client.get("/items/1/like").content.decode()


def test_a_post_without_csrf_token_is_refused_with_a_page(reader: Any) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(reader)
    response = strict.post("/items/new", {"text": "words", "visibility": "public"})
    assert response.status_code == 403
    assert "go through" in response.content.decode()
    assert not reader.items.exists()


def test_an_outage_is_a_page_that_says_when_to_come_back(
    client: Client, reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(views, "visible_user", fail)
    response = client.get("/@reader")
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert "Back in a moment" in response.content.decode()


@pytest.mark.parametrize("name", ["500.html", "503.html"])
def test_pages_for_broken_times_need_nothing(name: str) -> None:
    page = loader.get_template(name).render()
    assert settings.STATIC_URL not in page
    tags = re.findall(r"{%\s*(\w+)", (settings.BASE_DIR / "templates" / name).read_text())
    assert set(tags) <= {"if", "else", "endif"}


def test_strangers_are_asked_to_sign_in_and_come_back(client: Client) -> None:
    assert client.get("/discover")["Location"] == "/login?next=%2Fdiscover"
    assert client.get("/settings")["Location"] == "/login?next=%2Fsettings"
    assert client.post("/items/new", {"text": "words"})["Location"] == "/login"
    UserFactory.create(username="reader")
    response = client.post("/login", {"username": "READER", "password": PASSWORD, "next": "/settings"})
    assert response["Location"] == "/settings"


def test_an_open_page_is_told_that_its_session_ended(client: Client) -> None:
    response = client.get("/new", **PART, HTTP_HX_CURRENT_URL="http://testserver/settings")
    assert (response.status_code, response.content) == (401, b"")
    assert "HX-Redirect" not in response


def test_an_open_page_of_another_user_acts_for_nobody(client: Client, reader: Any) -> None:
    fields = {"text": "words", "visibility": "public"}
    other = UserFactory.create()
    assert client.post("/items/new", fields, **PART, HTTP_X_READER=str(other.pk)).status_code == 401
    assert client.post("/items/new", fields, **PART, HTTP_X_READER=str(reader.pk)).status_code == 200


def test_an_open_page_of_another_user_reads_nothing(client: Client, reader: Any) -> None:
    other = UserFactory.create()
    for address in ("/@reader", "/search?q=words", "/api/v1/users/me"):
        assert client.get(address, HTTP_X_READER=str(other.pk)).status_code == 401, address
        assert client.get(address, HTTP_X_READER=str(reader.pk)).status_code == 200, address
    client.logout()
    assert client.get("/@reader", HTTP_X_READER=str(reader.pk)).status_code == 401


def test_a_form_of_another_users_page_changes_nothing(client: Client, reader: Any) -> None:
    other = UserFactory.create(username="other")
    fields = {"display_name": "Other", "bio": "words of the other"}
    refused = client.post("/settings", fields | {"page_reader": str(other.pk)})
    assert refused.status_code == 403
    assert "You're @reader in this browser now." in refused.content.decode()
    reader.refresh_from_db()
    assert (reader.display_name, reader.bio) == ("", "")
    assert client.post("/settings", fields | {"page_reader": str(reader.pk)})["Location"] == "/settings/profile"
    assert client.post("/logout", {"page_reader": str(other.pk)})["Location"] == "/login"
    # The session ended, so the form leads to the log-in.
    assert client.post("/settings", fields | {"page_reader": str(reader.pk)})["Location"] == "/login"


def test_logging_out_gives_the_browser_another_token(reader: Any) -> None:
    browser = logged_in(reader)
    browser.get("/settings")
    before = browser.cookies["csrftoken"].value
    browser.post("/logout")
    assert browser.cookies["csrftoken"].value not in ("", before)


def test_an_open_page_without_session_and_token_is_told_so(reader: Any) -> None:
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/items/new", {"text": "words"}, **PART).status_code == 401
    strict.force_login(reader)
    assert strict.post("/items/new", {"text": "words"}, **PART).status_code == 403


def test_a_post_of_a_session_that_ended_leads_back(client: Client) -> None:
    assert client.post("/items/1/like", {"next": "/@reader"})["Location"] == "/login?next=%2F%40reader"


@pytest.mark.slow
@pytest.mark.parametrize("target", NOWHERE)
def test_only_an_address_of_this_site_is_gone_on_to(client: Client, target: str) -> None:
    account = {"username": "newcomer", "password": PASSWORD, "next": target}
    assert client.post("/signup", account)["Location"] == "/welcome"
    assert client.get("/signup", {"next": target})["Location"] == "/"
    assert client.post("/logout", {"next": target})["Location"] == "/login"
    assert client.post("/login", account)["Location"] == "/"
    assert client.get("/login", {"next": target})["Location"] == "/"
    assert client.post("/language", {"language": "en", "next": target})["Location"] == "/"
    item = publish(sender=UserFactory.create(username="writer"), content={"text": "words"})
    for verb in ("like", "unlike", "repost", "undo-repost"):
        assert client.post(f"/items/{item.pk}/{verb}", {"next": target})["Location"] == f"/items/{item.pk}"
    for verb in ("not-interested", "interested"):
        there = client.post(f"/items/{item.pk}/{verb}", {"next": target})
        assert there["Location"] == "/history/not-interested"
    session = live.create(host=item.sender, title="words", starts_at=timezone.now() + HOUR, now=timezone.now())
    for verb in ("remind", "forget"):
        assert client.post(f"/live/{session.pk}/{verb}", {"next": target})["Location"] == f"/live/{session.pk}"
    fields = {"text": "words", "visibility": "public", "next": target}
    assert client.post("/items/new", fields)["Location"].startswith("/items/")
    UserFactory.create(username="other")
    assert client.post("/@other/follow", {"next": target})["Location"] == "/@other"


@pytest.mark.parametrize("target", ["/@writer", "/?last_id=7#item-7", "/tags/%E5%B0%8F%E4%BA%8B", "/tags/小事"])
def test_an_address_of_this_site_is_gone_on_to(client: Client, reader: Any, target: str) -> None:
    UserFactory.create(username="other")
    assert client.post("/@other/follow", {"next": target})["Location"] == iri_to_uri(target)
    assert client.get("/login", {"next": target})["Location"] == iri_to_uri(target)


@pytest.mark.parametrize("page", ["/login", "/signup"])
def test_a_page_does_not_lead_to_itself(client: Client, reader: Any, page: str) -> None:
    assert client.get(page, {"next": page})["Location"] == "/"


def test_one_function_follows_next() -> None:
    """Django's `redirect` may take a `next` for a view's name."""
    for source in Path(settings.BASE_DIR).glob("*/*.py"):
        assert not re.search(r"redirect\((next_page|target)", source.read_text()), source


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
    templates = Path(settings.BASE_DIR) / "templates"
    for template in templates.rglob("*.html"):
        text = template.read_text()
        if "mail" in template.parts:  # mail readers need inline styles
            continue
        assert " style=" not in text, template
        assert not re.search(r"\son[a-z]+=", text), template
        if "admin" not in template.parts:
            assert not re.search(r"<(script|style)(?![^>]*(nonce|beside\.js))", text), template
