"""The access matrix: one table of relations, one of routes. A route missing here fails."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from discover import feedback, recent
from items import actions as items
from items.models import LISTED, Bookmark, Item, Like, Pin, Status, Visibility
from media.objects import MediumFacts
from relations import actions as relations
from relations import lists
from relations.tags import follow_tag
from tests.support.addresses import api_routes, page_names
from tests.support.answers import lasting
from tests.support.effort import EVERYTHING, some
from tests.support.factories import ItemFactory, UserFactory
from web.openapi import document

pytestmark = pytest.mark.django_db

SEEN = {
    "anonymous": {Visibility.PUBLIC},
    "stranger": {Visibility.PUBLIC},
    "followed": {Visibility.PUBLIC},  # the sender does not follow back
    "asking": {Visibility.PUBLIC},  # the sender has a locked account and follows the reader
    "follower": {Visibility.PUBLIC, Visibility.FOLLOWERS},
    "mutual": {Visibility.PUBLIC, Visibility.FOLLOWERS, Visibility.MUTUALS},
    "muting": {Visibility.PUBLIC, Visibility.FOLLOWERS, Visibility.MUTUALS},
    "listing": {Visibility.PUBLIC, Visibility.FOLLOWERS, Visibility.MUTUALS},
    "blocked": set(),
    "blocking": set(),
    "sender": set(LISTED),
}
"""Which visibilities of a published item each relation sees. The users who block, are blocked, mute, or have the sender
in an exclusive list (listing) are also mutuals. test_private.py covers private mentions.
"""
NEAR_AND_FAR = ("anonymous", "mutual", "blocked", "blocking", "sender")
"""Asked in every run. `--all` asks every reader."""
FOLLOWS = {"follower", "mutual", "muting", "listing", "blocked", "blocking"}

KINDS = ("post", "reply", "repost", "answered", "shared", "quoted")
"""Items with the words: the sender's post. Their reply in a public thread. Another user's repost of a second post.
Another user's public reply to their post, and a repost of it. Another user's quote of a third post.
"""


@dataclass
class World:
    sender: User
    author: User
    """Followed by every reader. Blocks and mutes nobody."""
    readers: dict[str, User] = field(default_factory=dict)
    lists: dict[str, int] = field(default_factory=dict)
    """The reader's list of all followees, by relation: `{list}` in a path."""
    thread: Item = None  # type: ignore[assignment]
    post: Item = None  # type: ignore[assignment]
    reply: Item = None  # type: ignore[assignment]
    repost: Item = None  # type: ignore[assignment]
    answered: Item = None  # type: ignore[assignment]
    shared: Item = None  # type: ignore[assignment]
    quoted: Item = None  # type: ignore[assignment]
    quote: Item = None  # type: ignore[assignment]

    def words(self, kind: str) -> str:
        words = {"post": "zebra", "repost": "okapi", "reply": "giraffe", "answered": "walrus", "shared": "walrus"}
        return (words | {"quoted": "lemur"})[kind]


@pytest.fixture
def world() -> World:
    world = World(UserFactory(username="sender"), UserFactory(username="author"))
    for relation in SEEN:
        if relation == "anonymous":
            continue
        reader = world.sender if relation == "sender" else UserFactory(username=relation)
        world.readers[relation] = reader
        relations.follow(follower=reader, followee=world.author)
        if relation in FOLLOWS:
            relations.follow(follower=reader, followee=world.sender)
        if relation in FOLLOWS - {"follower"} | {"followed"}:
            relations.follow(follower=world.sender, followee=reader)
        world.lists[relation] = listed(reader, world.author, *[world.sender] * (relation in FOLLOWS))
    listed(world.readers["listing"], world.sender, is_exclusive=True)
    world.sender.is_locked = True
    world.sender.save(update_fields=["is_locked"])
    relations.follow(follower=world.sender, followee=world.readers["asking"])
    relations.follow(follower=world.readers["asking"], followee=world.sender)
    relations.mute(muter=world.readers["muting"], muted=world.sender)
    relations.block(blocker=world.readers["blocking"], blocked=world.sender)
    relations.block(blocker=world.sender, blocked=world.readers["blocked"])
    return world


def listed(owner: User, *members: User, is_exclusive: bool = False) -> int:
    made = lists.create(owner=owner, title="a list", is_exclusive=is_exclusive)
    for member in members:
        lists.add(owner=owner, list_id=made.pk, member=member)
    return made.pk


