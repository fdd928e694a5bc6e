"""Parses the untrusted items of an archive. An unreadable key only costs its part of the post."""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from community.archives.finding import LONGEST_BYTES, moment
from community.archives.markup import text_of
from items.models import Visibility
from items.text import WARNING_LENGTH
from web.letters import beginning
from web.strict_json import UNSTORABLE

ATTACHMENTS = 20
ADDRESSES = 10
"""Addresses per attachment: the same video in several sizes."""
OPTIONS = 50
PUBLIC = frozenset({"https://www.w3.org/ns/activitystreams#Public", "as:Public", "Public"})
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")


class LeftOutError(Exception):
    """An item is left out. `why` is a key of models.REASONS."""

    def __init__(self, why: str, address: str = "") -> None:
        super().__init__(why)
        self.why, self.address = why, address


class ArchivedAttachment(NamedTuple):
    """A picture or video of a post. Its file in the archive has one of these `paths`."""

    paths: tuple[str, ...]
    description: str
    focus: tuple[float, float]


class Post(NamedTuple):
    """A post for this site. `origin`, `parent` and `quoted` are digests of addresses, or empty. `lost`: keys of
    models.PART_REASONS.
    """

    origin: str
    address: str
    parent: str
    quoted: str
    written_at: datetime
    modified_at: datetime | None
    text: str
    warning: str
    is_sensitive: bool
    visibility: Visibility
    language: str
    media: tuple[ArchivedAttachment, ...]
    lost: tuple[str, ...]


class _Attachment(msgspec.Struct):
    url: Any = ""
    href: Any = ""
    name: Any = ""
    focalPoint: Any = None  # noqa: N815 (the key)


class _Object(msgspec.Struct):
    id: Any = ""
    type: Any = ""
    name: Any = ""
    published: Any = None
    updated: Any = None
    inReplyTo: Any = None  # noqa: N815
    quote: Any = None
    content: Any = ""
    contentMap: Any = None  # noqa: N815
    summary: Any = ""
    sensitive: Any = False
    to: Any = ()
    cc: Any = ()
    attachment: Any = ()
    oneOf: Any = ()  # noqa: N815
    anyOf: Any = ()  # noqa: N815


class _Activity(msgspec.Struct):
    id: Any = ""
    type: Any = ""
    published: Any = None
    object: Any = None


# --- Reading one -----------------------------------------------------------------------------------------
def post_of(item: bytes) -> Post:
    """The post in an item. Raises LeftOutError."""
    if len(item) > LONGEST_BYTES:
        raise LeftOutError("size")
    try:
        activity = msgspec.json.decode(item, type=_Activity)
        kind = _text(activity.type)
        if kind == "Announce":
            raise LeftOutError("boost")
        if kind != "Create":
            raise LeftOutError("kind")
        note = msgspec.convert(activity.object, _Object)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise LeftOutError("unreadable") from error
    named = _text(note.id) or _text(activity.id)
    address = one_line(named, 500)
    if _text(note.type) not in ("Note", "Question", "Article"):
        raise LeftOutError("kind", address)
    written_at = _moment(note.published) or _moment(activity.published)
    if written_at is None:
        raise LeftOutError("time", address)
    parent = _text(note.inReplyTo.get("id") if isinstance(note.inReplyTo, dict) else note.inReplyTo)
    if note.inReplyTo and not parent:
        raise LeftOutError("reply", address)
    modified_at = _moment(note.updated)
    lost = {"updated": note.updated and not modified_at, "id": not _text(note.id)}
    return Post(
        origin=digest(named or hashlib.sha256(item).hexdigest()),
        address=address,
        parent=digest(parent) if parent else "",
        quoted=digest(quoted) if (quoted := _text(note.quote)) else "",
        written_at=written_at,
        modified_at=modified_at,
        text=_post_text(note),
        warning=beginning(" ".join(text_of(_text(note.summary)).split()), WARNING_LENGTH),
        is_sensitive=_is_true(note.sensitive),
        visibility=_visibility(note, address),
        language=_language(note.contentMap),
        media=tuple(_attachments(note.attachment)),
        lost=tuple(what for what, is_lost in lost.items() if is_lost),
    )


def _text(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) else ""


def _moment(value: Any) -> datetime | None:
    return moment(value) if isinstance(value, str) else None


def _is_true(value: Any) -> bool:
    return value is True or value == 1 or (isinstance(value, str) and value.strip().lower() in ("true", "1", "yes"))


def _post_text(note: _Object) -> str:
    text = text_of(_text(note.content) or _single_text(note.contentMap))
    title = " ".join(text_of(_text(note.name)).split()) if _text(note.type) == "Article" else ""
    parts = ("" if text.startswith(title) else title, text, _poll(note))
    return "\n\n".join(part for part in parts if part)


def _single_text(texts: Any) -> str:
    return _text(next(iter(texts.values()))) if isinstance(texts, dict) and len(texts) == 1 else ""


def digest(address: str) -> str:
    """The digest that identifies a post."""
    return hashlib.sha256(address.encode(errors="surrogatepass")).hexdigest()


def _visibility(note: _Object, address: str) -> Visibility:
    """The post's audience here, never wider than on the other site. Unlisted posts become posts for followers. Raises
    LeftOutError for a private mention.
    """
    to, cc = _addresses(note.to), _addresses(note.cc)
    if to & PUBLIC:
        return Visibility.PUBLIC
    if cc & PUBLIC or any(one.endswith("/followers") for one in to):
        return Visibility.FOLLOWERS
    raise LeftOutError("direct", address)


def _addresses(named: Any) -> set[str]:
    return {address for address in _as_list(named) if isinstance(address, str)}


def _language(said: Any) -> str:
    languages = list(said) if isinstance(said, dict) else []
    return languages[0] if len(languages) == 1 and _LANGUAGE.fullmatch(languages[0]) else ""


def _poll(note: _Object) -> str:
    for several in (note.oneOf, note.anyOf):
        named = [one.get("name") for one in _as_list(several)[:OPTIONS] if isinstance(one, dict)]
        options = [option for name in named if (option := one_line(_text(name), 200))]
        if options:
            return "\n".join(f"- {option}" for option in options)
    return ""


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _attachments(said: Any) -> Iterator[ArchivedAttachment]:
    for one in _as_list(said)[:ATTACHMENTS]:
        try:
            known = msgspec.convert(one, _Attachment)
        except msgspec.ValidationError:
            continue
        paths = (*_paths(known.url), *_paths(known.href))
        if paths:
            yield ArchivedAttachment(paths, UNSTORABLE.sub("", _text(known.name)), _focus(known.focalPoint))


def _paths(said: Any) -> Iterator[str]:
    for one in _as_list(said)[:ADDRESSES]:
        address = one.get("href") if isinstance(one, dict) else one
        if isinstance(address, str) and address:
            yield address


def _focus(said: Any) -> tuple[float, float]:
    try:
        x, y = (max(-1.0, min(1.0, float(value))) for value in said)
    except (TypeError, ValueError):
        return (0.0, 0.0)
    return (x, y) if x == x and y == y else (0.0, 0.0)


def one_line(text: str, longest: int) -> str:
    """Storable text on one line."""
    return " ".join(UNSTORABLE.sub("", text).split())[:longest]
