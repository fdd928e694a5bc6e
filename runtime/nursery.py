"""`python -m runtime.nursery FD`: a process that has the whole site in memory, and forks the programs of `up`.

Web, stream, worker and their children are the same hundred megabytes of code. A fork shares them, page by page, until
somebody writes; an `exec` would load them anew. So the supervisor asks this process, over the socket FD, for each
program that it starts. The program becomes the supervisor's own child: the process between the two ends at once, and
the kernel gives orphans to the supervisor (PR_SET_CHILD_SUBREAPER), which waits for it, stops it and starts it again as
it does with any other. The nursery may die without harm: the next start makes a new one.

Nothing here opens a connection or starts a thread before a fork.

See docs/decisions.md: Programs load the site before they fork.
See docs/decisions.md: Code written by hand, and why it stays.
"""

import ctypes
import gc
import json
import logging
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from runtime.embedded import die_with_parent
from runtime.preloaded import load_pages, share

TITLE_BYTES = 1000
"""Bytes of this process's last argument, which make room for the command lines of programs."""
ASKED_BYTES = 65536
WAIT_SECONDS = 60.0
"""Seconds that the supervisor waits for a fork, the loading of the site included."""


# --- In the supervisor -----------------------------------------------------------------------------------
class Nursery:
    """The supervisor's end."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self.environ = environ
        self.folder = folder
        self.socket: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None
        adopt_orphans()

    def fork(self, command: Sequence[str], environ: Mapping[str, str], output: int) -> int:
        """The number of a new child that runs `python -m command`, and writes to the file `output`; `environ` is what
        it has beyond the nursery's. Raises OSError.
        """
        for _ in range(2):
            if self.socket is None:
                self.socket = self.made()
            try:
                asked = json.dumps({"command": [*command], "environ": {**environ}, "parent": os.getpid()}).encode()
                socket.send_fds(self.socket, [asked], [output])
                if answer := self.socket.recv(64):
                    return int(answer)
            except (OSError, ValueError):
                pass  # it has died
            self.close()
        raise OSError("the process that forks programs does not answer")

    def made(self) -> socket.socket:
        """A new nursery's socket. The nursery ends when it is closed."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(WAIT_SECONDS)
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 (ourselves)
                [sys.executable, "-m", "runtime.nursery", str(theirs.fileno()), " " * TITLE_BYTES],
                cwd=self.folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
        return ours

    def close(self) -> None:
        """End the nursery; what it has forked goes on."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def adopt_orphans() -> None:
    """Have the kernel make this process the parent of grandchildren whose parent has ended."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


# --- In the nursery --------------------------------------------------------------------------------------
def load() -> None:
    """Import what programs are made of, and keep the collector off it: a round would write into every page."""
    gc.disable()
    import django

    django.setup(set_prefix=False)
    load_pages()
    for each in PRELOADED:
        import_module(each)
    from celery import current_app

    current_app.loader.import_default_modules()
    current_app.finalize()
    share()
    gc.enable()


PRELOADED = (
    "granian.cli",
    "granian.server.mp",
    "celery.bin.worker",
    "celery.apps.worker",
    "celery.worker.consumer",
    "celery.concurrency.prefork",
    "kombu.transport.redis",
    "django_redis.client.default",
    "media.serving",
    "stream.hub",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "web.uploads",
)


def serve(asking: socket.socket) -> None:
    """Fork what the supervisor asks for, until it is gone."""
    while True:
        asked, outputs, _, _ = socket.recv_fds(asking, ASKED_BYTES, 1)
        if not asked:
            return
        reading, writing = os.pipe()
        between = os.fork()
        if not between:
            child = os.fork()
            if child:
                os.write(writing, str(child).encode())
                os._exit(0)
            asking.close()
            os.dup2(outputs[0], 1)
            os.dup2(outputs[0], 2)
            # No others: a module that is loaded may hold a file by its number, and close it when it notices the fork.
            for each in (reading, writing, *outputs):
                os.close(each)
            become(json.loads(asked))  # does not return
        os.waitpid(between, 0)
        asking.send(os.read(reading, 64))
        for each in (reading, writing, *outputs):
            os.close(each)


def become(asked: dict[str, object]) -> None:
    """Be the program, in this forked process, to its end."""
    parent = int(str(asked["parent"]))
    while os.getppid() != parent:  # until the process between has ended
        time.sleep(0.001)
    die_with_parent(signal.SIGTERM, parent=parent)()
    os.setsid()  # a Ctrl-C in the terminal reaches the supervisor only
    os.environ.update(asked["environ"])  # type: ignore[call-overload]
    if level := os.environ.get("FEEDSITE_LOG_LEVEL"):
        logging.getLogger().setLevel(level)
    sys.argv = [*asked["command"]]  # type: ignore[misc]
    if not hasattr(sys.modules.get(sys.argv[0]), "__path__"):
        sys.modules.pop(sys.argv[0], None)  # runpy would warn of a module that is loaded already
    entitle([sys.executable, "-m", *sys.argv])
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        leave(end.code)
    except BaseException:
        logging.getLogger(__name__).exception("%s failed", sys.argv[0])
        leave(1)
    leave(0)


def leave(code: object) -> None:
    """Exit as an interpreter does: run what is registered for the end, and flush."""
    sys.exit(code if isinstance(code, int) or code is None else 1)


def entitle(words: Sequence[str]) -> None:
    """Show these words in `ps` in place of the command line that the process was started with, as far as they fit."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    title = "\0".join(words).encode()[: end - start - 1]
    ctypes.memmove(start, title.ljust(end - start, b"\0"), end - start)


def main() -> None:
    """Load the site and serve."""
    asking = socket.socket(fileno=int(sys.argv[1]))
    load()
    serve(asking)


if __name__ == "__main__":
    main()
