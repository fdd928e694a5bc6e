"""The store of this site's media files: the data folder, or a bucket of an S3-compatible store."""

import contextlib
import os
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO

from django.conf import settings

from media.files import Store, Stored, StoreError
from runtime import bucket_address
from runtime.disk import sync
from web import uploads

READABLE = 0o640
"""The mode of the files: a server in the group of the site may send them (FEEDSITE_MEDIA_ACCEL_PATH)."""


class Folder:
    """The files of a folder of this machine."""

    is_remote = False

    def __init__(self, root: Path) -> None:
        self.root = root

    def save(self, source: Path, name: str) -> None:
        """Keep a file of `incoming` under a name (`Store.save`)."""
        with _errors():
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            source.chmod(READABLE)
            sync(source)
            source.rename(target)
            sync(target.parent)

    def move(self, name: str, to: str) -> None:
        """Give a file another name (`Store.move`)."""
        with _errors(), contextlib.suppress(FileNotFoundError):
            target = self.root / to
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).rename(target)
            sync(target.parent)

    def delete(self, name: str) -> None:
        """Remove a file, if it is there (`Store.delete`)."""
        with _errors():
            (self.root / name).unlink(missing_ok=True)

    def open(self, name: str) -> IO[bytes]:
        """The file, to be read (`Store.open`)."""
        return (self.root / name).open("rb")

    def has(self, name: str) -> bool:
        """Whether the file is there (`Store.has`)."""
        return (self.root / name).exists()

    def listing(self, prefix: str) -> Iterator[Stored]:
        """The files whose names begin with a prefix (`Store.listing`)."""
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
    from media.bucket import Bucket  # boto3 takes half a second and 20 MB, of sites that have a bucket

    return Bucket(bucket_address.parse(url), timeout_seconds)


def incoming() -> Path:
    """The folder of what is on its way: uploads, and pictures before they are kept. Raises StoreError."""
    try:
        return uploads.folder()
    except OSError as error:
        raise StoreError(str(error)) from error
