import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from accounts.actions import issue_token
from accounts.models import User
from runtime.embedded import die_with_parent, wait_for
from tests.support.clusters import free_ports

PATH = "/api/v1/stream"


def database_url() -> str:
    url, _, options = os.environ["FEEDSITE_DATABASE_URL"].partition("?")
    return f"{url.rpartition('/')[0]}/{quote(str(connection.settings_dict['NAME']))}?{options}"


class StreamServer:
    """The process as `up` starts it, in its own process group."""

    tree: Path = settings.BASE_DIR

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.environ = environ
        self.process: subprocess.Popen[bytes] | None = None
        self.port, _ = free_ports()

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "runtime.stream_server", "--host", "127.0.0.1", "--port", str(self.port)]
        return [*command, "--most", "2000", "feedsite.asgi:application"]

    def start(self) -> None:
        environ = os.environ | {"FEEDSITE_DATABASE_URL": database_url(), "FEEDSITE_SECRET_KEY": settings.SECRET_KEY}
        with (self.folder / "stream.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.tree,
                env=environ | self.environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),  # also if the tests are killed
            )
        assert wait_for(self.answers, 120), self.said()

    def answers(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            return self.get("/healthz").status == 200
        return False

    def said(self) -> str:
        return (self.folder / "stream.log").read_text()

    def holds_connections(self) -> bool:
        """Its side may be open after the client closed."""
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        own = f":{self.port:04X}"
        return any(local.endswith(own) and state in ("01", "08") for _, local, _, state, *_ in lines)

    def end(self) -> None:
        """End it gently, which keeps coverage. Kill it if it does not end."""
        if self.process is not None:
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                self.process.terminate()
                os.killpg(self.process.pid, signal.SIGCONT)
                self.process.wait(20)
        self.kill()

    def kill(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def get(self, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
        """It opens no stream. Its body is in `body`."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            client.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = client.getresponse()
            response.body = response.read()  # type: ignore[attr-defined]
        finally:
            client.close()
        return response

    def listen(self, user: User, query: str = "", **headers: str) -> "Client":
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(self.port, query, {"Authorization": f"Token {issue_token(user=user)}"} | named)


class RefusedError(Exception):
    """The stream was not opened: (status, body)."""


class Heard(NamedTuple):
    name: str
    id: str
    data: Any


class Client:
    """A stream that a thread reads."""

    def __init__(self, port: int, query: str, headers: dict[str, str], path: str = PATH) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.request("GET", f"{path}{query}", headers=headers)
        self.response = self.connection.getresponse()
        if self.response.status != 200:
            refusal = RefusedError(self.response.status, self.response.read())
            self.connection.close()
            raise refusal
        self.socket = self.connection.sock
        self.heard: list[Heard] = []
        self.comments = 0
        self.last_id = ""
        self.has_ended = False
        self.is_whole = False
        """Whether it ended normally and did not break off."""
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        name, data = "", ""
        with suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            while line := self.response.readline():
                field, _, value = line.decode().rstrip("\n").partition(":")
                value = value.removeprefix(" ")
                if not line.strip():
                    if data:
                        self.heard.append(Heard(name, self.last_id, json.loads(data)))
                    name, data = "", ""
                elif field == "":
                    self.comments += 1
                elif field == "event":
                    name = value
                elif field == "id":
                    self.last_id = value
                elif field == "data":
                    data += value
            self.is_whole = True
        self.has_ended = True

    @property
    def news(self) -> list[tuple[str, Any]]:
        """Events without resets: (name, item id or payload)."""
        told = [each for each in self.heard if each.name != "reset"]
        return [(each.name, int(each.data["id"]) if "id" in each.data else each.data) for each in told]

    @property
    def resets(self) -> int:
        return sum(each.name == "reset" for each in self.heard)

    def waits_for(self, done: Callable[["Client"], bool], seconds: float = 60) -> None:
        assert wait_for(lambda: done(self), seconds), self.heard

    def close(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.response.close()
        self.connection.close()
