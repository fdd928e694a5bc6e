"""Unpacks a Mastodon archive (zip or tar.gz) into a folder.

Archives are untrusted. Only known files are unpacked, each up to its limit, under names that we choose. Links and
devices are skipped. Total bytes are bounded. Without Django: a process with limits runs it (reading.py).
"""

import gzip
import hashlib
import io
import os
import re
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote, unquote

CHUNK_BYTES = 1 << 18
MEMBERS = 100_000
"""Maximum files in an archive."""
DIRECTORY_BYTES = 16 << 20
"""Maximum size of a zip's table of contents, which is read into memory."""
HEADER_BYTES = 1 << 14
"""Maximum size of one extended tar header, and of all global ones. They are read into memory."""
HEADERS = 4
"""Maximum extended headers per file in a tar."""
JSON_BYTES = 256 << 20
LIST_BYTES = 16 << 20
"""Maximum size of a list. A longer list is marked as too long."""
MEDIA = "media_attachments/"
LISTS = frozenset(
    {
        "likes.json",
        "bookmarks.json",
        "featured.json",
        "following_accounts.csv",
        "blocked_accounts.csv",
        "muted_accounts.csv",
        "lists.csv",
    }
)

_NAMES = "|".join(map(re.escape, sorted({"outbox.json", "actor.json", *LISTS})))
_TOP = re.compile(rf"(?:\./)?(?:[^/]+/)?(?:({_NAMES})|(avatar|header)\.[A-Za-z0-9]{{1,5}})")
DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, gzip.BadGzipFile)
"""Errors of unreadable files in a zip."""


class ArchiveError(ValueError):
    """The archive cannot be read. The message is a key of models.FAILURES."""


class ArchiveBounds(NamedTuple):
    """Maximum bytes in all, of a JSON file, and of a picture or video."""

    total: int
    json: int
    medium: int


def unpack(source: Path, folder: Path, bounds: ArchiveBounds) -> None:
    """Unpack into an existing folder. Raises ArchiveError, and OSError if the disk is full."""
    try:
        _unpack(source, folder, _UnpackBudget(bounds))
    except (ArchiveError, OSError, MemoryError):
        raise
    except Exception as error:  # the libraries raise anything for damaged bytes
        raise ArchiveError("damaged") from error
    if not (folder / "outbox.json").exists():
        raise ArchiveError("outbox")


def _unpack(source: Path, folder: Path, room: "_UnpackBudget") -> None:
    with source.open("rb") as file:
        head = file.read(512)
        file.seek(0)
        if head[:2] == b"PK":
            _unzip(file, folder, room)
        elif head[:2] == b"\x1f\x8b":
            with gzip.open(file) as unpacked:
                _untar(room.counted(unpacked), folder, room)
        elif head[257:262] == b"ustar":
            _untar(room.counted(file), folder, room)
        else:
            raise ArchiveError("format")


def find_medium(folder: Path, url: str) -> Path | None:
    """The unpacked file of an attachment."""
    bare = re.split(r"[?#]", url, maxsplit=1)[0]
    plain = unquote(bare)
    for address in dict.fromkeys((url, bare, plain, unquote(url), quote(plain, errors="replace"))):
        name = _medium_name(address)
        if name and (folder / name).is_file():
            return folder / name
    return None


def _safe_target(name: str) -> str | None:
    name = name.replace("\\", "/")
    if "\0" in name or ".." in name.split("/") or len(name) > 1_000:
        return None
    if top := _TOP.fullmatch(name):
        return top[1] or top[2]
    return _medium_name(name)


def _medium_name(name: str) -> str | None:
    """A safe name: a hash of the path after `MEDIA`."""
    before, known, rest = name.partition(MEDIA)
    if not known or not rest or (before and not before.endswith("/")):
        return None
    rest = unicodedata.normalize("NFC", rest)
    return f"medium-{hashlib.sha256(rest.encode(errors='surrogatepass')).hexdigest()[:32]}"


def _max_bytes(target: str, bounds: ArchiveBounds) -> int:
    if target in LISTS:
        return LIST_BYTES
    return bounds.json if target.endswith(".json") else bounds.medium


