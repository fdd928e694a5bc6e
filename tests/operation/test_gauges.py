from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import ChannelError

from accounts.models import Level, User
from feedsite.celery import app
from items import actions as items
from items.link_cards.actions import read_waiting
from operation import gauges
from operation.doctor import redis_servers
from relations import actions as relations
from runtime import metrics
from storage import connections
from storage.connections import feeds_for_tasks, pipelined
from storage.queue import QUEUES
from tests.support.clusters import ValkeyCluster
from tests.support.factories import UserFactory
from tests.support.mail_servers import closed_port
from tests.support.windows import epoch_of
from timeline import fanout, inbox, tasks
from timeline.home import home_page
from timeline.inbox import Inbox
from timeline.models import Delivery

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def queue() -> Any:
    with app.connection_for_write() as connection:
        queue = connection.SimpleQueue("celery", no_ack=True)
        queue.clear()
        yield queue
        queue.clear()
        queue.close()


class Shown:
    """The metrics of this moment. Reading them takes a second after many tests."""

    def __init__(self) -> None:
        self.samples = list(metrics.samples())

    def value(self, name: str, **labels: str) -> float:
        return sum(sample for found, having, sample in self.samples if found == name and having == labels)

    def from_sql(self) -> float:
        return sum(
            pages
            for name, labels, pages in self.samples
            if name == "feedsite_home_pages_total" and "sql" in labels["sources"].split(",")
        )


def value(name: str, **labels: str) -> float:
    return Shown().value(name, **labels)


def test_to_look_how_long_queues_are_makes_none(broker_server: Any) -> None:
    with app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        for name in QUEUES:
            channel.queue_delete(name)
        assert gauges.queue_lengths() == dict.fromkeys(QUEUES, 0)
        for name in QUEUES:
            with pytest.raises(ChannelError):
                connection.channel().queue_declare(queue=name, passive=True)


@pytest.mark.slow
def test_what_waits_is_seen(queue: Any) -> None:
    now = timezone.now()
    sender, follower = UserFactory(), UserFactory(last_seen_at=now)
    UserFactory(level=Level.DORMANT)
    relations.follow(follower=follower, followee=sender)
    waiting, parked, done = (items.publish(sender=sender, content={"text": "words"}) for _ in range(3))
    Delivery.objects.filter(pk=waiting.pk).update(not_before=now - timedelta(seconds=90))
    Delivery.objects.filter(pk=parked.pk).update(parked_at=now)
    before = Shown()
    assert fanout.fan_out(done.pk)
    home_page(follower)
    queue.clear()
    tasks.sweep.delay()
    tasks.sweep.delay()
    read_waiting.delay()

    gauges.set_user_gauges()
    gauges.observe(now=now)
    shown = Shown()
    assert shown.value("feedsite_deliveries_pending") == shown.value("feedsite_deliveries_parked") == 1
    assert shown.value("feedsite_delivery_oldest_seconds") == pytest.approx(90, abs=1)
    assert shown.value("feedsite_queue_length", queue="celery") == 2
    assert shown.value("feedsite_queue_length", queue="outside") == 1
    assert (shown.value("feedsite_users", level="3"), shown.value("feedsite_users", level="0")) == (2, 1)
    assert shown.value("feedsite_big_vs") == 0
    assert (
        shown.value("feedsite_delivery_seconds_bucket", le="+Inf")
        == before.value("feedsite_delivery_seconds_count") + 1
    )
    assert shown.value("feedsite_fanout_entries_total") == before.value("feedsite_fanout_entries_total") + 1
    assert shown.from_sql() == before.from_sql() + 1
    assert shown.value("feedsite_sampled_seconds") == pytest.approx(now.timestamp())
    assert gauges.last_observed() == now


