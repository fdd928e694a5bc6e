"""Forks a confined child for each job of a program: media.decoding, media.converting.

Each job has a socket for one line of JSON and its answer, after lines that say how far it is.
"""

import errno
import json
import math
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
"""What a full disk answers."""
Report = Callable[[int], None]
"""Takes how much of a job is done, in percent."""


def confine(*, memory: int, seconds: float, size: int, wall: float) -> None:
    """Limit this process: bytes of memory and of a file, processor seconds, seconds. Beyond: MemoryError, OSError, or a
    kill by the kernel.
    """
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, math.ceil(seconds)),
        (resource.RLIMIT_FSIZE, size),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, wall)


def serve(handle: int, work: Callable[[dict[str, Any], Report], dict[str, Any]]) -> None:
    """Fork a child for each job, until the site's process ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps children
    with socket.socket(fileno=handle) as control:
        for line in job_sockets(control):
            if os.fork() == 0:
                status = 1
                try:
                    control.close()
                    serve_job(line, work)
                    status = 0
                finally:
                    os._exit(status)
            line.close()


def job_sockets(control: socket.socket) -> Iterator[socket.socket]:
    """Sockets of jobs, until the site's process ends."""
    while True:
        message, handles, _flags, _address = socket.recv_fds(control, 1, 1)
        if not message:
            return
        yield socket.socket(fileno=handles[0])


def serve_job(line: socket.socket, work: Callable[[dict[str, Any], Report], dict[str, Any]]) -> None:
    """Do one job."""
    done = 0

    def report(percent: int) -> None:
        nonlocal done
        if percent > done:
            done = percent
            send({"percent": percent})

    def send(answer: dict[str, Any]) -> None:
        line.sendall(json.dumps(answer).encode() + b"\n")

    with line, line.makefile("rb") as words:
        job = json.loads(words.readline())
        send(work(job, report))
