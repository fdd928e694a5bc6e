import re
import statistics
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from runtime.embedded import Valkey
from tests.support.api import API
from tests.support.effort import some
from tests.support.factories import UserFactory
from tests.support.servers import frozen
from tests.support.web import WebServer, tokens_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(300)]

CLIENTS, THREADS, ROUNDS = 16, 4, 10
PATIENCE = 3.0
"""Without a breaker this would hold all `THREADS` threads."""
OTHERS = ("/healthz", f"{API}/search?q=words", f"{API}/timeline/home")


def trips(web: WebServer) -> float:
    found = re.search(r'feedsite_breaker_trips_total\{server="plays"\} (\S+)', web.ask("/metrics").body.decode())
    assert found is not None
    return float(found[1])


def body_of(call: str, user: User) -> dict[str, Any]:
    return {
        "plays": {"ids": ["5"]},
        "plays/batch": {"plays": [{"user_id": str(user.pk), "ids": ["5"]}]},
        "issued": {"ids": ["5"]},
        "filter": {"ids": ["5"]},
    }[call]


@pytest.mark.long
@pytest.mark.parametrize("call", some(2, ["plays", "filter", "plays/batch", "issued"]))
def test_a_flood_of_calls_to_frozen_plays_holds_no_page(tmp_path: Path, plays_server: Valkey, call: str) -> None:
    web = WebServer(tmp_path, FEEDSITE_PLAYED_TIMEOUT_SECONDS=str(PATIENCE))
    flooding, other = UserFactory(), UserFactory()
    ours, theirs = tokens_of([flooding, other])
    statuses: list[tuple[int, bool]] = []
    ending = threading.Event()
    answered = threading.Barrier(CLIENTS + 1)

    def flood() -> None:
        web.ask(f"{API}/seen/{call}", ours, method="POST", body=body_of(call, flooding))
        answered.wait(60)
        while not ending.is_set():
            answer = web.ask(f"{API}/seen/{call}", ours, method="POST", body=body_of(call, flooding))
            statuses.append((answer.status, "Retry-After" in answer.headers))

    web.start()
    floods = [threading.Thread(target=flood) for _ in range(CLIENTS)]
    try:
        assert web.ask(f"{API}/seen/{call}", ours, method="POST", body=body_of(call, flooding)).status in (200, 204)
        with frozen(plays_server):
            for thread in floods:
                thread.start()
            answered.wait(60)  # all may have waited before the first failed
            before, began, took = trips(web), time.monotonic(), []
            for _ in range(ROUNDS):
                for path in OTHERS:
                    begun = time.monotonic()
                    assert web.ask(path, theirs if path.startswith(API) else "").status == 200
                    took.append(time.monotonic() - begun)
            waits, seconds = trips(web) - before, time.monotonic() - began
            assert Counter(statuses).keys() == {(503, True)}
        assert waits <= 1 + seconds / PATIENCE, "one thread at a time waits"
        assert max(took) < PATIENCE
        print(f"{statistics.median(took):.3f} {max(took):.3f} s, {len(statuses)} refused in {seconds:.1f} s")
    finally:
        ending.set()
        answered.abort()
        for thread in floods:
            if thread.ident:
                thread.join()
        web.kill()
