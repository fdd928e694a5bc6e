r"""Every statement over 40 lines is stored whole in tests/statements/, as PostgreSQL gets it.

`TEST_GOLDEN=write pytest tests/architecture/test_statements.py` rewrites the files. To see a plan, type `EXPLAIN
(GENERIC_PLAN)` in psql, then `\i tests/statements/home-1.sql` and `;`. No parameter needs a value.
"""

import os
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.actions import issue_token
from clientapi.streaming import streaming
from clientapi.streaming.streams import Hearer, Stream
from community.archives import listed
from items import actions as items
from items.conversations.conversations import conversation_of, listed_among
from items.hydrate import hydrate
from items.search import search
from live import actions as live
from notifications import actions as notices
from notifications.push import sending
from relations import actions as relations
from relations import lists
from relations.tags import follow_tag
from storage.events import Listener, Position, Published
from stream import news
from tests.support.clients import Caller
from tests.support.factories import UserFactory, say
from tests.support.statements import FOLDER, long_ones, statements
from timeline import oracle, pull
from timeline.fold import folds_and_originals
from timeline.home import home_page
from timeline.hydrate import verify_bodies, verify_ids
from timeline.senders import Scope


class Site:
    def __init__(self) -> None:
        self.reader = UserFactory(pk=1_000_000, username="reader")  # the id appears in the ORM's statements
        self.sender, self.other = UserFactory(username="sender"), UserFactory(username="other")
        for follower, followee in ((self.reader, self.sender), (self.other, self.reader), (self.sender, self.reader)):
            relations.follow(follower=follower, followee=followee)
        self.post = say(self.sender, "some words #busy #rare @reader")
        self.reply = say(self.other, "an answer", reply_to=self.post)
        self.own = say(self.reader, "of one's own #busy", reply_to=self.post)
        self.newest = say(self.sender, "more words #busy")
        say(self.other, "yet more #busy")
        items.like(user=self.other, item=self.own)
        items.like(user=self.reader, item=self.post)
        items.bookmark(user=self.reader, item=self.post)
        self.tagger = UserFactory(username="tagger", level=3)
        follow_tag(user=self.tagger, tag="busy")
        self.tagger.refresh_from_db()
        self.quote = say(self.other, "about it", quote_of=self.post)
        self.talk = say(self.sender, "@reader", visibility="mentioned")
        self.list = lists.create(owner=self.reader, title="Close")
        lists.add(owner=self.reader, list_id=self.list.pk, member=self.sender)
        now = timezone.now()
        live.create(host=self.sender, title="soon", starts_at=now + timedelta(hours=1), now=now)
        self.page, self.app = Client(), Caller(self.reader)
        self.page.force_login(self.reader)
        self.token = {"Authorization": f"Token {issue_token(user=self.reader)}"}


Call = Callable[[Site], object]


def page(path: str, *, is_stranger: bool = False) -> Call:
    def get(site: Site) -> None:
        client = Client() if is_stranger else site.page
        response = client.get(path.format(site=site))
        assert response.status_code == 200, response.status_code
        if response.streaming:
            list(response)

    return get


def api(path: str) -> Call:
    return lambda site: Client().get(f"/api/v1/{path}".format(site=site), headers=site.token)


def app(path: str) -> Call:
    return lambda site: site.app.get(path.format(site=site))


def _streamed(site: Site) -> None:
    reader, post, reply = site.reader.pk, site.post.pk, site.reply.pk
    published = (site.newest.pk, reply, site.quote.pk)
    events = [(Position(1, number), Published(item)) for number, item in enumerate(published)]
    news.news_for([Listener(reader=reader, item=item, session=None) for item in (None, post)], events)
    public = Stream(("public",), is_public=True)
    streaming.news_for([Hearer(reader, (public,), is_socket=False)], events)
    (body,) = hydrate([reply], site.reader)
    streaming._answered([(reply, reader)], {reply: body})


def _exported(site: Site) -> None:
    list(Client().get("/api/v1/users/me/export", headers=site.token))


def _reported(site: Site) -> None:
    path, report = f"/api/v1/items/{site.newest.pk}/report", {"reason": "spam"}
    Client().post(path, report, "application/json", headers=site.token)


def _reported_by_app(site: Site) -> None:
    site.app.post("v1/reports", {"account_id": str(site.sender.pk), "status_ids": [str(site.post.pk)]})


WALKS: dict[str, Callable[..., object]] = {
    "window": lambda scope, post: pull.pull_bodies(scope, below=post, count=9, bodies=9, for_window=True),
    "bodies": lambda scope, post: pull.pull_bodies(scope, below=post, count=9, bodies=9),
    "below": lambda scope, post: pull.pull_below(scope, below=post, count=9),
    "above": lambda scope, post: pull.pull_above(scope, since=1, count=9, enough=3),
    "around": lambda scope, post: pull.around(scope, last_id=post, above=9, below=9),
    "verified": lambda scope, post: verify_bodies(scope, [post]),
    "verified-last": lambda scope, post: verify_bodies(scope, [post], below=post),
    "verified-ids": lambda scope, post: verify_ids(scope, [post]),
    "folded": lambda scope, post: folds_and_originals(scope, last_id=post, count=9, reposts=[post]),
}
"""What a home or list page may ask for besides windows."""


def home(walk: Callable[..., object]) -> Call:
    return lambda site: walk(Scope(site.reader.pk), site.newest.pk)


def tagged(walk: Callable[..., object]) -> Call:
    return lambda site: walk(Scope(site.tagger.pk, has_tags=True), site.newest.pk)


def in_list(walk: Callable[..., object]) -> Call:
    return lambda site: walk(Scope(site.reader.pk, site.list.pk), site.newest.pk)


