"""The files of an archive as Mastodon makes it, a zip or a tar.gz, unpacked into a folder under names of our own.

An archive may hold anything. Known files alone are taken, each up to its bound; no name of the archive becomes a path,
links and devices are passed over, and so are files that are encrypted or damaged. All that is unpacked and read is
bounded as a whole, whatever the archive says of itself.

See docs/decisions.md: Code written by hand, and why it stays.
"""

import gzip
import hashlib
import io
import os
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from django.conf import settings

CHUNK_BYTES = 1 << 18
MEMBERS = 100_000
"""Files of an archive that are looked at."""
DIRECTORY_BYTES = 16 << 20
"""Bytes at most of the table of contents of a zip, which is read into memory."""
HEADER_BYTES = 1 << 16
"""Bytes at most of an extended header of a tar, which is read into memory."""
JSON_BYTES = 256 << 20
LIST_BYTES = 16 << 20
"""Bytes at most of a list beside the posts. A longer one is kept as a file that only says so."""
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
"""The errors of a file in a zip that cannot be read."""


class ArchiveError(ValueError):
    """The file is no archive that can be read; the message is one word, a key of models.FAILURES."""


def unpack(source: Path, folder: Path) -> None:
    """Unpack what is known into a folder that is there. Raises ArchiveError, and OSError where the disk is full."""
    room = _Room(settings.ARCHIVE_BYTES + JSON_BYTES)
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
    if not (folder / "outbox.json").exists():
        raise ArchiveError("outbox")


def medium(folder: Path, url: str) -> Path | None:
    """The unpacked file of an attachment by the address that its post names; None where there is none."""
    name = _medium_name(url)
    path = folder / name if name else None
    return path if path and path.is_file() else None


def _target(name: str) -> str | None:
    """The name under which a file of the archive is kept; None for one that is not taken."""
    name = name.replace("\\", "/")
    if "\0" in name or ".." in name.split("/") or len(name) > 1_000:
        return None
    if top := _TOP.fullmatch(name):
        return top[1] or top[2]
    return _medium_name(name)


def _medium_name(name: str) -> str | None:
    """A name of letters and digits for a picture or video, by its path from `MEDIA` on."""
    before, known, rest = name.partition(MEDIA)
    if not known or not rest or (before and not before.endswith("/")):
        return None
    return f"medium-{hashlib.sha256(rest.encode(errors='surrogatepass')).hexdigest()[:32]}"


def _longest(target: str) -> int:
    if target in LISTS:
        return LIST_BYTES
    return JSON_BYTES if target.endswith(".json") else int(max(settings.MEDIA_IMAGE_BYTES, settings.MEDIA_VIDEO_BYTES))


class _Room:
    """The bytes that may still be written, and read from a packed stream: beyond them is an ArchiveError."""

    def __init__(self, size: int) -> None:
        self.left = size
        self._unread = size + (64 << 20)  # headers and padding besides

    def counted(self, stream: IO[bytes] | gzip.GzipFile) -> IO[bytes]:
        """The stream, bounded as a whole."""
        return io.BufferedReader(_Counted(stream, self._unread), CHUNK_BYTES)

    def save(self, stream: IO[bytes], path: Path) -> None:
        """Write a file, the first of its name; one that is longer than its kind may be is left out. Of a list stays a
        file of NULs: too long a one, or one NUL for a damaged one.
        """
        longest, size, is_whole = _longest(path.name), 0, True
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


class _Counted(io.RawIOBase):
    """A stream that ends with an error after so many bytes."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, most: int) -> None:
        self._stream, self._left = stream, most

    def readable(self) -> bool:
        """True: the stream can only be read."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]  # of the ways to write it
        """The next bytes. Raises ArchiveError."""
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
def _unzip(file: IO[bytes], folder: Path, room: _Room) -> None:
    _check_directory(file)
    try:
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist()[:MEMBERS]:
                if (target := _target(info.filename)) and _is_plain(info):
                    _save(archive, info, folder / target, room)
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, struct.error, ValueError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError("damaged") from error


def _save(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, room: _Room) -> None:
    try:
        with archive.open(info) as stream:
            room.save(stream, path)
    except DAMAGES:  # its header is not what the table of contents says
        return


def _is_plain(info: zipfile.ZipInfo) -> bool:
    """Whether a member is a file that can be read: no folder, no link, not encrypted, packed in the usual way."""
    mode = info.external_attr >> 16
    is_file = not info.is_dir() and (not stat.S_IFMT(mode) or stat.S_ISREG(mode))
    return is_file and not info.flag_bits & 1 and info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def _check_directory(file: IO[bytes]) -> None:
    """Raise ArchiveError for a zip whose table of contents is longer than is read into memory.

    The library reads as many bytes as the last record of the file says, or the record of 64 bits before it.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - (1 << 16) - 100))
    tail = file.read()
    file.seek(0)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) < end + 22:
        raise ArchiveError("damaged")
    (length,) = struct.unpack_from("<L", tail, end + 12)
    wide = tail.rfind(b"PK\x06\x06", 0, end)
    if wide >= 0 and len(tail) >= wide + 56:
        length = max(length if length < 0xFFFFFFFF else 0, struct.unpack_from("<Q", tail, wide + 40)[0])
    if length > DIRECTORY_BYTES:
        raise ArchiveError("large")


# --- Tar -------------------------------------------------------------------------------------------------
class _Member(tarfile.TarInfo):
    """A member whose extended headers are bounded: the library reads them into memory whole."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        is_header = self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) and not self.isreg()
        if is_header and self.size > HEADER_BYTES:
            raise ArchiveError("large")
        member: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]  # the hook for one's own members
        return member


def _untar(stream: IO[bytes], folder: Path, room: _Room) -> None:
    try:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as archive:
            for member in _members(archive):
                target = _target(member.name)
                if target and member.isreg() and not member.issparse():
                    packed = archive.extractfile(member)
                    if packed is not None:
                        room.save(packed, folder / target)
    except (tarfile.TarError, UnicodeDecodeError, OverflowError) as error:
        raise ArchiveError("damaged") from error


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members one by one; the library would remember them all."""
    for _number in range(MEMBERS):
        member = archive.next()
        if member is None:
            return
        yield member
        archive.members = []  # type: ignore[attr-defined]
