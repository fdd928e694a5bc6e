"""Names and types of media files, and the interface of their store.

Files never change. Whoever knows a name, `ab/<30 random hex digits>.<extension>`, can fetch it. An `s` after the
digits says that the picture has its sizes (`size_name`), for those who know its address alone.
"""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from storage.breaker import UnavailableError

PREFIXES = [f"{number:02x}" for number in range(256)]
"""The store's folders. Each file name begins with one."""
NAME = re.compile(
    r"[0-9a-f]{2}/[0-9a-f]{30}s?"
    r"(?:\.small|\.[0-9]{2,4}(?=\.webp)|\.[0-9a-z]{4}(?=\.vtt))?\.(jpg|webp|mp4|mov|webm|vtt)",
    re.ASCII,
)
ORIGINAL = "original"
"""The ending of an uploaded video that waits for its conversion. It is never served."""
ORIGINAL_NAME = re.compile(rf"[0-9a-f]{{2}}/[0-9a-f]{{30}}\.{ORIGINAL}", re.ASCII)
TYPES = {
    "jpg": "image/jpeg",
    "webp": "image/webp",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "vtt": "text/vtt; charset=utf-8",
    ORIGINAL: "application/octet-stream",
}
"""Content types by extension."""
FACE_WIDTHS = (48, 96, 192)
"""Sizes of each avatar and logo with an `s` in its name."""
CACHING = "public, max-age=31536000, immutable"
"""Cache-Control of answers that never change."""


class StoreError(UnavailableError):
    """The store is full or silent. Nothing was kept."""

    sentence = "The file storage is full or does not answer. Try again later."


class Stored(NamedTuple):
    """A stored file. `age`: seconds since it was written."""

    name: str
    size: int
    age: float


class Store(Protocol):
    """A store of files. Each method raises StoreError."""

    is_remote: bool
    """Whether each file comes from a server, so that a thread waits for it."""

    def save(self, source: Path, name: str) -> None:
        """Move a file of `incoming` into the store, onto disk."""

    def move(self, name: str, to: str) -> None:
        """Rename a file, if it exists."""

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""

    def open(self, name: str) -> IO[bytes]:
        """Open for reading. The caller closes it. Raises FileNotFoundError too."""

    def has(self, name: str) -> bool:
        """Whether the file exists."""

    def listing(self, prefix: str) -> Iterator[Stored]:
        """The files of a folder, one of `PREFIXES`."""


def new_name(*, has_sizes: bool = False) -> str:
    """A name that no one can guess."""
    return f"{secrets.token_hex(1)}/{secrets.token_hex(15)}{'s' if has_sizes else ''}"


def is_stored_name(name: str) -> bool:
    """Whether the site makes such names, of files that it serves and of originals."""
    return bool(NAME.fullmatch(name) or ORIGINAL_NAME.fullmatch(name))


def size_name(name: str, width: int) -> str:
    """The name of a picture's file of another width."""
    return f"{name}.{width}.webp"