def fill(world: World, visibility: Visibility, status: Status = Status.PUBLISHED) -> None:
    """Mention every reader and use a hashtag."""
    names = " ".join(f"@{relation}" for relation in SEEN)
    world.thread = items.publish(sender=world.author, content={"text": "a thread"})
    world.post = items.publish(sender=world.sender, content={"text": f"zebra #ztag {names}"}, visibility=visibility)
    other = items.publish(sender=world.sender, content={"text": "okapi #ztag"}, visibility=visibility)
    world.repost, _ = items.repost(sender=world.author, item=other)
    world.answered = items.publish(sender=world.author, content={"text": "walrus #ztag"}, reply_to=world.post)
    world.shared, _ = items.repost(sender=world.author, item=world.answered)
    world.reply = items.publish(
        sender=world.sender, content={"text": "giraffe #ztag"}, reply_to=world.thread, visibility=visibility
    )
    world.quoted = items.publish(sender=world.sender, content={"text": "lemur"})
    world.quote = items.publish(sender=world.author, content={"text": "look"}, quote_of=world.quoted)
    items.change_visibility(item=world.quoted, visibility=visibility)
    verbs: dict[str, Callable[..., Any]] = {"rejected": items.reject, "deleted": items.delete}
    for item in (world.post, world.reply, other, world.quoted):
        if status == Status.IN_REVIEW:
            items.hold(item=item, reasons=["words"])
        elif status in verbs:
            verbs[status](item=item)


# --- Routes ----------------------------------------------------------------------------------------------
Path = Callable[[World], str]


@dataclass
class Shows:
    """A route, its kinds, and which readers see less than the table says."""

    path: Path
    kinds: tuple[str, ...]
    narrowed: Callable[[str, str], bool] = lambda relation, kind: True
    """Whether this reader would see this kind if it were public."""
    by_id: bool = False
    """A hidden item answers like a missing one."""
    method: str = "get"
    published_only: bool = False
    """The sender sees no held or rejected item here, only a reply to one."""
    shows_held: bool = False
    """The sender also sees their items in review."""
    before: Callable[[World], None] = lambda world: None
    """Makes something for the route to show."""
    public_only: bool = False
    body: dict[str, Any] | None = None


def add_pictures(world: World) -> None:
    facts = MediumFacts(id="1", kind="image", name="a", ext="jpg", width=9, height=9)
    Item.objects.filter(pk__in=[world.post.pk, world.reply.pk]).update(media=[msgspec.to_builtins(facts)])


def follows(relation: str, kind: str) -> bool:
    """Followees, except muted ones and members of an exclusive list."""
    if kind == "shared":
        return relation != "anonymous"
    if kind == "quoted":
        return relation not in {"anonymous", "muting"}
    if relation == "listing":
        return kind == "repost"
    return relation not in {"anonymous", "muting"} and (kind == "repost" or relation in FOLLOWS | {"sender"})


def follows_hashtag(relation: str, kind: str) -> bool:
    """Everyone with the hashtag, except muted users and members of an exclusive list."""
    if kind == "post":
        return relation not in {"anonymous", "muting", "listing"}
    return follows(relation, kind)


def is_shown_inside(relation: str, kind: str) -> bool:
    """A quote shows nothing from muted users."""
    return relation != "muting"


def is_front(relation: str, kind: str) -> bool:
    """Strangers see the front page, which shows only posts."""
    return kind != "shared" if relation == "anonymous" else follows(relation, kind)


def lists_them(relation: str, kind: str) -> bool:
    """Home without own items. Exclusive lists do not matter."""
    if kind == "post" and relation in {"listing", "sender"}:
        return relation == "listing"
    return follows(relation, kind)


def is_recommended(relation: str, kind: str) -> bool:
    """Others' items, except from muted users."""
    return relation not in {"anonymous", "muting", "sender"}


def is_sender(relation: str, kind: str) -> bool:
    return relation == "sender"


def is_told(relation: str, kind: str) -> bool:
    """Users mentioned in the post, unless they mute the sender. The answer notifies the sender."""
    return relation == "sender" if kind == "answered" else relation not in {"anonymous", "muting", "sender"}


def is_quoted(relation: str, kind: str) -> bool:
    return relation == "sender" or is_told(relation, kind)


