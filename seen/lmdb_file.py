"""Whether a file of LMDB is as long as it says. Reading a mapped page beyond the end kills the process (SIGBUS).

LMDB does not write a page that one transaction took and freed again. So a whole file may lack free pages at its end.
"""

import os
import stat
import struct
from collections.abc import Iterator
from typing import NamedTuple

_META = struct.Struct("=16x II 16x I H 34x Q 4x H 42x QQ")
"""Begins with magic and version. Of the table of free pages: bytes of a page, flags, root. Of the table of tables: its
flags. At the end: last page, transaction.
"""
MAGIC, VERSION = 0xBEEFC0DE, 1
FLAGS = 8, 0
NO_ROOT = 2**64 - 1
PAGE_BYTES = frozenset(2**power for power in range(9, 17))
HEADER_BYTES = 16
"""At the beginning of each page."""
IS_BRANCH, IS_LONG = 1, 1
"""Flags of a page, and of a node whose value has pages of its own."""
LOOKS = 10
"""At a file that others change."""


class TornError(Exception):
    """The file is shorter than it says, or not a file of LMDB."""


class FileVersion(NamedTuple):
    """A file, its length, and its last transaction."""

    device: int
    inode: int
    size: int
    transaction: int


class _Meta(NamedTuple):
    """What LMDB says about the file on one of its first two pages."""

    page_bytes: int
    free_root: int
    last_page: int
    transaction: int


def check_file(handle: int, known: FileVersion | None = None) -> FileVersion | None:
    """The version of an open file, whose length is checked unless it is `known`. None if it is empty, as a new one.

    Others may write meanwhile. So the length is read after what it is compared with, which only makes it longer, and
    a file that they changed is looked at again.

    Raises TornError and OSError.
    """
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise TornError("it is not a file")
    if not found.st_size:
        return None
    meta = _newest_meta(handle)
    for _ in range(LOOKS):
        version = FileVersion(found.st_dev, found.st_ino, os.fstat(handle).st_size, meta.transaction)
        try:
            if version != known:
                _check_length(handle, version.size, meta)
        except TornError:
            before, meta = meta, _newest_meta(handle)
            if meta == before:
                raise
        else:
            return version
    raise TornError("it changed each time that it was looked at")


def _newest_meta(handle: int) -> _Meta:
    metas, at = [], 0
    for _ in range(2):
        page = os.pread(handle, _META.size, at)
        if len(page) < _META.size:
            raise TornError("its beginning is missing")
        magic, version, page_bytes, free_flags, free_root, flags, last, transaction = _META.unpack(page)
        # With other flags LMDB ends the process.
        if (magic, version, free_flags, flags) != (MAGIC, VERSION, *FLAGS) or page_bytes not in PAGE_BYTES:
            raise TornError("its beginning is damaged")
        metas.append(_Meta(page_bytes, free_root, last, transaction))
        at = page_bytes
    return max(metas, key=lambda meta: meta.transaction)


def _check_length(handle: int, size: int, meta: _Meta) -> None:
    last, page_bytes = meta.last_page, meta.page_bytes
    if (last + 1) * page_bytes <= size:
        return
    try:
        free = set(_free_pages(handle, size, page_bytes, meta.free_root))
    except (struct.error, ValueError) as error:
        raise TornError("its list of free pages is damaged") from error
    while last in free:
        last -= 1
    if (last + 1) * page_bytes > size:
        raise TornError(f"it has {size:,} of {(last + 1) * page_bytes:,} bytes")


def _free_pages(handle: int, size: int, page_bytes: int, root: int) -> Iterator[int]:
    """The free pages, from a tree with a list for each transaction. Raises ValueError and struct.error."""
    waiting, seen = [root] * (root != NO_ROOT), set[int]()
    while waiting:
        number = waiting.pop()
        if number in seen:
            raise ValueError("a page is its own child")
        seen.add(number)
        page = _read(handle, size, number * page_bytes, page_bytes)
        flags, end = struct.unpack_from("=HH", page, 10)
        for (at,) in struct.iter_unpack("=H", page[HEADER_BYTES:end]):
            low, high, above, key_bytes = struct.unpack_from("=HHHH", page, at)
            if flags & IS_BRANCH:
                waiting.append(low | high << 16 | above << 32)
                continue
            begin, length = at + 8 + key_bytes, low | high << 16
            value = page[begin : begin + length]
            if above & IS_LONG:
                (number,) = struct.unpack_from("=Q", page, begin)
                value = _read(handle, size, number * page_bytes + HEADER_BYTES, length)
            count, *pages = (each for (each,) in struct.iter_unpack("=Q", value))
            yield from pages[:count]


def _read(handle: int, size: int, at: int, length: int) -> bytes:
    if at + length > size:
        raise TornError(f"it has {size:,} of {at + length:,} bytes")
    return os.pread(handle, length, at)
