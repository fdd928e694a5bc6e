"""Replays: pushed, pulled, retried and given up."""

from datetime import timedelta

import pytest
import redis
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from accounts.levels import big_v
from accounts.models import User
from live import actions, replays
from live.models import Host, LiveSession, ReplayDelivery, State
from live.pull import pull_entries
from relations import actions as relations
from storage import connections, deliveries, keys
from storage.window import deliver
from tests.support.servers import Valkey, dead
from tests.support.sessions import seen, session
from tests.support.windows import epoch_of
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _workers(workers: Workers) -> Workers:
    return workers


@pytest.fixture
def host(db: None) -> User:
    return seen()


@pytest.fixture
def reader(host: User, workers: Workers) -> User:
    reader = seen()
    relations.follow(follower=reader, followee=host)
    build(reader)
    return reader


def build(reader: User) -> None:
    epoch = epoch_of(reader.pk)
    connections.pipelined(connections.feeds_for_tasks(), [replays.Replays(reader.pk).begin("token", epoch)])
    assert replays.materialise(reader.pk, "token")


def held(feeds: redis.Redis, reader: User) -> list[int]:
    """Ids in the window, newest first."""
    members = feeds.zrange(keys.replays(reader.pk), 0, -1, desc=True)
    return [int(member.split(b":")[1]) for member in members if member[:1].isdigit()]


def test_a_replay_comes_to_every_follower_with_an_inbox(
    host: User, reader: User, workers: Workers, feeds: redis.Redis
) -> None:
    dormant = seen()
    relations.follow(follower=dormant, followee=host)
    User.objects.filter(pk=dormant.pk).update(level=0)
    ended = session(host, State.REPLAY)
    assert ReplayDelivery.objects.get().position == ended.position
    workers.work()
    assert not ReplayDelivery.objects.exists()
    assert held(feeds, reader) == [ended.position]
    assert not feeds.exists(keys.replays(dormant.pk))


def test_delivering_again_changes_nothing(host: User, reader: User, workers: Workers, feeds: redis.Redis) -> None:
    ended = session(host, State.REPLAY)
    for _ in range(2):
        replays.create_delivery(session=ended)
        workers.work()
    assert held(feeds, reader) == [ended.position]


def test_a_big_vs_replay_is_pulled_whatever_they_become(
    host: User, reader: User, workers: Workers, feeds: redis.Redis
) -> None:
    big_v.make_big_v(user=host)
    ended = session(host, State.REPLAY)
    assert not ReplayDelivery.objects.exists()
    User.objects.update(is_big_v=False)
    replays.create_delivery(session=ended)
    workers.work()
    assert held(feeds, reader) == []
    assert LiveSession.objects.get(pulled=True).pk == ended.pk
    assert Host.objects.get(has_pulled=True).pk == host.pk
    pushed = session(host, State.REPLAY)
    workers.work()
    assert held(feeds, reader) == [pushed.position]
    assert [entry.item_id for entry in pull_entries(reader.pk, 9)[1]] == [pushed.position]


def test_what_ended_hidden_is_delivered_when_it_is_shown(
    host: User, reader: User, workers: Workers, feeds: redis.Redis
) -> None:
    live = session(host, State.LIVE)
    actions.hide(session=live, now=timezone.now())
    ended = actions.end(session=live, now=timezone.now())
    workers.work()
    assert held(feeds, reader) == []
    actions.show_again(session=ended, now=timezone.now())
    workers.work()
    assert held(feeds, reader) == [ended.position]


@pytest.mark.slow
def test_a_window_holds_the_newest_and_knows_its_floor(
    host: User, reader: User, workers: Workers, feeds: redis.Redis, settings: object
) -> None:
    settings.LIVE_REPLAYS_CAP = 2  # type: ignore[attr-defined]
    positions = [session(host, State.REPLAY).position for _ in range(4)]
    workers.work()
    feeds.delete(keys.replays(reader.pk))
    build(reader)
    assert held(feeds, reader) == positions[:1:-1]
    assert feeds.zscore(keys.replays(reader.pk), "floor") == positions[1]


@pytest.mark.slow
def test_an_outage_is_waited_for_and_not_counted(
    host: User, reader: User, workers: Workers, feeds_server: Valkey
) -> None:
    with dead(feeds_server):
        session(host, State.REPLAY)
        workers.work()
        row = ReplayDelivery.objects.get()
        assert (row.attempts, bool(row.last_error)) == (0, True)
    connections.feeds_breaker.reset()
    ReplayDelivery.objects.update(sweep_at=F("sweep_at") + timedelta(hours=1))
    assert deliveries.sweep(ReplayDelivery, replays.fan_out) == 0
    ReplayDelivery.objects.update(sweep_at=Now())
    assert deliveries.sweep(ReplayDelivery, replays.fan_out) == 1
    workers.work()
    assert not ReplayDelivery.objects.exists()


@pytest.mark.slow
def test_a_replay_that_always_fails_is_parked_and_can_be_tried_again(
    host: User, reader: User, workers: Workers, monkeypatch: pytest.MonkeyPatch, feeds: redis.Redis
) -> None:
    def fail(*args: object) -> list[int]:
        raise ValueError("poison")

    monkeypatch.setattr(replays, "deliver", fail)
    ended = session(host, State.REPLAY)
    for _ in range(9):
        workers.work()
        ReplayDelivery.objects.update(sweep_at=Now())
        deliveries.sweep(ReplayDelivery, replays.fan_out)
    row = ReplayDelivery.objects.parked().get()
    assert row.attempts == 5
    assert row.last_error == "ValueError: poison"
    monkeypatch.setattr(replays, "deliver", deliver)
    workers.work()
    assert held(feeds, reader) == []
    assert deliveries.retry(ReplayDelivery.objects.all(), replays.fan_out) == 1
    workers.work()
    assert held(feeds, reader) == [ended.position]
    assert not ReplayDelivery.objects.exists()
