"""The process that unpacks an archive and finds its posts, under limits (reader.py). An archive that crashes a library
ends only this process.
"""

import errno
import json
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from community.archives import finding
from community.archives.archive import LIST_BYTES, ArchiveBounds, ArchiveError, unpack
from community.archives.finding import OutboxError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
MEMORY_BYTES = 320 << 20
"""Address space besides the memory-mapped outbox: the interpreter, and a zip's table of contents."""


def limit_process(job: dict[str, Any]) -> None:
    """Limit the process. Beyond: MemoryError, OSError, or a kill by the kernel."""
    bounds = ArchiveBounds(*job["bounds"])
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES + bounds.json),
        (resource.RLIMIT_FSIZE, max(bounds.total, LIST_BYTES + 1)),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(kind, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (job["seconds"], job["seconds"] + 1))  # SIGXCPU before SIGKILL
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, job["wall"])


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """The `count` of posts, or a `reason`: a key of models.FAILURES, or "full"."""
    folder = Path(job["folder"])
    try:
        unpack(Path(job["source"]), folder, ArchiveBounds(*job["bounds"]))
        return {"count": finding.write_index(folder / "outbox.json", job["items"])}
    except (ArchiveError, OutboxError) as error:
        return {"reason": str(error)}
    except MemoryError:
        return {"reason": "large"}
    except OSError as error:
        return {"reason": "full" if error.errno in FULL else "damaged", "words": str(error)}


def main() -> None:
    """Do one job."""
    job = json.loads(sys.stdin.buffer.readline())
    limit_process(job)
    print(json.dumps(run_job(job)))


if __name__ == "__main__":
    main()
