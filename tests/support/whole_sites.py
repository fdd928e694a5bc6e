import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from runtime.embedded import die_with_parent, wait_for
from runtime.management.commands.check_all import clean_environ
from runtime.supervisor import tagged

PROGRAMS = ("asgi", "wsgi", "played_grpc", "worker")
"""Words of their command lines."""


class Running:
    """A running command and its output."""

    def __init__(self, command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
        self.output: list[str] = []
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=die_with_parent(signal.SIGTERM),  # no site outlives killed tests
        )
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.output.extend(self.process.stdout)

    @property
    def printed(self) -> str:
        return "".join(self.output)

    def says(self, words: str, seconds: float) -> bool:
        """Whether it prints this, or ends, in time."""
        return wait_for(lambda: words in self.printed or self.process.poll() is not None, seconds)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it if it still runs. Returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(150)
        self.reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


class Site(Running):
    def __init__(
        self,
        folder: Path,
        port: int,
        more: Mapping[str, str] | None = None,
        *arguments: str,
        tree: Path = settings.BASE_DIR,
    ) -> None:
        self.folder = folder
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        single = {"FEEDSITE_WEB_PROCESSES": "1", "FEEDSITE_WORKER_PROCESSES": "1", "FEEDSITE_LINK_CARDS": "0"}
        super().__init__(
            [sys.executable, "manage.py", "up", *arguments],
            tree,
            clean_environ(folder) | single | {"PORT": str(port)} | (more or {}),
        )

    def wait_until_up(self) -> None:
        assert self.says("the site is at", 400), self.printed
        assert self.process.poll() is None, self.printed

    def get(self, path: str) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=60) as response:  # noqa: S310 (our own)
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except OSError:
            return 0, b""

    def is_ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def becomes_ready(self, seconds: float = 60) -> bool:
        """Each query is work for the site."""
        until = time.monotonic() + seconds
        while not self.is_ready():
            if time.monotonic() > until:
                return False
            time.sleep(0.2)
        return True

    def children(self) -> dict[str, int]:
        """Processes by program name."""
        found = {}
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            except OSError:  # the supervisor has just reaped it
                continue
            words = re.split("[ .:]", " ".join(command))
            found[next(word for word in (*PROGRAMS, "?") if word in [*words, "?"])] = int(pid)
        return {name: pid for name, pid in found.items() if name != "?"}

    def child_of_worker(self, name: str) -> int:
        """The process of beat or of the lane, or 0."""
        worker = self.children()["worker"]
        children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
        named = (pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == f"{name}\n")
        return int(next(named, 0))

    def leftovers(self) -> list[str]:
        """Programs by tag, servers by folder."""
        found = [f"tagged {pid}" for pid in tagged(str(self.folder))]
        for command in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = command.read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(self.folder) in words and int(command.parent.name) != os.getpid():
                found.append(words.replace("\0", " "))
        return found
