"""The program that unpacks an archive and finds its posts: a process of its own, under limits (reader.py).

It knows neither Django nor the site. The job comes as JSON on its standard input, and what became of it goes to its
standard output. So an archive that a library cannot bear ends this program and nothing else.
"""

import errno
import json
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from community.archives import finding
from community.archives.archive import LIST_BYTES, ArchiveError, Bounds, unpack
from community.archives.finding import OutboxError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
MEMORY_BYTES = 320 << 20
"""Address space beside the outbox, which is mapped: the interpreter, and the table of contents of a zip."""


def confine(job: dict[str, Any]) -> None:
    """Bound the process: what goes beyond gets MemoryError or OSError, or is ended by the kernel."""
    bounds = Bounds(*job["bounds"])
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


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """How many posts there are, or the `reason` why none is read: a key of models.FAILURES, or "full"."""
    folder = Path(job["folder"])
    try:
        unpack(Path(job["source"]), folder, Bounds(*job["bounds"]))
        return {"count": finding.index(folder / "outbox.json", job["items"])}
    except (ArchiveError, OutboxError) as error:
        return {"reason": str(error)}
    except MemoryError:
        return {"reason": "large"}
    except OSError as error:
        return {"reason": "full" if error.errno in FULL else "damaged", "words": str(error)}


def main() -> None:
    """Do the one job."""
    job = json.loads(sys.stdin.buffer.readline())
    confine(job)
    print(json.dumps(answer(job)))


if __name__ == "__main__":
    main()
