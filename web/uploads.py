"""Bodies with files: where, how large, and how they reach the disk.

feedsite.wsgi writes a body to disk as it arrives. Then Django's parser splits off the files. No file is ever whole in
memory.

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
"""The most bytes of an uploaded list of follows, blocks or mutes."""
FILES_AT_ONCE = 4
"""The most files in one body."""
ROOM_BYTES = 256 * 1024
"""Bytes of a body besides its files."""
ADDRESSES = re.compile(
    r"/api/v1/me/media(?:/[^/]+/captions)?|/api/v1/users/me/(?:avatar|banner)|/items/new|/items/\d+/edit|/settings|/settings/profile"
    r"|/live/new|/live/\d+/edit|/admin/moderation/picturerule/add/|/api/v[12]/media(?:/\d+)?|/api/v1/accounts/update_credentials"
)
"""The paths that take files. Other bodies have Django's limit, or a lower one."""


def most_bytes(path: str) -> int:
    """The most bytes of a body with files at this path. 0 if it takes none."""
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
    """The folder for uploads. Raises OSError."""
    path: Path = settings.MEDIA_INCOMING
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


class Upload(UploadedFile):  # type: ignore[type-arg]  # it cannot be subscripted at run time
    """An uploaded file on disk, deleted when closed. The path does not contain the sender's name."""

    def __init__(self, name: str | None, content_type: str | None, charset: str | None) -> None:
        file = tempfile.NamedTemporaryFile(suffix=".upload", dir=folder())  # noqa: SIM115 (it is the object)
        self.path = str(file.name)
        super().__init__(file, (name or "")[-100:], content_type, 0, charset)

    def temporary_file_path(self) -> str:
        """The file's path."""
        return self.path


class FileHandler(FileUploadHandler):
    """Writes every file to disk, at most `FILES_AT_ONCE`."""

    def __init__(self, request: Any = None) -> None:
        super().__init__(request)
        self._uploads: list[Upload] = []

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin a file. Raises StopUpload for too many files, and OSError."""
        super().new_file(*args, **kwargs)
        if len(self._uploads) == FILES_AT_ONCE:
            raise StopUpload(connection_reset=True)
        with self._all_or_nothing():
            self._uploads.append(Upload(self.file_name, self.content_type, self.charset))

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a part of the file. On a full disk deletes the body's files and raises OSError."""
        with self._all_or_nothing():
            self._uploads[-1].write(raw_data)

    def file_complete(self, file_size: int) -> Upload:
        """The file, ready to read from its beginning."""
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
        """Delete all files of the body."""
        for upload in self._uploads:
            with suppress(OSError):
                upload.close()

    @property
    def file(self) -> "FileHandler":
        """What Django's parser closes if a body ends early."""
        return self

    def close(self) -> None:
        """Delete all files of the body."""
        self.upload_interrupted()


def spooled(stream: IO[bytes], size: int, file: IO[bytes]) -> int:
    """Write at most `size` bytes of a body. Returns how many came."""
    came = 0
    while came < size:
        with slow_senders.watched():
            part = stream.read(min(1 << 18, size - came))
        if not part:
            break
        file.write(part)
        came += len(part)
    return came
