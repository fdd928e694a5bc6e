"""The posts of an archive: `outbox.json`, an OrderedCollection of ActivityPub, read item by item.

A file may hold anything, of any size and depth: its items are found without reading it into memory, each is bounded,
and what is no post is an Outcome with its reason.
"""

import hashlib
import mmap
import re
from array import array
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from community.archives.markup import text_of
from items.models import Visibility
from items.text import WARNING_LENGTH
from storage import ids
from web.strict_json import UNSTORABLE

ITEMS = 50_000
"""Items of an outbox that are read; the rest is left out."""
LONGEST_BYTES = 1 << 20
"""Bytes of an item."""
DEEPEST = 64
ATTACHMENTS = 20
OPTIONS = 50
PUBLIC = frozenset({"https://www.w3.org/ns/activitystreams#Public", "as:Public", "Public"})
# Names and strings of JSON, its brackets, and the comma.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[\]{},]', re.DOTALL)
_KEY = re.compile(rb'"orderedItems"\s*+:\s*+\[')
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")


class OutboxError(ValueError):
    """The file is no outbox; the message is one word, a key of models.FAILURES."""


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


# --- Finding the items -----------------------------------------------------------------------------------
class Outbox:
    """The items of an outbox, in the order of their times."""

    def __init__(self, path: Path, places: "np.ndarray[Any, np.dtype[np.int64]]") -> None:
        self._path, self._places = path, places

    def __len__(self) -> int:
        return len(self._places)

    def items(self, first: int, count: int) -> list[bytes]:
        """Items as they are written, from one place on."""
        with self._path.open("rb") as file:
            return [_read(file, *place) for place in self._places[first : first + count].tolist()]


def _read(file: Any, begin: int, length: int) -> bytes:
    file.seek(begin)
    return bytes(file.read(min(length, LONGEST_BYTES + 1)))


def index(path: Path) -> int:
    """Find the items of an outbox, and write the places of the first `ITEMS` beside it; how many there are. Raises
    OutboxError.
    """
    rows, count = array("q"), 0
    with path.open("rb") as file:
        for count, (begin, end) in enumerate(found(file), 1):
            if count <= ITEMS:
                file.seek(begin)
                rows.extend((_time(file.read(min(end - begin, LONGEST_BYTES))), begin, end - begin))
    table = np.frombuffer(rows, dtype=np.int64).reshape(-1, 3)
    ordered = table[np.argsort(table[:, 0], kind="stable"), 1:]
    np.save(path.with_suffix(".npy"), ordered)
    return count


def opened(path: Path) -> Outbox:
    """An outbox that has been indexed."""
    return Outbox(path, np.load(path.with_suffix(".npy"), allow_pickle=False))


def found(file: Any) -> Iterator[tuple[int, int]]:
    """Where each item of an OrderedCollection begins and ends. Raises OutboxError."""
    try:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # it is empty
        raise OutboxError("outbox") from error
    with view:
        start = _KEY.search(view)
        if start is None:
            raise OutboxError("outbox")
        depth, begin = 0, start.end()
        for token in _TOKEN.finditer(view, start.end()):
            sign = token[0][:1]
            if sign in b"{[":
                begin = token.start() if depth == 0 else begin
                depth += 1
                if depth > DEEPEST:
                    raise OutboxError("deep")
            elif sign in b"}]":
                depth -= 1
                if depth < 0:
                    return
                if depth == 0:
                    yield begin, token.end()
            elif sign == b'"' and depth == 0:
                yield token.span()
    raise OutboxError("outbox")  # it breaks off


_PUBLISHED = re.compile(rb'"published"\s*+:\s*+"([0-9TZ:.+-]{10,40})"')


def _time(item: bytes) -> int:
    """When the item was said, in milliseconds; 0 where it does not say."""
    found = _PUBLISHED.search(item)
    try:
        return (datetime.fromisoformat(found[1].decode()) - ids.EPOCH) // ids.MILLISECOND if found else 0
    except (ValueError, TypeError, OverflowError):
        return 0


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
