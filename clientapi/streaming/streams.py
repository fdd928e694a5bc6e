from collections.abc import Collection
from typing import Any, NamedTuple

from rest_framework import exceptions

from accounts.models import User
from clientapi.errors import ClientError
from clientapi.oauth.bearer import OUTSIDE
from clientapi.oauth.scopes import covers
from relations.lists import own_list
from web.hashtags import canonical_tag
from web.rest import parse_id

STATUSES, NOTIFICATIONS, LISTS = "read:statuses", "read:notifications", "read:lists"
NOTICES = "user:notification"
PUBLIC = ("public", "public:local", "public:media", "public:local:media")
DIRECT = "direct"
EMPTY = ("public:remote", "public:remote:media")
"""Streams that stay empty: the site has no other servers."""
TAGGED = ("hashtag", "hashtag:local")
SCOPES = {
    **dict.fromkeys(("user", DIRECT, *PUBLIC, *EMPTY, *TAGGED), STATUSES),
    NOTICES: NOTIFICATIONS,
    "list": LISTS,
}
"""The scope for each stream, the same as for the timeline of that name (scopes.py)."""
MOST = 20
"""Maximum streams per connection."""


class Stream(NamedTuple):
    """What a hearer listens to. `name` is its name in socket messages. Empty fields add nothing."""

    name: tuple[str, ...]
    has_home: bool = False
    has_notifications: bool = False
    has_conversations: bool = False
    is_public: bool = False
    only_media: bool = False
    tag: str = ""
    list_id: int = 0


class ClientHearer(NamedTuple):
    """An open connection and its streams."""

    reader: int
    streams: tuple[Stream, ...]
    is_socket: bool


def stream_of(name: str, held: Collection[str], reader: User, *, tag: str = "", list_id: str = "") -> Stream:
    """The stream of this name. `held`: the token's scopes. Raises ClientError and List.DoesNotExist."""
    if name not in SCOPES:
        raise ClientError(400, "Unknown stream type")
    if not covers(held, SCOPES[name]):
        raise ClientError(403, OUTSIDE)
    return _parse_stream(name, held, reader, tag, list_id)


def _parse_stream(name: str, held: Collection[str], reader: User, tag: str, list_id: str) -> Stream:
    if name == "user":
        return Stream((name,), has_home=True, has_notifications=covers(held, NOTIFICATIONS))
    if name == NOTICES:
        return Stream((name,), has_notifications=True)
    if name == DIRECT:
        return Stream((name,), has_conversations=True)
    if name in PUBLIC:
        return Stream((name,), is_public=True, only_media=name.endswith(":media"))
    if name in EMPTY:
        return Stream((name,))
    if name in TAGGED:
        canonical = canonical_tag(tag.removeprefix("#"))
        if canonical is None:
            raise ClientError(400, "tag names no hashtag")
        return Stream((name, tag), tag=canonical)
    return Stream((name, list_id), list_id=own_list(reader, parse_id(list_id) or 0).id)


# --- The messages of a socket's client ------------------------------------------------------------------
def after_message(hearer: ClientHearer, message: Any, held: Collection[str]) -> ClientHearer:
    """The hearer after the client's message: `subscribe` or `unsubscribe`. Raises like `stream_of`."""
    if not isinstance(message, dict) or message.get("type") not in ("subscribe", "unsubscribe"):
        raise ClientError(400, "Unknown message type")
    name, tag, list_id = (_text(message.get(field, "")) for field in ("stream", "tag", "list"))
    if message["type"] == "unsubscribe":
        gone = tuple(part for part in (name, tag or list_id) if part)
        return hearer._replace(streams=tuple(one for one in hearer.streams if one.name != gone))
    stream = stream_of(name, held, User(pk=hearer.reader), tag=tag, list_id=list_id)
    if stream in hearer.streams:
        return hearer
    if len(hearer.streams) >= MOST:
        raise ClientError(400, f"A connection can listen to at most {MOST} streams")
    return hearer._replace(streams=(*hearer.streams, stream))


def _text(value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise exceptions.NotFound
    return str(value)
