"""Pages for strangers are cached for seconds and checked at each answer. They never hold private bytes."""

import gzip
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from accounts import actions as accounts
from accounts.about import site
from accounts.about.models import PublicAccess
from accounts.deactivation import deactivate
from accounts.models import User
from items import actions
from items.attachments import hiding
from items.models import Item, Visibility
from items.pages import open_pages
from media.actions import describe
from media.models import MediaFile
from relations.actions import block
from storage import connections
from tests.support.effort import some
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.picture_posts import posted, sent
from tests.support.servers import Valkey, dead, frozen, full

pytestmark = pytest.mark.django_db


@pytest.fixture
def sender() -> Any:
    return UserFactory.create(username="sender", display_name="Sender")


@pytest.fixture
def post(sender: User) -> Item:
    return actions.publish(sender=sender, content={"text": "zebra"})


def warm(path: str, **headers: str) -> Any:
    """Returns the third answer. The second is cached."""
    for _ in range(2):
        Client(headers=headers).get(path)
    return Client(headers=headers).get(path)


def near(path: str, **headers: str) -> Any:
    """Returns the fourth answer: the process has a copy of the page."""
    warm(path, **headers)
    return Client(headers=headers).get(path)


def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry a rendered page."""
    made: list[str] = []
    keep = open_pages._etag
    monkeypatch.setattr(open_pages, "_etag", lambda body, nonce: made.append("page") or keep(body, nonce))
    return made


@pytest.mark.parametrize(
    "path", ["/", "/@sender", "/@sender/replies", "/items/{post}", "/tags/ztag", "/@sender/feed.atom"]
)
def test_a_page_that_is_asked_for_again_is_not_made_again(
    post: Item, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    actions.publish(sender=post.sender, content={"text": "under a #ztag"})
    path = path.format(post=post.pk)
    first = Client().get(path)
    warm(path)
    made = rendered(monkeypatch)
    with connections.count_trips() as asked:
        again = Client().get(path)
    assert not made
    assert asked.statements == 1
    nonce = re.compile(rb'nonce="[^"]*"')
    assert nonce.sub(b"", again.content) == nonce.sub(b"", first.content)
    assert again["Content-Type"] == first["Content-Type"]
    assert again["Cache-Control"] == "public, max-age=0, s-maxage=10"
    assert {"Cookie", "Accept-Language"} <= {each.strip() for each in again["Vary"].split(",")}
    assert not again.cookies


@pytest.mark.parametrize("path", ["/@sender/replies", "/items/{post}"])
def test_whom_a_reply_answers_is_verified_too(post: Item, path: str) -> None:
    gone: User = UserFactory.create(username="leaver")
    theirs = actions.publish(sender=gone, content={"text": "mine"}, reply_to=post)
    actions.publish(sender=post.sender, content={"text": "to you"}, reply_to=theirs)
    path = path.format(post=post.pk)
    assert b"leaver" in warm(path).content
    deactivate(user=gone)
    assert b"leaver" not in Client().get(path).content


def test_what_a_quote_shows_is_verified_too(post: Item) -> None:
    quoter: User = UserFactory.create(username="quoter")
    for undo in (
        lambda quoted, quoting: actions.revoke_quote(quote=quoting),
        lambda quoted, quoting: actions.edit(item=quoted, content={"text": "other"}),
        lambda quoted, quoting: actions.change_visibility(item=quoted, visibility=Visibility.FOLLOWERS),
        lambda quoted, quoting: actions.hold(item=quoted, reasons=["test"]),
        lambda quoted, quoting: block(blocker=quoted.sender, blocked=quoter),
    ):
        quoted = actions.publish(sender=post.sender, content={"text": "walrus"})
        quoting = actions.publish(sender=quoter, content={"text": "look"}, quote_of=quoted)
        path = f"/items/{quoting.pk}"
        assert b"walrus" in warm(path).content
        undo(quoted, quoting)
        assert b"walrus" not in Client().get(path).content


def test_a_kept_feed_still_keeps_search_engines_out(post: Item) -> None:
    accounts.edit_preferences(user=post.sender, is_indexable=False)
    assert warm("/@sender/feed.atom")["X-Robots-Tag"] == "noindex"


def test_a_theme_that_is_none_is_no_page_of_its_own(post: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    warm("/@sender")
    made = rendered(monkeypatch)
    for theme in ("x" * 3_000, "y"):
        client = Client()
        client.cookies["theme"] = theme
        client.get("/@sender")
    assert not made


@pytest.mark.parametrize("accepted", ["gzip;q=0", "identity, gzip; q=0.0", "x-gzipped"])
def test_a_browser_that_declines_gzip_gets_none(post: Item, accepted: str) -> None:
    assert "Content-Encoding" not in warm("/@sender", **{"accept-encoding": accepted})


def test_the_scripts_of_a_kept_page_carry_the_nonce_of_its_policy(post: Item) -> None:
    answer = warm(f"/items/{post.pk}")
    (nonce,) = set(re.findall(r'nonce="([^"]+)"', answer.content.decode()))
    assert f"'nonce-{nonce}'" in answer["Content-Security-Policy"]


def test_a_kept_page_is_sent_compressed(post: Item) -> None:
    answer = warm(f"/items/{post.pk}", accept_encoding="br, gzip")
    assert answer["Content-Encoding"] == "gzip"
    assert b"zebra" in gzip.decompress(answer.content)


@pytest.mark.slow
def test_a_browser_that_has_the_page_is_told_so(post: Item) -> None:
    answer = warm(f"/items/{post.pk}")
    client = Client(headers={"If-None-Match": answer["ETag"]})
    same = client.get(f"/items/{post.pk}")
    assert (same.status_code, same.content) == (304, b"")
    assert "Content-Security-Policy" not in same, "the policy of the page that the browser has names its nonce"
    cache.clear()
    open_pages.near.clear()
    assert client.get(f"/items/{post.pk}").status_code == 304, "made anew, it has another nonce and says the same"
    actions.edit(item=post, content={"text": "okapi"})
    assert client.get(f"/items/{post.pk}").status_code == 200


CHANGES: dict[str, Any] = {
    "deleted": lambda post: actions.delete(item=post),
    "held": lambda post: actions.hold(item=post, reasons=["words"]),
    "rejected": lambda post: actions.reject(item=post),
    "narrowed": lambda post: Item.objects.filter(pk=post.pk).update(visibility=Visibility.FOLLOWERS),
    "edited": lambda post: actions.edit(item=post, content={"text": "okapi"}),
    "account deleted": lambda post: accounts.delete_account(user=post.sender),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "path", some(3, ["/", "/items/{post}", "/@sharer", "/@sender", "/items/{repost}", "/items/{other}"])
)
def test_a_change_shows_at_once(post: Item, path: str, change: str) -> None:
    """Also through a repost, and as a reply below another's post."""
    sharer = UserFactory.create(username="sharer")
    other = actions.publish(sender=sharer, content={"text": "a thread"})
    reply = actions.publish(sender=post.sender, content={"text": "zebra"}, reply_to=other)
    repost, _ = actions.repost(sender=sharer, item=post)
    path = path.format(post=post.pk, repost=repost.pk, other=other.pk)
    assert b"zebra" in warm(path).content
    for item in (post, reply) if change != "account deleted" else (post,):
        CHANGES[change](item)
    assert b"zebra" not in Client().get(path).content


