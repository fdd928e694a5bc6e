import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from django.core.mail import EmailMultiAlternatives


class Talk(socketserver.StreamRequestHandler):
    server: "MailServer"

    def handle(self) -> None:
        self.server.connections += 1
        if self.server.mode == "frozen":
            self.server.thawed.wait(60)
            return
        self._say("220 here")
        recipients: list[str] = []
        for line in iter(self.rfile.readline, b""):
            verb, _, rest = line.decode().strip().partition(" ")
            match verb.upper():
                case "EHLO":
                    self._say("250-here\r\n250-AUTH PLAIN\r\n250 8BITMIME")
                case "HELO" | "NOOP" | "RSET" | "MAIL":
                    self._say("250 fine")
                case "AUTH":
                    self.server.logins.append(rest)
                    self._say("535 no such user" if self.server.mode == "locked" else "235 welcome")
                case "RCPT":
                    recipients.append(rest)
                    self._say({"unknown": "550 no such mailbox", "busy": "451 later"}.get(self.server.mode, "250 fine"))
                case "DATA":
                    self._say("354 go on")
                    self._take(self._read())
                    if self.server.mode == "dies":  # it took the letter
                        return
                    self._say("554 looks like spam" if self.server.mode == "suspicious" else "250 taken")
                case "QUIT":
                    self._say("221 bye")
                    return

    def _read(self) -> bytes:
        lines = []
        for line in iter(self.rfile.readline, b".\r\n"):
            if not line:
                return b""
            lines.append(line[1:] if line.startswith(b"..") else line)
        return b"".join(lines)

    def _take(self, data: bytes) -> None:
        letter: Any = message_from_bytes(data, policy=policy.default)
        self.server.letters.append(letter)

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class MailServer(socketserver.ThreadingTCPServer):
    """`mode`: "" or frozen, locked, unknown, busy, suspicious, dies."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Talk)
        self.mode = ""
        self.letters: list[EmailMessage] = []
        self.logins: list[str] = []
        self.connections = 0
        self.thawed = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def to(self, address: str) -> list[EmailMessage]:
        return [letter for letter in self.letters if letter["To"] == address]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client disconnected."""


@contextmanager
def mail_server() -> Iterator[MailServer]:
    server = MailServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.thawed.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def post(settings: Any) -> Iterator[MailServer]:
    with mail_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        settings.EMAIL_TIMEOUT = 1
        yield server


def read(message: EmailMultiAlternatives) -> EmailMessage:
    letter: Any = message_from_bytes(message.message().as_bytes(), policy=policy.default)
    return letter


def words(letter: EmailMessage, kind: str = "plain") -> str:
    part = letter.get_body(preferencelist=(kind,))
    assert part is not None
    return str(part.get_content())


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
