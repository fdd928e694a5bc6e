"""Bodies with files: how large, and how they reach the disk.

A view says in `takes_files` which methods take files, and how many bytes a body may have. feedsite.wsgi reads that
before the body, and writes the body to disk as it arrives. Then Django's parser splits off the files. No file is ever
whole in memory.

See docs/decisions.md: Own code in place of a library.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.urls import Resolver404

from runtime.slow_senders import slow_senders
from web.requests import match_of

FILES_AT_ONCE = 4
"""The most files in one body."""
ROOM_BYTES = 256 * 1024
"""Bytes of a body besides its files."""
ADMIN_FORMS = frozenset({"add_view", "change_view"})
"""Names of the admin's views with a form that may take files."""
TOO_LONG = "feedsite.too_long"
"""Set in the environ of a request whose body is too long and was not read (web.outage)."""

Limit = Callable[[], int]
"""The most bytes of a body."""
View = TypeVar("View", bound=Callable[..., Any])


def one_medium_bytes() -> int:
    """A picture or a video, with its fields."""
    return int(max(settings.MEDIA_IMAGE_BYTES, settings.MEDIA_VIDEO_BYTES)) + ROOM_BYTES


def medium_and_poster_bytes() -> int:
    """A picture, or a video and the picture that it shows before it plays, with their fields."""
    return one_medium_bytes() + int(settings.MEDIA_IMAGE_BYTES)


def some_media_bytes() -> int:
    """`FILES_AT_ONCE` pictures or a video, with their fields."""
    return int(max(settings.MEDIA_IMAGE_BYTES * FILES_AT_ONCE, settings.MEDIA_VIDEO_BYTES)) + ROOM_BYTES


def takes_files(limit: Limit) -> Callable[[View], View]:
    """Decorate a page: its POSTs take files. Classes of the API and of the admin have an attribute `takes_files`."""

    def decorate(view: View) -> View:
        view.takes_files = {"POST": limit}  # type: ignore[attr-defined]
        return view

    return decorate


def most_bytes(path: str, method: str, most: int = 0) -> tuple[int, int]:
    """The most bytes of a body that the view at this path takes: with files (0 if it takes none), and without (at most
    `most`).
    """
    try:
        view: Any = match_of(path, settings.ROOT_URLCONF).func
    except Resolver404:
        return 0, 0
    form = getattr(view, "model_admin", None) if getattr(view, "__name__", "") in ADMIN_FORMS else None
    view = getattr(view, "cls", None) or form or view
    limits: Mapping[str, Limit] = getattr(view, "takes_files", {})
    return limits[method]() if method in limits else 0, min(getattr(view, "body_bytes", most), most)


def upload_folder() -> Path:
    """The folder for uploads. Raises OSError."""
    path: Path = settings.MEDIA_INCOMING
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


class SentFile(UploadedFile):  # type: ignore[type-arg]  # it cannot be subscripted at run time
    """An uploaded file on disk, deleted when closed. The path does not contain the sender's name."""

    def __init__(self, name: str | None, content_type: str | None, charset: str | None) -> None:
        file = tempfile.NamedTemporaryFile(suffix=".upload", dir=upload_folder())  # noqa: SIM115 (it is the object)
        self.path = str(file.name)
        super().__init__(file, (name or "")[-100:], content_type, 0, charset)

    def temporary_file_path(self) -> str:
        """The file's path."""
        return self.path


class FileHandler(FileUploadHandler):
    """Writes every file to disk, at most `FILES_AT_ONCE`."""

    def __init__(self, request: Any = None) -> None:
        super().__init__(request)
        self._uploads: list[SentFile] = []

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin a file. Raises StopUpload for too many files, and OSError."""
        super().new_file(*args, **kwargs)
        if len(self._uploads) == FILES_AT_ONCE:
            raise StopUpload(connection_reset=True)
        with self._all_or_nothing():
            self._uploads.append(SentFile(self.file_name, self.content_type, self.charset))

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a part of the file. On a full disk deletes the body's files and raises OSError."""
        with self._all_or_nothing():
            self._uploads[-1].write(raw_data)

    def file_complete(self, file_size: int) -> SentFile:
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


def spool(stream: IO[bytes], size: int, file: IO[bytes]) -> int:
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
