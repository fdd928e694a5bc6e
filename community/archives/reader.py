"""Runs the process that unpacks archives (reading.py)."""

import json
import signal
import subprocess
from pathlib import Path

from django.conf import settings

from community.archives import archive, finding
from community.archives.archive import ArchiveBounds, ArchiveError
from runtime.loaded_programs import LoadedProgram
from storage.queue import check_lane

PROGRAM = LoadedProgram("community.archives.reading", "community.archives.archive", "community.archives.finding")

SECONDS, BYTES_A_SECOND = 20, 32 << 20
"""CPU time per archive: a base, and more by the maximum unpacked size."""
WAIT_FACTOR = 3
"""Maximum wall time as a multiple of the CPU time, because other processes need the CPUs too."""
GRACE_SECONDS = 5
TIMES_UP = frozenset({-signal.SIGXCPU, -signal.SIGALRM})


class ReaderError(Exception):
    """The process died, or the disk is full."""


def bounds() -> ArchiveBounds:
    """Limits for unpacking an archive."""
    medium = max(settings.MEDIA_IMAGE_BYTES, settings.MEDIA_VIDEO_BYTES)
    return ArchiveBounds(settings.ARCHIVE_BYTES + archive.JSON_BYTES, archive.JSON_BYTES, medium)


def cpu_seconds() -> int:
    """Maximum CPU time per archive."""
    return int(SECONDS + bounds().total // BYTES_A_SECOND)


def read(source: Path, folder: Path, lock: int) -> int:
    """Unpack an archive and return the number of posts. Raises ArchiveError and ReaderError.

    The process inherits the folder's `lock`, so no other starts before it has ended.
    """
    check_lane()
    wall = cpu_seconds() * WAIT_FACTOR
    job = {
        "source": str(source),
        "folder": str(folder),
        "bounds": bounds(),
        "items": finding.ITEMS,
        "seconds": cpu_seconds(),
        "wall": wall,
    }
    try:
        done = subprocess.run(
            PROGRAM.command,
            input=json.dumps(job).encode() + b"\n",
            stdout=subprocess.PIPE,
            pass_fds=[lock, PROGRAM.handle],
            timeout=wall + GRACE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ArchiveError("large") from error
    if done.returncode in TIMES_UP:
        raise ArchiveError("large")
    if done.returncode or not done.stdout:
        raise ReaderError(f"the reader of archives ended with {done.returncode}")
    found = json.loads(done.stdout)
    if found.get("reason") == "full":
        raise ReaderError(found["words"])
    if reason := found.get("reason"):
        raise ArchiveError(reason)
    return int(found["count"])
