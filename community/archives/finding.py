"""Finds the posts in `outbox.json`, an OrderedCollection of ActivityPub, and entries of such lists.

The file is not read into memory. Limits on entries and brackets bound the time. Without Django.
"""

import mmap
import re
from array import array
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

ITEMS = 50_000
"""Maximum items of an outbox that are imported."""
COUNTED = 100_000
"""Items of an outbox are counted up to this number."""
BRACKETS = 4_000_000
"""Maximum brackets and non-object entries in a file. A post of Mastodon has 30 brackets. This many take 4 seconds."""
LONGEST_BYTES = 1 << 20
"""Maximum size of an item."""
DEEPEST = 64
_KEY = re.compile(rb'"orderedItems"\s*+:\s*+\[')
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)'
_ENTRY = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)
# Up to the next bracket. Strings may contain some.
_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])", re.DOTALL)
_PUBLISHED = re.compile(rb'"published"\s*+:\s*+"([0-9TtZz:.+ -]{10,40})"')
_LEAP = re.compile(r"(\d\d:\d\d):60(?!\d)")


class OutboxError(ValueError):
    """The file is no outbox. The message is a key of models.FAILURES."""


class ArchiveOutbox:
    """The items of an outbox, oldest first."""

    def __init__(self, path: Path, places: "array[int]") -> None:
        self._path, self._places = path, places

    def __len__(self) -> int:
        return len(self._places) // 2

    def items(self, first: int, count: int) -> list[bytes]:
        """Items as raw JSON, from a position on."""
        numbers = self._places[2 * first : 2 * (first + count)]
        with self._path.open("rb") as file:
            return [_read(file, begin, length) for begin, length in zip(numbers[::2], numbers[1::2], strict=True)]


def _read(file: IO[bytes], begin: int, length: int) -> bytes:
    file.seek(begin)
    return file.read(min(length, LONGEST_BYTES + 1))


def write_index(path: Path, most: int = ITEMS) -> int:
    """Write the positions of the first `most` items. Return their number, at most `COUNTED`. Raises OutboxError."""
    rows: list[tuple[float, int, int]] = []
    count = 0
    with path.open("rb") as file:
        for begin, end in item_spans(file):
            count += 1
            if count <= most:
                file.seek(begin)
                rows.append((_published_time(file.read(min(end - begin, LONGEST_BYTES))), begin, end - begin))
            if count == COUNTED:
                break
    rows.sort(key=lambda row: row[0])
    places = array("q", (number for _time, begin, length in rows for number in (begin, length)))
    _index_path(path).write_bytes(places.tobytes())
    return count


def open_outbox(path: Path) -> ArchiveOutbox:
    """An indexed outbox."""
    places = array("q")
    places.frombytes(_index_path(path).read_bytes())
    return ArchiveOutbox(path, places)


def _index_path(path: Path) -> Path:
    return path.with_suffix(".places")


def item_spans(file: IO[bytes], brackets: int = BRACKETS) -> Iterator[tuple[int, int]]:
    """The begin and end of each item. Raises OutboxError."""
    try:
        view: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # it is empty
        raise OutboxError("outbox") from error
    with view:
        start = _KEY.search(view)
        if start is None:
            raise OutboxError("outbox")
        depth, begin, at = 0, start.end(), start.end()
        for _ in range(brackets):
            token = _BRACKET.match(view, at) if depth else _ENTRY.search(view, at)
            if token is None:
                raise OutboxError("outbox")  # it is truncated
            at = token.end()
            sign = view[at - 1 : at]
            if not depth and view[token.start() : token.start() + 1] == b'"':
                yield token.span()
            elif sign in b"{[":
                begin = token.start() if depth == 0 else begin
                depth += 1
                if depth > DEEPEST:
                    raise OutboxError("deep")
            else:
                depth -= 1
                if depth < 0:
                    return
                if depth == 0:
                    yield begin, at
    raise OutboxError("large")


def moment(text: str) -> datetime | None:
    """A timestamp, or None without a zone. A leap second becomes the next second."""
    try:
        written = datetime.fromisoformat(_LEAP.sub(r"\1:59", text.strip()))
        found = written + timedelta(seconds=1) if _LEAP.search(text) else written
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else None


def _published_time(item: bytes) -> float:
    found = _PUBLISHED.search(item)
    said = moment(found[1].decode()) if found else None
    try:
        return said.timestamp() if said else 0.0
    except OverflowError:
        return 0.0
