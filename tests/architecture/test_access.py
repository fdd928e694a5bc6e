"""The access matrix: one table of relations, and one of routes that show items. All other routes must show none."""

import re
from collections import defaultdict
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
from items.models import LISTED, Bookmark, HiddenReply, Item, Like, Pin, Status, Visibility
from media.objects import MediumFacts
from relations import actions as relations
from relations import lists
from relations.tags import follow_tag
from tests.support.addresses import API, address_of, api_patterns, api_routes, page_names, page_patterns
from tests.support.answers import lasting
from tests.support.effort import EVERYTHING, some
from tests.support.factories import ItemFactory, UserFactory

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
    as_strangers: bool = False
    """Every reader sees what strangers see. Blocks change nothing."""
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


def hide_replies(world: World) -> None:
    """The senders of the threads hid them while all was public."""
    for root, reply in ((world.thread, world.reply), (world.post, world.answered)):
        HiddenReply.objects.get_or_create(reply=reply, root=root, user=root.sender)


def is_other(relation: str, kind: str) -> bool:
    """A hidden reply's own sender sees it in the thread."""
    return kind == "answered" or relation != "sender"


HIDDEN = [
    Shows(lambda world: f"/items/{world.thread.pk}/hidden-replies", ("reply",), is_other, before=hide_replies),
    Shows(lambda world: f"/items/{world.post.pk}/hidden-replies", ("answered",), by_id=True, before=hide_replies),
]
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
    "items/<id:item_id>/hidden-replies": HIDDEN,
}
"""API routes that show others' items."""
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
    "feed": [
        Shows(lambda world: "/@sender/feed.atom", ("post",), as_strangers=True),
        Shows(lambda world: "/@author/feed.atom", ("repost", "shared"), as_strangers=True),
    ],
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
    "hidden-replies": HIDDEN,
}


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
    settings.RATE_SCALE, settings.SENDER_CAP = 1000.0, len(KINDS)
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
                    sees_as = "anonymous" if case.as_strangers else relation
                    wanted = case.narrowed(relation, kind) and expected(visibility, status, sees_as, kind)
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
    fill(world, Visibility.SELF)
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


def test_the_table_names_routes_of_now() -> None:
    assert API_ROUTES.keys() <= set(api_routes)
    assert PAGES.keys() <= set(page_names)


ANY = {
    "username": "sender",
    "tag": "ztag",
    "name": "ztag",
    "kind": "follows",
    "code": "3457d5",
    "key": "x",
    "token": "x",
}
"""Values of parameters. Others are the hidden post's id."""


@pytest.mark.slow
@pytest.mark.parametrize("side", ["api", "pages"])
def test_no_other_address_shows_a_hidden_item(world: World, settings: Any, side: str) -> None:
    """Every route that the table leaves out. Each parameter is about the hidden items."""
    settings.RATE_SCALE = 1000.0
    fill(world, Visibility.PUBLIC)
    values = defaultdict(lambda: world.post.pk, ANY)
    others = (
        [address_of(one, values, API) for one in api_patterns if str(one.pattern) not in API_ROUTES]
        if side == "api"
        else [address_of(one, values) for one in page_patterns if one.name not in PAGES]
    )
    readers = clients(world, side)
    words = {world.words(kind) for kind in KINDS}
    shown = [
        (relation, address)
        for relation in ("anonymous", "mutual")
        for address in others
        if words & set(re.findall(r"\w+", text_of(readers[relation].get(address, {"q": "from:sender"}))))
    ]
    assert shown == []


def text_of(response: Any) -> str:
    return (b"".join(response.streaming_content) if response.streaming else response.content).decode(errors="replace")


@pytest.mark.slow
def test_a_hidden_reply_is_in_no_number(world: World) -> None:
    thread = ItemFactory(sender=world.author)
    client = api_client(world, "stranger")
    before = client.get(f"/api/v1/items/{thread.pk}").content
    for visibility in set(Visibility) - {Visibility.PUBLIC}:
        items.publish(sender=world.sender, content={"text": "psst @author"}, reply_to=thread, visibility=visibility)
    assert client.get(f"/api/v1/items/{thread.pk}").content == before
