from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from discover import recent
from discover.recent import View, Views
from storage import keys
from storage.connections import FeedsUnavailableError
from tests.support.at_once import at_once
from tests.support.patience import SHORT, waits_once_a_second
from tests.support.servers import Valkey, dead, frozen

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MOMENT = int(NOW.timestamp() * 1000)
WEEK = 604_800


def viewed(user_id: int = 7, now: datetime = NOW) -> list[int]:
    return [view.item_id for view in known(user_id, now).items]


def known(user_id: int = 7, now: datetime = NOW) -> Views:
    views = recent.views_of(user_id, now=now)
    assert views is not None
    return views


def test_the_newest_is_first(feeds: redis.Redis) -> None:
    recent.record(7, items=[1, 2], now=NOW)
    recent.record(7, items=[3], now=NOW)
    assert viewed() == [3, 2, 1]
    assert viewed(user_id=8) == []


def test_the_list_is_the_one_of_the_article(feeds: redis.Redis) -> None:
    recent.record(123, items=[456, 789], now=NOW)
    assert feeds.lrange("user:views:topic:123", 0, -1) == [b"789", b"456"]
    assert WEEK - SHORT <= feeds.ttl("user:views:topic:123") <= WEEK


def test_an_item_is_in_it_once_at_its_last_view(feeds: redis.Redis) -> None:
    recent.record(7, items=[1, 2, 1, 3], now=NOW)
    recent.record(7, items=[2], now=NOW + timedelta(hours=1))
    assert viewed() == [2, 3, 1]
    assert known().items[0] == View(2, MOMENT + 3_600_000)
    assert feeds.hlen(keys.view_times(keys.views(7))) == 3


def test_ten_are_kept_and_a_setting_keeps_others(feeds: redis.Redis, settings: Any) -> None:
    recent.record(7, items=range(1, 13), now=NOW)
    assert viewed() == list(range(12, 2, -1))
    settings.RECENT_VIEWS = 2
    recent.record(7, items=[20], now=NOW)
    assert viewed() == [20, 12]
    assert sorted(feeds.hkeys(keys.view_times(keys.views(7)))) == [b"12", b"20"]
    settings.RECENT_VIEWS = 0
    recent.record(7, items=[30], now=NOW)
    assert viewed() == [20, 12]


def test_more_than_fit_at_once_leave_the_newest(feeds: redis.Redis, settings: Any) -> None:
    settings.RECENT_REPLY_VIEWS = 3
    recent.record(7, replies=[5, 4, 3, 2, 1], now=NOW)
    assert [view.item_id for view in known().replies] == [1, 2, 3]


def test_replies_have_a_list_of_their_own(feeds: redis.Redis) -> None:
    recent.record(7, items=[1], replies=[2, 3], now=NOW)
    views = known()
    assert ([view.item_id for view in views.items], [view.item_id for view in views.replies]) == ([1], [3, 2])
    assert feeds.lrange("user:views:reply:7", 0, -1) == [b"3", b"2"]


def test_no_two_views_have_the_same_time_and_later_ones_have_later_times(feeds: redis.Redis) -> None:
    recent.record(7, items=[1, 2], now=NOW)
    recent.record(7, items=[3], now=NOW)
    recent.record(7, items=[4], now=NOW - timedelta(seconds=1))  # another machine with a slow clock
    assert [view.moment - MOMENT for view in known().items] == [3, 2, 1, 0]
    assert known().items[-1].viewed_at == NOW


def test_views_older_than_a_week_are_not_told_though_the_list_lives_on(feeds: redis.Redis) -> None:
    recent.record(7, items=[1], now=NOW - timedelta(days=7))
    recent.record(7, items=[2], now=NOW - timedelta(days=6, hours=23))
    assert viewed() == [2]
    assert feeds.lrange(keys.views(7), 0, -1) == [b"2", b"1"]


def test_every_view_lets_both_keys_live_for_another_week(feeds: redis.Redis) -> None:
    key = keys.views(7)
    recent.record(7, items=[1], now=NOW)
    for each in (key, keys.view_times(key)):
        feeds.expire(each, 100)
    recent.record(7, items=[1], now=NOW)
    assert all(feeds.ttl(each) > 100 for each in (key, keys.view_times(key)))


def test_both_keys_are_in_one_slot_of_a_cluster() -> None:
    key = keys.views(7)
    times = keys.view_times(key)
    assert times[times.index("{") + 1 : times.index("}")] == key
    assert "{" not in key


def test_an_evicted_key_makes_views_forgotten_and_nothing_else(feeds: redis.Redis) -> None:
    recent.record(7, items=[1, 2], now=NOW)
    feeds.delete(keys.view_times(keys.views(7)))
    assert viewed() == []
    recent.record(7, items=[3], now=NOW)
    assert viewed() == [3]
    feeds.delete(keys.views(7))
    recent.record(7, items=[4], now=NOW)
    assert viewed() == [4]
    assert feeds.hkeys(keys.view_times(keys.views(7))) == [b"4"]


def test_clearing_forgets_all_of_one_reader(feeds: redis.Redis) -> None:
    for user_id in (7, 8):
        recent.record(user_id, items=[1], replies=[2], now=NOW)
    recent.clear(7)
    assert known(7) == Views([], [])
    assert known(8) == Views([View(1, MOMENT)], [View(2, MOMENT)])
    assert len(feeds.keys("user:views:*")) == 4


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_devices_at_once_lose_and_double_nothing(feeds: redis.Redis) -> None:
    def read(first: int) -> None:
        for item_id in [*range(first, first + 40), 1, 2, 3]:
            recent.record(7, items=[item_id], now=NOW)

    assert at_once(lambda: read(100), lambda: read(200), lambda: read(300)) == [None] * 3
    views = known().items
    assert len(views) == len({view.item_id for view in views}) == 10
    moments = [view.moment for view in views]
    assert moments == sorted(set(moments), reverse=True)
    assert {1, 2, 3} <= set(viewed())
    assert {int(pk) for pk in feeds.hkeys(keys.view_times(keys.views(7)))} == set(viewed())


def test_one_round_trip_each(feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: list[int] = []
    pipelined = recent.pipelined

    def count(client: redis.Redis, commands: Any) -> Any:
        commands = list(commands)
        trips.append(len(commands))
        return pipelined(client, commands)

    monkeypatch.setattr(recent, "pipelined", count)
    recent.record(7, items=[1], replies=range(10, 30), now=NOW)
    recent.views_of(7, now=NOW)
    recent.record(7, now=NOW)
    assert trips == [2, 2]


def test_without_the_server_nothing_is_recorded_and_nothing_known(feeds: redis.Redis, feeds_server: Valkey) -> None:
    recent.record(7, items=[1], now=NOW)
    with dead(feeds_server):
        recent.record(7, items=[2], now=NOW)
        assert recent.views_of(7, now=NOW) is None
        with pytest.raises(FeedsUnavailableError):
            recent.clear(7)


@pytest.mark.slow
def test_a_frozen_server_costs_its_patience_once(feeds: redis.Redis, feeds_server: Valkey) -> None:
    recent.record(7, items=[1], now=NOW)
    with frozen(feeds_server), waits_once_a_second():
        for _ in range(10):
            recent.record(7, items=[2], now=NOW)
            assert recent.views_of(7, now=NOW) is None


def test_a_key_of_another_kind_harms_no_page(feeds: redis.Redis, caplog: pytest.LogCaptureFixture) -> None:
    feeds.set(keys.views(7), "no list")
    recent.record(7, items=[1], now=NOW)
    assert recent.views_of(7, now=NOW) is None
    assert len(caplog.records) == 2
