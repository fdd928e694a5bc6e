"""Month filters in LMDB, one file beside the site.

See docs/decisions.md: A play leaves Redis only after it is on disk.
"""

import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import lmdb
from django.conf import settings

from seen import lmdb_file
from seen.filter_store import (
    BATCH,
    FIRST_MONTH,
    Change,
    FilterKey,
    MonthStats,
    StoreUnavailableError,
    clock,
    expiry,
    key_count_change,
)

READERS = 1024
"""The most threads of all processes that read the file at the same time."""
LOCK_BYTES = 64 * (READERS + 2)
"""LMDB's table of readers: a cache line each, and one or two before them."""


class LmdbStore:
    """Filters in one file that the processes of a machine share.

    Tables: `filters` (month, user -> bytes), `expiry` (`expiry`, month, user -> nothing), `months` (month -> number and
    bytes). Only the process that opened an environment may use it.

    Each use checks first that the files are whole, and the ones that were opened. A file that somebody cuts between
    this check and the read still kills the process, but not the next one.
    """

    _FILTER = struct.Struct(">IQ")
    _EXPIRY = struct.Struct(">IIQ")
    _MONTH = struct.Struct(">I")
    _STATS = struct.Struct("<QQ")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data, self._locks = folder / "data.mdb", folder / "lock.mdb"
        self._opening = threading.Lock()
        self._opened: tuple[int, Any, list[Any]] | None = None
        self._files: list[tuple[int, int]] = []
        self._version: lmdb_file.FileVersion | None = None

    def read(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """Implements `FilterStore.read` in one transaction."""
        with self._transaction(write=False) as (transaction, (filters, _, _)):
            return [transaction.get(self._FILTER.pack(key.month, key.user_id), db=filters) for key in keys]

    def read_briefly(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """Does the same as `read`."""
        return self.read(keys)

    def update(self, keys: Sequence[FilterKey], change: Change) -> None:
        """Implements `FilterStore.update`.

        Computes the changes before the write transaction, which blocks others, and repeats outdated ones.
        """
        read = self.read(keys)
        changed = [change(key, old) for key, old in zip(keys, read, strict=True)]
        with self._transaction(write=True) as (transaction, (filters, expiries, months)):
            for key, expected, new in zip(keys, read, changed, strict=True):
                place = self._FILTER.pack(key.month, key.user_id)
                old = transaction.get(place, db=filters)
                if old != expected:
                    new = change(key, old)
                if new == old:
                    continue
                if new is None:
                    transaction.delete(place, db=filters)
                    transaction.delete(self._EXPIRY.pack(expiry(key), key.month, key.user_id), db=expiries)
                else:
                    transaction.put(place, new, db=filters)
                if old is None and key.month >= FIRST_MONTH:
                    transaction.put(self._EXPIRY.pack(expiry(key), key.month, key.user_id), b"", db=expiries)
                self._count(
                    transaction, months, key.month, key_count_change(old, new), len(new or b"") - len(old or b"")
                )

    def purge(self, *, now: datetime, limit: int) -> int:
        purged = 0
        end = clock(now)
        with self._transaction(write=True) as (transaction, (filters, expiries, months)):
            cursor = transaction.cursor(db=expiries)
            while purged < limit and cursor.first():
                expires_at, month, user_id = self._EXPIRY.unpack(cursor.key())
                if expires_at > end:
                    break
                cursor.delete()
                gone = transaction.pop(self._FILTER.pack(month, user_id), db=filters) or b""
                self._count(transaction, months, month, -1, -len(gone))
                purged += 1
        return purged

    def copy(self, handle: int) -> None:
        """Write a compact snapshot to an open file."""
        with self._used() as (environment, _):
            environment.copyfd(handle, compact=True)

    def stats(self) -> dict[int, MonthStats]:
        return {month: stats for month, stats in self._counts().items() if stats.filters and month >= FIRST_MONTH}

    def count(self, month: int) -> int:
        return self._counts().get(month, MonthStats(0, 0)).filters

    def holds_any(self) -> bool:
        """Whether the file has a filter."""
        # Opening creates the file, which a site without plays does not need.
        is_there = self._opened is not None or self._data.exists()
        return is_there and any(stats.filters for stats in self._counts().values())

    def clear(self, month: int) -> Iterator[int]:
        first = self._FILTER.pack(month, 0)
        while True:
            cleared = size = 0
            with self._transaction(write=True) as (transaction, (filters, _, months)):
                cursor = transaction.cursor(db=filters)
                found = cursor.set_range(first)
                while found and cleared < BATCH and self._FILTER.unpack(cursor.key())[0] == month:
                    size += len(cursor.value())
                    cleared += 1
                    cursor.delete()
                    found = bool(cursor.key())
                self._count(transaction, months, month, -cleared, -size)
            if not cleared:
                return
            yield cleared

    def _counts(self) -> dict[int, MonthStats]:
        with self._transaction(write=False) as (transaction, (_, _, months)):
            return {
                self._MONTH.unpack(key)[0]: MonthStats(*self._STATS.unpack(value))
                for key, value in transaction.cursor(db=months)
            }

    def _count(self, transaction: Any, months: Any, month: int, filters: int, size: int) -> None:
        place = self._MONTH.pack(month)
        before = MonthStats(*self._STATS.unpack(transaction.get(place, default=bytes(16), db=months)))
        transaction.put(place, self._STATS.pack(before.filters + filters, before.size + size), db=months)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[tuple[Any, list[Any]]]:
        with self._used() as (environment, tables), environment.begin(write=write) as transaction:
            yield transaction, tables

    @contextmanager
    def _used(self) -> Iterator[tuple[Any, list[Any]]]:
        """The environment and its tables. Turns errors into StoreUnavailableError."""
        try:
            yield self._environment()
        except (lmdb.Error, OSError, lmdb_file.TornError, struct.error) as error:
            raise StoreUnavailableError(f"{self.folder}: {error}") from error

    def _environment(self) -> tuple[Any, list[Any]]:
        with self._opening:
            if self._opened is not None and self._opened[0] == os.getpid():
                if self._check_files() != self._files:
                    raise lmdb_file.TornError("its files were replaced while they were open. Restart all programs")
                return self._opened[1], self._opened[2]
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._reserve_locks()
            with suppress(FileNotFoundError):  # a new one
                self._check_files()
            if self._opened is not None:
                self._opened[1].close()  # inherited by a fork; the parent keeps using its own
            environment = lmdb.open(
                str(self.folder), map_size=settings.PLAYED_STORE_BYTES, max_dbs=3, max_readers=READERS, mode=0o600
            )
            environment.reader_check()  # frees the slots of killed processes
            tables = [environment.open_db(name) for name in (b"filters", b"expiry", b"months")]
            self._files = self._check_files()
            self._opened = os.getpid(), environment, tables
            return environment, tables

    def _check_files(self) -> list[tuple[int, int]]:
        """Check that both files are whole, and return which ones they are. Raises TornError and OSError."""
        handle = os.open(self._data, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._version = lmdb_file.check_file(handle, self._version)
        finally:
            os.close(handle)
        lock = self._locks.stat()
        if lock.st_size < LOCK_BYTES:
            raise lmdb_file.TornError(f"lock.mdb has {lock.st_size:,} of {LOCK_BYTES:,} bytes")
        return [(lock.st_dev, lock.st_ino), *([self._version[:2]] if self._version else [])]

    def _reserve_locks(self) -> None:
        """Reserve space for LMDB's table of readers. Writing it to a full disk ends in SIGBUS. Raises OSError."""
        file = os.open(self._locks, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, LOCK_BYTES)
        finally:
            os.close(file)