def open_post(world: World) -> None:
    """The readers opened it before it was hidden."""
    for reader in world.readers.values():
        recent.record(reader.pk, items=[world.post.pk], now=timezone.now())


def dismiss_post(world: World) -> None:
    for reader in world.readers.values():
        feedback.not_interested(user=reader, item=world.post)


def pin_post(world: World) -> None:
    """The sender pinned it while it was public."""
    Pin.objects.get_or_create(item=world.post, sender=world.sender)


def is_reader(relation: str, kind: str) -> bool:
    return relation != "anonymous"


KEPT = ("post", "reply", "answered")


def keep_all(world: World, model: Any = Bookmark) -> None:
    """The readers kept them before they were hidden."""
    kept = (world.post, world.reply, world.answered)
    rows = [model(user=reader, item=item) for reader in world.readers.values() for item in kept]
    model.objects.bulk_create(rows, ignore_conflicts=True)


def like_all(world: World) -> None:
    keep_all(world, Like)


def follow_hashtag(world: World) -> None:
    for reader in world.readers.values():
        follow_tag(user=reader, tag="ztag")


API_ROUTES: dict[str, list[Shows]] = {
    # Before the readers repost it below: that notifies its sender and ends its recommendation.
    "discover/feed": [
        Shows(
            lambda world: "/discover/feed",
            ("post",),
            is_recommended,
            method="post",
            public_only=True,
            body={"action": "refresh", "limit": 100},
        )
    ],
    "me/notifications": [Shows(lambda world: "/me/notifications", ("post", "answered"), is_told)],
    "timeline/home": [
        Shows(
            lambda world: "/timeline/home?limit=100",
            ("post", "repost", "shared", "quoted"),
            follows,
            published_only=True,
        ),
        Shows(
            lambda world: "/timeline/home?limit=100",
            ("post", "repost", "shared"),
            follows_hashtag,
            published_only=True,
            before=follow_hashtag,
        ),
    ],
    "me/lists/<id:list_id>/timeline": [
        Shows(
            lambda world: "/me/lists/{list}/timeline?limit=100",
            ("post", "repost", "shared"),
            lists_them,
            published_only=True,
        )
    ],
    "users/<str:username>": [
        Shows(lambda world: "/users/sender", ("post",), public_only=True, published_only=True, before=pin_post)
    ],
    "users/<str:username>/items": [
        Shows(lambda world: "/users/sender/items", ("post",)),
        Shows(lambda world: "/users/author/items", ("repost", "shared")),
        Shows(lambda world: "/users/author/items", ("quoted",), is_shown_inside),
    ],
    "items/<id:item_id>": [
        Shows(lambda world: f"/items/{world.post.pk}", ("post",), by_id=True),
        Shows(lambda world: f"/items/{world.reply.pk}", ("reply",), by_id=True),
        Shows(lambda world: f"/items/{world.repost.pk}", ("repost",), by_id=True),
        Shows(lambda world: f"/items/{world.answered.pk}", ("answered",), by_id=True),
        Shows(lambda world: f"/items/{world.shared.pk}", ("shared",), by_id=True),
        Shows(lambda world: f"/items/{world.quote.pk}", ("quoted",), is_shown_inside),
    ],
    "items/<id:item_id>/quotes": [
        Shows(lambda world: f"/items/{world.quoted.pk}/quotes", ("quoted",), is_shown_inside)
    ],
    "items/<id:item_id>/replies": [
        Shows(lambda world: f"/items/{world.thread.pk}/replies", ("reply",)),
        Shows(lambda world: f"/items/{world.post.pk}/replies", ("answered",), by_id=True),
    ],
    "items/<id:item_id>/repost": [
        Shows(
            lambda world: f"/items/{world.post.pk}/repost",
            ("post",),
            lambda relation, kind: relation != "anonymous",
            method="post",
        ),
    ],
    "search": [
        Shows(lambda world: "/search?q=zebr", ("post",)),
        Shows(lambda world: "/search?q=giraf", ("reply",)),
        Shows(lambda world: "/search?q=walru", ("answered",)),
        Shows(lambda world: "/search?q=%23ztag", ("post", "reply", "answered")),
        Shows(lambda world: "/search?q=from:sender", ("post", "reply")),
    ],
    "me/bookmarks": [Shows(lambda world: "/me/bookmarks", KEPT, is_reader, before=keep_all)],
    "me/likes": [Shows(lambda world: "/me/likes", KEPT, is_reader, before=like_all)],
    "me/history": [Shows(lambda world: "/me/history", ("post",), is_reader, before=open_post)],
    "tags/<str:tag>/items": [Shows(lambda world: "/tags/ztag/items", ("post", "reply", "answered"))],
}
"""API routes that show others' items."""
API_WITHOUT = {
    "items/<id:item_id>/vote": "a visible poll, or 404 (items/test_polls.py)",
    "me/conversations": "private mentions (test_private.py)",
    "me/conversations/requests": "the same",
    "seen/filter": "ids that the caller names",
    "timeline/home/new": "a number; compared with the oracle by the state machine",
    "me/lists/<id:list_id>/timeline/new": "a number; compared with the oracle by the state machine",
    "users/me/export": "own items, and ids of liked ones as far as they are seen (accounts/test_settings.py)",
    "stream": "ids; asked of the stream server (stream/test_hub.py)",
    "items": "what the caller publishes",
}
"""API routes whose answers could show one, or tell of one, and why they show none that is hidden."""
PAGES: dict[str, list[Shows]] = {
    "home": [Shows(lambda world: "/", ("post", "repost", "shared"), is_front, published_only=True, shows_held=True)],
    # A repost's original shows as itself.
    "discover": [
        Shows(lambda world: "/discover", ("post", "repost"), is_recommended, published_only=True, public_only=True)
    ],
    "list": [
        Shows(lambda world: "/lists/{list}", ("post", "repost", "shared"), lists_them, published_only=True),
    ],
    "profile": [
        Shows(lambda world: "/@sender", ("post",), before=pin_post),
        Shows(lambda world: "/@author", ("repost", "shared")),
    ],
    "profile_replies": [
        Shows(lambda world: "/@sender/replies", ("reply",)),
        Shows(lambda world: "/@author/replies", ("answered",)),
    ],
    "profile_media": [Shows(lambda world: "/@sender/media", ("post", "reply"), before=add_pictures)],
    "publish": [
        Shows(
            lambda world: f"/items/new?reply_to={world.post.pk}",
            ("post",),
            lambda relation, kind: relation != "anonymous",
        )
    ],
    "item": [
        Shows(lambda world: f"/items/{world.post.pk}", ("post", "answered"), by_id=True),
        Shows(lambda world: f"/items/{world.reply.pk}", ("reply",), by_id=True),
        Shows(lambda world: f"/items/{world.repost.pk}", ("repost",), by_id=True),
        Shows(lambda world: f"/items/{world.thread.pk}", ("reply",)),
        Shows(lambda world: f"/items/{world.answered.pk}", ("answered",), by_id=True),
        Shows(lambda world: f"/items/{world.shared.pk}", ("shared",), by_id=True),
        Shows(lambda world: f"/items/{world.quote.pk}", ("quoted",), is_shown_inside),
    ],
    "notifications": [Shows(lambda world: "/notifications", ("post", "answered"), is_quoted)],
    "mentions": [Shows(lambda world: "/notifications/mentions", ("post", "answered"), is_quoted)],
    "edit": [Shows(lambda world: f"/items/{world.post.pk}/edit", ("post",), is_sender)],
    "delete": [Shows(lambda world: f"/items/{world.post.pk}/delete", ("post",), is_sender)],
    "quotes": [Shows(lambda world: f"/items/{world.post.pk}/quotes", ("post",), by_id=True)],
    "edits": [
        Shows(lambda world: f"/items/{world.post.pk}/edits", ("post",), by_id=True),
        Shows(lambda world: f"/items/{world.reply.pk}/edits", ("reply",), by_id=True),
        Shows(lambda world: f"/items/{world.repost.pk}/edits", ("repost",), by_id=True),
    ],
    "likers": [
        Shows(lambda world: f"/items/{world.post.pk}/likes", ("post",), by_id=True),
        Shows(lambda world: f"/items/{world.repost.pk}/likes", ("repost",), by_id=True),
    ],
    "reposters": [
        Shows(lambda world: f"/items/{world.reply.pk}/reposts", ("reply",), by_id=True),
        Shows(lambda world: f"/items/{world.answered.pk}/reposts", ("answered",), by_id=True),
    ],
    "menu": [
        Shows(
            lambda world: f"/items/{world.post.pk}/menu",
            ("post",),
            lambda relation, kind: relation != "anonymous",
        )
    ],
    "report": [
        Shows(
            lambda world: f"/items/{world.post.pk}/report",
            ("post",),
            lambda relation, kind: relation != "anonymous",
        )
    ],
    "search": [
        Shows(lambda world: "/search?q=zebr", ("post",)),
        Shows(lambda world: "/search?q=giraf", ("reply",)),
        Shows(lambda world: "/search?q=walru", ("answered",)),
        Shows(lambda world: "/search?q=%23ztag", ("post", "reply", "answered")),
        Shows(lambda world: "/search?q=from:sender", ("post", "reply")),
    ],
    "bookmarks": [Shows(lambda world: "/bookmarks", KEPT, is_reader, before=keep_all)],
    "likes": [Shows(lambda world: "/likes", KEPT, is_reader, before=like_all)],
    "history": [Shows(lambda world: "/history", ("post",), is_reader, before=open_post)],
    "unwanted": [Shows(lambda world: "/history/not-interested", ("post",), is_reader, before=dismiss_post)],
    "tag": [Shows(lambda world: "/tags/ztag", ("post", "reply", "answered"))],
}
PAGES_WITHOUT = {
    "vote": "a visible poll, or 404 (items/test_polls.py)",
    "poll-form": "an empty form",
    "conversations": "private mentions (test_private.py)",
    "conversation-requests": "the same",
    "conversation": "the way to a private mention, or 404 (the same)",
    "conversation-accept": "the way back, or 404 (the same)",
    "conversation-remove": "the way back, or 404 (the same)",
    "column": "people, hashtags, live sessions (public/test_column.py)",
    "feed": "posts that strangers see, whoever asks (public/test_views.py)",
    "robots": "",
    "sitemap": "parts",
    "sitemap-posts": "ids of public posts (public/test_sitemap.py)",
    "sitemap-people": "names of users",
    "manifest": "",
    "worker": "",
    "offline": "",
    "icon": "the logo",
    "oauth-authorize": "what an app asks for (clientapi/test_views.py)",
    "oauth-authorize-slash": "the same",
    "oauth-token": "a token",
    "oauth-revoke": "",
    "oauth-metadata": "addresses",
    "nodeinfo-links": "an address",
    "nodeinfo": "numbers of the site",
    "news": "a number",
    "position": "",
    "staff-file": "a picture, to staff alone (media/test_views.py)",
    "welcome": "hashtags",
    "welcome-people": "people",
    "find-people": "people",
    "media-form": "an empty form",
    "draft-media": "the reader's own pictures (items/pages/test_views.py)",
    "emoji": "emoji by name",
    "complete": "names, and hashtags of public posts (items/test_completing.py)",
    "unread": "a number",
    "notification-news": "a number",
    "about": "the site's own words",
    "theme": "colours",
    "signup": "",
    "signup-waiting": "",
    "invite": "",
    "settings-invitations": "",
    "revoke-invitation": "",
    "dismiss-announcement": "",
    "first-admin": "",
    "login": "",
    "logout": "",
    "login-code": "",
    "login-passkey": "",
    "login-passkey-options": "",
    "password-reset": "",
    "password-reset-asked": "",
    "password-reset-link": "",
    "verify-email": "",
    "confirm-identity": "",
    "confirm-passkey": "",
    "confirm-passkey-options": "",
    "settings-profile": "",
    "settings-account": "",
    "settings-email": "",
    "settings-email-code": "",
    "settings-email-again": "",
    "settings-email-remove": "",
    "settings-devices": "",
    "settings-devices-end": "",
    "settings-factors": "",
    "settings-factor-app": "",
    "settings-factor-passkey": "",
    "settings-factor-passkey-options": "",
    "settings-factor-remove": "",
    "settings-recovery-codes": "",
    "language": "",
    "drawn-banner": "a colour",
    "drawn-avatar": "a letter",
    "settings": "",
    "like": "a footer or 404 (items/pages/test_views.py)",
    "unlike": "the same",
    "bookmark": "the same",
    "remove-bookmark": "the same",
    "mute-thread": "a way back, or 404 (items/threads/test_muting.py)",
    "unmute-thread": "the same",
    "not-interested": "a line, or 404 (discover/test_feedback.py)",
    "interested": "a card, or 404 (the same)",
    "history-change": "what the history shows",
    "revoke_quote": "the same (items/pages/test_quote_views.py)",
    "repost": "the same",
    "undo_repost": "the same",
    "settings-preferences": "",
    "settings-notifications": "",
    "settings-push": "own devices",
    "settings-push-change": "the same, or 404 (notifications/test_push_views.py)",
    "settings-push-remove": "the same",
    "settings-push-trial": "the same",
    "settings-password": "",
    "settings-data": "own items, in an archive",
    "settings-delete": "",
    "log-out-everywhere": "",
    "followers": "people",
    "following": "people",
    "follow-requests": "people",
    "settings-mutes": "people",
    "settings-blocks": "people",
    "mute-for": "a person's name",
    "settings-import-export": "names that the reader uploaded",
    "settings-export": "people, in a file",
    "settings-import-refused": "names that the reader uploaded, in a file",
    "settings-archive": "addresses that the reader uploaded",
    "settings-archive-stop": "a way back, or 404 (moving/test_views.py)",
    "relate": "people",
    "pin": "a way back, 403 or 404 (items/profiles/test_pins.py)",
    "unpin": "the same",
    "scheduled": "own scheduled posts",
    "scheduled-edit": "an own scheduled post, or 404 (items/test_scheduling.py)",
    "scheduled-delete": "the same",
    "settings-filters": "own filters",
    "settings-filter": "an own filter, or 404 (items/pages/test_filter_views.py)",
    "settings-filter-delete": "the same",
    "relate-tag": "a way back",
    "lists": "own lists, and followed hashtags",
    "list-edit": "an own list and people, or 404 (relations/test_list_views.py)",
    "list-delete": "an own list, or 404 (the same)",
    "list-add": "the same",
    "list-remove": "the same",
    "list-news": "a number, or 404 (timeline/test_list_views.py)",
    "person-lists": "own lists, and a person",
    "live": "live sessions: who sees one is asked in live/test_views.py, as for all of these",
    "live-news": "a number, and versions of sessions",
    "live-own": "own sessions",
    "live-plan": "",
    "live-session": "a live session",
    "live-edit": "an own session",
    "live-remind": "a card, or 404",
    "report-account": "a person's name and words, or 404 (moderation/test_account_reports.py)",
    "report-session": "a session's title, or 404 (moderation/test_sessions.py)",
    "live-forget": "the same",
    "live-change": "the same",
}


