import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from runtime import shedding
from runtime.embedded import wait_for
from runtime.shedding import HELD, PROBES_LATE, RequestQueue, has_body

SECONDS = 0.2
"""How long a request may wait."""
HOME = "/"


class Protocol:
    """It records statuses. The first one counts."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.told.append(status)


class Counter:
    """A queue whose threads answer once allowed."""

    def __init__(self, threads: int = 1) -> None:
        self.may_go = threading.Event()
        self.answered: list[str] = []
        self.threads: set[int] = set()
        self.queue = RequestQueue(self.answer, self.refuse, threads=threads, seconds=SECONDS)

    def answer(self, protocol: Protocol, scope: dict[str, Any]) -> None:
        self.threads.add(threading.get_ident())
        self.answered.append(scope["PATH_INFO"])
        if scope["PATH_INFO"] == "/broken":
            raise ValueError
        assert self.may_go.wait(60)
        protocol.told.append(200)

    def refuse(self, protocol: Protocol, scope: dict[str, Any]) -> None:
        protocol.told.append(503)

    def ask(self, path: str = HOME) -> Protocol:
        protocol = Protocol()
        self.queue.take(protocol, {"PATH_INFO": path})
        return protocol

    def post(self) -> tuple[Protocol, threading.Thread]:
        """A request with a body, and the thread that takes it."""
        protocol = Protocol()
        scope = {"PATH_INFO": HOME, "CONTENT_LENGTH": "5"}
        door = threading.Thread(target=self.queue.take, args=(protocol, scope), daemon=True)
        door.start()
        return protocol, door


def told(*asked: Protocol) -> list[list[Any]]:
    assert wait_for(lambda: all(each.told for each in asked), 30)
    return [each.told for each in asked]


def is_busy(counter: Counter, threads: int = 1) -> Callable[[], bool]:
    return lambda: len(counter.answered) == threads


def let_them_be_late() -> None:
    """Wait longer than the queue's limit."""
    time.sleep(SECONDS * 1.5)


def test_requests_are_answered_in_their_order_by_one_thread() -> None:
    counter = Counter()
    counter.may_go.set()
    asked = [counter.ask(f"/{number}") for number in range(20)]
    assert told(*asked) == [[200]] * 20
    assert counter.answered == [f"/{number}" for number in range(20)]
    assert len(counter.threads) == 1


def test_no_more_threads_than_are_wanted_and_none_too_few() -> None:
    counter = Counter(threads=3)
    asked = [counter.ask() for _ in range(5)]
    assert wait_for(is_busy(counter, 3), 30)
    assert len(counter.threads) == 3
    counter.may_go.set()
    assert len(told(*asked)) == 5


@pytest.mark.slow
def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """They close their sessions of PostgreSQL."""
    closed: list[int] = []
    monkeypatch.setattr(shedding, "IDLE_SECONDS", SECONDS)
    monkeypatch.setattr(shedding, "close_sessions", lambda: closed.append(threading.get_ident()))
    counter = Counter(threads=3)
    asked = [counter.ask() for _ in range(3)]
    assert wait_for(is_busy(counter, 3), 30)
    counter.may_go.set()
    told(*asked)
    assert wait_for(lambda: len(closed) == 3, 30)
    assert counter.queue.started == 0
    assert set(closed) == counter.threads
    assert told(counter.ask()) == [[200]]
    assert counter.queue.started <= 1
    counter.may_go.clear()
    more = [counter.ask() for _ in range(3)]
    assert wait_for(is_busy(counter, 7), 30)
    counter.may_go.set()
    assert told(*more) == [[200]] * 3


@pytest.mark.slow
def test_a_thread_that_answered_last_answers_next() -> None:
    counter = Counter(threads=3)
    asked = [counter.ask() for _ in range(3)]
    assert wait_for(is_busy(counter, 3), 30)
    counter.may_go.set()
    told(*asked)
    assert wait_for(lambda: len(counter.queue.idle) == 3, 30)
    counter.threads.clear()
    for _ in range(5):
        told(counter.ask())
        assert wait_for(lambda: len(counter.queue.idle) == 3, 30)
    assert len(counter.threads) == 1


@pytest.mark.slow
def test_a_thread_refuses_what_has_waited_for_too_long() -> None:
    counter = Counter()
    first, second = counter.ask(), counter.ask("/write")
    assert wait_for(is_busy(counter), 30)
    let_them_be_late()
    counter.may_go.set()
    assert told(first, second) == [[200], [503]]
    assert counter.answered == [HOME], "a request that is refused was begun"


@pytest.mark.slow
def test_the_door_refuses_what_is_late_while_no_thread_comes() -> None:
    counter = Counter()
    first, second = counter.ask(), counter.ask()
    assert wait_for(is_busy(counter), 30)
    let_them_be_late()
    third = counter.ask()
    assert second.told == [503]
    assert (first.told, third.told) == ([], [])
    counter.may_go.set()
    assert told(first, third) == [[200], [200]]


@pytest.mark.slow
def test_questions_about_health_wait_on() -> None:
    counter = Counter()
    first = counter.ask()
    probes = [counter.ask("/healthz") for _ in range(PROBES_LATE + 2)]
    assert wait_for(is_busy(counter), 30)
    let_them_be_late()
    last = counter.ask()
    assert [probe.told for probe in probes] == [[]] * PROBES_LATE + [[503]] * 2, "strangers may send any number"
    counter.may_go.set()
    assert told(first, *probes[:PROBES_LATE], last) == [[200]] * (PROBES_LATE + 2)


def test_a_thread_outlives_an_error_of_the_application(caplog: pytest.LogCaptureFixture) -> None:
    counter = Counter()
    counter.may_go.set()
    asked = [counter.ask("/broken"), counter.ask()]
    assert told(*asked) == [[500], [200]]
    assert "a request failed and was answered 500" in caplog.text


def test_the_door_of_a_body_stays_until_it_is_answered() -> None:
    counter = Counter()
    asked, door = counter.post()
    assert wait_for(is_busy(counter), 30)
    assert door.is_alive()
    counter.may_go.set()
    door.join(30)
    assert asked.told == [200]
    assert counter.queue.held == 0


@pytest.mark.slow
def test_bodies_leave_a_door() -> None:
    counter = Counter()
    posts = [counter.post() for _ in range(HELD)]
    assert wait_for(lambda: counter.queue.held == HELD, 30)
    refused, door = counter.post()
    door.join(30)
    assert refused.told == [503]
    let_them_be_late()
    counter.ask()
    assert sorted([*told(*(post for post, _ in posts[1:])), [200]]) == [[200], *[[503]] * (HELD - 1)]
    assert counter.queue.held == 1, "the refused ones have let their doors go"
    counter.may_go.set()
    assert wait_for(lambda: counter.queue.held == 0, 30)


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [
        ({}, False),
        ({"CONTENT_LENGTH": ""}, False),
        ({"CONTENT_LENGTH": "0"}, False),
        ({"CONTENT_LENGTH": "7"}, True),
        ({"CONTENT_LENGTH": "odd"}, True),
        ({"HTTP_TRANSFER_ENCODING": "chunked"}, True),
    ],
)
def test_a_body_is_known_by_its_length_or_its_chunks(scope: dict[str, str], wanted: bool) -> None:
    assert has_body(scope) is wanted
