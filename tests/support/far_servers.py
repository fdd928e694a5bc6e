"""External servers on loopback. Tests decide their answers, also invalid ones."""

import contextlib
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from web import outbound

Say = Callable[[bytes], None]


class Talk(socketserver.StreamRequestHandler):
    server: "FarServer"

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # the site may end the connection
            head = b"".join(iter(self.rfile.readline, b"\r\n")).decode("latin-1")
            if not head:
                return
            length = next(
                (line.split(":")[1] for line in head.splitlines() if line.lower().startswith("content-length")), 0
            )
            body = self.rfile.read(int(length))
            with self.server.lock:
                self.server.heads.append(head)
                self.server.bodies.append(body)
            path = head.split()[1]
            self.server.rules.get(path, answer(b"none", status="404 Not Found"))(self.wfile.write)


class FarServer(socketserver.ThreadingTCPServer):
    """`rules` map a path to its answer. Records requests."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None) -> None:
        self.context = context
        self.rules: dict[str, Callable[[Say], None]] = {}
        self.lock = threading.Lock()
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        super().__init__((host, port), Talk)
        self.port = self.server_address[1]

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.context is None:
            super().finish_request(request, client_address)
            return
        with contextlib.suppress(OSError), self.context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    @property
    def paths(self) -> list[str]:
        return [head.split()[1] for head in self.heads]

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{'https' if self.context else 'http'}://{host}:{self.port}{path}"


def answer(body: bytes, *, status: str = "200 OK", kind: str = "text/html", **headers: str) -> Callable[[Say], None]:
    named = {"Content-Type": kind, "Content-Length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return raw(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body)


def raw(sent: bytes) -> Callable[[Say], None]:
    return lambda say: say(sent)


def moved(to: str, status: str = "302 Found") -> Callable[[Say], None]:
    return answer(b"", status=status, Location=to)


def dripping(before: bytes, drop: bytes, seconds: float = 0.2) -> Callable[[Say], None]:
    """Send drops until the site closes."""

    def drip(say: Say) -> None:
        say(before)
        while True:
            say(drop)
            time.sleep(seconds)

    return drip


@contextlib.contextmanager
def running(host: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None) -> Iterator[FarServer]:
    with FarServer(host, port, context) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


@pytest.fixture
def far(settings: Any) -> Iterator[FarServer]:
    settings.LINK_CARDS = settings.OUTBOUND_TO_LOOPBACK = True
    settings.SITE_URL, settings.ALLOWED_HOSTS = "https://here.example", ["testserver"]  # not this machine
    with running() as server:
        yield server


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """One list per lookup. No DNS is asked."""
    zone: dict[str, list[list[str]]] = {}
    look_up = socket.getaddrinfo

    def found(name: str, port: int, *args: Any, **more: Any) -> list[Any]:
        if name not in zone:
            return look_up(name, port, *args, **more)
        return [answer for address in zone[name].pop(0) for answer in look_up(address, port, *args, **more)]

    monkeypatch.setattr(outbound.socket, "getaddrinfo", found)
    return zone


def certificate(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts for a server of this name, and for a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    client = ssl.create_default_context(cafile=str(path))
    return server, client
