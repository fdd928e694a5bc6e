import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from django.utils import timezone

from accounts.levels import policy
from accounts.models import User
from items.models import Item
from relations.models import Follow
from runtime.embedded import Home, feeds, wait_for
from storage.connections import feeds_for_tasks, pipelined
from storage.window import BEGIN, COMPLETE, WindowEntry
from tests.support.effort import tries
from tests.support.sites import Worker, until
from tests.support.web import WebServer, tokens_of
from tests.support.windows import epochs
from timeline.check import differences
from timeline.inbox import Inbox
from timeline.models import Delivery
from timeline.oracle import home_ids

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(300)]

READERS = tries(60, 2_000)
CIRCLES = 40
AT_ONCE = 500
WRITES = 5


def community(readers: int) -> tuple[list[User], list[list[int]]]:
    """Readers with filled inboxes, and their homes: the same within a circle."""
    chance = random.Random(2)  # noqa: S311 (the same in every run)
    now = timezone.now()
    said_by = User.objects.bulk_create(User(username=f"sender{number}") for number in range(40))
    circles = [chance.sample(said_by, 8) for _ in range(min(readers, CIRCLES))]
    reading = User.objects.bulk_create(
        User(username=f"reader{number}", level=3, last_seen_at=now, following_count=8) for number in range(readers)
    )
    Follow.objects.bulk_create(
        Follow(follower=reader, followee=followee)
        for place, reader in enumerate(reading)
        for followee in circles[place % CIRCLES]
    )
    Item.objects.bulk_create(Item(sender=chance.choice(said_by), content={"text": "words"}) for _ in range(400))
    entries = [WindowEntry(*row) for row in Item.objects.values_list("pk", "sender_id")]
    inboxes = []
    for circle in circles:
        ids = {followee.pk for followee in circle}
        inboxes.append([entry for entry in entries if entry.sender_id in ids])
    built_for = epochs(one.pk for one in reading)
    pipelined(feeds_for_tasks(), [Inbox(one.pk).begin("t", built_for[one.pk]) for one in reading])
    pipelined(
        feeds_for_tasks(),
        [
            Inbox(one.pk).complete("t", built_for[one.pk], 0, inboxes[place % CIRCLES])
            for place, one in enumerate(reading)
        ],
    )
    return reading, homes(reading)


def homes(reading: list[User]) -> list[list[int]]:
    shown = [home_ids(reader.pk)[:20] for reader in reading[:CIRCLES]]
    return [shown[place % CIRCLES] for place in range(len(reading))]


@pytest.mark.long
def test_fault_2_flushall_with_many_readers(web: WebServer, worker: Worker) -> None:
    """Every first page is right, and reading restores inboxes."""
    readers, expected = community(READERS)
    tokens = tokens_of(readers)
    before = web.homes(tokens[:20], at_once=4)
    assert [(page.headers["X-Feed-Source"], page.ids) for page in before] == [("inbox", ids) for ids in expected[:20]]
    feeds_for_tasks().flushall()
    begin = time.monotonic()
    pages = web.homes(tokens, at_once=AT_ONCE)
    print(f"{READERS} first pages without an inbox in {time.monotonic() - begin:.1f} s")
    assert Counter(page.status for page in pages) == {200: READERS}
    assert sum(page.ids != ids for page, ids in zip(pages, expected, strict=True)) == 0
    assert {page.headers["X-Feed-Source"] for page in pages} == {"sql"}
    worker.start()

    def are_back() -> bool:
        again = web.homes(tokens[:20], at_once=4)  # the first need not wait for all others
        assert [page.ids for page in again] == expected[:20]
        return {page.headers["X-Feed-Source"] for page in again} == {"inbox"}

    until(lambda: worker.keep() and are_back(), 180)
    worker.kill()
    assert list(differences([reader.pk for reader in readers])) == []


@pytest.mark.long
def test_fault_5_redis_at_maxmemory(web: WebServer, worker: Worker) -> None:
    """Reads and publishing work. Deliveries wait for room."""
    readers, _ = community(8)
    sender = Follow.objects.filter(follower=readers[0])[0].followee
    tokens, (own,) = tokens_of(readers), tokens_of([sender])
    client = feeds_for_tasks()
    before = client.config_get("maxmemory*")
    worker.start()
    try:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        with pytest.raises(redis.OutOfMemoryError):
            client.set("any", "thing")
        for _ in range(WRITES):
            answer = web.publish(own)
            assert answer.status == 201
            pages = web.homes(tokens, at_once=4)
            assert [page.status for page in pages] == [200] * len(pages)
            assert [page.ids for page in pages] == homes(readers)
            assert pages[0].ids[0] == int(answer.json()["id"])
        assert Delivery.objects.filter(parked_at=None).count() == WRITES, "they wait"
    finally:
        client.config_set("maxmemory", before["maxmemory"])
        client.config_set("maxmemory-policy", before["maxmemory-policy"])
    until(lambda: worker.keep() and not Delivery.objects.exists(), 60)
    assert list(differences([reader.pk for reader in readers])) == []
    assert [page.ids for page in web.homes(tokens, at_once=4)] == homes(readers)


