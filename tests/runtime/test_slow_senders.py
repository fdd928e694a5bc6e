import socket
import sys
import time
from collections.abc import Iterator

import pytest

from runtime.slow_senders import SlowSenders, Traffic

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel does not say what a connection brought")

Pair = tuple[socket.socket, socket.socket]
START = 1000.0


@pytest.fixture
def pairs() -> Iterator[list[Pair]]:
    """Pairs of client's end and site's end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made: list[Pair] = []
        for _ in range(3):
            client = socket.create_connection(listening.getsockname())
            made.append((client, listening.accept()[0]))
            client.settimeout(0.1)
        yield made
        for ends in made:
            for end in ends:
                end.close()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> SlowSenders:
    monkeypatch.setattr(time, "monotonic", lambda: START)
    senders = SlowSenders(seconds=10, enough=1000)
    senders._is_started = True  # the test calls `look` itself
    return senders


def is_closed(pair: Pair) -> bool:
    try:
        return pair[0].recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def brought(pair: Pair, size: int) -> None:
    before = Traffic.of(pair[1]).brought
    pair[0].sendall(b"x" * size)
    deadline = time.perf_counter() + 5
    while Traffic.of(pair[1]).brought < before + size and time.perf_counter() < deadline:
        time.sleep(0.001)


def test_only_those_who_bring_little_and_got_nothing_are_closed(pairs: list[Pair], watch: SlowSenders) -> None:
    slow, steady, answered = pairs
    with watch.watched():
        for seconds in (0, 4, 8, 12):
            watch.close_slow(START + seconds)
            if seconds == 12:
                break
            for pair, size in ((slow, 1), (steady, 400)):
                brought(pair, size)
                pair[1].recv(1000)
            answered[1].sendall(b"part of an answer")
            answered[0].recv(100)
            assert Traffic.of(answered[1]).got == 17 * (seconds // 4 + 1)
    assert [is_closed(pair) for pair in pairs] == [True, False, False]


def test_who_waits_for_the_site_is_not_closed(pairs: list[Pair], watch: SlowSenders) -> None:
    """Its bytes arrived, but nobody has read them."""
    brought(pairs[0], 1)
    with watch.watched():
        watch.close_slow(START)
        watch.close_slow(START + 60)
    assert [is_closed(pair) for pair in pairs] == [False, True, True]


def test_while_no_read_is_late_nobody_is_closed(pairs: list[Pair], watch: SlowSenders) -> None:
    watch.close_slow(START)
    watch.close_slow(START + 60)
    with watch.watched():
        watch.close_slow(START)
        watch.close_slow(START + 9)
    watch.close_slow(START + 60)
    assert not any(is_closed(pair) for pair in pairs)


def test_other_connections_of_the_process_are_left_alone(pairs: list[Pair], watch: SlowSenders) -> None:
    """Those that the process opened to its servers."""
    with socket.create_server(("127.0.0.1", 0)) as server, watch.watched():
        own = socket.create_connection(server.getsockname())
        port = server.getsockname()[1]
        theirs, _ = server.accept()
        server.close()
        watch.close_slow(START)
        watch.close_slow(START + 60)
        own.settimeout(0.1)
        with own, theirs, pytest.raises(TimeoutError):
            own.recv(1)
        assert port
    assert all(is_closed(pair) for pair in pairs)
