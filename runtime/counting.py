"""Files where this machine's processes count (runtime.metrics), in the client library's multiprocess mode.

The library names files by pid and keeps them. Here the next process reuses a name, so files do not pile up.

See docs/decisions.md: Own code in place of a library.
"""

import fcntl
import itertools
import json
import logging
import os
import struct
from pathlib import Path
from typing import IO
from weakref import WeakSet

from prometheus_client import multiprocess
from prometheus_client.mmap_dict import MmapedDict

from runtime.embedded import IS_LINUX

logger = logging.getLogger(__name__)

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The library's name for the folder. It reads the variable whenever it opens a file."""
ROOM_BYTES = 2**20
"""Disk space reserved when a file is opened. If it grew larger, the rest would not be reserved."""


class Slots:
    """Gives this process a slot: a file lock, which the kernel frees when the process ends.

    The next process continues the slot's counts, so counts never decrease.
    """

    def __init__(self) -> None:
        self._held: tuple[int, IO[bytes]] | None = None
        os.register_at_fork(after_in_child=self._leave)  # the slot is the parent's

    def slot_number(self) -> int:
        """The number of this process's slot, which is taken on first use. Raises OSError."""
        if self._held is None:
            folder = Path(os.environ[FOLDER])
            self._held = next(filter(None, (self._take(folder, number) for number in itertools.count())))
        return self._held[0]

    def slot_number_or_pid(self) -> int:
        """The number of the slot, or the negative pid if no slot can be made."""
        try:
            return self.slot_number()
        except OSError:
            return -os.getpid()

    def _take(self, folder: Path, number: int) -> tuple[int, IO[bytes]] | None:
        """Lock a slot, or return None if another process has it.

        Drops the last process's gauges and keeps its counts.
        """
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
        """Drop gauges of ended processes."""
        folder = Path(os.environ[FOLDER])
        for path in folder.glob("*.lock"):
            if free := self._take(folder, int(path.stem)):
                free[1].close()


def is_readable(path: Path) -> bool:
    """Whether a file of counts can be read. The library fails at a damaged one, or reads it forever."""
    data = path.read_bytes()
    try:
        (used,) = struct.unpack_from("i", data)
        at = 8
        while at < used:
            (length,) = struct.unpack_from("i", data, at)
            if length <= 0 or not data[at + 4 : at + 4 + length].startswith(b"["):
                return False
            json.loads(data[at + 4 : at + 4 + length])
            at += 4 + length + (8 - (length + 4) % 8) + 16  # with the key's padding, the value and its time
    except (struct.error, ValueError):
        return False
    return used in (0, at) and used <= len(data)


class CountFile(MmapedDict):
    """A file of a slot, with counts. A damaged one begins again.

    Writing to a mapped page without disk space kills the process by SIGBUS. So the space is reserved first, or counts
    stay in memory. Linux only.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        try:
            path = Path(filename)
            if path.exists() and path.stat().st_size and not is_readable(path):
                logger.warning("%s is damaged, so its counts begin again", path)
                path.unlink()
            if IS_LINUX:
                with Path(filename).open("ab") as file:
                    os.posix_fallocate(file.fileno(), 0, ROOM_BYTES)
            super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]
        except OSError as error:
            if not IS_LINUX:
                raise
            logger.warning(
                "metrics of this process stay in its memory, because their file cannot be written: %s", error
            )
            memory = os.memfd_create("counts")
            super().__init__(f"/proc/self/fd/{memory}")  # type: ignore[no-untyped-call]
            os.close(memory)
        _open_files.add(self)


_open_files: "WeakSet[CountFile]" = WeakSet()


def _close_inherited() -> None:
    """Close the parent's files in a forked child.

    Celery closes beat's descriptors, so a later `close` would hit unrelated files.
    """
    for file in list(_open_files):
        file.close()  # type: ignore[no-untyped-call]


os.register_at_fork(after_in_child=_close_inherited)