@contextmanager
def watched(key: str) -> Iterator[Counter[str]]:
    """Count scripts on a window, by digest, and tasks that check whether to build it."""
    counts: Counter[str] = Counter()
    client = redis.Redis(connection_pool=feeds_for_tasks().connection_pool)
    last = f"the end of {key}"
    begun = threading.Event()

    def watch() -> None:
        with client.monitor() as monitor:
            begun.set()
            for seen in monitor.listen():
                words = seen["command"].split(" ")
                if seen["command"] == f"ECHO {last}":
                    return
                if words[0].upper() == "EVALSHA" and words[3] == key:
                    counts[words[1]] += 1
                is_own = seen["client_type"] != "lua"  # the monitor also shows calls from scripts
                if is_own and words[:2] == ["ZSCORE", key] and words[2].startswith("build:"):
                    counts["tasks"] += 1

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        assert begun.wait(30)
        yield counts
        client.echo(last)
        watching.result(60)


@pytest.mark.long
def test_fault_6_500_concurrent_cold_reads_of_one_user(web: WebServer, worker: Worker) -> None:
    (reader,), (expected,) = community(1)
    (token,) = tokens_of([reader])
    inbox = Inbox(reader.pk)

    def is_built() -> bool:
        return web.homes([token], at_once=1)[0].headers["X-Feed-Source"] == "inbox"

    worker.start()
    feeds_for_tasks().delete(inbox.key)
    # A build may expire while it waits for a worker.
    until(lambda: worker.keep() and is_built(), 150)
    with watched(inbox.key) as scripts:
        feeds_for_tasks().flushall()
        pages = web.homes([token] * AT_ONCE, at_once=AT_ONCE)
        until(lambda: worker.keep() and is_built(), 120)
    assert Counter(page.status for page in pages) == {200: AT_ONCE}
    assert all(page.ids == expected for page in pages)
    assert scripts[BEGIN] > 0
    assert (scripts["tasks"], scripts[COMPLETE]) == (1, 1)


@pytest.mark.long
@pytest.mark.parametrize("moved", ["empty", "copied", "copied too early"])
def test_feeds_on_another_machine(moved: str, web: WebServer, worker: Worker, tmp_path: Path) -> None:
    """By the runbook: stop the programs, copy or not, start them with the new address. Every home is right."""
    readers, _ = community(20)
    sender = Follow.objects.filter(follower=readers[0])[0].followee
    tokens, (own,) = tokens_of(readers), tokens_of([sender])
    worker.start()
    home = Home(tmp_path / "new")
    home.make()
    server = feeds(home)
    server.start()
    try:
        assert wait_for(server.answers, 60)
        address = f"unix://{server.socket}?db=0"
        if moved == "copied too early":
            copy(address)
        assert web.publish(own).status == 201
        until(lambda: not Delivery.objects.exists(), 60)
        worker.kill()
        web.end()
        if moved == "copied":
            copy(address)
        for program in (web, worker):
            program.environ |= {"FEEDSITE_REDIS_URL": address, "FEEDSITE_CACHE_URL": address}
        if moved == "copied too early":
            policy.renew_generation()  # manage.py policy --new-generation
        web.start()
        worker.start()
        pages = web.homes(tokens, at_once=4)
        assert [page.ids for page in pages] == homes(readers)
        assert web.publish(own).status == 201
        until(lambda: not Delivery.objects.exists(), 60)

        def are_back() -> bool:
            again = web.homes(tokens, at_once=4)
            assert [page.ids for page in again] == homes(readers)
            return {page.headers["X-Feed-Source"] for page in again} == {"inbox"}

        until(are_back, 120)
    finally:
        web.end()
        worker.kill()
        server.stop()


def copy(address: str) -> None:
    source = feeds_for_tasks()
    with redis.Redis.from_url(address) as target:
        for key in source.scan_iter():
            target.restore(key, max(source.pttl(key), 0), source.dump(key), replace=True)
