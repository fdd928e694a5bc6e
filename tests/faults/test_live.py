"""Each walk shows every session once, in the frozen order, or says that it is over."""

import random
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest
import redis
from django.db import OperationalError
from django.utils import timezone

from accounts.models import User
from live import actions
from live.feed import live_page
from live.models import LiveSession, ReplayDelivery, State
from live.snapshot import SnapshotExpiredError
from relations import actions as relations
from storage import connections
from tests.support.api import client_of
from tests.support.crowds import Crowd
from tests.support.live_oracle import feed
from tests.support.servers import Valkey, restart
from tests.support.sessions import seen, session
from tests.support.sites import Worker, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]

HOSTS = 6
SECONDS = 3


@pytest.fixture
def readers(transactional_db: None) -> list[User]:
    hosts = [seen() for _ in range(HOSTS)]
    readers = [seen() for _ in range(2)]
    for reader in readers:
        for host in hosts:
            relations.follow(follower=reader, followee=host)
    for state in (State.REPLAY, State.REPLAY, State.LIVE, State.LIVE, State.UPCOMING):
        for host in hosts:
            session(host, state)
    return readers


@pytest.mark.long
@pytest.mark.slow
def test_every_walk_is_whole_or_says_that_it_is_over(  # noqa: C901 (one crowd)
    readers: list[User], feeds_server: Valkey, worker: Worker
) -> None:
    """Redis fails only after a whole walk, or a slow machine would never finish one."""
    worker.start()
    walks: Counter[str] = Counter()
    lock = threading.Lock()
    crowd = Crowd()

    def walk(chance: random.Random) -> None:
        reader = User.objects.get(pk=chance.choice(readers).pk)
        there = set(LiveSession.objects.values_list("pk", flat=True))
        page = live_page(reader, page_size=chance.randrange(2, 9), now=timezone.now())
        page.store()
        items = list(page.items)
        outcome = "whole"
        while page.has_more:
            try:
                page = live_page(
                    reader,
                    session_id=page.session_id,
                    last_id=page.last_id,
                    page_size=chance.randrange(2, 9),
                    now=timezone.now(),
                )
            except SnapshotExpiredError:
                outcome = "over"
                break
            page.store()
            items += page.items
        ids = [int(item.id) for item in items]
        assert len(ids) == len(set(ids)), "a session comes twice"
        if outcome == "whole":
            gone = {*LiveSession.objects.filter(state=State.CANCELLED).values_list("pk", flat=True)}
            assert there - gone <= set(ids), "a session is missing"
        order = [("live", "upcoming", "replay").index(item.shown_as) for item in items]
        assert order == sorted(order)
        with lock:
            walks[outcome] += 1

    def host(chance: random.Random) -> None:
        one = LiveSession.objects.filter(state__in=[State.UPCOMING, State.LIVE]).order_by("?").first()
        if one is None:
            return
        verb = actions.end if one.state == State.LIVE else chance.choice([actions.start, actions.cancel])
        try:
            verb(session=one, now=timezone.now())
            actions.create(host=one.host, title="words", starts_at=timezone.now(), now=timezone.now())
        except actions.WrongStateError:
            return

    def empty_redis(chance: random.Random) -> None:
        whole = walks["whole"]
        with suppress(redis.RedisError):  # it restarts
            connections.feeds_for_tasks().flushall()
        time.sleep(chance.random())  # random pauses, like a crowd's
        while walks["whole"] == whole and not crowd.stopped.wait(0.02):
            pass

    whole_by_then = -1

    def enough() -> bool:
        nonlocal whole_by_then
        if walks["whole"] > whole_by_then:
            whole_by_then = walks["whole"]
            restart(feeds_server)  # a server dies with the thread that starts it
            time.sleep(0.5)  # walks continue between restarts
        return walks["whole"] > 10 and walks["over"] > 0

    for seed, act in enumerate((walk, walk, host, empty_redis)):
        crowd.add(act, seed)
    crowd.run(SECONDS, enough)
    assert walks["whole"] > 10, walks
    assert walks["over"] > 0, walks
    connections.feeds_breaker.reset()
    until(lambda: worker.keep() and not ReplayDelivery.objects.exists(), 90)
    for reader in readers:
        page = live_page(reader, page_size=100, now=timezone.now())
        assert [int(item.id) for item in page.items] == [session_id for session_id, _ in feed(reader.pk)][:100]


@pytest.mark.long
def test_an_end_is_seen_at_once_and_delivered_by_whichever_worker_lives(readers: list[User], worker: Worker) -> None:
    live = list(LiveSession.objects.filter(state=State.LIVE).select_related("host"))
    worker.start()
    for one in live:
        actions.end(session=one, now=timezone.now())
    worker.kill()
    expected = [session_id for session_id, _ in feed(readers[0].pk)]
    page = live_page(readers[0], page_size=100, now=timezone.now())
    assert [int(item.id) for item in page.items] == expected
    worker.start()
    until(lambda: worker.keep() and not ReplayDelivery.objects.exists(), 90)


@pytest.mark.slow
def test_without_postgresql_there_is_an_honest_503(readers: list[User], monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(readers[0])

    def down(*args: object) -> None:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr("live.feed.fetch", down)
    answer = client.get("/api/v1/live/feed")
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