CALLS: dict[str, Call] = {
    **{f"home-{name}": home(walk) for name, walk in WALKS.items()},
    **{f"list-{name}": in_list(walk) for name, walk in WALKS.items() if name != "folded"},
    "home": page("/"),
    **{f"tagged-home-{name}": tagged(walk) for name, walk in WALKS.items()},
    "tagged-home": lambda site: [home_page(site.tagger, limit=limit) for limit in (20, 1)],
    "inbox": lambda site: pull.pull_entries(site.reader.pk, 100),
    "oracle": lambda site: oracle.entry_ids(site.reader.pk),
    "stream": _streamed,
    "publish": lambda site: say(site.reader, "@sender", reply_to=site.newest),
    "message": lambda site: say(site.reader, "@sender", reply_to=site.talk),
    "item": page("/items/{site.post.pk}"),
    "replies": api("items/{site.post.pk}/replies"),
    "answers": api("items/{site.reply.pk}/replies"),
    "quote": page("/items/{site.quote.pk}"),
    "quotes": page("/items/{site.post.pk}/quotes"),
    "quotes-upward": app("v1/statuses/{site.post.pk}/quotes?min_id=1"),
    "item-open": page("/items/{site.post.pk}", is_stranger=True),
    "item-open-again": page("/items/{site.post.pk}", is_stranger=True),
    "item-open-kept": page("/items/{site.post.pk}", is_stranger=True),
    "reply": page("/items/{site.reply.pk}"),
    "report": page("/items/{site.post.pk}/report"),
    "report-api": _reported,
    "report-app": _reported_by_app,
    "moved": lambda site: listed._posts(site.reader, [f"{settings.SITE_URL}/items/{site.post.pk}"]),
    "profile": page("/@sender"),
    "profile-replies": page("/@other/replies"),
    "profile-media": page("/@sender/media"),
    "account": app("v1/accounts/{site.sender.pk}"),
    "account-statuses": app("v1/accounts/{site.sender.pk}/statuses"),
    "account-statuses-upward": app("v1/accounts/{site.sender.pk}/statuses?min_id=1"),
    "account-media-upward": app("v1/accounts/{site.sender.pk}/statuses?only_media=1&min_id=1"),
    "account-posts-upward": app("v1/accounts/{site.sender.pk}/statuses?exclude_replies=1&min_id=1"),
    "account-tagged": app("v1/accounts/{site.sender.pk}/statuses?tagged=busy"),
    "account-tagged-upward": app("v1/accounts/{site.sender.pk}/statuses?tagged=busy&min_id=1"),
    "public": app("v1/timelines/public"),
    "public-upward": app("v1/timelines/public?min_id=1"),
    "tag-upward": app("v1/timelines/tag/busy?min_id=1"),
    "tags": app("v1/timelines/tag/busy?any[]=rare&all[]=busy&none[]=other"),
    "tags-upward": app("v1/timelines/tag/busy?any[]=rare&none[]=other&min_id=1"),
    "trending": app("v1/trends/tags"),
    "search-word": page("/search?q=words"),
    "search-words": page("/search?q=some+words"),
    "search-nothing": page("/search?q=nonesuch"),
    "search-phrase": page("/search?q=%22some+words%22"),
    "search-tag": page("/search?q=%23busy"),
    "search-tags": page("/search?q=words+%23busy+%23rare"),
    "search-sender": page("/search?q=from:sender+words"),
    "bookmarks": page("/bookmarks"),
    "bookmarks-upward": app("v1/bookmarks?min_id=1"),
    "likes": page("/likes"),
    "likes-upward": app("v1/favourites?min_id=1"),
    "notifications": page("/notifications"),
    "notifications-mentions": page("/notifications/mentions"),
    "notifications-app": app("v1/notifications"),
    "notifications-app-upward": app("v1/notifications?min_id=1"),
    "notifications-app-mentions": app("v1/notifications?types[]=mention"),
    "notifications-app-mentions-upward": app("v1/notifications?types[]=mention&min_id=1"),
    "notifications-pushed": lambda site: sending.push([1]),
    "conversations": page("/conversations"),
    "conversations-upward": app("v1/conversations?min_id=1"),
    "conversation": lambda site: conversation_of(site.reader, site.talk.pk),
    "conversations-streamed": lambda site: listed_among(site.reader, [site.talk.pk]),
    "discover": page("/discover"),
    "history": page("/history"),
    "not-interested": page("/history/not-interested"),
    "live": page("/live"),
    "export": _exported,
    "poll-ended": lambda site: notices.tell_of_poll(item=site.newest, user_ids=[site.reader.pk]),
}
"""File name and the call that sends its statement. Several new statements of one call get numbers. An earlier call's
statement is in its file.
"""


def sent(site: Site) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, call in CALLS.items():
        with statements() as seen:
            call(site)
        new = [text for text in long_ones(seen) if text not in found.values()]
        for number, text in enumerate(new, 1):
            found[f"{name}-{number}" if len(new) > 1 else name] = text
    return found


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_long_statements_stand_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "WALK", 1)  # a search of three posts then needs a second stretch
    found = sent(Site())
    if os.environ.get("TEST_GOLDEN") == "write":
        for path in FOLDER.glob("*.sql"):
            path.unlink()
        for name, text in found.items():
            (FOLDER / f"{name}.sql").write_text(text)
    kept = {path.stem: path.read_text() for path in FOLDER.glob("*.sql")}
    changed = sorted(name for name in found | kept if found.get(name) != kept.get(name))
    assert changed == [], "write the files anew (see the docstring of this module) and read what git diff says"
    connection.ensure_connection()
    for text in found.values():
        connection.connection.execute(f"EXPLAIN (GENERIC_PLAN) {text}".encode())