@pytest.mark.slow
def test_the_sample_of_the_oracle_counts_what_differs(feeds: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A window lost an entry. Only a comparison with PostgreSQL shows it."""
    sender, follower = UserFactory(), UserFactory(last_seen_at=timezone.now())
    relations.follow(follower=follower, followee=sender)
    follower.refresh_from_db()
    readers, missing = (
        value("feedsite_oracle_readers_total"),
        value("feedsite_oracle_differences_total", kind="missing"),
    )
    window_of(follower)
    item = items.publish(sender=sender, content={"text": "words"})
    assert fanout.fan_out(item.pk)
    tasks.check_sample()
    assert value("feedsite_oracle_readers_total") > readers
    assert value("feedsite_oracle_differences_total", kind="missing") == missing
    assert feeds.zrem(f"inbox:{follower.pk}", f"{sender.pk}:{item.pk}")
    tasks.check_sample()
    assert value("feedsite_oracle_differences_total", kind="missing") == missing + 1
    assert f"inbox:{follower.pk}: missing (1): {item.pk}" in caplog.text


def window_of(reader: User) -> None:
    reader.refresh_from_db()
    assert pipelined(feeds_for_tasks(), [Inbox(reader.pk).begin("token", epoch_of(reader.pk))]) == [1]
    inbox.materialise(reader.pk, "token")


@pytest.mark.long
@pytest.mark.slow
def test_why_a_page_did_not_come_from_windows(
    feeds: Any, queue: Any, inbox_from: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = UserFactory(last_seen_at=timezone.now())
    reasons = ("missing", "redis", "floor", "dormant", "few")

    def misses() -> list[float]:
        shown = Shown()
        return [shown.value("feedsite_home_misses_total", reason=reason) for reason in reasons]

    def grown(read: Callable[[], object]) -> dict[str, float]:
        before = misses()
        read()
        return {reason: new - old for reason, new, old in zip(reasons, misses(), before, strict=True) if new != old}

    assert grown(lambda: home_page(reader)) == {"missing": 1}
    feeds.flushall()  # the page has begun the window
    window_of(reader)
    served = value("feedsite_home_pages_total", sources="inbox")
    assert grown(lambda: home_page(reader)) == {}
    assert value("feedsite_home_pages_total", sources="inbox") == served + 1
    trips = value("feedsite_breaker_trips_total", server="feeds")
    monkeypatch.setattr(connections.feeds_breaker, "_seconds", 600)  # however slow this machine is
    connections.feeds_breaker.trip()
    assert grown(lambda: home_page(reader)) == {"redis": 1}
    assert value("feedsite_breaker_trips_total", server="feeds") == trips + 1
    assert value("feedsite_breaker_open_until_seconds", server="feeds") > timezone.now().timestamp() - 60
    connections.feeds_breaker.reset()
    inbox_from(1)
    assert grown(lambda: home_page(reader)) == {"few": 1}
    User.objects.filter(pk=reader.pk).update(level=Level.DORMANT)
    reader.refresh_from_db()
    assert grown(lambda: home_page(reader)) == {"dormant": 1}


@pytest.mark.slow
def test_no_readers_are_compared_where_none_are_asked_for(settings: Any) -> None:
    settings.CHECK_READERS = 0
    before = value("feedsite_oracle_readers_total")
    UserFactory()
    tasks.check_sample()
    assert value("feedsite_oracle_readers_total") == before


def test_memory_and_sessions_of_the_servers(feeds: Any, broker_server: Any) -> None:
    before = gauges.memory()
    assert before.keys() == {"feeds", "broker", "plays", "cache"}
    own = {name: feeds.config_get(name)[name] for name in ("maxmemory", "maxmemory-policy")}
    try:
        feeds.config_set("maxmemory-policy", "allkeys-lru")
        feeds.config_set("maxmemory", feeds.info()["used_memory"] + 2**20)
        for number in range(30):
            feeds.set(f"full:{number}", b"x" * 2**17)
        gauges.observe(now=timezone.now())
        assert value("feedsite_redis_memory_ratio", server="feeds") > 0.8
        evicted = before["feeds"][1]
        assert value("feedsite_redis_evicted_keys", server="feeds") > evicted
    finally:
        for name, text in own.items():
            feeds.config_set(name, text)
        feeds.flushall()
    assert 0 < value("feedsite_postgresql_sessions_ratio") < 1
    assert 0 < value("feedsite_memory_available_ratio") < 1


@pytest.mark.long
def test_memory_of_a_cluster_is_of_its_fullest_primary(cluster: ValkeyCluster) -> None:
    roles = [role for role, _url in redis_servers.primaries()]
    assert (roles.count("feeds"), len(roles)) == (3, 6)
    for node in cluster.nodes:
        cluster.ask(node, "CONFIG", "SET", "maxmemory", "1gb")
    try:
        assert 0 < gauges.memory()["feeds"][0] < 0.5
    finally:
        for node in cluster.nodes:
            cluster.ask(node, "CONFIG", "SET", "maxmemory", "0")


@pytest.mark.slow
def test_a_dead_server_does_not_keep_the_others_from_being_measured(settings: Any) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    assert gauges.memory().keys() == {"broker", "plays", "cache"}


def test_beat_looks_more_often_than_the_doctor_asks() -> None:
    assert settings.CELERY_BEAT_SCHEDULE["observe"]["schedule"] <= 60
