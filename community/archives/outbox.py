"""The posts of an archive, item by item (finding.py finds them in `outbox.json`).

An item may hold anything; what is no post is left out with its reason.
"""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from community.archives.finding import LONGEST_BYTES
from community.archives.markup import text_of
from items.models import Visibility
from items.text import WARNING_LENGTH
from web.strict_json import UNSTORABLE

ATTACHMENTS = 20
OPTIONS = 50
PUBLIC = frozenset({"https://www.w3.org/ns/activitystreams#Public", "as:Public", "Public"})
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")


class LeftOutError(Exception):
    """The item at `address` does not come in; `why` is a key of models.REASONS."""

    def __init__(self, why: str, address: str = "") -> None:
        super().__init__(why)
        self.why, self.address = why, address


class Attachment(NamedTuple):
    """A picture or video of a post: its path in the archive, what it shows in words, and the point that matters."""

    path: str
    description: str
    focus: tuple[float, float]


class Post(NamedTuple):
    """A post of the archive as this site would say it. `origin` is the digest of its address, `parent` that of what it
    replies to, or empty.
    """

    origin: str
    address: str
    parent: str
    written_at: datetime
    modified_at: datetime | None
    text: str
    warning: str
    is_sensitive: bool
    visibility: Visibility
    language: str
    media: tuple[Attachment, ...]


class _Attachment(msgspec.Struct):
    url: Any = ""
    name: Any = ""
    focalPoint: Any = None  # noqa: N815 (the key)


class _Object(msgspec.Struct):
    """A Note or a Question. Keys that programs disagree on are of any type here."""

    id: str = ""
    type: str = ""
    published: datetime | None = None
    updated: datetime | None = None
    url: Any = None
    inReplyTo: Any = None  # noqa: N815
    content: str | None = None
    contentMap: Any = None  # noqa: N815
    summary: str | None = None
    sensitive: Any = False
    to: Any = ()
    cc: Any = ()
    attachment: Any = ()
    oneOf: Any = ()  # noqa: N815
    anyOf: Any = ()  # noqa: N815


class _Activity(msgspec.Struct):
    type: str = ""
    published: datetime | None = None
    object: Any = None


class _Option(msgspec.Struct):
    name: str = ""


# --- Reading one -----------------------------------------------------------------------------------------
def post_of(item: bytes) -> Post:
    """The post that an item of the outbox is. Raises LeftOutError."""
    if len(item) > LONGEST_BYTES:
        raise LeftOutError("size")
    try:
        activity = msgspec.json.decode(item, type=_Activity)
        if activity.type == "Announce":
            raise LeftOutError("boost")
        if activity.type != "Create":
            raise LeftOutError("kind")
        note = msgspec.convert(activity.object, _Object, strict=False)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise LeftOutError("unreadable") from error
    address = said(note.id, 500)
    if note.type not in ("Note", "Question", "Article"):
        raise LeftOutError("kind", address)
    written_at = note.published or activity.published
    if written_at is None or written_at.tzinfo is None:
        raise LeftOutError("time", address)
    parent = note.inReplyTo if isinstance(note.inReplyTo, str) else ""
    return Post(
        origin=digest(note.id or hashlib.sha256(item).hexdigest()),
        address=address,
        parent=digest(parent) if parent else "",
        written_at=written_at,
        modified_at=note.updated if note.updated and note.updated.tzinfo else None,
        text="\n\n".join(part for part in (text_of(note.content or ""), _poll(note)) if part),
        warning=" ".join(text_of(note.summary or "").split())[:WARNING_LENGTH],
        is_sensitive=note.sensitive is True,
        visibility=_visibility(note),
        language=_language(note.contentMap),
        media=tuple(_attachments(note.attachment)),
    )


def digest(address: str) -> str:
    """The digest under which a post is known."""
    return hashlib.sha256(address.encode(errors="surrogatepass")).hexdigest()


def _visibility(note: _Object) -> Visibility:
    """The audience here, never a wider one: what is public but unlisted there is for followers here."""
    to, cc = _addresses(note.to), _addresses(note.cc)
    if to & PUBLIC:
        return Visibility.PUBLIC
    if cc & PUBLIC or any(address.endswith("/followers") for address in to):
        return Visibility.FOLLOWERS
    raise LeftOutError("direct", said(note.id, 500))


def _addresses(named: Any) -> set[str]:
    several = named if isinstance(named, list) else [named]
    return {address for address in several if isinstance(address, str)}


def _language(said: Any) -> str:
    languages = list(said) if isinstance(said, dict) else []
    return languages[0] if len(languages) == 1 and _LANGUAGE.fullmatch(languages[0]) else ""


def _poll(note: _Object) -> str:
    """The options of a poll, a line each; the votes stay behind."""
    for several in (note.oneOf, note.anyOf):
        try:
            options = msgspec.convert(several or [], list[_Option])
        except msgspec.ValidationError:
            continue
        if options:
            return "\n".join(f"- {said(option.name, 200)}" for option in options[:OPTIONS])
    return ""


def _attachments(said: Any) -> Iterator[Attachment]:
    for one in (said if isinstance(said, list) else [])[:ATTACHMENTS]:
        try:
            known = msgspec.convert(one, _Attachment)
        except msgspec.ValidationError:
            continue
        if isinstance(known.url, str) and known.url:
            description = known.name if isinstance(known.name, str) else ""
            yield Attachment(known.url, UNSTORABLE.sub("", description), _focus(known.focalPoint))


def _focus(said: Any) -> tuple[float, float]:
    try:
        x, y = (max(-1.0, min(1.0, float(value))) for value in said)
    except (TypeError, ValueError):
        return (0.0, 0.0)
    return (x, y) if x == x and y == y else (0.0, 0.0)


def said(text: str, longest: int) -> str:
    """Words that can be kept, in one line."""
    return " ".join(UNSTORABLE.sub("", text).split())[:longest]
