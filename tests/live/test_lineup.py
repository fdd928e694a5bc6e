from datetime import UTC, datetime, timedelta

import pytest
import redis

from live import actions, lineup, measuring
from live.lineup import Lineup, ScheduledEntry
from live.models import Host, LiveSession, State
from runtime import metrics
from storage import ids, keys
from storage.connections import pipelined
from tests.support.factories import UserFactory
from tests.support.windows import generation

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MS = int(NOW.timestamp() * 1000)
HOUR = 3_600_000


def held(feeds: redis.Redis, host_id: int) -> tuple[int, list[ScheduledEntry]]:
    return Lineup.read(pipelined(feeds, [Lineup(host_id).read_command()])[0])


def test_holds_what_is_live_or_upcoming_in_the_order_of_the_feed(feeds: redis.Redis) -> None:
    host = UserFactory()
    later, soon, first, second, over, hidden = (
        actions.create(host=host, title="t", starts_at=NOW + timedelta(hours=hours), now=NOW)
        for hours in (9, 2, 3, 4, 5, 6)
    )
    actions.start(session=first, now=NOW)
    actions.start(session=second, now=NOW + timedelta(hours=1))
    actions.start(session=over, now=NOW)
    actions.end(session=over, now=NOW + timedelta(hours=1))
    actions.hide(session=hidden, now=NOW)

    assert lineup.apply(host.pk)

    row = Host.objects.get(pk=host.pk)
    version, entries = held(feeds, host.pk)
    assert version == row.version == row.applied
    assert row.scheduled == 4
    assert entries[::-1] == [
        ScheduledEntry(second.pk, MS + HOUR),
        ScheduledEntry(first.pk, MS),
        ScheduledEntry(soon.pk, -MS - 2 * HOUR),
        ScheduledEntry(later.pk, -MS - 9 * HOUR),
    ]


def test_late_writes_change_nothing(feeds: redis.Redis) -> None:
    host = UserFactory()
    session = actions.create(host=host, title="t", starts_at=NOW, now=NOW)
    lineup.apply(host.pk)
    old, upcoming = held(feeds, host.pk)
    session = actions.start(session=session, now=NOW)
    actions.end(session=session, now=NOW)
    lineup.apply(host.pk)
    newest, nothing = held(feeds, host.pk)
    assert newest > old
    assert nothing == []

    late = Lineup(host.pk).put(generation(), old, upcoming)
    assert pipelined(feeds, [late, late]) == [str(newest).encode()] * 2

    assert held(feeds, host.pk) == (newest, [])


def test_a_lost_lineup_is_read_as_none_and_rebuilt_by_the_same_step(feeds: redis.Redis) -> None:
    host = UserFactory()
    actions.create(host=host, title="t", starts_at=NOW, now=NOW)
    lineup.apply(host.pk)
    before = held(feeds, host.pk)
    feeds.flushall()
    assert held(feeds, host.pk) == (0, [])
    lineup.apply(host.pk)
    assert held(feeds, host.pk) == before


def test_a_restored_database_takes_the_lineup_back(feeds: redis.Redis) -> None:
    """Redis has a version that PostgreSQL lost."""
    host = UserFactory()
    session = actions.create(host=host, title="t", starts_at=NOW, now=NOW)
    version = Host.objects.get(pk=host.pk).version
    pipelined(feeds, [Lineup(host.pk).put(generation(), version + 1000, [])])
    lineup.apply(host.pk)
    assert held(feeds, host.pk) == (version, [ScheduledEntry(session.pk, -MS)])


def test_a_version_that_was_lost_does_not_come_again() -> None:
    """Otherwise a lineup with lost data would pass for the current one."""
    host = UserFactory()
    session = actions.create(host=host, title="t", starts_at=NOW, now=NOW)
    kept = Host.objects.get(pk=host.pk).version
    actions.start(session=session, now=NOW)
    lost = Host.objects.get(pk=host.pk).version
    Host.objects.update(version=kept)
    LiveSession.objects.update(state=State.UPCOMING, started_at=None)
    actions.cancel(session=session, now=NOW)
    assert Host.objects.get(pk=host.pk).version > lost


def test_the_version_is_below_every_entry(feeds: redis.Redis) -> None:
    host = UserFactory()
    actions.create(host=host, title="t", starts_at=NOW, now=NOW)
    lineup.apply(host.pk)
    ends = feeds.zrange(keys.lineup(host.pk), 0, -1)
    assert ends[0] == Lineup.mark(generation())
    assert -Host.objects.get(pk=host.pk).version < -(2**50)
    assert datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000 < 2**42


@pytest.mark.slow
def test_lineups_that_are_behind_are_measured() -> None:
    host = UserFactory()
    actions.create(host=host, title="t", starts_at=NOW, now=NOW)
    made = ids.moment(Host.objects.get().version)
    measuring.measure(now=made + timedelta(seconds=90))
    shown = metrics.exposition().decode()
    assert "feedsite_live_lineups_behind 1.0" in shown
    assert "feedsite_live_lineup_lag_seconds 90.0" in shown
    assert 'feedsite_live_sessions{state="upcoming"} 1.0' in shown
    lineup.apply(host.pk)
    measuring.measure(now=made)
    assert "feedsite_live_lineups_behind 0.0" in metrics.exposition().decode()


def test_the_sweeper_sends_for_what_is_behind() -> None:
    host = UserFactory()
    actions.create(host=host, title="t", starts_at=NOW, now=NOW)
    now = ids.moment(Host.objects.get().version)
    assert lineup.queue_outdated(now=now) == 0, "the queue has a moment"
    assert lineup.queue_outdated(now=now + timedelta(minutes=1)) == 1
    lineup.apply(host.pk)
    assert lineup.queue_outdated(now=now + timedelta(minutes=1)) == 0
