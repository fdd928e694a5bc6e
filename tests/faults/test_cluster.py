import random
import time
from collections import Counter
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.utils import timezone
from redis.crc import key_slot
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from items import actions as items
from relations import actions as relations
from storage import connections, keys
from storage.connections import feeds_for_tasks
from tests.support.api import API, client_of
from tests.support.clusters import ValkeyCluster
from tests.support.crowds import Crowd
from tests.support.factories import UserFactory
from tests.support.servers import frozen
from tests.support.sites import Worker, until
from tests.support.streams import StreamServer
from timeline.check import differences
from timeline.fanout import fan_out
from timeline.home import home_page
from timeline.inbox import deepen_or_build
from timeline.models import Delivery
from timeline.oracle import home_ids

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]

READERS, SENDERS = 6, 3
PAGE = 20
PAGE_SECONDS = 1.3
"""A page's limit besides its 0.2 s wait for Redis: 1.5 s in all."""
TAKEN_OVER_AFTER = 1_000
"""Milliseconds of a primary's silence."""


@pytest.mark.long
def test_slots_move_and_a_primary_is_killed(
    cluster: ValkeyCluster, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page matches the oracle. Afterwards inboxes serve pages again."""
    monkeypatch.setenv("FEEDSITE_REDIS_URL", cluster.url)
    monkeypatch.setattr(settings, "RATE_SCALE", 10_000)
    senders = [UserFactory(last_seen_at=timezone.now()) for _ in range(SENDERS)]
    readers = [UserFactory(last_seen_at=timezone.now()) for _ in range(READERS)]
    for reader in readers:
        for sender in senders:
            relations.follow(follower=reader, followee=sender)
    callers = {user.pk: APIClient() for user in (*senders, *readers)}
    for user in (*senders, *readers):
        callers[user.pk].credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=user)}")
    served: Counter[str] = Counter()

    def publish(chance: random.Random) -> None:
        answer = callers[chance.choice(senders).pk].post(f"{API}/items", {"content": {"text": "words"}}, format="json")
        assert answer.status_code == 201, answer.content

    def read(chance: random.Random) -> None:
        reader = chance.choice(readers)
        before = home_ids(reader.pk)[:PAGE]
        answer = callers[reader.pk].get(f"{API}/timeline/home?limit={PAGE}")
        assert answer.status_code == 200, answer.content
        found = [int(item["id"]) for item in answer.json()["items"]]
        source = answer["X-Feed-Source"]
        assert found == sorted(found, reverse=True), source
        # Items published meanwhile may push out the oldest.
        assert set(found) <= set(home_ids(reader.pk)), source
        assert len(found) >= len(before), source
        assert [item_id for item_id in before if item_id >= found[-1]] == [i for i in found if i in before], source
        served[source] += 1

    worker.start()
    until(lambda: all(from_inbox(reader) for reader in readers), 150)
    faults = Faults(cluster, [keys.inbox(reader.pk) for reader in readers])
    crowd = Crowd()
    for seed, act in enumerate((read, read, publish)):
        crowd.add(act, seed)
    crowd.run(1, lambda: faults.are_over(sum(served.values())))
    assert cluster.is_primary(faults.heir), served
    until(lambda: worker.keep() and not Delivery.objects.exists(), 150)
    # A build that met the dead node expires after a minute.
    until(lambda: all(from_inbox(reader) for reader in readers), 150)
    assert not Delivery.objects.parked().exists()
    until(lambda: can_ask(feeds_for_tasks()), 30)
    assert list(differences([user.pk for user in (*readers, *senders)])) == []


@pytest.mark.long
def test_pages_come_from_postgresql_in_time_while_a_node_is_frozen(
    cluster: ValkeyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """redis-py would wait for the node at every command."""
    monkeypatch.setattr(settings, "RATE_SCALE", 10_000)
    reader, *senders = [UserFactory(last_seen_at=timezone.now()) for _ in range(1 + SENDERS)]
    for sender in senders:
        relations.follow(follower=reader, followee=sender)
        fan_out(items.publish(sender=sender, content={"text": "words"}).pk)
    assert deepen_or_build(reader.pk)
    until(lambda: from_inbox(reader), 60)
    api = client_of(reader)
    seconds = []
    with frozen(cluster.primary_of(keys.inbox(reader.pk))):
        for _ in range(5):  # a busy machine may be slow now and then
            connections.feeds_breaker.reset()
            began = time.monotonic()
            answer = api.get(f"{API}/timeline/home")
            seconds.append(time.monotonic() - began)
            assert (answer.status_code, answer["X-Feed-Source"]) == (200, "sql")
            assert [int(item["id"]) for item in answer.json()["items"]] == home_ids(reader.pk)
    assert min(seconds) < settings.REDIS_TIMEOUT_SECONDS + PAGE_SECONDS, seconds
    connections.feeds_breaker.reset()
    until(lambda: from_inbox(reader), 60)


@pytest.mark.long
def test_streams_follow_who_takes_over(cluster: ValkeyCluster, tmp_path: Path) -> None:
    """Its events are lost, so a `reset` tells open pages to reload."""
    author, fan = UserFactory(), UserFactory()
    relations.follow(follower=fan, followee=author)
    streams = StreamServer(tmp_path, FEEDSITE_REDIS_URL=cluster.url)
    streams.start()
    try:
        client = streams.listen(fan)
        client.waits_for(lambda one: one.resets == 1)
        made = [items.publish(sender=author, content={"text": "words"})]
        client.waits_for(lambda one: len(one.news) == 1)
        primary = cluster.primary_of(keys.events())
        cluster.cut_off(cluster.replica_of(primary))
        made.append(items.publish(sender=author, content={"text": "words"}))
        cluster.take_over(cluster.replica_of(primary))

        def is_heard() -> bool:
            made.append(items.publish(sender=author, content={"text": "words"}))
            return client.news[-1][1] > made[1].pk

        until(is_heard, 60)
        assert {item.pk for item in made[:2]} <= {told[1] for told in client.news} or client.resets > 1
        client.close()
    finally:
        streams.kill()


def can_ask(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


class Faults:
    def __init__(self, cluster: ValkeyCluster, names: list[str]) -> None:
        self.cluster = cluster
        self.left = list(names)
        self.killed = cluster.primary_of(names[0])
        self.heir = cluster.replica_of(self.killed)
        self.read_by_then = 0

    def are_over(self, pages: int) -> bool:
        """Take the next step. True 50 pages after the replica took over."""
        if self.left:
            key = self.left.pop()
            source = self.cluster.primary_of(key)
            others = (node for node in self.cluster.nodes if node is not source and self.cluster.is_primary(node))
            self.cluster.move(key_slot(key.encode()), source, next(others))
        elif not self.killed.has_ended():
            # On a slow machine other nodes would fail over while slots move.
            self.cluster.patience(TAKEN_OVER_AFTER)
            self.killed.kill()
        elif not self.read_by_then:
            self.read_by_then = pages if self.cluster.is_primary(self.heir) else 0
        else:
            return pages > self.read_by_then + 50
        return False


def from_inbox(reader: User) -> bool:
    page = home_page(User.objects.get(pk=reader.pk))
    assert [int(item.id) for item in page.items] == home_ids(reader.pk)[:PAGE]
    return page.sources == ["inbox"]
