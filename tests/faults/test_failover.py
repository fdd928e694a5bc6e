"""The standby lacks the newest transactions, but Redis knows their effects."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.utils import timezone

from accounts.levels import policy
from accounts.models import User
from feedsite import celery
from items import actions as items
from items.models import Item
from live import actions as sessions
from live import lineup, replays
from live.feed import live_page
from live.models import Host, LiveSession
from relations import actions as relations
from runtime.embedded import wait_for
from storage import keys
from tests.support import live_oracle
from tests.support.replica import Replica, failed_over
from tests.support.sites import walked
from tests.support.timelines import TASKS as TIMELINE
from tests.support.timelines import read, seen, sources
from tests.support.workers import Workers
from timeline.oracle import home_ids

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

TASKS = TIMELINE | {task.name: task.run for task in (lineup.apply, replays.fan_out, replays.materialise)}


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    workers = Workers(TASKS)
    monkeypatch.setattr(celery.app, "send_task", workers.send_task)
    return workers


@pytest.fixture
def standby(tmp_path: Path, transactional_db: None) -> Iterator[Replica]:
    server = Replica(tmp_path)
    server.start()
    assert wait_for(server.answers, 60), server.last_words()
    yield server
    server.stop()


def publish(sender: User) -> Item:
    return items.publish(sender=User.objects.get(pk=sender.pk), content={"text": "words"})


def shown(reader: User) -> list[tuple[int, str]]:
    page = live_page(User.objects.get(pk=reader.pk), page_size=50, now=timezone.now())
    page.store()
    return [(int(item.id), item.state) for item in page.items]


def assert_exact(*readers: User) -> None:
    for reader in readers:
        assert walked(reader) == home_ids(reader.pk)
        assert read(reader, limit=7) == home_ids(reader.pk)[:7]
        assert shown(reader) == live_oracle.feed(reader.pk)


def read_all(workers: Workers, *readers: User) -> None:
    for _ in range(3):
        assert_exact(*readers)
        workers.work()


@pytest.mark.long
def test_a_standby_that_lacks_the_newest_transactions(
    workers: Workers, standby: Replica, feeds: redis.Redis, settings: Any
) -> None:
    daily, weekly = seen(), seen(level=2)
    friend, other, star = seen(), seen(), seen(is_big_v=True)
    for reader in (daily, weekly):
        for sender in (friend, other, star):
            relations.follow(follower=reader, followee=sender)
    now = timezone.now()
    planned = sessions.create(host=friend, title="planned", starts_at=now + timedelta(hours=1), now=now)
    over = sessions.create(host=other, title="over", starts_at=now, now=now)
    sessions.end(session=sessions.start(session=over, now=now), now=now)
    said = [publish(sender) for _ in range(4) for sender in (friend, other, star)]
    workers.work()
    read_all(workers, daily, weekly)
    assert sources(daily) == ["inbox"]
    assert sources(weekly) == ["inbox", "outbox"]
    standby.catch_up()
    standby.cut_off()

    # Lost entries, except those that reads removed.
    for item in said[2:8]:
        items.delete(item=Item.objects.get(pk=item.pk))
    relations.block(blocker=weekly, blocked=friend)
    relations.unfollow(follower=daily, followee=other)
    sessions.cancel(session=LiveSession.objects.get(pk=planned.pk), now=timezone.now())
    workers.work()
    read_all(workers, daily, weekly)
    assert feeds.zscore(keys.inbox(daily.pk), f"{other.pk}:{said[1].pk}") is None, "forgotten"
    assert feeds.zscore(keys.outbox(star.pk), f"{star.pk}:{said[2].pk}") is None, "forgotten"
    lost = Host.objects.get(pk=friend.pk).version, User.objects.get(pk=daily.pk).window_epoch
    relations.follow(follower=daily, followee=other)
    read_all(workers, daily, weekly)

    standby.promote()
    with failed_over(standby):
        assert Item.objects.filter(status="published").count() == len(said)
        assert policy.current().generation is None
        assert_exact(daily, weekly)
        assert sources(daily) == ["sql"], "until a worker has noticed it"
        assert policy.renew_after_failover()
        # A lagging clock reuses a lost version number.
        Host.objects.filter(pk=friend.pk).update(version=lost[0])
        read_all(workers, daily, weekly)
        assert sources(daily) == ["inbox"]
        assert sources(weekly) == ["inbox", "outbox"]
        for sender in (friend, other, star):
            publish(sender)
        assert_exact(daily, weekly)
        workers.work()
        read_all(workers, daily, weekly)
    # Do not use the old primary's windows again.
    assert User.objects.get(pk=daily.pk).window_epoch != lost[1]