PICTURED: dict[str, Any] = {
    "hidden": lambda item, medium: hiding.hide_media(item=item),
    "described anew": lambda item, medium: describe(medium=medium, description="okapi", focus=(0.0, 0.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", PICTURED)
@pytest.mark.parametrize("path", ["/@sender", "/items/{post}", "/@sender/media", "/@sender/feed.atom"])
def test_what_becomes_of_a_picture_shows_at_once(sender: User, media_folder: Path, path: str, change: str) -> None:
    """Also a new description, though the post is not edited."""
    medium = MediaFile.objects.get(pk=sent(sender, description="zebra"))
    item = posted(sender, str(medium.pk), text="words")
    path = path.format(post=item.pk)
    before = warm(path).content
    assert f"/media/{medium.name}".encode() in before
    assert path.endswith("atom") or b"zebra" in before
    medium.refresh_from_db()
    PICTURED[change](item, medium)
    after = Client().get(path).content
    assert b"zebra" not in after
    assert change != "hidden" or f"/media/{medium.name}".encode() not in after


@pytest.mark.slow
def test_new_replies_come_within_seconds(post: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_pages, "KEPT", timedelta(seconds=1))
    path = f"/items/{post.pk}"
    warm(path)
    actions.publish(sender=post.sender, content={"text": "okapi"}, reply_to=post)
    assert b"okapi" not in Client().get(path).content
    connections.cache_breaker.reset()
    cache.clear()
    assert b"okapi" not in Client().get(path).content, "from this process's copy"
    open_pages.near.clear()
    assert b"okapi" in Client().get(path).content


@pytest.mark.slow
def test_a_user_who_has_left_is_gone_at_once_without_posts_too(sender: User) -> None:
    assert b"Sender" in warm("/@sender").content
    accounts.delete_account(user=sender)
    assert Client().get("/@sender").status_code == 404


def test_a_page_that_is_too_large_is_made_each_time(post: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_pages, "LARGEST_BYTES", 100)
    warm(f"/items/{post.pk}")
    (key,) = cache.iter_keys("*")
    assert cache.get(key) == open_pages.ASKED


@pytest.mark.slow
@pytest.mark.parametrize("visibility", Visibility)
def test_no_member_is_shown_a_shared_page_and_no_stranger_a_members(sender: User, visibility: Visibility) -> None:
    friend = UserFactory.create(username="friend")
    post = actions.publish(sender=sender, content={"text": f"zebra @{friend.username}"}, visibility=visibility)
    member = logged_in(sender)
    path = f"/items/{post.pk}"
    for _ in range(3):
        own, others = member.get(path), Client().get(path)
        assert own.status_code == 200
        assert {"private", "no-cache"} == set(own["Cache-Control"].split(", "))
        assert "ETag" not in own
        assert b"Sender" in own.content
        assert (b"zebra" in others.content) == (visibility == Visibility.PUBLIC)
        assert others.status_code == (200 if visibility == Visibility.PUBLIC else 404)
        assert "csrf" not in others.content.decode().lower()
        assert b"data-reader" not in others.content
        if visibility != Visibility.PUBLIC:
            assert "public" not in others.get("Cache-Control", "")


@pytest.mark.slow
@pytest.mark.parametrize("cookie", ["sessionid", "messages"])
def test_a_session_that_has_ended_and_a_message_are_for_their_own_browser(post: Item, cookie: str) -> None:
    warm(f"/items/{post.pk}")
    client = Client()
    client.cookies[cookie] = "x" * 32
    answer = client.get(f"/items/{post.pk}")
    assert "private" in answer["Cache-Control"]
    assert "ETag" not in answer
    assert "private" in client.get("/@sender/feed.atom")["Cache-Control"]


@pytest.mark.parametrize("path", ["/sitemap.xml", "/manifest.webmanifest"])
def test_no_shared_cache_keeps_an_answer_with_a_cookie(path: str) -> None:
    """An ended session gets a cookie with any answer."""
    assert not Client().get(path).cookies
    client = Client()
    client.cookies["sessionid"] = "x" * 32
    answer = client.get(path)
    assert answer.cookies
    assert answer["Cache-Control"].startswith("private")


@pytest.mark.parametrize("query", ["?x=1", "?last_id=", "?text=whole"])
def test_odd_queries_fill_nothing(post: Item, query: str) -> None:
    for _ in range(3):
        assert "private" in Client().get(f"/items/{post.pk}{query}")["Cache-Control"]
    assert not list(cache.iter_keys("*"))


@pytest.mark.slow
def test_languages_themes_and_hosts_have_pages_of_their_own(post: Item) -> None:
    path = f"/items/{post.pk}"
    warm(path)
    assert 'lang="zh' in warm(path, accept_language="zh-CN").content.decode()
    dark = Client()
    dark.cookies["theme"] = "dark"
    assert b'data-theme="dark"' in dark.get(path).content
    assert b'data-theme="dark"' not in warm(path).content
    assert b"http://localhost/items" in Client().get(path, headers={"host": "localhost"}).content


@pytest.mark.slow
def test_an_announcement_and_its_dismissal_have_pages_of_their_own(post: Item) -> None:
    path = f"/items/{post.pk}"
    warm(path)
    site.site_copy.set(site.Site(announcement="the site moves"))
    client = Client()
    assert b"the site moves" in warm(path).content
    assert not warm(path).cookies
    client.post("/announcement/dismiss", {"next": path})
    assert b"the site moves" not in client.get(path).content
    assert b"the site moves" in Client().get(path).content


def test_once_is_not_worth_keeping(post: Item) -> None:
    Client().get(f"/items/{post.pk}")
    (key,) = cache.iter_keys("*")
    assert cache.get(key) == open_pages.ASKED


@pytest.mark.slow
def test_values_of_another_program_are_not_shown(post: Item, sender: User) -> None:
    other = actions.publish(sender=sender, content={"text": "okapi"})
    warm(f"/items/{post.pk}")
    (key,) = cache.iter_keys("*")
    kept = cache.get(key)
    warm(f"/items/{other.pk}")
    (moved,) = set(cache.iter_keys("*")) - {key}
    for value in (kept, kept.replace("a", "b"), {"body": "x"}, 7, "", "asked", None):
        cache.set(moved, value, 15)
        open_pages.near.clear()
        assert b"okapi" in Client().get(f"/items/{other.pk}").content


@pytest.mark.slow
@pytest.mark.parametrize("fault", [frozen, dead, full])
def test_without_the_cache_server_pages_are_made(post: Item, feeds_server: Valkey, fault: Any) -> None:
    path = f"/items/{post.pk}"
    warm(path)
    with fault(feeds_server):
        for _ in range(3):
            assert b"zebra" in Client().get(path).content


PAGE_HEADERS = {"Content-Security-Policy", "X-Request-ID"}
"""They differ with each answer."""


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_copy_is_answered_as_the_page_was(post: Item, language: str) -> None:
    path, headers = f"/items/{post.pk}", {"Accept-Encoding": "gzip", "Accept-Language": language}
    kept = warm(path, **headers)
    with connections.count_trips() as asked:
        again = near(path, **headers)
    assert (asked.statements, asked.round_trips) == (4 * 1, 4 * 1), "a statement and a count, and no look into Redis"
    assert again.content == kept.content

    def told(response: Any) -> dict[str, Any]:
        vary = {each.strip() for each in response["Vary"].split(",")}
        return {name: value for name, value in response.items() if name not in PAGE_HEADERS} | {"Vary": vary}

    assert told(again) == told(kept)
    assert again["Content-Language"] == language
    assert again["Content-Length"] == str(len(again.content))


def test_a_copy_is_for_strangers_alone(post: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/items/{post.pk}"
    assert b"zebra" in near(path).content
    made = rendered(monkeypatch)
    assert b'data-reader="' in logged_in(post.sender).get(path).content
    site.site_copy.set(site.Site(looking=PublicAccess.MEMBERS))
    assert Client().get(path).status_code == 302
    site.site_copy.set(site.Site())
    assert Client(headers={"Host": "bad host"}).get(path).status_code == 400
    assert Client(headers={"X-Reader": "5"}).get(path).status_code != 500
    assert not made


def test_a_copy_is_counted(post: Item, settings: Any) -> None:
    path = f"/items/{post.pk}"
    near(path)
    settings.RATES = settings.RATES | {"read": "5/hour"}
    assert [Client().get(path).status_code for _ in range(3)][-1] == 429


def test_a_copy_grows_old(post: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/items/{post.pk}"
    near(path)
    actions.publish(sender=post.sender, content={"text": "okapi"}, reply_to=post)
    assert b"okapi" not in Client().get(path).content
    later = time.time() + open_pages.KEPT.total_seconds()
    monkeypatch.setattr("items.pages.open_pages.time.time", lambda: later + 1)
    assert b"okapi" in Client().get(path).content
