"""The files of an archive as Mastodon makes it, a zip or a tar.gz, unpacked into a folder under names of our own.

An archive may hold anything. Known files alone are taken, each up to its bound; no name of the archive becomes a path,
links and devices are passed over, and so are files that are encrypted or damaged. All that is unpacked and read is
bounded as a whole, whatever the archive says of itself. It knows nothing of Django: a program with limits runs it
(reading.py).

See docs/decisions.md: Own code in place of a library.
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
"""Files of an archive at most."""
DIRECTORY_BYTES = 16 << 20
"""Bytes at most of the table of contents of a zip, which is read into memory."""
HEADER_BYTES = 1 << 14
"""Bytes at most of an extended header of a tar, which is read into memory, and of all that are for the whole tar."""
HEADERS = 4
"""Extended headers of one file in a tar."""
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


class Bounds(NamedTuple):
    """Bytes at most: of all that is unpacked, of a file of JSON, and of a picture or video."""

    total: int
    json: int
    medium: int


def unpack(source: Path, folder: Path, bounds: Bounds) -> None:
    """Unpack what is known into a folder that is there. Raises ArchiveError, and OSError where the disk is full."""
    try:
        _unpack(source, folder, _Room(bounds))
    except (ArchiveError, OSError, MemoryError):
        raise
    except Exception as error:  # the libraries raise what they like for damaged bytes
        raise ArchiveError("damaged") from error
    if not (folder / "outbox.json").exists():
        raise ArchiveError("outbox")


def _unpack(source: Path, folder: Path, room: "_Room") -> None:
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


def medium(folder: Path, url: str) -> Path | None:
    """The unpacked file of an attachment by the address that its post names; None where there is none.

    An address may have a query, and names in it may be quoted.
    """
    bare = re.split(r"[?#]", url, maxsplit=1)[0]
    plain = unquote(bare)
    for address in dict.fromkeys((url, bare, plain, unquote(url), quote(plain, errors="replace"))):
        name = _medium_name(address)
        if name and (folder / name).is_file():
            return folder / name
    return None


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
    rest = unicodedata.normalize("NFC", rest)
    return f"medium-{hashlib.sha256(rest.encode(errors='surrogatepass')).hexdigest()[:32]}"


def _longest(target: str, bounds: Bounds) -> int:
    if target in LISTS:
        return LIST_BYTES
    return bounds.json if target.endswith(".json") else bounds.medium


class _Room:
    """The bytes that may still be written, and read from a packed stream: beyond them is an ArchiveError."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.left = bounds.total
        self._unread = bounds.total + (64 << 20)  # headers and padding besides

    def counted(self, stream: IO[bytes] | gzip.GzipFile) -> IO[bytes]:
        """The stream, bounded as a whole."""
        return io.BufferedReader(_Counted(stream, self._unread), CHUNK_BYTES)

    def save(self, stream: IO[bytes], path: Path) -> None:
        """Write a file, the first of its name; one that is longer than its kind may be is left out. Of a list stays a
        file of NULs: too long a one, or one NUL for a damaged one.
        """
        longest, size, is_whole = _longest(path.name, self._bounds), 0, True
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
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if (target := _target(info.filename)) and _is_plain(info):
                _save(archive, info, folder / target, room)


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
    """Raise ArchiveError for a zip whose table of contents is longer than is read into memory, or has too many entries.

    The library finds the record that says where the table is: another way to read it would find another record.
    """
    try:
        record: Any = zipfile._EndRecData(file)  # type: ignore[attr-defined]  # what ZipFile calls
    except (OSError, struct.error, zipfile.BadZipFile) as error:
        raise ArchiveError("damaged") from error
    if not record:
        raise ArchiveError("damaged")
    length, place = record[zipfile._ECD_SIZE], record[zipfile._ECD_LOCATION]  # type: ignore[attr-defined]
    if length > DIRECTORY_BYTES:
        raise ArchiveError("large")
    before = 76  # bytes of two more records, which a large zip has before this one
    file.seek(max(0, place - length - before))
    if file.read(length + before).count(b"PK\x01\x02") > MEMBERS:
        raise ArchiveError("large")
    file.seek(0)


# --- Tar -------------------------------------------------------------------------------------------------
class _Member(tarfile.TarInfo):
    """A member whose headers are bounded: the library reads them into memory whole, before it can be asked."""

    def _proc_member(self, tar: "_Tar") -> tarfile.TarInfo:
        if self.size < 0:
            raise ArchiveError("damaged")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise ArchiveError("large")
        if not self.isreg() and self.size > HEADER_BYTES:
            raise ArchiveError("large")
        if self.type in HEADER_TYPES:
            tar.count(self)
        member: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]  # the hook for one's own members
        if member.size < 0:
            raise ArchiveError("damaged")
        return member

    def _sparse(self, *_args: object) -> None:
        raise ArchiveError("large")

    # The map of a sparse file, in three formats: a list of any length.
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
    """A tar whose extended headers are counted: the library reads those of a file by recursion, and keeps those of the
    whole tar.
    """

    tarinfo = _Member
    _in_a_row = _kept_bytes = 0

    def next(self) -> tarfile.TarInfo | None:
        """The next member. Raises ArchiveError."""
        self._in_a_row = 0
        return super().next()

    def count(self, header: tarfile.TarInfo) -> None:
        """Count an extended header. Raises ArchiveError for one too many."""
        self._in_a_row += 1
        if header.type == tarfile.XGLTYPE:
            self._kept_bytes += header.size
        if self._in_a_row > HEADERS or self._kept_bytes > HEADER_BYTES:
            raise ArchiveError("large")


def _untar(stream: IO[bytes], folder: Path, room: _Room) -> None:
    with _Tar.open(fileobj=stream, mode="r|") as archive:
        for member in _members(archive):
            target = _target(member.name)
            if target and member.isreg():
                packed = archive.extractfile(member)
                if packed is not None:
                    room.save(packed, folder / target)


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members one by one; the library would remember them all. Raises ArchiveError for too many."""
    for _number in range(MEMBERS):
        member = archive.next()
        if member is None:
            return
        yield member
        archive.members = []  # type: ignore[attr-defined]
    raise ArchiveError("large")