def answers_with_items() -> set[str]:
    """The API routes whose answers have an item in them, by their description."""
    described = json.loads(document())
    shapes: dict[str, Any] = described["components"]["schemas"]

    def names(part: Any, seen: set[str]) -> set[str]:
        for name in set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(part))) - seen:
            seen.add(name)
            names(shapes[name], seen)
        return seen

    found = set()
    for route in api_routes:
        operations = described["paths"]["/api/v1/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route)].values()
        if any("ItemBody" in names(operation["responses"], set()) for operation in operations):
            found.add(route)
    return found


def test_every_route_is_in_the_table() -> None:
    advice = "name the route in API_ROUTES or PAGES if it shows items, else in API_WITHOUT or PAGES_WITHOUT, with why"
    named = API_ROUTES.keys() | API_WITHOUT.keys()
    assert answers_with_items() <= named <= set(api_routes), advice
    assert set(page_names) == PAGES.keys() | PAGES_WITHOUT.keys(), advice


# --- The matrix ------------------------------------------------------------------------------------------
def api_client(world: World, relation: str) -> APIClient:
    client = APIClient()
    if relation != "anonymous":
        client.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=world.readers[relation])}")
    return client


def page_client(world: World, relation: str) -> Client:
    client = Client()
    if relation != "anonymous":
        client.force_login(world.readers[relation])
    return client


