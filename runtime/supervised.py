"""The programs that a supervisor starts: by a command, or forked from a process that has loaded the site.

Standard library only, because imports stay in memory.

See docs/decisions.md: Programs load the site before they fork.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from runtime.embedded import Child, ForkedProcess, die_with_parent

GRACE_SECONDS = 4.0  # seconds for a program to stop by itself
LOADED = b"loaded"
"""What the loader sends when it can fork."""
UNLOADED_SECONDS = 0.05  # seconds until a program asks again whether the loader has loaded
FORK_SECONDS = 10.0  # seconds for a loaded process to fork


class Program(Child):
    """One of the site's programs, with its output in a pipe."""

    stop_seconds = GRACE_SECONDS

    def __init__(
        self, name: str, command: Sequence[str], *, folder: Path, environ: Mapping[str, str], port: int = 0
    ) -> None:
        super().__init__(name)
        self.command = command
        self.folder = folder
        self.environ = environ
        self.port = port
        self.unfinished_line = b""

    def start(self) -> None:
        """Start the program in its own process group. Raises OSError."""
        self.run(subprocess.DEVNULL)

    def run(self, stdin: int) -> None:
        """Run the command. Raises OSError."""
        self.process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=self.environ,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C only reaches the supervisor
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        assert self.process.stdout is not None  # noqa: S101 (for the type checker)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.started_at = time.monotonic()

    def listens(self) -> bool:
        """Whether it, or a child of it, listens on its port."""
        return self.process is not None and group_listens(self.process.pid, self.port)

    def last_words(self) -> str:
        """Where to read why it ended: its output is already printed."""
        return "its output is above"


class Loader(Program):
    """`runtime.loader`: loads the site, and forks programs on request. Linux only."""

    channel: socket.socket | None = None
    is_loaded = False

    def start(self) -> None:
        """Start to load the site. Raises OSError."""
        self.is_loaded = False
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.setblocking(False)
        with theirs:
            self.run(theirs.fileno())

    def clear(self) -> int:
        """Kill what is left of it. Return the exit code."""
        if self.channel is not None:
            self.channel.close()
            self.channel = None
        return super().clear()

    def can_fork(self) -> bool:
        """Whether it runs and has loaded the site."""
        if self.channel is None or self.has_ended():
            return False
        if not self.is_loaded:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                self.is_loaded = self.channel.recv(len(LOADED)) == LOADED
                self.channel.settimeout(FORK_SECONDS)
        return self.is_loaded

    def fork(self, command: Sequence[str], environ: Mapping[str, str]) -> ForkedProcess:
        """Fork a program, which becomes a child of this process. Raises OSError."""
        assert self.channel is not None  # noqa: S101 (`can_fork`)
        changed = {name: value for name, value in environ.items() if self.environ.get(name) != value}
        reading, writing = os.pipe()
        try:
            with adopting():
                socket.send_fds(self.channel, [json.dumps([command, changed]).encode()], [writing])
                pid = int(self.channel.recv(20) or 0)
            if not pid:
                raise OSError("no more processes")
        except OSError:
            os.close(reading)
            self.kill()  # a late answer would be taken for the next one's
            raise
        finally:
            os.close(writing)
        return ForkedProcess(pid, os.fdopen(reading, "rb"))


class ForkedProgram(Program):
    """A program that is forked from the loader. It waits until the site is loaded."""

    def __init__(
        self, name: str, command: Sequence[str], *, loader: Loader, environ: Mapping[str, str], port: int = 0
    ) -> None:
        super().__init__(name, command, folder=loader.folder, environ=environ, port=port)
        self.loader = loader

    def start(self) -> None:
        """Fork the program, or try again soon if the site is not loaded. Raises OSError."""
        if not self.loader.can_fork():
            self.retry_at = time.monotonic() + UNLOADED_SECONDS
            return
        self.process = self.loader.fork(self.command, self.environ)
        assert self.process.stdout is not None  # noqa: S101 (for the type checker)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.started_at = time.monotonic()


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Become the parent of processes that lose theirs in the block."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    pr_set_child_subreaper = 36
    prctl(pr_set_child_subreaper, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(pr_set_child_subreaper, 0, 0, 0, 0)


def group_listens(group: int, port: int) -> bool:
    """Whether a group of processes listens on a port."""
    sockets = listening_sockets(port)
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if os.getpgid(int(folder.name)) == group:
                held = {str(each.readlink()) for each in (folder / "fd").iterdir()}
                if sockets & held:
                    return True
    return False


def listening_sockets(port: int) -> set[str]:
    """The sockets that listen on a port, as /proc names them."""
    found = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                _, here, _, state, *_, inode = line.split()[:10]
                if state == "0A" and int(here.rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{inode}]")
    return found
