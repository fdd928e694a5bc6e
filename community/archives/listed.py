"""The lists of an archive: pins, likes and bookmarks by addresses, and CSV files of people that members add.

An address means a post that the user imported from there, or a visible one of this site. Other users' imports do not
count: a forged archive could attract the likes of a famous post.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec

from accounts.models import User
from community.archives import archive, finding
from community.archives.finding import OutboxError
from community.archives.models import BroughtItem, ListKind, ListProgress
from community.archives.outbox import digest, one_line
from items import actions as items
from items.models import Item, Pin, Status
from items.pages.addresses import item_id_at
from items.profiles.pins import PINS, PinCapError, is_pinnable, pin
from relations import csv_files, importing
from relations.csv_files import CsvError, CsvKind, CsvLine

FILES = {
    ListKind.BLOCKS: "blocked_accounts.csv",
    ListKind.MUTES: "muted_accounts.csv",
    ListKind.FOLLOWS: "following_accounts.csv",
    ListKind.LISTS: "lists.csv",
    ListKind.PINS: "featured.json",
    ListKind.LIKES: "likes.json",
    ListKind.BOOKMARKS: "bookmarks.json",
}
CSV = {
    ListKind.BLOCKS: CsvKind.BLOCKS,
    ListKind.MUTES: CsvKind.MUTES,
    ListKind.FOLLOWS: CsvKind.FOLLOWS,
    ListKind.LISTS: CsvKind.LISTS,
}
FEATURED = 100
"""Maximum pins read. They are one part."""
ENTRIES = 100_000
"""Maximum likes or bookmarks imported."""
COUNTED = 500_000
"""Entries are counted up to this number. A list of the allowed size has no more addresses."""
BRACKETS = 1_000_000
"""Maximum brackets and entries in a list. An entry is an address, or a post with 30 brackets."""
TOGETHER = 200
"""Addresses per transaction."""
ADDRESS_LENGTH = 500
"""Maximum characters of an address in the report."""
EXPECTED = frozenset({"before", "direct", "already", "foreign", "elsewhere"})
"""Reasons that the report only counts."""
Entry = str | CsvLine


class ListError(ValueError):
    """The list is not valid. The message is a key of models.LIST_FAILURES."""


class _Named(msgspec.Struct):
    id: str = ""


@dataclass
class ImportTally:
    """Entries imported, and left out by reason, with names."""

    brought: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[list[str]] = field(default_factory=list)

    def leave_out(self, why: str, name: str = "") -> None:
        """Count a left-out entry, and perhaps its name."""
        self.left_out[why] += 1
        if name and why not in EXPECTED:
            self.notes.append([one_line(name, ADDRESS_LENGTH), why])


@dataclass
class _ListPart(ImportTally):
    requested: int = 0

    def count(self, is_new: bool) -> None:
        if is_new:
            self.brought += 1
        else:
            self.leave_out("already")


# --- Reading ---------------------------------------------------------------------------------------------
class ArchiveLists:
    """The lists of an unpacked archive, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: dict[ListKind, list[Entry]] = {}

    def entries(self, kind: ListKind) -> list[Entry]:
        """The distinct entries in file order. Raises ListError."""
        if kind not in self._entries:
            path = self._folder / FILES[kind]
            self._entries[kind] = _entries(path, kind) if path.is_file() else []
        return self._entries[kind]

    def found(self) -> dict[str, Any]:
        """The `ListProgress` of each list, for storing."""
        return {kind.value: msgspec.to_builtins(progress) for kind in ListKind if (progress := self._progress(kind))}

    def _progress(self, kind: ListKind) -> ListProgress | None:
        try:
            entries = self.entries(kind)
            more = 0 if kind in CSV or not entries else _count(self._folder / FILES[kind]) - _entry_cap(kind)
        except ListError as error:
            return None if str(error) == "empty" else ListProgress(0, failure=str(error))
        if not entries:
            return None
        return ListProgress(len(entries), left_out={"many": more} if more > 0 else {})


def _entry_cap(kind: ListKind) -> int:
    return FEATURED if kind == ListKind.PINS else ENTRIES


def _entries(path: Path, kind: ListKind) -> list[Entry]:
    if path.stat().st_size > archive.LIST_BYTES:
        raise ListError("long")
    try:
        with path.open("rb") as file:
            if kind in CSV:
                return [*csv_files.read(file, CSV[kind])]
            return [*_addresses(file, _entry_cap(kind))]
    except CsvError as error:
        raise ListError(error.why) from error
    except OutboxError as error:
        raise ListError("long" if str(error) == "large" else "unread") from error