def clients(world: World, side: str) -> dict[str, Any]:
    signed_in = api_client if side == "api" else page_client
    return {relation: signed_in(world, relation) for relation in SEEN}


def expected(visibility: Visibility, status: Status, relation: str, kind: str) -> bool:
    if relation == "sender":
        # Others' items that contain the sender's need it published.
        own = status != Status.DELETED
        return own if kind not in ("repost", "quoted") else status == Status.PUBLISHED
    return status == Status.PUBLISHED and visibility in SEEN[relation]


PLAIN = [(Visibility.FOLLOWERS, Status.PUBLISHED), (Visibility.PUBLIC, Status.PUBLISHED)]
PLAIN += [(Visibility.SELF, Status.PUBLISHED), (Visibility.PUBLIC, Status.IN_REVIEW)]
OTHERS = {
    *[(Visibility(visibility), Status.PUBLISHED) for visibility in LISTED],
    *[(Visibility.PUBLIC, status) for status in Status],
}
STATES = [*PLAIN, *sorted(OTHERS.difference(PLAIN))]
"""Every audience of a published item, and every status of a public one."""


@pytest.mark.slow
@pytest.mark.parametrize(("visibility", "status"), some(len(PLAIN), STATES))
@pytest.mark.parametrize("side", ["api", pytest.param("pages", marks=pytest.mark.slow)])
def test_readers_see_what_the_table_says(
    world: World, settings: Any, side: str, visibility: Visibility, status: Status
) -> None:
    settings.RATE_SCALE = 1000.0
    fill(world, visibility, status)
    wrong = []
    readers = clients(world, side)
    if not EVERYTHING:
        is_narrow = visibility == Visibility.FOLLOWERS
        asked = NEAR_AND_FAR if not is_narrow else readers if side == "api" else (*NEAR_AND_FAR, "follower", "followed")
        readers = {relation: readers[relation] for relation in asked}
    for route, cases in (API_ROUTES if side == "api" else PAGES).items():
        for case in cases:
            case.before(world)
            for relation, client in readers.items():
                prefix = "/api/v1" if side == "api" else ""
                path = case.path(world).replace("{list}", str(world.lists.get(relation, 1)))
                response = getattr(client, case.method)(prefix + path, case.body)
                assert response.status_code < 500
                shown = response.content.decode()
                for kind in case.kinds:
                    wanted = case.narrowed(relation, kind) and expected(visibility, status, relation, kind)
                    hidden = case.published_only and kind in ("post", "repost") and status != Status.PUBLISHED
                    wanted = wanted and not hidden
                    wanted = wanted and (visibility == Visibility.PUBLIC or not case.public_only)
                    if case.shows_held and relation == "sender" and status == Status.IN_REVIEW:
                        wanted = wanted or kind in (
                            "post",
                            "repost",
                        )  # the sender's own posts, and a repost's original
                    if (world.words(kind) in shown) != wanted:
                        wrong.append((route, case.path(world), relation, kind, "missing" if wanted else "shown"))
                if case.by_id and not expected(visibility, status, relation, case.kinds[0]):
                    never = case.path(world).replace(case.path(world).split("/")[2], "12345")
                    absent = client.get(prefix + never)
                    if lasting(response) != lasting(absent) or response.status_code != 404:
                        wrong.append((route, case.path(world), relation, "", "unlike what never was"))
    assert not wrong


