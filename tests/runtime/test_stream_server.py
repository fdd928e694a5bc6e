import logging
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings

from runtime import stream_server
from runtime.embedded import die_with_parent, wait_for
from runtime.stream_server import (
    FRAGMENTS,
    GONE_SECONDS,
    PROBES,
    SAID_BYTES,
    StreamServer,
    bound_socket,
    config,
    is_worth_logging,
)
from tests.support.clusters import free_ports

MOST = 100
PING, PONG = b"\x89\xfd" + b"mask" + b"p" * 125, b"\x8a\x80mask"
TEXT, BEGIN, FRAGMENT = b"\x81\x81maskz", b"\x01\x81maska", b"\x00\x80mask"
"""A whole message, a first fragment, and an empty middle fragment."""
UPGRADE = (
    b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)


async def application(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """It keeps sockets open and answers requests."""
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
    listener = bound_socket("127.0.0.1", 0)
    asked = config("tests.runtime.test_stream_server:application", MOST)
    server = StreamServer(asked)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    port = int(listener.getsockname()[1])
    thread.start()
    assert wait_for(lambda: server.started, 10)
    yield port
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@contextmanager
def opened(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), 10) as one:
        one.sendall(UPGRADE)
        assert b" 101 " in one.recv(1_000)
        yield one


def is_answered(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 2) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        return one.recv(1_000).startswith(b"HTTP/1.1 200")
    return False


def ends(one: socket.socket) -> bool:
    """Whether the other side closes, whatever it sends before."""
    with suppress(ConnectionError):
        while one.recv(65_536):
            pass
    return True


def test_connections_are_looked_after_by_the_kernel() -> None:
    """The kernel drops a vanished peer after a minute."""
    with bound_socket("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            for name, (level, value) in PROBES.items():
                assert accepted.getsockopt(level, getattr(socket, name)) == value, name
    quiet = PROBES["TCP_KEEPIDLE"][1] + PROBES["TCP_KEEPINTVL"][1] * PROBES["TCP_KEEPCNT"][1]
    assert quiet == GONE_SECONDS == PROBES["TCP_USER_TIMEOUT"][1] / 1000


@pytest.mark.slow
def test_the_next_instance_listens_beside_this_one(port: int) -> None:
    with bound_socket("127.0.0.1", port) as other:
        other.listen()


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_client_that_asks_for_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(stream_server, "REQUEST_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", port), 4) as one:
        assert ends(one)


@pytest.mark.slow
def test_an_open_socket_is_not_given_up(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(stream_server, "REQUEST_SECONDS", 0.1)
    with socket.create_connection(("127.0.0.1", port), 4) as one:
        one.sendall(UPGRADE)
        assert b" 101 " in one.recv(1000)
        one.settimeout(0.5)
        with pytest.raises(TimeoutError):
            one.recv(1)


@pytest.mark.slow
@pytest.mark.parametrize("frame", [PING, PONG, TEXT, FRAGMENT], ids=["ping", "pong", "text", "fragment"])
def test_a_client_that_says_too_much_is_cut_off(port: int, frame: bytes) -> None:
    """Control frames and fragments count. Unread answers to pings pile up."""
    with opened(port) as one:
        sent, most = 0, 100 * SAID_BYTES
        with suppress(ConnectionError):
            one.sendall(BEGIN if frame is FRAGMENT else b"")
            while sent < most:
                sent += one.send(frame * 100)
        assert sent < most
        assert ends(one)


@pytest.mark.slow
def test_a_message_has_few_parts(port: int) -> None:
    with opened(port) as one:
        one.sendall(BEGIN + FRAGMENT * (FRAGMENTS + 1))
        assert ends(one)


@pytest.mark.slow
def test_little_is_read_of_a_client_before_others(port: int) -> None:
    """A flood of tiny frames must not block others."""
    taken: list[int] = []
    noted = patch.object(
        stream_server.LimitedWebSocket, "_exceeds_rate", lambda self, data: bool(taken.append(len(data)))
    )
    with noted, opened(port) as one:
        one.sendall(PONG * 20_000 + b"\x88\x80mask")
        assert ends(one)
    assert sum(taken) > 120_000
    assert max(taken) <= stream_server.READ_BYTES


@pytest.mark.slow
def test_silent_connections_keep_no_question_from_its_answer(port: int) -> None:
    silent = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(MOST + 20)]
    try:
        with socket.create_connection(("127.0.0.1", port), 10) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert one.recv(1_000).startswith(b"HTTP/1.1 200")
    finally:
        for each in silent:
            each.close()