def _addresses(file: IO[bytes], most: int) -> Iterator[str]:
    """The distinct addresses in a list. An entry without an address gives an empty string."""
    seen = set()
    for begin, end in islice(finding.item_spans(file, BRACKETS), most):
        file.seek(begin)
        address = _address(file.read(end - begin)) if end - begin <= finding.LONGEST_BYTES else ""
        if not address or address not in seen:
            seen.add(address)
            yield address


def _count(path: Path) -> int:
    """The number of entries in a list, up to `COUNTED`. Raises ListError."""
    try:
        with path.open("rb") as file:
            return sum(1 for _ in islice(finding.item_spans(file, BRACKETS), COUNTED))
    except OutboxError as error:
        raise ListError("long" if str(error) == "large" else "unread") from error


def _address(entry: bytes) -> str:
    try:
        named = msgspec.json.decode(entry, type=str | _Named)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ""
    return named if isinstance(named, str) else named.id


# --- Bringing --------------------------------------------------------------------------------------------
def import_names(user: User, kind: ListKind, entries: Sequence[Entry], progress: ListProgress) -> list[list[str]]:
    """Import the next entries. Return left-out names with reasons."""
    size = importing.PART if kind in CSV else FEATURED if kind == ListKind.PINS else TOGETHER
    part, some = _ListPart(), entries[progress.done : min(progress.done + size, progress.total)]
    if kind in CSV:
        _import_relations(user, CSV[kind], [one for one in some if isinstance(one, CsvLine)], part)
    else:
        _store_names(user, kind, [one for one in some if isinstance(one, str)], part)
    progress.done = progress.done + len(some) if some else progress.total
    progress.brought += part.brought
    progress.requested += part.requested
    progress.left_out = dict(Counter(progress.left_out) + part.left_out)
    return part.notes


def _import_relations(user: User, kind: CsvKind, lines: Sequence[CsvLine], part: _ListPart) -> None:
    for line, outcome in importing.import_lines(user=user, kind=kind, lines=lines):
        if outcome == "requested":
            part.requested += 1
        elif outcome in ("done", ""):
            part.count(outcome == "done")
        else:
            part.leave_out(outcome, f"{line.title}: {line.name}" if line.title else line.name)


def _store_names(user: User, kind: ListKind, addresses: Sequence[str], part: _ListPart) -> None:
    posts = _posts_by_address(user, addresses)
    known: list[str] = []
    for address in addresses:
        if address in posts:
            known.append(address)
        else:
            part.leave_out(_absence_reason(address), address)
    if kind == ListKind.PINS:
        _pin(user, {address: posts[address] for address in known}, part)
        return
    for address in known:
        if kind == ListKind.LIKES:
            part.count(items.like(user=user, item=posts[address], is_past=True))
        else:
            part.count(items.bookmark(user=user, item=posts[address]))


def _absence_reason(address: str) -> str:
    if not address:
        return "unreadable"
    return "hidden" if item_id_at(address) else "foreign"


def _posts_by_address(user: User, addresses: Sequence[str]) -> dict[str, Item]:
    origins = {digest(address): address for address in addresses}
    numbers = {address: number for address in addresses if (number := item_id_at(address))}
    brought = BroughtItem.objects.filter(user=user, origin__in=origins, item__status=Status.PUBLISHED)
    shown = Item.objects.visible_to(user).filter(pk__in=numbers.values(), status=Status.PUBLISHED)
    there = {item.pk: item for item in shown.select_related("repost_of")} if numbers else {}
    posts = {address: there[number] for address, number in numbers.items() if number in there}
    return posts | {origins[one.origin]: one.item for one in brought.select_related("item")}


def _pin(user: User, posts: dict[str, Item], part: _ListPart) -> None:
    """Pin posts of a list. The file's first post is pinned last: it is shown first."""
    pinned = set(Pin.objects.filter(sender=user).values_list("item_id", flat=True))
    room = PINS - len(pinned)
    chosen: list[tuple[str, Item]] = []
    for address, item in posts.items():
        if item.pk in pinned:
            part.count(is_new=False)
        elif item.sender_id != user.pk or not is_pinnable(item):
            part.leave_out("unpinnable", address)
        elif len(chosen) == room:
            part.leave_out("pins", address)
        else:
            chosen.append((address, item))
    for address, item in reversed(chosen):
        try:
            part.count(pin(item=item))
        except PinCapError:  # the user pinned meanwhile
            part.leave_out("pins", address)
        except ValueError:  # or hid it
            part.leave_out("unpinnable", address)
