"""`python -m runtime.loader`: loads the site once. The programs of `up` are forked from it, and share its memory.

Standard input is a socket. Each request names a program, and brings the pipe for its output (runtime/supervised.py).

See docs/decisions.md: Programs load the site before they fork.
"""

import ctypes
import json
import logging
import os
import runpy
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from runtime import preloaded, stream_server
from runtime.embedded import die_with_parent, wait_for
from runtime.programs import PROGRAM
from runtime.supervised import LOADED

OWN = {"runtime.preloaded": preloaded.main, "runtime.stream_server": stream_server.main}
"""The functions of the site's own modules that run as programs."""
REQUEST_BYTES = 200_000
ADOPTED_SECONDS = 5.0


class Request(NamedTuple):
    """A program to fork. `command` follows `python -m`."""

    command: list[str]
    environ: dict[str, str]


def main() -> None:
    """Load the site and fork programs until the supervisor ends. Runs a program in each forked process."""
    channel = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    load()
    channel.send(LOADED)
    if request := fork_programs(channel, os.getppid()):
        run(request)


def load() -> None:
    """Load what all programs need, hidden from the garbage collector."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")
    with preloaded.hidden_from_collector():
        import_module("django").setup(set_prefix=False)
        import_module("feedsite.loading").load_all()


def fork_programs(channel: socket.socket, supervisor: int) -> Request | None:
    """Fork a program for each request. Returns the request in the new process, and None when the supervisor ends."""
    while True:
        message, handles, _, _ = socket.recv_fds(channel, REQUEST_BYTES, 1)
        if not message:
            return None
        if fork_orphan(channel):
            request = Request(*json.loads(message))
            become(request, handles[0], supervisor)
            channel.send(str(os.getpid()).encode())
            channel.close()
            return request
        os.close(handles[0])


def fork_orphan(channel: socket.socket) -> bool:
    """Fork a process without a parent, which the supervisor adopts. True in that process. Reports failures."""
    loader = os.getpid()
    try:
        if child := os.fork():
            if os.waitpid(child, 0)[1]:
                channel.send(b"0")
            return False
        if os.fork():
            os._exit(0)
    except OSError:
        if os.getpid() != loader:
            os._exit(1)
        channel.send(b"0")
        return False
    return True


def become(request: Request, output: int, supervisor: int) -> None:
    """Make this process a child of the supervisor, with the program's output, environment and command line."""
    os.setsid()  # Ctrl-C only reaches the supervisor
    for each in (1, 2):
        os.dup2(output, each)
    os.close(output)
    wait_for(lambda: os.getppid() == supervisor, ADOPTED_SECONDS)
    die_with_parent(signal.SIGTERM, parent=supervisor)()
    os.environ.update({**os.environ, **request.environ})  # also copies the values, which `show` overwrites
    show([sys.executable, "-m", *request.command], os.environ)


def show(command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Show a command line and environment in /proc, in the place of those that this process was started with.

    The supervisor leaves room for them. What does not fit is cut.
    """
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    words_start, words_end, environ_start, environ_end = map(int, fields[45:49])
    variables = sorted(environ.items(), key=lambda each: each[0] != PROGRAM)
    overwrite(words_start, words_end, command)
    overwrite(environ_start, environ_end, [f"{name}={value}" for name, value in variables])


def overwrite(start: int, end: int, words: Sequence[str]) -> None:
    """Write words into memory, each with a closing zero."""
    room = end - start
    data = b"".join(os.fsencode(word) + b"\0" for word in words)
    ctypes.memmove(start, data[: max(0, room - 1)].ljust(room, b"\0"), room)


def run(request: Request) -> None:
    """Run the program in this process. The site's own is loaded, so an upgrade of the tree does not change it."""
    module, *words = request.command
    if level := request.environ.get("FEEDSITE_LOG_LEVEL"):
        logging.getLogger().setLevel(level)
    if own := OWN.get(module):
        own(words)
    else:
        sys.argv = [module, *words]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
