import logging
import multiprocessing
import threading
import time
from multiprocessing.connection import Connection

import pytest

from runtime.afterwards import collected, once_answered, unfinished


def test_without_a_request_an_act_runs_at_once() -> None:
    done: list[int] = []
    once_answered(lambda: done.append(1))
    assert done == [1]


def test_acts_of_a_request_run_in_order_once_it_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    with collected() as afterwards:
        once_answered(lambda: done.append(1))
        once_answered(lambda: done.append(1 // 0))
        once_answered(lambda: done.append(2))
        assert done == []
    once_answered(lambda: done.append(0))  # of no request any more
    assert done == [0]
    assert afterwards in unfinished
    with caplog.at_level(logging.ERROR):
        afterwards.run()
    assert done == [0, 1, 2]
    assert "what follows an answer failed" in caplog.text
    assert afterwards not in unfinished
    afterwards.run()
    assert done == [0, 1, 2]


def answer_and_end(told: Connection) -> None:
    """A process that is asked to stop while a thread still has to send something."""

    def act() -> None:
        begun.set()
        time.sleep(0.3)
        told.send("sent")

    def answer() -> None:
        with collected() as afterwards:
            once_answered(act)
        afterwards.run()

    begun = threading.Event()
    threading.Thread(target=answer, daemon=True).start()
    begun.wait()


@pytest.mark.slow
def test_the_end_of_a_process_waits_for_what_follows_answers() -> None:
    """As granian ends one of web's processes, whose threads are daemons."""
    hears, tells = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=answer_and_end, args=(tells,))
    process.start()
    tells.close()
    process.join(30)
    assert process.exitcode == 0
    assert hears.poll(0)
    assert hears.recv() == "sent"