@pytest.mark.long
@pytest.mark.parametrize("side", ["api", "pages"])
def test_what_the_suspended_said_is_nowhere(world: World, side: str) -> None:
    fill(world, Visibility.PUBLIC)
    readers = clients(world, side)
    User.objects.filter(pk=world.sender.pk).update(is_active=False)
    asked = SEEN.keys() if side == "api" or EVERYTHING else NEAR_AND_FAR
    for cases in (API_ROUTES if side == "api" else PAGES).values():
        for case in cases:
            case.before(world)
            for relation in {*asked} - {"sender"}:
                path = ("/api/v1" if side == "api" else "") + case.path(world)
                path = path.replace("{list}", str(world.lists.get(relation, 1)))
                response = getattr(readers[relation], case.method)(path, case.body)
                for kind in case.kinds:
                    assert world.words(kind) not in response.content.decode(), (case.path(world), relation)


@pytest.mark.slow
def test_a_hidden_reply_is_in_no_number(world: World) -> None:
    thread = ItemFactory(sender=world.author)
    client = api_client(world, "stranger")
    before = client.get(f"/api/v1/items/{thread.pk}").content
    for visibility in set(Visibility) - {Visibility.PUBLIC}:
        items.publish(sender=world.sender, content={"text": "psst @author"}, reply_to=thread, visibility=visibility)
    assert client.get(f"/api/v1/items/{thread.pk}").content == before
