"""How many threads wait for a slow or silent server."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings

from runtime import metrics
from runtime.embedded import Home, Valkey, plays, wait_for
from seen import played, redis_store
from seen.filter_store import FilterKey, StoreUnavailableError
from seen.migration import old
from seen.migration.old import plays_outside_filters
from seen.played import PlayedUnavailableError
from seen.redis_store import RedisStore
from storage.breaker import BREAKER_SECONDS, Breaker
from storage.connections import client_of, pipelined
from tests.support.effort import some
from tests.support.servers import HASTE, frozen, restart
from tests.support.servers import servers as site

THREADS = 8
UNANSWERED = (PlayedUnavailableError, StoreUnavailableError, redis.RedisError, OSError)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Valkey]:
    home = Home(tmp_path / "plays")
    home.make()
    own = plays(home, durable=False)
    restart(own)
    yield own
    own.kill()


@pytest.fixture(params=some(1, ["plays", "filters", "old plays"]))
def asked(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[Valkey, Breaker, Callable[[], object]]:
    server = site.plays
    url = f"unix://{server.socket}?db=4"
    if request.param == "filters":
        shelf = RedisStore(url)
        return server, redis_store.breaker, lambda: shelf.read_briefly([FilterKey(1, 24_000)])
    if request.param == "old plays":
        monkeypatch.setattr(settings, "PLAYED_OLD_URL", url)
        return server, old.breaker, lambda: plays_outside_filters(1, [None, None])
    return server, played.breaker, lambda: played.recent_ids(1)


class Answers:
    """Answers to `THREADS` queries at once."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self.answered = self.failed = 0
        self.waits: list[float] = []
        barrier = threading.Barrier(THREADS)
        counting = threading.Lock()

        def one() -> None:
            barrier.wait()
            began = time.monotonic()
            try:
                ask()
            except UNANSWERED:
                with counting:
                    self.failed += 1
            else:
                with counting:
                    self.answered += 1
            self.waits.append(time.monotonic() - began)

        threads = [threading.Thread(target=one) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def trips(breaker: Breaker) -> float:
    return float(metrics.breaker_trips.labels(breaker._name)._value.get())


@pytest.mark.long
def test_a_frozen_server_holds_one_thread_a_second(asked: tuple[Valkey, Breaker, Callable[[], object]]) -> None:
    server, breaker, ask = asked
    ask()
    with frozen(server):
        before = trips(breaker)
        assert Answers(ask).failed == THREADS, "all were asking when it froze"
        assert 1 <= trips(breaker) - before <= THREADS
        before = trips(breaker)
        assert Answers(ask).failed == THREADS
        assert trips(breaker) == before, "nobody waits for what has just failed"
        for _ in range(2):
            time.sleep(BREAKER_SECONDS)  # the breaker's time
            before = trips(breaker)
            found = Answers(ask)
            assert found.failed == THREADS
            assert trips(breaker) == before + 1, "one thread finds out whether it is back"
            assert sorted(found.waits)[-2] < HASTE
    time.sleep(BREAKER_SECONDS)
    ask()
    assert Answers(ask).answered == THREADS


@pytest.mark.long
def test_a_slow_server_holds_one_thread(asked: tuple[Valkey, Breaker, Callable[[], object]]) -> None:
    """Each answer takes over a fifth of the timeout."""
    server, breaker, ask = asked
    ask()
    before = trips(breaker)
    pausing = client_of(f"unix://{server.socket}?db=0", 60.0)
    for answered in (THREADS, 1):
        pausing.execute_command("CLIENT", "PAUSE", 1_500, "ALL")
        found = Answers(ask)
        assert (found.answered, found.failed) == (answered, THREADS - answered)
    assert sorted(found.waits)[-2] < 0.5, "the others did not wait"
    assert trips(breaker) == before
    assert wait_for(lambda: Answers(ask).answered == THREADS, 60), "it is quick again"


@pytest.mark.long
def test_a_server_that_drips_is_given_up_in_time(server: Valkey) -> None:
    """Each reply is within the timeout."""
    client = client_of(f"unix://{server.socket}?db=0", 60.0)
    work = "local t = redis.call('TIME') repeat local n = redis.call('TIME') until n[1] - t[1] >= 2"
    began = time.monotonic()
    with pytest.raises(redis.TimeoutError):
        pipelined(client, [("EVAL", work, 0)] * 20, patience_seconds=4.0)
    assert 4 <= time.monotonic() - began < 20
