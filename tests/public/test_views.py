import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client
from django.utils import timezone

from accounts.about import site
from accounts.about.models import PublicAccess
from accounts.actions import edit_preferences, edit_profile
from accounts.models import User
from discover.refreshing import refresh_popular
from items import actions
from items.models import Visibility
from tests.support.factories import UserFactory, say
from tests.support.picture_posts import posted, sent

pytestmark = pytest.mark.django_db

ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def sender() -> Any:
    return UserFactory.create(username="sender", display_name="Sen <b>der</b>")


def xml(answer: Any) -> ElementTree.Element:
    return ElementTree.fromstring(answer.content)  # noqa: S314


def meta(page: str) -> dict[str, str]:
    return dict(re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)">', page))


# --- The front page --------------------------------------------------------------------------------------
def test_strangers_find_what_is_new_and_how_to_join(client: Client, sender: User) -> None:
    say(sender, "public words")
    say(sender, "circle words", visibility=Visibility.FOLLOWERS)
    page = client.get("/").content.decode()
    assert "public words" in page
    assert "circle words" not in page
    assert 'href="/signup"' in page


def test_members_find_their_home(client: Client, sender: User) -> None:
    say(UserFactory.create(), "words of nobody whom one follows")
    client.force_login(sender)
    page = client.get("/")
    assert page["X-Feed-Source"]
    assert b"words of nobody" not in page.content


@pytest.mark.slow
def test_more_of_what_is_new(client: Client, sender: User) -> None:
    for number in range(25):
        say(sender, f"post {number:02}")
    page = client.get("/").content.decode()
    (more,) = re.findall(r'rel="next" href="([^"]+)"', page)
    following = client.get(more).content.decode()
    assert [number for number in range(25) if f"post {number:02}" in page] == list(range(5, 25))
    assert [number for number in range(25) if f"post {number:02}" in following] == list(range(5))
    part = client.get(more, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "post 04" in part


def test_popular_posts_stand_first_one_of_a_sender(client: Client, sender: User) -> None:
    many = [say(sender, f"liked {number}") for number in range(3)]
    for item in many:
        for _ in range(3):
            actions.like(user=UserFactory.create(), item=item)
    refresh_popular(now=timezone.now())
    page = client.get("/").content.decode()
    popular = page[page.index("Popular now") : page.index('id="new-posts"')]
    assert popular.count("<article") == 1
    actions.delete(item=many[0])
    actions.delete(item=many[1])
    actions.delete(item=many[2])
    assert "Popular now" not in client.get("/").content.decode()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Posts from people you follow, newest first."),
        ({"description": "We read\nslowly.\n\nMore of us."}, "We read slowly."),
        ({"description": "We read.", "short_description": "Books."}, "Books."),
    ],
)
def test_strangers_read_the_sites_own_words(client: Client, fields: dict[str, str], said: str) -> None:
    site.site_copy.set(site.Site(**fields))  # type: ignore[arg-type]
    page = client.get("/").content.decode()
    assert f"<p><bdi>{said}</bdi> <a" in page
    assert (meta(page)["description"], meta(page)["og:description"]) == (said, said)


def test_an_empty_site_invites(client: Client) -> None:
    assert "write the first post" in client.get("/").content.decode()


# --- Previews --------------------------------------------------------------------------------------------
def test_the_link_of_a_post_shows_who_said_what(client: Client, sender: User) -> None:
    item = say(sender, 'words "in quotes" <script>')
    page = client.get(f"/items/{item.pk}").content.decode()
    facts = meta(page)
    assert facts["og:type"] == "article"
    assert facts["og:title"] == "Sen &lt;b&gt;der&lt;/b&gt; (@sender)"
    assert facts["og:description"] == "words &#34;in quotes&#34; &lt;script&gt;"
    assert facts["og:url"] == f"http://testserver/items/{item.pk}"
    assert f'<link rel="canonical" href="http://testserver/items/{item.pk}">' in page
    assert facts["twitter:card"] == "summary"
    assert facts["og:image"].endswith(".png"), "the drawn avatar"


