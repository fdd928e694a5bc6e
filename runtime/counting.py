"""The files in which the processes of one machine count (runtime.metrics), by the client library's multiprocess mode.

The library names a file by a number of its process, maps it into memory, and keeps it when the process has ended. Here
the number is not the pid but a slot, which the next process takes over: so there are never more files than there were
processes at a time, and processes of two containers have different numbers.

See docs/decisions.md: Own code in place of a library.
"""

import fcntl
import itertools
import logging
import os
from pathlib import Path
from typing import IO
from weakref import WeakSet

from prometheus_client import multiprocess
from prometheus_client.mmap_dict import MmapedDict

from runtime.embedded import IS_LINUX

logger = logging.getLogger(__name__)

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The library's own name for the folder; it reads the environment again whenever a process opens a file."""
ROOM_BYTES = 2**20
"""Bytes of disk that each file takes when it is opened. A file that grew larger would be mapped without its room."""


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

    def mine_or_own(self) -> int:
        """The number of this process's slot. If none can be made now (no file left to open), a number of its own."""
        try:
            return self.mine()
        except OSError:
            return -os.getpid()

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


class CountFile(MmapedDict):
    """One file of a slot.

    A page that the disk has no room for ends the process by SIGBUS when it is written, so the room is taken first. If
    there is none, the process counts in memory, where no other process sees it. Linux alone can do both.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        try:
            if IS_LINUX:
                with Path(filename).open("ab") as file:
                    os.posix_fallocate(file.fileno(), 0, ROOM_BYTES)
            super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]
        except OSError as error:
            if not IS_LINUX:
                raise
            logger.warning("counts of this process are kept in its memory, because they cannot be written: %s", error)
            memory = os.memfd_create("counts")
            super().__init__(f"/proc/self/fd/{memory}")  # type: ignore[no-untyped-call]
            os.close(memory)
        _open_files.add(self)


_open_files: "WeakSet[CountFile]" = WeakSet()


def _close_inherited() -> None:
    """In a forked process, close the parent's files at once. Celery closes all descriptors of beat, whose numbers are
    then those of other files: a later `close` would close one of these.
    """
    for file in list(_open_files):
        file.close()  # type: ignore[no-untyped-call]


os.register_at_fork(after_in_child=_close_inherited)