class _UnpackBudget:
    def __init__(self, bounds: ArchiveBounds) -> None:
        self._bounds = bounds
        self.left = bounds.total
        self._unread = bounds.total + (64 << 20)  # plus headers and padding

    def counted(self, stream: IO[bytes] | gzip.GzipFile) -> IO[bytes]:
        return io.BufferedReader(_LimitedStream(stream, self._unread), CHUNK_BYTES)

    def save(self, stream: IO[bytes], path: Path) -> None:
        """Write a file unless its name exists. Too large files are left out. A list leaves NULs instead: more than
        allowed if too long, one if damaged.
        """
        longest, size, is_whole = _max_bytes(path.name, self._bounds), 0, True
        try:
            with path.open("xb") as file:
                while part := stream.read(CHUNK_BYTES):
                    size += len(part)
                    self.left -= len(part)
                    if self.left < 0:
                        raise ArchiveError("large")
                    if size > longest:
                        break
                    file.write(part)
        except FileExistsError:
            return
        except DAMAGES:
            is_whole = False
        if size > longest or not is_whole:
            path.unlink(missing_ok=True)
            if path.name == "outbox.json":
                raise ArchiveError("large" if is_whole else "damaged")
            if path.name in LISTS:
                path.touch()
                os.truncate(path, longest + 1 if is_whole else 1)


class _LimitedStream(io.RawIOBase):
    def __init__(self, stream: IO[bytes] | gzip.GzipFile, most: int) -> None:
        self._stream, self._left = stream, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]  # of the ways to write it
        try:
            part = self._stream.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ArchiveError("damaged") from error
        self._left -= len(part)
        if self._left < 0:
            raise ArchiveError("large")
        buffer[: len(part)] = part
        return len(part)


# --- Zip -------------------------------------------------------------------------------------------------
def _unzip(file: IO[bytes], folder: Path, room: _UnpackBudget) -> None:
    _check_directory(file)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if (target := _safe_target(info.filename)) and _is_plain_file(info):
                _save(archive, info, folder / target, room)


def _save(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, room: _UnpackBudget) -> None:
    try:
        with archive.open(info) as stream:
            room.save(stream, path)
    except DAMAGES:  # its header contradicts the table of contents
        return


def _is_plain_file(info: zipfile.ZipInfo) -> bool:
    mode = info.external_attr >> 16
    is_file = not info.is_dir() and (not stat.S_IFMT(mode) or stat.S_ISREG(mode))
    return is_file and not info.flag_bits & 1 and info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def _check_directory(file: IO[bytes]) -> None:
    """Raise ArchiveError if the table of contents is too long, as the library finds it."""
    try:
        record: Any = zipfile._EndRecData(file)  # type: ignore[attr-defined]  # what ZipFile calls
    except (OSError, struct.error, zipfile.BadZipFile) as error:
        raise ArchiveError("damaged") from error
    if not record:
        raise ArchiveError("damaged")
    length, place = record[zipfile._ECD_SIZE], record[zipfile._ECD_LOCATION]  # type: ignore[attr-defined]
    if length > DIRECTORY_BYTES:
        raise ArchiveError("large")
    before = 76  # size of two more records that precede this one in a large zip
    file.seek(max(0, place - length - before))
    if file.read(length + before).count(b"PK\x01\x02") > MEMBERS:
        raise ArchiveError("large")
    file.seek(0)


# --- Tar -------------------------------------------------------------------------------------------------
class _TarMember(tarfile.TarInfo):
    """A member of a tar with bounded headers. The library reads them into memory before we see the member."""

    def _proc_member(self, tar: "_Tar") -> tarfile.TarInfo:
        if self.size < 0:
            raise ArchiveError("damaged")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise ArchiveError("large")
        if not self.isreg() and self.size > HEADER_BYTES:
            raise ArchiveError("large")
        if self.type in HEADER_TYPES:
            tar.count(self)
        member: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]  # the hook for subclasses
        if member.size < 0:
            raise ArchiveError("damaged")
        return member

    def _sparse(self, *_args: object) -> None:
        raise ArchiveError("large")

    # The map of a sparse file, in three formats, has any length.
    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _sparse


HEADER_TYPES = frozenset(
    {
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    }
)


class _Tar(tarfile.TarFile):
    """A tar with bounded headers. The library reads a file's headers by recursion, and keeps global ones in memory."""

    tarinfo = _TarMember
    _in_a_row = _kept_bytes = 0

    def next(self) -> tarfile.TarInfo | None:
        self._in_a_row = 0
        return super().next()

    def count(self, header: tarfile.TarInfo) -> None:
        self._in_a_row += 1
        if header.type == tarfile.XGLTYPE:
            self._kept_bytes += header.size
        if self._in_a_row > HEADERS or self._kept_bytes > HEADER_BYTES:
            raise ArchiveError("large")


def _untar(stream: IO[bytes], folder: Path, room: _UnpackBudget) -> None:
    with _Tar.open(fileobj=stream, mode="r|") as archive:
        for member in _members(archive):
            target = _safe_target(member.name)
            if target and member.isreg():
                packed = archive.extractfile(member)
                if packed is not None:
                    room.save(packed, folder / target)


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members of a tar, one by one. Raises ArchiveError for too many."""
    for _number in range(MEMBERS):
        member = archive.next()
        if member is None:
            return
        yield member
        archive.members = []  # type: ignore[attr-defined]
    raise ArchiveError("large")
