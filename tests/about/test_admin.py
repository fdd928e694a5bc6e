from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.about import site
from accounts.about.models import Rule, SiteSettings
from accounts.mail.letters import compose
from accounts.mail.models import Letter
from accounts.models import User
from media.models import MediaFile
from tests.support.admin import SITE_FORM
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pictures import jpeg, opened, upload

pytestmark = pytest.mark.django_db

ADDRESS = "/admin/about/sitesettings/1/change/"


@pytest.fixture
def page(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("keeper", PASSWORD))
    client.get("/admin/about/sitesettings/")
    return client


@pytest.fixture(autouse=True)
def _at_once(django_capture_on_commit_callbacks: Any) -> Any:
    with django_capture_on_commit_callbacks(execute=True):
        yield


@pytest.mark.slow
def test_the_form_changes_the_site(page: Client) -> None:
    assert page.get("/admin/about/sitesettings/").headers["Location"] == ADDRESS
    assert page.get(ADDRESS).status_code == 200
    assert page.post(ADDRESS, SITE_FORM).status_code == 302
    here = site.read()
    assert (here.name, here.accent, here.chosen_sign_up) == ("Reading room", "#b3261e", "approval")
    assert str(here.zone) == "Asia/Shanghai"
    assert here.news == "Closed on Monday."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("accent", "#ffcc00", "Too light"),
        ("accent", "red", "Enter a color like"),
        ("time_zone", "Mars/Olympus", "know this time zone"),
        ("name", "", "required"),
        ("contact_email", "no address", "valid email"),
    ],
)
def test_wrong_fields_are_told_where_they_stand(page: Client, field: str, value: str, words: str) -> None:
    response = page.post(ADDRESS, SITE_FORM | {field: value})
    assert response.status_code == 200
    assert words in response.content.decode()
    assert site.read().name == "feedsite"


@pytest.mark.slow
def test_the_default_colour_follows_the_software(page: Client) -> None:
    assert 'type="color" name="accent" value="#3457d5"' in page.get(ADDRESS).content.decode()
    page.post(ADDRESS, SITE_FORM)
    page.post(ADDRESS, SITE_FORM | {"accent": "#3457D5"})
    assert site.read().accent == ""


@pytest.mark.slow
def test_the_contact_is_an_active_user(page: Client) -> None:
    UserFactory.create(username="gone", is_active=False)
    for name in ("gone", "never"):
        assert (
            "Nobody here has this username."
            in page.post(ADDRESS, SITE_FORM | {"contact_username": name}).content.decode()
        )
    assert page.post(ADDRESS, SITE_FORM | {"contact_username": "KEEPER"}).status_code == 302
    assert site.read().contact_username == "keeper"


@pytest.mark.slow
def test_a_preview_saves_nothing(page: Client) -> None:
    preview = page.post(ADDRESS, SITE_FORM | {"_preview": "Preview"})
    assert preview.status_code == 200
    said = preview.content.decode()
    assert "Reading room" in said
    assert "/about/theme-v2-b3261e.css" in said
    assert "Closed on Monday." in said
    assert not SiteSettings.objects.exists()
    wrong = page.post(ADDRESS, SITE_FORM | {"_preview": "Preview", "accent": "#ffcc00"})
    assert "Too light" in wrong.content.decode()


@pytest.mark.slow
def test_a_logo_comes_and_goes(page: Client, media_folder: Path) -> None:
    assert page.post(ADDRESS, SITE_FORM | {"new_logo": upload(jpeg())}).status_code == 302
    first = site.read().logo
    assert first is not None
    assert page.post(ADDRESS, SITE_FORM | {"new_logo": upload(jpeg(colour="red"))}).status_code == 302
    second = site.read().logo
    assert second is not None
    assert second["id"] != first["id"]
    assert [str(row.pk) for row in MediaFile.objects.all()] == [second["id"]]
    site.site_copy.forget()
    assert second["name"] in page.get("/about").content.decode()
    assert page.post(ADDRESS, SITE_FORM | {"remove_logo": "on"}).status_code == 302
    assert site.read().logo is None
    assert not MediaFile.objects.exists()
    refused = page.post(ADDRESS, SITE_FORM | {"new_logo": upload(b"<svg/>")}, follow=True)
    assert site.read().logo is None
    assert refused.status_code == 200


@pytest.mark.slow
def test_rules_are_written_and_withdrawn(page: Client) -> None:
    assert page.post("/admin/about/rule/add/", {"number": "1", "text": "Be kind."}).status_code == 302
    rule = Rule.objects.get()
    assert page.post(f"/admin/about/rule/{rule.pk}/change/", {"number": "2", "text": "Be good."}).status_code == 302
    assert [(each.number, each.text) for each in site.read().rules] == [(1, "Be good.")]
    assert "Be good." in page.get(f"/admin/about/rule/{rule.pk}/delete/").content.decode()
    assert page.post(f"/admin/about/rule/{rule.pk}/delete/", {"confirmed": "yes"}).status_code == 302
    assert site.read().rules == ()
    assert Rule.objects.get().withdrawn_at is not None
    assert page.get("/admin/about/rule/").status_code == 200


def test_staff_who_are_no_superusers_see_and_change_nothing_of_it(client: Client) -> None:
    client.force_login(UserFactory(is_staff=True))
    for address in ("/admin/about/sitesettings/", ADDRESS, "/admin/about/rule/", "/admin/about/rule/add/"):
        assert client.get(address).status_code in (302, 403)
        assert client.post(address, SITE_FORM).status_code in (302, 403)
    assert site.read().name == "feedsite"


def test_a_logo_is_shown_everywhere(page: Client, media_folder: Path, settings: Any) -> None:
    assert page.post(ADDRESS, SITE_FORM | {"new_logo": upload(jpeg(600, 600))}).status_code == 302
    site.site_copy.forget()
    facts = site.read().logo
    assert facts is not None
    mark, icon = f'src="/media/{facts["name"]}.48.webp"', f"/about/icons/{facts['id']}/icon-192.png"
    client = Client()
    client.force_login(UserFactory.create())
    for path in ("/", "/discover", "/live", "/lists"):
        shown = client.get(path).content.decode()
        assert shown.count(mark) == 2, f"{path}: beside the page, and in its head on a phone"
        assert f'<link rel="icon" href="{icon}">' in shown
    missing = client.get("/nothing").content.decode()
    assert mark in missing
    assert f'<link rel="icon" href="{icon}">' in missing
    assert f'<link rel="icon" href="{icon}">' in page.get("/admin/").content.decode()
    assert client.get("/favicon.ico")["Location"] == icon
    drawn = client.get(icon)
    assert (drawn["Content-Type"], opened(drawn.content).size) == ("image/png", (192, 192))
    facts_of_letter = {"address": "a@b.example", "context": {"name": "Ann"}, "created_at": timezone.now()}
    (html,) = compose(Letter(kind="test", language="en", **facts_of_letter)).alternatives
    assert f'src="{settings.SITE_URL}{icon}"' in str(html[0])
    told = client.get("/api/v2/instance").json()
    assert told["thumbnail"]["url"].endswith(f"/about/icons/{facts['id']}/icon-512.png")
    assert [one["size"] for one in told["icon"]] == ["192x192", "512x512"]
