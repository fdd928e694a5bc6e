"""The store of this site's media."""

import contextlib
import os
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO

from django.conf import settings

from media.files import Store, Stored, StoreError
from runtime.addresses import parse_bucket
from runtime.disk import sync
from web import uploads

READABLE = 0o640
"""Mode of stored files. A web server in the site's group may read them (FEEDSITE_MEDIA_ACCEL_PATH)."""


class Folder:
    """Files in a folder of this machine."""

    is_remote = False

    def __init__(self, root: Path) -> None:
        self.root = root

    def save(self, source: Path, name: str) -> None:
        with _errors():
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            source.chmod(READABLE)
            sync(source)
            source.rename(target)
            sync(target.parent)

    def move(self, name: str, to: str) -> None:
        with _errors(), contextlib.suppress(FileNotFoundError):
            target = self.root / to
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).rename(target)
            sync(target.parent)

    def delete(self, name: str) -> None:
        with _errors():
            (self.root / name).unlink(missing_ok=True)

    def open(self, name: str) -> IO[bytes]:
        return (self.root / name).open("rb")

    def has(self, name: str) -> bool:
        return (self.root / name).exists()

    def listing(self, prefix: str) -> Iterator[Stored]:
        now = time.time()
        try:
            with os.scandir(self.root / prefix) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        found = entry.stat()
                        yield Stored(f"{prefix}/{entry.name}", found.st_size, now - found.st_mtime)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(str(error)) from error


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise StoreError(str(error)) from error


def store() -> Store:
    """The store of this site."""
    if url := settings.MEDIA_STORE_SECRET_URL:
        return _bucket(url, settings.MEDIA_STORE_TIMEOUT_SECONDS)
    return _folder(settings.MEDIA_DIR / "files")


@lru_cache(1)
def _folder(root: Path) -> Folder:
    return Folder(root)


@lru_cache(1)
def _bucket(url: str, timeout_seconds: float) -> Store:
    from media.bucket import Bucket  # half a second and 20 MB that only bucket sites need

    return Bucket(parse_bucket(url), timeout_seconds)


def incoming() -> Path:
    """The folder for new files. Raises StoreError."""
    try:
        return uploads.upload_folder()
    except OSError as error:
        raise StoreError(str(error)) from error
