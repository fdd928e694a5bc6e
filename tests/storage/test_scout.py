"""A scout asks until the server has answered after the last failure that it was told of."""

import threading
import time

import pytest

from storage import scout
from storage.scout import Scout


def test_a_failure_during_the_answer_is_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that fails between the answer and the end of the outage is covered by one more question."""
    monkeypatch.setattr(scout, "BREAKER_SECONDS", 0.01)
    asked = 0
    done = threading.Event()

    def ask() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            one.send()  # as another thread does, after this question was answered
        else:
            done.set()

    one = Scout("a server", ask)
    one.send()
    assert done.wait(10)
    one.call_back()
    assert asked == 2
    assert not one.is_out


def test_a_server_that_was_only_slow_is_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement that waits for a lock is no outage for the others."""
    monkeypatch.setattr(scout, "BREAKER_SECONDS", 60)
    one = Scout("a server", lambda: None, asks_at_once=True)
    one.send()
    until = time.monotonic() + 10
    while one.is_out and time.monotonic() < until:
        time.sleep(0.01)
    assert not one.is_out


def test_a_server_that_does_not_answer_is_left_alone_between_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scout, "BREAKER_SECONDS", 60)
    asked = threading.Semaphore(0)

    def ask() -> None:
        asked.release()
        raise ConnectionError

    one = Scout("a server", ask, asks_at_once=True)
    one.send()
    assert asked.acquire(timeout=10)
    assert not asked.acquire(timeout=0.2)
    assert one.is_out
    one.call_back()
