"""Terms, privacy policy, and an announcement in languages."""

from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from accounts.about import actions, legal, site
from accounts.models import User
from tests.support.admin import SITE_FORM
from tests.support.factories import PASSWORD

pytestmark = pytest.mark.django_db

ADDRESS = "/admin/about/sitesettings/1/change/"


@pytest.fixture(autouse=True)
def _at_once(django_capture_on_commit_callbacks: Any) -> Any:
    with django_capture_on_commit_callbacks(execute=True):
        yield
    site.site_copy.set(site.Site())


def test_a_draft_says_what_is_stored_until_an_admin_writes(client: Client) -> None:
    for page, words in (("/privacy", "IP address"), ("/terms", "Your posts stay yours.")):
        shown = client.get(page).content.decode()
        assert words in shown
        assert "<h2>" in shown
        assert f'href="{page}"' in client.get("/signup").content.decode()
    actions.change_settings(privacy="# One\n\n<b>We</b> store\nnothing.", contact_email="post@example.org")
    shown = client.get("/privacy").content.decode()
    assert "<h2>One</h2><p>&lt;b&gt;We&lt;/b&gt; store<br>nothing.</p>" in shown
    assert "IP address" not in shown
    answer = client.get("/api/v1/instance/privacy_policy").json()
    assert "<h2>One</h2>" in answer["content"]
    terms = client.get("/api/v1/instance/terms_of_service").json()
    assert (terms["effective"], terms["succeeded_by"]) == (True, None)


def test_the_drafts_are_in_the_reader_s_language() -> None:
    english = legal.draft_of_privacy()
    with translation.override("zh-hans"):
        assert legal.draft_of_privacy().count("\n\n") == english.count("\n\n")


def test_strangers_of_a_site_for_members_can_read_them(client: Client) -> None:
    actions.change_settings(looking="members")
    for page in ("/terms", "/privacy", "/api/v1/instance/privacy_policy", "/api/v1/instance/terms_of_service"):
        assert client.get(page).status_code == 200, page


@pytest.mark.slow
def test_the_admin_stores_no_draft(client: Client) -> None:
    client.force_login(User.objects.create_superuser("keeper", PASSWORD))
    client.get("/admin/about/sitesettings/")
    form = SITE_FORM | {"terms": legal.draft_of_terms().replace("\n", "\r\n"), "privacy": "Ours."}
    form |= {"announcement_zh_hans": "\u5468\u4e00\u4f11\u606f\u3002", "announcement_en": ""}
    assert client.post(ADDRESS, form).status_code == 302
    assert (legal.terms().changed_at, legal.privacy().text) == (None, "Ours.")
    here = site.read()
    assert here.announcements == {"zh-hans": "\u5468\u4e00\u4f11\u606f\u3002"}
    assert here.news == "Closed on Monday."
    with translation.override("zh-hans"):
        assert here.news == "\u5468\u4e00\u4f11\u606f\u3002"
    assert client.get(ADDRESS).content.decode().count("\u5468\u4e00\u4f11\u606f\u3002") == 1
    assert client.post(ADDRESS, form | {"_preview": "1"}).status_code == 200
