"""The bounds that the server of open connections keeps for strangers, with an application that does nothing."""

import logging
import socket
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from typing import Any

import pytest

from runtime import stream_server
from runtime.embedded import wait_for
from runtime.stream_server import GONE_SECONDS, PROBES, Server, config, is_told, listening

PING = b"\x89\xfd" + b"mask" + b"p" * 125
UPGRADE = (
    b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)


async def application(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """Sockets stay open; requests are answered."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
    else:
        for name in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{name}.complete"})


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server that runs in a thread."""
    listener = listening("127.0.0.1", 0)
    asked = config("tests.runtime.test_stream_server:application", 100)
    server = Server(asked)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    port = int(listener.getsockname()[1])
    thread.start()
    assert wait_for(lambda: server.started, 10)
    yield port
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


def ends(one: socket.socket) -> bool:
    """Whether the other side ends the connection, whatever it says before."""
    with suppress(ConnectionError):
        while one.recv(65_536):
            pass
    return True


def test_connections_are_looked_after_by_the_kernel() -> None:
    """A peer that vanishes without a word is gone after a minute, whether or not something is written to it."""
    with listening("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            for name, (level, value) in PROBES.items():
                assert accepted.getsockopt(level, getattr(socket, name)) == value, name
    quiet = PROBES["TCP_KEEPIDLE"][1] + PROBES["TCP_KEEPINTVL"][1] * PROBES["TCP_KEEPCNT"][1]
    assert quiet == GONE_SECONDS == PROBES["TCP_USER_TIMEOUT"][1] / 1000


def test_the_next_instance_listens_beside_this_one(port: int) -> None:
    with listening("127.0.0.1", port) as other:
        other.listen()


@pytest.mark.parametrize("is_second", [False, True])
@pytest.mark.parametrize("said", [b"G", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_a_request_that_never_ends_is_given_up(
    monkeypatch: pytest.MonkeyPatch, port: int, said: bytes, is_second: bool
) -> None:
    monkeypatch.setattr(stream_server, "REQUEST_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", port), 4) as one:
        if is_second:
            one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b" 200 " in one.recv(1000)
        one.sendall(said)
        assert ends(one)


def test_a_client_that_asks_for_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(stream_server, "REQUEST_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", port), 4) as one:
        assert ends(one)


def test_an_open_socket_is_not_given_up(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(stream_server, "REQUEST_SECONDS", 0.1)
    with socket.create_connection(("127.0.0.1", port), 4) as one:
        one.sendall(UPGRADE)
        assert b" 101 " in one.recv(1000)
        one.settimeout(0.5)
        with pytest.raises(TimeoutError):
            one.recv(1)


def test_pings_of_a_client_that_does_not_read_are_read_no_more(port: int) -> None:
    """Their answers would pile up here."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", port))
        one.sendall(UPGRADE)
        assert b" 101 " in one.recv(1000)
        one.settimeout(1)
        sent, most = 0, 100_000_000
        with suppress(TimeoutError):
            while sent < most:
                sent += one.send(PING * 1_000)
        assert sent < most
        received, least = 0, sent * 9 // 10
        while received < least:  # it is answered again when it reads
            received += len(one.recv(65_536))


@pytest.mark.parametrize(
    "said",
    [
        b"\x00\xff\x16\x03\x01",
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100_000,
        b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n",
        UPGRADE.replace(b"MDEyMzQ1Njc4OWFiY2RlZg==", b"short"),
        UPGRADE.replace(b"/socket", b"/%ff%00?\xff".replace(b"\xff", b"%ff")) + b"\xff" * 20,
        UPGRADE + PING * 3 + b"\x81\xff" + b"\xff" * 8,
        UPGRADE + b"\x88\x80mask",
    ],
)
def test_what_strangers_say_may_be_anything(port: int, caplog: pytest.LogCaptureFixture, said: bytes) -> None:
    with caplog.at_level(logging.WARNING), socket.create_connection(("127.0.0.1", port), 4) as one:
        with suppress(OSError):  # it may have been cut before it has said all
            one.sendall(said)
            one.shutdown(socket.SHUT_WR)
        assert ends(one)
    assert not [record for record in caplog.records if record.exc_info], "no traceback for a stranger's words"


def test_a_client_that_is_dropped_is_no_error() -> None:
    def record(words: str) -> logging.LogRecord:
        return logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, words, None, None)

    assert not is_told(record("ASGI callable returned without completing response."))
    assert is_told(record("Exception in ASGI application\n"))


@pytest.mark.parametrize("rest", [b"Content-Length: 1000000000", b"Transfer-Encoding: chunked"])
def test_a_body_that_goes_on_after_the_answer_is_cut(port: int, rest: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n" + rest + b"\r\n\r\n")
        assert one.recv(1_000).startswith(b"HTTP/1.1 200")
        one.sendall(b"1\r\na\r\n")
        assert ends(one)


@pytest.mark.parametrize(
    "odd", [b"X-Long: " + b"a" * 9_000, b"\r\n".join(b"X-Many: 1" for _ in range(130)), b"Content-Length: 1"]
)
def test_a_socket_whose_request_cannot_be_read_is_refused(port: int, odd: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as one:
        one.sendall(UPGRADE[:-2] + odd + b"\r\n\r\n")
        assert ends(one)


def test_the_server_stops_with_a_client_that_closes_and_does_not_read(port: int) -> None:
    """The fixture waits for its end."""
    one = socket.create_connection(("127.0.0.1", port), 10)
    with one:
        one.sendall(UPGRADE)
        assert one.recv(1_000).startswith(b"HTTP/1.1 101")
        one.sendall(b"\x88\x82mask" + bytes(a ^ b for a, b in zip(b"\x03\xe8", b"mask", strict=False)))
        wait_for(lambda: False, 0.2)