@pytest.mark.slow
def test_connections_beyond_those_that_are_refused_are_cut(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(stream_server, "REFUSED", 5)
    many = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(MOST + 5)]
    try:
        with socket.create_connection(("127.0.0.1", port), 10) as one:
            assert ends(one)
    finally:
        for each in many:
            each.close()


FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
from runtime import stream_server
stream_server.raise_file_limit = lambda most: most
stream_server.main(sys.argv[1:])
"""


@pytest.mark.long
def test_without_files_for_more_connections_it_goes_on(tmp_path: Path) -> None:
    port, log = free_ports()[0], tmp_path / "log"
    words = ["--host", "127.0.0.1", "--port", str(port), "--most", "1000"]
    command = [sys.executable, "-c", FEW_FILES, *words, "tests.runtime.test_stream_server:application"]
    with (
        log.open("wb") as file,
        subprocess.Popen(
            command, cwd=settings.BASE_DIR, stderr=file, preexec_fn=die_with_parent(signal.SIGKILL)
        ) as process,
    ):
        assert wait_for(lambda: is_answered(port), 30)
        idle = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(80)]
        assert wait_for(lambda: "out of system resource" in log.read_text(), 10)
        time.sleep(1)  # thousands of lines arrive meanwhile
        for each in idle:
            each.close()
        assert wait_for(lambda: is_answered(port), 10)
        process.terminate()
        assert process.wait(10) == 0
    assert log.read_text().count("out of system resource") < 200


def test_fewer_connections_where_the_system_lets_it_have_fewer_files(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits))
    own = stream_server.REFUSED + stream_server.OWN_FILES
    for soft, hard, room, limits in (
        (1_024, 4_096, 4_096 - own, [(4_096, 4_096)]),
        (1_024, 100_000, 10_000, [(10_000 + own, 100_000)]),
        (100_000, 100_000, 10_000, []),
        (1_024, resource.RLIM_INFINITY, 10_000, [(10_000 + own, resource.RLIM_INFINITY)]),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 10_000, []),
    ):
        asked.clear()
        monkeypatch.setattr(resource, "getrlimit", lambda which, soft=soft, hard=hard: (soft, hard))
        assert (stream_server.raise_file_limit(10_000), asked) == (room, limits)


@pytest.mark.long
@pytest.mark.slow
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
        UPGRADE + b"\x81\x82mask\xff\xff",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_strangers_say_may_be_anything(port: int, caplog: pytest.LogCaptureFixture, said: bytes) -> None:
    with caplog.at_level(logging.WARNING), socket.create_connection(("127.0.0.1", port), 4) as one:
        with suppress(OSError):  # may be cut off early
            one.sendall(said)
            one.shutdown(socket.SHUT_WR)
        assert ends(one)
    assert not [record for record in caplog.records if record.exc_info], "no traceback for a stranger's words"


def test_a_client_that_is_dropped_is_no_error() -> None:
    def record(words: str) -> logging.LogRecord:
        return logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, words, None, None)

    assert not is_worth_logging(record("ASGI callable returned without completing response."))
    assert not is_worth_logging(record("ASGI callable returned without completing handshake."))
    assert is_worth_logging(record("Exception in ASGI application\n"))


@pytest.mark.slow
@pytest.mark.parametrize("rest", [b"Content-Length: 1000000000", b"Transfer-Encoding: chunked"])
def test_a_body_that_goes_on_after_the_answer_is_cut(port: int, rest: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n" + rest + b"\r\n\r\n")
        assert one.recv(1_000).startswith(b"HTTP/1.1 200")
        one.sendall(b"1\r\na\r\n")
        assert ends(one)


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd", [b"X-Long: " + b"a" * 9_000, b"\r\n".join(b"X-Many: 1" for _ in range(130)), b"Content-Length: 1"]
)
def test_a_socket_whose_request_cannot_be_read_is_refused(port: int, odd: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as one:
        one.sendall(UPGRADE[:-2] + odd + b"\r\n\r\n")
        assert ends(one)


@pytest.mark.slow
def test_the_server_stops_with_a_client_that_closes_and_does_not_read(port: int) -> None:
    """The fixture waits for its end."""
    one = socket.create_connection(("127.0.0.1", port), 10)
    with one:
        one.sendall(UPGRADE)
        assert one.recv(1_000).startswith(b"HTTP/1.1 101")
        one.sendall(b"\x88\x82mask" + bytes(a ^ b for a, b in zip(b"\x03\xe8", b"mask", strict=False)))
        assert one.recv(1, socket.MSG_PEEK)  # the answer stays unread
