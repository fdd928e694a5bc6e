"""A scout asks until the server has answered after the last failure that it was told of."""

import threading

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
