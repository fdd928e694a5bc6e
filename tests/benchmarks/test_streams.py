import os
import signal
import time

import pytest

from benchmarks.streams import BARE, PAGE_IS_OPEN, Listeners, request, served
from storage import events

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.mark.long
def test_the_bare_writer_hears_what_comes_between_two_waits() -> None:
    with served(BARE) as (port, pid), Listeners(port, [request("/", {})] * 3, PAGE_IS_OPEN) as listeners:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5)  # lets the current wait time out
        events.announce(events.Published(123456))
        os.kill(pid, signal.SIGCONT)
        assert len(listeners.hear(b"123456")) == 3
