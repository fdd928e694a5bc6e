"""The files in which the processes of one machine count (runtime.metrics): whose they are, and how they are written.

The client library reads them; its own way to write them, a sparse file mapped into memory, kills the process by SIGBUS
once the disk is full. Here a count is written by a call that fails, and a count that fails is kept in memory.

See docs/decisions.md: Metrics are counted in files of slots.
See docs/decisions.md: Code written by hand, and why it stays.
"""

import fcntl
import itertools
import logging
import os
import struct
import time
from pathlib import Path
from typing import IO
from weakref import WeakSet

from prometheus_client import multiprocess

logger = logging.getLogger(__name__)

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The library's own name for the folder; it reads the environment again whenever a process opens a file."""
NO_SLOT = -1
RESERVED_BYTES = 1 << 16
"""Bytes of disk that a file takes when it is opened, so that the counts of a full disk, too, reach `/metrics`."""
TELL_SECONDS = 60.0
"""A process tells of counts that cannot be written once in this time."""

_USED = struct.Struct("i4x")
_LENGTH = struct.Struct("i")
_VALUE = struct.Struct("dd")


class Slots:
    """Which files of the folder are this process's: `counter_3.db` is the third slot's.

    A slot is a lock that the kernel gives back when its process ends, however it ends. The next process that comes
    takes the slot over and counts on where the last one ended. So no count ever goes back, and there are never more
    files than there were processes at a time, however often they are restarted.
    """

    def __init__(self) -> None:
        self._held: tuple[int, IO[bytes]] | None = None
        os.register_at_fork(after_in_child=self._leave)  # the slot is the parent's

    def mine(self) -> int:
        """The number of this process's slot, taken if it has none; the client library asks at every count. Raises
        OSError where no slot can be made.
        """
        if self._held is None:
            folder = Path(os.environ[FOLDER])
            self._held = next(filter(None, (self._take(folder, number) for number in itertools.count())))
        return self._held[0]

    def mine_or_none(self) -> int:
        """The number of this process's slot; NO_SLOT if none can be made now (a full disk, no file left to open)."""
        try:
            return self.mine()
        except OSError as error:
            trouble.tell(error)
            return NO_SLOT

    def _take(self, folder: Path, number: int) -> tuple[int, IO[bytes]] | None:
        """A slot that is free. Its last process's gauges are dropped; that process's counts stay."""
        lock = (folder / f"{number}.lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        multiprocess.mark_process_dead(number, str(folder))  # type: ignore[no-untyped-call]
        return number, lock

    def _leave(self) -> None:
        if self._held is not None:
            self._held[1].close()
            self._held = None

    def clear(self) -> None:
        """Forget what the dead were doing."""
        folder = Path(os.environ[FOLDER])
        for path in folder.glob("*.lock"):
            if free := self._take(folder, int(path.stem)):
                free[1].close()


class Trouble:
    """Tells the log that counts cannot be written, once a minute and process."""

    def __init__(self) -> None:
        self._silent_until = 0.0

    def tell(self, error: OSError) -> None:
        """Log that counts stay in memory; at most once in `TELL_SECONDS`."""
        now = time.monotonic()
        if now >= self._silent_until:
            self._silent_until = now + TELL_SECONDS
            logger.warning("counts are kept in memory, because they cannot be written: %s", error)


class CountFile:
    """One file of a slot: the format that the client library reads, in place of its `MmapedDict`.

    The file starts with the number of bytes in use (4 bytes, 4 more of padding). An entry is the length of its key, the
    key, padding that aligns what follows to 8 bytes, the value and its time. A caller gives whole numbers and keeps
    them, so that the next write of a value makes up for one that failed. Callers hold the library's lock.
    """

    def __init__(self, filename: str) -> None:
        self._path = filename
        self._file = -1
        self._used = 0
        self._values: dict[str, tuple[float, float]] = {}
        self._positions: dict[str, int] = {}
        _open_files.add(self)
        self._opened()

    def _opened(self) -> bool:
        if self._file < 0 and not self._path.endswith(f"_{NO_SLOT}.db"):
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                os.posix_fallocate(self._file, 0, RESERVED_BYTES)
                self._read()
            except OSError as error:
                self.close()
                trouble.tell(error)
        return self._file >= 0

    def _read(self) -> None:
        """The counts of the slot's last process."""
        data = os.pread(self._file, os.fstat(self._file).st_size, 0)
        self._used = _USED.unpack_from(data)[0]
        at = _USED.size
        while at < self._used:
            (length,) = _LENGTH.unpack_from(data, at)
            key = data[at + _LENGTH.size : at + _LENGTH.size + length].decode()
            at += _LENGTH.size + length + _padding(length)
            self._positions[key] = at
            self._values[key] = _VALUE.unpack_from(data, at)
            at += _VALUE.size
        self._used = at

    def read_value(self, key: str) -> tuple[float, float]:
        """The value of `key` and its time (Unix, seconds); a new key begins at zero."""
        if key not in self._positions:
            self.write_value(key, *self._values.get(key, (0.0, 0.0)))
        return self._values[key]

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        """Keep the value in memory and write it to the file. A failed write is made up for by the next one."""
        self._values[key] = (value, timestamp)
        if not self._opened():
            return
        try:
            at = self._positions.get(key)
            if at is None:
                self._append(key, _VALUE.pack(value, timestamp))
            else:
                _write(self._file, _VALUE.pack(value, timestamp), at)
        except OSError as error:
            trouble.tell(error)

    def _append(self, key: str, value: bytes) -> None:
        """The entry first, then the number of bytes in use: readers see it whole or not at all."""
        name = key.encode()
        entry = _LENGTH.pack(len(name)) + name + b" " * _padding(len(name)) + value
        _write(self._file, entry, self._used)
        _write(self._file, _USED.pack(self._used + len(entry)), 0)
        self._used += len(entry)
        self._positions[key] = self._used - _VALUE.size

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


_open_files: "WeakSet[CountFile]" = WeakSet()


def _close_inherited() -> None:
    """In a forked process, close the parent's files at once. Celery closes all descriptors of beat, whose numbers are
    then those of other files: a later `close` would close one of these.
    """
    for file in list(_open_files):
        file.close()


os.register_at_fork(after_in_child=_close_inherited)


def _padding(length: int) -> int:
    """Bytes behind a key of this length: 1 to 8, as the library counts them."""
    return 8 - (length + _LENGTH.size) % 8


def _write(file: int, data: bytes, at: int) -> None:
    written = os.pwrite(file, data, at)
    if written < len(data):
        raise OSError(f"{written} of {len(data)} bytes were written")


trouble = Trouble()
