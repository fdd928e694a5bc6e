import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.utils import timezone

from accounts.models import User
from items.actions import publish
from operation.doctor import examination, work
from relations.models import Follow
from storage.connections import fetch
from storage.queue import QUEUES
from storage.quiet import HOLDER
from tests.support.effort import tries
from tests.support.factories import UserFactory
from tests.support.rabbits import IS_WANTED, Rabbit
from tests.support.servers import Valkey, frozen
from tests.support.sites import Worker, until
from tests.support.web import WebServer, tokens_of
from tests.support.workers import queue_server
from timeline.check import differences
from timeline.models import Delivery
from timeline.oracle import home_ids

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(300)]

FULL_SECONDS = 4.0
RESTARTS = tries(3, 20)
PAUSE = 0.3
"""RabbitMQ may take a minute to start, and all posts must be delivered."""


@pytest.mark.long
def test_fault_8_the_broker_restarted_again_and_again(web: WebServer, worker: Worker, broker_server: Valkey) -> None:
    """Every publish is 201. The same workers deliver everything."""
    now = timezone.now()
    senders = UserFactory.create_batch(3, last_seen_at=now)
    fans = User.objects.bulk_create(User(username=f"fan{number}", level=3, last_seen_at=now) for number in range(50))
    Follow.objects.bulk_create(Follow(follower=fan, followee=sender) for fan in fans for sender in senders)
    worker.start()
    statuses: list[int] = []
    ending = threading.Event()

    def publish(token: str) -> None:
        while not ending.wait(PAUSE):
            statuses.append(web.publish(token).status)

    def more() -> None:
        enough = len(statuses) + len(senders) + 1
        until(lambda: len(statuses) >= enough, 60)

    with ThreadPoolExecutor(len(senders)) as pool:
        publishing = [pool.submit(publish, token) for token in tokens_of(senders)]
        try:
            for _ in range(RESTARTS):
                broker_server.kill()
                more()
                broker_server.start()
                until(broker_server.answers, 90)
                assert worker.keep()
                more()
        finally:
            ending.set()
        for one in publishing:
            one.result()
    print(f"{len(statuses)} published")
    assert Counter(statuses) == {201: len(statuses)}
    until(lambda: worker.keep() and not Delivery.objects.exists(), 120)
    tokens = tokens_of(fans[:5])
    pages = web.homes(tokens, at_once=2)
    assert [page.ids for page in pages] == [home_ids(fan.pk)[:20] for fan in fans[:5]]
    assert len(home_ids(fans[0].pk)) == len(statuses)
    assert list(differences([fan.pk for fan in fans])) == []


@pytest.mark.long
@pytest.mark.skipif(IS_WANTED, reason="RabbitMQ blocks who sends")
def test_a_worker_outlives_a_full_broker(worker: Worker, broker_server: Valkey) -> None:
    worker.start()
    until(lambda: bool(fetch(HOLDER)), 60)  # its beat works
    broker = queue_server()
    before = broker.config_get("maxmemory")["maxmemory"]
    broker.config_set("maxmemory", 1)
    try:
        until(lambda: "command not allowed when used memory" in worker.said(), 60)
        ended = time.monotonic() + FULL_SECONDS
        until(lambda: time.monotonic() > ended, FULL_SECONDS + 1)
    finally:
        broker.config_set("maxmemory", before)
    assert worker.process is not None
    assert worker.process.poll() is None, worker.said()
    item = publish(sender=UserFactory(), content={"text": "Hello"})
    until(lambda: not Delivery.objects.filter(item_id=item.pk).exists(), 60)


@pytest.mark.long
@pytest.mark.skipif(not IS_WANTED, reason="Redis refuses")
def test_a_full_rabbitmq(web: WebServer, worker: Worker, broker_server: Rabbit) -> None:
    """Posts are saved, few of them wait, doctor says why, and all is delivered once there is room."""
    worker.start()
    until(lambda: bool(fetch(HOLDER)), 60)
    (token,) = tokens_of([UserFactory(last_seen_at=timezone.now())])
    assert web.publish(token).status == 201
    with broker_server.full():
        until(lambda: web.ask("/readyz").json()["servers"]["broker"] != "ok", 60)
        took = []
        for _ in range(40):
            began = time.monotonic()
            assert web.publish(token).status == 201
            took.append(time.monotonic() - began)
        assert max(took) < 4.0
        assert sum(seconds > 1.0 for seconds in took) < 8, took
        outages: examination.Outages = {}
        for name, check in (("broker", work.broker), ("workers", work.workers), ("clocks", work.clocks)):
            examination.safely(name, check, outages)
        (said,) = outages.values()
        assert said.text.startswith("refuses (RabbitMQ takes no messages: its disk or its memory is full)")
        assert said.text.endswith("these were not checked: workers, clocks")
        assert "Disk full" in said.todo
    until(lambda: not Delivery.objects.exists(), 60)


@pytest.mark.skipif(IS_WANTED, reason="asks a Valkey for its queue")
@pytest.mark.long
def test_fault_a_kill_between_the_answer_and_the_task(web: WebServer, worker: Worker, broker_server: Valkey) -> None:
    """The post is in every home at once, and a sweeper delivers it."""
    now = timezone.now()
    sender, fan = (UserFactory(last_seen_at=now) for _ in range(2))
    Follow.objects.create(follower=fan, followee=sender)
    own, fans = tokens_of([sender, fan])
    with frozen(broker_server):  # it is first asked for this task, and says nothing, so the task does not leave
        answer = web.publish(own)
        assert answer.status == 201
        web.kill()
    assert queue_server().llen(QUEUES[0]) == 0
    web.start()
    item = int(answer.json()["id"])
    assert [page.ids for page in web.homes((own, fans), at_once=1)] == [[item], [item]]
    assert Delivery.objects.filter(pk=item, attempts=0).exists()
    worker.start()
    until(lambda: worker.keep() and not Delivery.objects.exists(), 120)
    assert list(differences([sender.pk, fan.pk])) == []
