"""Media files: their names, their types, and what a store of them can do.

A file never changes. Its name is `ab/<30 hex digits>.<extension>`, made at random: whoever knows it can fetch the file.
"""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from storage.breaker import UnavailableError

PREFIXES = [f"{number:02x}" for number in range(256)]
"""The folders of files: each name begins with one."""
NAME = re.compile(r"[0-9a-f]{2}/[0-9a-f]{30}(?:\.small|\.[0-9a-z]{4}(?=\.vtt))?\.(jpg|webp|mp4|mov|webm|vtt)", re.ASCII)
TYPES = {
    "jpg": "image/jpeg",
    "webp": "image/webp",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "vtt": "text/vtt; charset=utf-8",
}
"""The type that a file is sent with, by its extension."""
CACHING = "public, max-age=31536000, immutable"
"""The Cache-Control of an answer that never changes at its address, as a file: it may be kept for a year."""


class StoreError(UnavailableError):
    """The store is full or does not answer: nothing was kept."""


class Stored(NamedTuple):
    """A file in the store, its bytes, and the seconds since it was written."""

    name: str
    size: int
    age: float


class Store(Protocol):
    """The verbs of a store. Each raises StoreError."""

    is_remote: bool
    """Whether each file is asked of a server, for which a thread waits."""

    def save(self, source: Path, name: str) -> None:
        """Keep a file of `incoming` under a name; when this returns it is on the disk."""

    def move(self, name: str, to: str) -> None:
        """Give a file another name; a file that is not there is passed."""

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""

    def open(self, name: str) -> IO[bytes]:
        """The file, to be read and closed by the caller. Raises FileNotFoundError too."""

    def has(self, name: str) -> bool:
        """Whether the file is there."""

    def listing(self, prefix: str) -> Iterator[Stored]:
        """The files whose names begin with one of `PREFIXES`."""


def new_name() -> str:
    """A name that no one can guess."""
    return f"{secrets.token_hex(1)}/{secrets.token_hex(15)}"
