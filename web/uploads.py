"""Bodies with files: the addresses that take them, how long they may be, and how they come to the disk.

The WSGI application (feedsite.wsgi) writes such a body to the disk as it comes, before Django sees it; Django's parser
then takes the files apart. A file is never whole in memory.

See docs/decisions.md: Own code in place of a library.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload

from runtime.slow_senders import slow_senders

LISTS = "/settings/import-export"
ARCHIVES = "/settings/import-archive"
LIST_BYTES = 1 << 20
"""Bytes at most of an uploaded list of follows, blocks or mutes."""
FILES_AT_ONCE = 4
"""Files that one body may have, of pages too."""
ROOM_BYTES = 256 * 1024
"""Bytes of a body besides its files."""
ADDRESSES = re.compile(
    r"/api/v1/me/media(?:/[^/]+/captions)?|/api/v1/users/me/(?:avatar|banner)|/items/new|/items/\d+/edit|/settings|/settings/profile"
    r"|/live/new|/live/\d+/edit|/admin/moderation/picturerule/add/|/api/v[12]/media(?:/\d+)?|/api/v1/accounts/update_credentials"
)
"""The paths that take files; elsewhere a body is as long as Django's own limit, or shorter."""


def most_bytes(path: str) -> int:
    """The bytes that a body with files may have at this path, and 0 where it may have none."""
    if path == LISTS:
        return LIST_BYTES + ROOM_BYTES
    if path == ARCHIVES:
        return int(settings.ARCHIVE_BYTES) + ROOM_BYTES
    if not ADDRESSES.fullmatch(path):
        return 0
    if path.endswith("/captions"):
        return 2 * ROOM_BYTES
    pictures = settings.MEDIA_IMAGE_BYTES * (1 if path.startswith("/api/") else FILES_AT_ONCE)
    return int(max(pictures, settings.MEDIA_VIDEO_BYTES)) + ROOM_BYTES


def folder() -> Path:
    """Where uploads come to lie. Raises OSError."""
    path: Path = settings.MEDIA_INCOMING
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


class Upload(UploadedFile):  # type: ignore[type-arg]  # it cannot be subscripted at run time
    """A file on the disk, which goes when it is closed. The name that the sender gave is no part of its own."""

    def __init__(self, name: str | None, content_type: str | None, charset: str | None) -> None:
        file = tempfile.NamedTemporaryFile(suffix=".upload", dir=folder())  # noqa: SIM115 (it is the object)
        self.path = str(file.name)
        super().__init__(file, (name or "")[-100:], content_type, 0, charset)

    def temporary_file_path(self) -> str:
        """Where it is."""
        return self.path


class FileHandler(FileUploadHandler):
    """Every file goes to the disk, also a small one. A body has at most `FILES_AT_ONCE` files."""

    def __init__(self, request: Any = None) -> None:
        super().__init__(request)
        self._uploads: list[Upload] = []

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin a file. Raises StopUpload for one too many, and OSError where the disk takes none."""
        super().new_file(*args, **kwargs)
        if len(self._uploads) == FILES_AT_ONCE:
            raise StopUpload(connection_reset=True)
        with self._all_or_nothing():
            self._uploads.append(Upload(self.file_name, self.content_type, self.charset))

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a part of the file. Raises OSError where the disk is full; nothing of the body is left then."""
        with self._all_or_nothing():
            self._uploads[-1].write(raw_data)

    def file_complete(self, file_size: int) -> Upload:
        """The file, from its beginning."""
        upload = self._uploads[-1]
        with self._all_or_nothing():
            upload.seek(0)
        upload.size = file_size
        return upload

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self.upload_interrupted()
            raise

    def upload_interrupted(self) -> None:
        """Remove what has come, at once; also where the disk is too full to write what is left of it."""
        for upload in self._uploads:
            with suppress(OSError):
                upload.close()

    @property
    def file(self) -> "FileHandler":
        """The object that Django's parser closes where a body breaks off."""
        return self

    def close(self) -> None:
        """Remove what has come."""
        self.upload_interrupted()


def spooled(stream: IO[bytes], size: int, file: IO[bytes]) -> int:
    """Write at most `size` bytes of a body to a file; how many came."""
    came = 0
    while came < size:
        with slow_senders.watched():
            part = stream.read(min(1 << 18, size - came))
        if not part:
            break
        file.write(part)
        came += len(part)
    return came