def test_a_picture_is_shown_with_its_description(client: Client, sender: User, media_folder: Path) -> None:
    item = posted(sender, sent(sender, description="a zebra at dusk"), text="words")
    facts = meta(client.get(f"/items/{item.pk}").content.decode())
    assert facts["og:image"].startswith("http://testserver/media/")
    assert facts["og:image:alt"] == "a zebra at dusk"
    assert facts["twitter:card"] == "summary_large_image"


@pytest.mark.parametrize("veil", [{"sensitive": True}, {"warning": "animals"}])
def test_veiled_pictures_stay_so(client: Client, sender: User, media_folder: Path, veil: dict[str, Any]) -> None:
    item = posted(sender, sent(sender), text="secret words", **veil)
    page = client.get(f"/items/{item.pk}").content.decode()
    facts = meta(page)
    assert "/media/" not in facts.get("og:image", "")
    if "warning" in veil:
        assert facts["og:description"] == "animals"
        assert "secret" not in page[: page.index("<body")]


@pytest.mark.slow
def test_members_and_circles_have_no_previews(client: Client, sender: User) -> None:
    item = say(sender, "words", visibility=Visibility.FOLLOWERS)
    client.force_login(sender)
    for path in (f"/items/{item.pk}", "/@sender", "/"):
        assert "og:title" not in client.get(path).content.decode()


def test_a_profile_names_its_feed(client: Client, sender: User) -> None:
    edit_profile(user=sender, bio="about me")
    page = client.get("/@sender").content.decode()
    assert meta(page)["og:description"] == "about me"
    (feed,) = re.findall(r'type="application/atom\+xml" href="([^"]+)"', page)
    assert feed == "http://testserver/@sender/feed.atom"
    assert client.get(feed).status_code == 200


# --- Search engines --------------------------------------------------------------------------------------
def test_an_account_may_decline_indexing(client: Client, sender: User) -> None:
    item = say(sender, "words")
    edit_preferences(user=sender, is_indexable=False)
    for path in ("/@sender", f"/items/{item.pk}"):
        assert meta(client.get(path).content.decode())["robots"] == "noindex"
    assert client.get("/@sender/feed.atom")["X-Robots-Tag"] == "noindex"
    assert f"/items/{item.pk}" not in client.get("/sitemap-posts-0.xml").content.decode()
    assert "/@sender" not in client.get("/sitemap-people-0.xml").content.decode()


def test_indexing_is_chosen_in_the_settings_and_by_the_api(client: Client, sender: User) -> None:
    client.force_login(sender)
    client.post("/settings/preferences", {"theme": "", "language": "", "time_zone": ""})
    sender.refresh_from_db()
    assert not sender.is_indexable
    client.post("/settings/preferences", {"theme": "", "language": "", "time_zone": "", "is_indexable": "on"})
    sender.refresh_from_db()
    assert sender.is_indexable


def test_robots_are_led_to_the_sitemap(client: Client) -> None:
    text = client.get("/robots.txt").content.decode()
    assert "Disallow: /settings\n" in text
    assert "Sitemap: http://testserver/sitemap.xml" in text


def test_robots_are_kept_from_a_site_for_members(client: Client) -> None:
    site.site_copy.set(site.Site(looking=PublicAccess.MEMBERS))
    assert client.get("/robots.txt").content == b"User-agent: *\nDisallow: /\n"


def test_the_sitemap_leads_to_its_parts(client: Client, sender: User) -> None:
    item = say(sender, "words")
    say(sender, "circle", visibility=Visibility.SELF)
    say(sender, "reply", reply_to=item)
    index = xml(client.get("/sitemap.xml"))
    parts = [each.text or "" for each in index.iter() if each.tag.endswith("loc")]
    found = [each.text for part in parts for each in xml(client.get(part)).iter() if each.tag.endswith("loc")]
    assert f"http://testserver/items/{item.pk}" in found
    assert "http://testserver/@sender" in found
    assert len(found) == 2


