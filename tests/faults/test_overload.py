"""Refused at once, no write is lost, and no refused write happens."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection, transaction

from accounts.models import User
from items.models import Item
from runtime.embedded import wait_for
from tests.support.api import API
from tests.support.at_once import HERE
from tests.support.effort import tries
from tests.support.factories import UserFactory
from tests.support.web import Answer, Queueing, tokens_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CLIENTS = 60
POSTS = tries(6, 30)
WAIT = 0.2
RETURN_SECONDS = 10


@pytest.fixture
def web(tmp_path: Path, transactional_db: None) -> Iterator[Queueing]:
    options = {"FEEDSITE_WEB_WAIT_SECONDS": str(WAIT), "FEEDSITE_WEB_THREADS": "2"}
    server = Queueing(tmp_path, FEEDSITE_DATABASE_TIMEOUT_SECONDS="30", **options)  # locks are held on busy machines
    server.start()
    yield server
    server.kill()
    print(server.said()[-10_000:])


@pytest.fixture
def members(transactional_db: None) -> list[User]:
    return [UserFactory() for _ in range(CLIENTS)]


def texts() -> set[str]:
    return set(Item.objects.values_list("content__text", flat=True))


def is_refused(answer: Answer) -> bool:
    """Whether the API shed it."""
    if answer.status != 503:
        return False
    assert answer.headers["Retry-After"] == "2"
    assert answer.json() == {"detail": "The service is unavailable for a moment."}
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    return True


@pytest.mark.long
def test_an_overload_is_refused_and_what_was_acknowledged_is_there(web: Queueing, members: list[User]) -> None:
    tokens = tokens_of(members)
    assert web.publish(tokens[0], "before").status == 201
    over = threading.Event()

    def write(client: int) -> list[tuple[str, Answer]]:
        """The client ignores Retry-After."""
        said = [f"client {client} post {number}" for number in range(POSTS)]
        return [(text, web.publish(tokens[client], text)) for text in said]

    def probe() -> Counter[int]:
        found: Counter[int] = Counter()
        while not over.is_set():
            found[web.ask("/healthz").status] += 1
        return found

    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        probing = pool.submit(probe)
        answers = [pair for some in pool.map(write, range(CLIENTS)) for pair in some]
        over.set()
    acknowledged = {text for text, answer in answers if answer.status == 201}
    refused = {text for text, answer in answers if is_refused(answer)}
    assert acknowledged
    assert refused
    assert len(acknowledged) + len(refused) == len(answers), Counter(answer.status for _, answer in answers)
    assert texts() - {"before"} == acknowledged
    assert probing.result().keys() == {200}
    begin = time.monotonic()
    assert wait_for(lambda: web.publish(tokens[0], "afterwards").status == 201, RETURN_SECONDS)
    assert time.monotonic() - begin < RETURN_SECONDS
    counted = web.ask("/metrics").body.decode()
    assert f"feedsite_web_shed_total {len(refused)}.0" in counted


@pytest.mark.long
def test_those_who_wait_behind_frozen_threads_are_refused(web: Queueing, members: list[User]) -> None:
    tokens = tokens_of(members)
    assert web.publish(tokens[0], "before").status == 201

    def insist(token: str, text: str) -> Answer:
        while is_refused(answer := web.publish(token, text)):
            pass
        return answer

    with ThreadPoolExecutor(CLIENTS) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE items_item IN ACCESS EXCLUSIVE MODE")
            stuck = [pool.submit(insist, token, f"stuck {place}") for place, token in enumerate(tokens[:2])]
            assert wait_for(lambda: waiting_for_locks() == 2, 60)
            late = pool.submit(web.publish, tokens[2], "late")
            time.sleep(WAIT * 2)  # only its time in the queue makes it late
            next_one = pool.submit(web.ask, f"{API}/users/{members[3].username}", tokens[3])
            assert is_refused(late.result(20)), "a request waits for a thread, however long that takes"
        assert [each.result().status for each in stuck] == [201, 201], "a request that was begun is answered"
        assert next_one.result().status in (200, 503)
    assert texts() == {"before", "stuck 0", "stuck 1"}


def waiting_for_locks() -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation' AND {HERE}")
        (count,) = cursor.fetchone() or (0,)
        return int(count)
