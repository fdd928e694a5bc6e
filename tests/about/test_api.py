import tomllib

import pytest
from django.conf import settings
from django.test import Client
from rest_framework.test import APIClient

from accounts.about import site
from accounts.about.models import SignUp
from runtime.version import VERSION
from tests.support.api import API
from tests.support.statements import statements

HERE = site.Site(
    name="Reading room",
    short_description="Books, slowly.",
    description="We read.\n\nSee https://example.org/ & <b>come</b>.\njavascript:alert(1)",
    contact_email="post@example.org",
    contact_username="keeper",
    chosen_sign_up=SignUp.APPROVAL,
    user_count=1_234,
    item_count=56_789,
    rules=(site.Rule(7, 1, "Be <i>kind</i>."), site.Rule(9, 2, "No spam.")),
)


@pytest.fixture(autouse=True)
def _here() -> None:
    site.site_copy.set(HERE)


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION


def test_the_site_over_the_api() -> None:
    with statements() as asked:
        response = APIClient().get(f"{API}/site")
    assert asked == []
    assert response.status_code == 200
    told = response.json()
    assert told["name"] == "Reading room"
    assert told["rules"] == [{"id": "7", "text": "Be <i>kind</i>."}, {"id": "9", "text": "No spam."}]
    assert told["contact"] == {"email": "post@example.org", "username": "keeper"}
    assert told["languages"] == ["en", "ar", "es", "ja", "zh-hans"]
    assert (told["sign_up"], told["looking"]) == ("approval", "everybody")
    assert told["counts"] == {"users": 1_234, "items": 56_789}
    assert told["version"] == VERSION
    assert told["limits"] == {
        "article_characters": 20_000,
        "following": settings.FOLLOW_CAP,
        "image_bytes": settings.MEDIA_IMAGE_BYTES,
        "image_pixels": settings.MEDIA_PIXELS,
        "media_an_item": 4,
        "text_characters": 5_000,
        "title_characters": 200,
        "video_bytes": settings.MEDIA_VIDEO_BYTES,
    }
    assert told["logo_url"].startswith("http://")


@pytest.mark.django_db
def test_the_page_escapes_what_admins_write(client: Client) -> None:
    page = client.get("/about").content.decode()
    assert "<title>About · Reading room</title>" in page
    assert '<a href="https://example.org/" rel="nofollow">https://example.org/</a>' in page
    assert "&lt;b&gt;come&lt;/b&gt;" in page
    assert 'href="javascript' not in page
    assert "<li>Be &lt;i&gt;kind&lt;/i&gt;.</li>" in page
    assert 'href="mailto:post@example.org"' in page
    assert 'href="/@keeper"' in page
    assert "1,234 accounts" in page


@pytest.mark.django_db
def test_an_announcement_is_dismissed_in_its_browser(client: Client) -> None:
    site.site_copy.set(site.Site(announcement="Closed on <Monday>: https://example.org/"))
    page = client.get("/about").content.decode()
    assert "Closed on &lt;Monday&gt;" in page
    response = client.post("/announcement/dismiss", {"next": "/about"})
    assert (response.status_code, response.headers["Location"]) == (302, "/about")
    assert "Closed on" not in client.get("/about").content.decode()
    assert "Closed on" in Client().get("/about").content.decode()
    site.site_copy.set(site.Site(announcement="Open on Monday."))
    assert "Open on Monday." in client.get("/about").content.decode(), "another is shown again"
    assert client.get("/announcement/dismiss").status_code == 405