@pytest.mark.parametrize("path", ["/sitemap-posts-7.xml", "/sitemap-people-99.xml", f"/sitemap-posts-{10**30}.xml"])
def test_no_such_part(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_no_cache_tells_of_a_site_that_is_for_members_since(client: Client, sender: User) -> None:
    say(sender, "words")
    for path in ("/sitemap.xml", "/sitemap-people-0.xml", "/manifest.webmanifest"):
        answer = client.get(path)
        assert (answer.status_code, answer["Cache-Control"]) == (200, "private, max-age=60")
    site.site_copy.set(site.Site(looking=PublicAccess.MEMBERS))
    assert client.get("/sitemap.xml")["Location"] == "/login?next=%2Fsitemap.xml"


def test_the_manifest_names_the_site(client: Client) -> None:
    answer = client.get("/manifest.webmanifest")
    assert answer["Content-Type"] == "application/manifest+json"
    assert json.loads(answer.content)["start_url"] == "/"


# --- Atom ------------------------------------------------------------------------------------------------
def test_a_feed_holds_public_posts_and_their_pictures(client: Client, sender: User, media_folder: Path) -> None:
    say(sender, "line one\nline two & <b>bold</b> \x0b\ufffe")
    posted(sender, sent(sender), text="with a picture")
    say(sender, "circle words", visibility=Visibility.FOLLOWERS)
    answer = client.get("/@sender/feed.atom")
    assert answer["Content-Type"] == "application/atom+xml; charset=utf-8"
    feed = xml(answer)
    pictured, plain = feed.findall(f"{ATOM}entry")
    assert "line one<br>line two &amp; &lt;b&gt;bold" in (plain.findtext(f"{ATOM}summary") or "")
    (enclosure,) = [link for link in pictured.findall(f"{ATOM}link") if link.get("rel") == "enclosure"]
    assert (enclosure.get("href") or "").startswith("http://testserver/media/")
    assert enclosure.get("type") == "image/jpeg"
    assert b"circle words" not in answer.content


def test_a_feed_shows_what_is_quoted_while_all_may_see_it(client: Client, sender: User) -> None:
    said = say(sender, "the <original>")
    say(sender, "my words", quote_of=said)
    link = f'<a href="http://testserver/items/{said.pk}">@sender</a>'
    summary = xml(client.get("/@sender/feed.atom")).findtext(f"{ATOM}entry/{ATOM}summary") or ""
    assert summary == f"<p>my words</p><blockquote><p>{link}: the &lt;original&gt;</p></blockquote>"
    actions.change_visibility(item=said, visibility=Visibility.FOLLOWERS)
    assert b"original" not in client.get("/@sender/feed.atom").content


def test_a_feed_is_the_same_for_members(client: Client, sender: User) -> None:
    say(sender, "circle words", visibility=Visibility.FOLLOWERS)
    client.force_login(sender)
    assert b"circle words" not in client.get("/@sender/feed.atom").content


@pytest.mark.parametrize("name", ["nobody", "a" * 300, "%00", "..%2f"])
def test_no_feed_of_nobody(client: Client, name: str) -> None:
    assert client.get(f"/@{name}/feed.atom").status_code == 404


@pytest.mark.parametrize("veil", [{"sensitive": True}, {"warning": "animals"}])
def test_a_feed_keeps_veiled_pictures_so(
    client: Client, sender: User, media_folder: Path, veil: dict[str, Any]
) -> None:
    posted(sender, sent(sender), text="secret words", **veil)
    answer = client.get("/@sender/feed.atom").content
    assert b"/media/" not in answer
    assert (b"secret" in answer) == ("warning" not in veil)


@pytest.mark.parametrize(("mode", "invites"), [("open", True), ("invite", True), ("approval", True), ("closed", False)])
def test_only_a_site_that_takes_members_invites_to_sign_up(client: Client, mode: str, invites: bool) -> None:
    site.site_copy.set(site.Site(chosen_sign_up=mode))
    for path in ("/", "/login", "/search"):
        assert ('href="/signup' in client.get(path).content.decode()) == invites
