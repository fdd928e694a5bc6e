import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from runtime.embedded import wait_for
from tests.support.factories import UserFactory
from tests.support.web import Queueing, tokens_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="the kernel does not say what a connection brought"),
]

SENDERS = 20
HEAD = b"POST /api/v1/items HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
WITHIN = 15.0
"""This server's deadline is four seconds."""


class Impatient(Queueing):
    def command(self) -> list[str]:
        return [*super().command()[:-1], "tests.support.short_deadline:application"]


@pytest.fixture
def web(tmp_path: Path, transactional_db: None) -> Iterator[Impatient]:
    server = Impatient(tmp_path, FEEDSITE_WEB_WAIT_SECONDS="10")  # of a busy machine
    server.start()
    yield server
    server.kill()
    print(server.said()[-10_000:])


def send_slowly(port: int, drips: bool) -> tuple[bytes, float]:
    """Part of a body, then nothing or single bytes. Returns the answer and its time."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(HEAD)
        client.settimeout(0.2)
        answer = b""
        while time.monotonic() - began < 3 * WITHIN:
            try:
                part = client.recv(4096)
                if not part:
                    break
                answer += part
            except TimeoutError:
                if drips:
                    try:
                        client.sendall(b" ")
                    except OSError:
                        break
            except OSError:
                break
    return answer, time.monotonic() - began


@pytest.mark.long
@pytest.mark.parametrize("drips", [False, True], ids=["nothing", "drips"])
def test_slow_senders_are_cut_off_and_others_do_not_wait(web: Impatient, drips: bool) -> None:
    (token,) = tokens_of([UserFactory.create()])
    assert web.publish(token, "before").status == 201
    with ThreadPoolExecutor(SENDERS) as pool:
        slow = [pool.submit(send_slowly, web.port, drips) for _ in range(SENDERS)]
        while not all(one.done() for one in slow):
            began = time.monotonic()
            assert web.ask("/api/v1/timeline/home", token).status == 200
            assert time.monotonic() - began < 1
            time.sleep(0.05)
        answers = [one.result() for one in slow]
    read = [seconds for answer, seconds in answers if b" 503 " not in answer.partition(b"\r\n")[0]]
    assert read, "some are read"
    assert max(read) < WITHIN
    assert wait_for(lambda: web.publish(token, "afterwards").status == 201, 2), "their places are free"


@pytest.mark.long
def test_a_body_that_comes_steadily_is_read_however_long_it_takes(web: Impatient) -> None:
    (token,) = tokens_of([UserFactory.create()])
    assert web.publish(token, "before").status == 201
    head = (
        f"POST /api/v1/me/media HTTP/1.1\r\nHost: localhost\r\nAuthorization: Token {token}\r\nConnection: close\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1600000\r\n\r\n"
    )
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(1))
        slow = pool.submit(send_slowly, web.port, False)
        client = stack.enter_context(socket.create_connection(("127.0.0.1", web.port)))
        client.sendall(head.encode())
        client.settimeout(0.1)
        answer = b""
        for _ in range(80):
            with suppress(TimeoutError):
                answer += client.recv(4096)
            assert not answer, "it was not read to its end"
            client.sendall(b"x" * 20_000)
        client.settimeout(30)
        assert b" 400 " in client.recv(4096).partition(b"\r\n")[0], "it was read, and is no form"
        assert slow.result()[1] < WITHIN
