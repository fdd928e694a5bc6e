import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from threading import Barrier
from typing import Any
from unittest.mock import patch

import pytest
import redis
from django.conf import settings as django_settings
from pytest_django import Settings
from redis.connection import AbstractConnection

from discover import impressions, tasks
from discover.impressions import Impression, ShardFill, check_overfull, record, shard_fills, shard_of, shown_among
from runtime import metrics
from runtime.embedded import Valkey
from storage import connections, keys
from storage.connections import FeedsUnavailableError, feeds_breaker, feeds_for_tasks
from tests.support import servers
from tests.support.impression_servers import Use
from tests.support.patience import SHORT, waits_once_a_second

TODAY = (datetime.now(UTC) + timedelta(hours=2)).date()
"""The tests may run past midnight."""
DAY = timedelta(days=1)
DAYS = 7


@pytest.fixture
def client(kind: str) -> redis.Redis:
    return feeds_for_tasks()


@pytest.fixture
def trips(client: redis.Redis) -> Iterator[list[None]]:
    """Packets to the feeds server. Connections and scripts exist already."""
    record([Impression(999, TODAY, [1])])
    shown_among(999, [1], today=TODAY)
    sent: list[None] = []
    send = AbstractConnection.send_packed_command

    def counting_send(self: Any, *args: Any, **options: Any) -> Any:
        sent.append(None)
        return send(self, *args, **options)

    with patch.object(AbstractConnection, "send_packed_command", counting_send):
        yield sent


def key_of(user_id: int, day: date = TODAY) -> str:
    return keys.impressions(day, shard_of(user_id))


# --- The rolling week ------------------------------------------------------------------------------------
def test_what_was_shown_is_known_and_nothing_else(kind: str) -> None:
    record([Impression(1, TODAY, [10, 11]), Impression(1, TODAY - 3 * DAY, [12]), Impression(2, TODAY, [13])])
    assert shown_among(1, [9, 10, 11, 12, 13], today=TODAY) == {10, 11, 12}
    assert shown_among(2, [10, 11, 12, 13], today=TODAY) == {13}
    assert shown_among(3, [10, 11, 12, 13], today=TODAY) == set()


def test_nothing_is_asked_about_nothing(trips: list[None]) -> None:
    record([])
    record([Impression(1, TODAY, [])])
    assert shown_among(1, [], today=TODAY) == set()
    assert not trips


def test_seven_days_are_known_and_the_eighth_is_not(kind: str) -> None:
    for ago in range(DAYS):
        record([Impression(1, TODAY - ago * DAY, [100 + ago])])
    ids = list(range(100, 100 + DAYS))
    assert shown_among(1, ids, today=TODAY) == set(ids)
    assert shown_among(1, ids, today=TODAY + DAY) == set(ids[:-1])
    assert shown_among(1, ids, today=TODAY + (DAYS - 1) * DAY) == {100}
    assert shown_among(1, ids, today=TODAY + DAYS * DAY) == set()


def test_items_shown_tomorrow_are_not_known_today(kind: str) -> None:
    record([Impression(1, TODAY + DAY, [1])])
    assert shown_among(1, [1], today=TODAY) == set()
    assert shown_among(1, [1], today=TODAY + DAY) == {1}


def test_a_day_expires_when_its_week_is_over(client: redis.Redis) -> None:
    record([Impression(1, TODAY, [1]), Impression(1, TODAY - 6 * DAY, [2])])
    for day in (TODAY, TODAY - 6 * DAY):
        end = datetime(day.year, day.month, day.day, tzinfo=UTC) + DAYS * DAY
        assert client.expiretime(key_of(1, day)) == end.timestamp()


def test_a_day_whose_week_is_over_is_not_kept(client: redis.Redis) -> None:
    over = datetime.now(UTC).date() - DAYS * DAY  # by the server's clock: TODAY may be tomorrow
    record([Impression(1, over, [1]), Impression(1, TODAY, [2])])
    assert client.keys() == [key_of(1).encode()]


def test_users_are_spread_over_shards(client: redis.Redis, settings: Settings) -> None:
    settings.IMPRESSION_SHARDS = 4
    record([Impression(user, TODAY, [1, 2]) for user in range(1, 41)])
    assert sorted(client.keys()) == [keys.impressions(TODAY, shard).encode() for shard in range(4)]
    assert all(shown_among(user, [1, 2, 3], today=TODAY) == {1, 2} for user in range(1, 41))
    counts = [0] * 16
    settings.IMPRESSION_SHARDS = 16
    for user in range(16_000):
        counts[shard_of(user)] += 1
    assert max(counts) < 1_100
    assert min(counts) > 900


def test_readers_without_impressions_take_no_memory(client: redis.Redis) -> None:
    shown_among(1, [1, 2, 3], today=TODAY)
    assert client.keys() == []


def test_an_evicted_day_is_forgotten_and_the_others_are_not(client: redis.Redis) -> None:
    record([Impression(1, TODAY, [1]), Impression(1, TODAY - DAY, [2])])
    client.unlink(key_of(1))
    assert shown_among(1, [1, 2], today=TODAY) == {2}


@pytest.mark.parametrize("change", [{"IMPRESSION_CAPACITY": 150_000}, {"IMPRESSION_ERROR_RATE": 0.0001}])
def test_a_larger_capacity_or_another_error_rate_forgets_nothing(
    kind: str, settings: Settings, change: dict[str, float]
) -> None:
    record([Impression(1, TODAY, range(1, 200))])
    for name, value in change.items():
        setattr(settings, name, value)
    record([Impression(1, TODAY, [500]), Impression(1, TODAY - DAY, [501])])
    assert shown_among(1, range(1, 1_000), today=TODAY) == {*range(1, 200), 500, 501}


# --- Round trips -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 500, 8_000])
def test_asking_costs_one_round_trip(trips: list[None], count: int) -> None:
    shown_among(999, range(1, count + 1), today=TODAY)
    assert len(trips) == 1


def test_recording_costs_one_round_trip(trips: list[None]) -> None:
    record(Impression(user, TODAY - ago * DAY, range(1, 21)) for user in range(30) for ago in range(7))
    assert len(trips) == 1
    record(Impression(user, TODAY, [1]) for user in range(1_001))
    assert len(trips) == 4


def test_recording_again_changes_nothing(client: redis.Redis) -> None:
    batch = [Impression(1, TODAY, range(1, 60)), Impression(2, TODAY, [1]), Impression(1, TODAY, [1, 1, 70])]
    record(batch)
    before = {key: client.dump(key) for key in client.scan_iter()}
    record(batch)
    assert {key: client.dump(key) for key in client.scan_iter()} == before


@pytest.mark.slow
def test_a_hundred_recorders_at_once_lose_nothing(kind: str) -> None:
    """All record for the same users, into new keys."""
    barrier = Barrier(100)

    def recorder(number: int) -> None:
        barrier.wait(30)
        for page in range(3):
            first = 1 + number * 60 + page * 20
            record([Impression(user, TODAY, range(first, first + 20)) for user in (1, 2)])

    with ThreadPoolExecutor(100) as pool:
        list(pool.map(recorder, range(100)))
    for user in (1, 2):
        assert shown_among(user, range(1, 6_001), today=TODAY) == set(range(1, 6_001))


# --- A server that fails ---------------------------------------------------------------------------------
def everything_is_unavailable() -> None:
    for ask in (
        lambda: shown_among(1, [1], today=TODAY),
        lambda: record([Impression(1, TODAY, [1])]),
        lambda: shard_fills(TODAY),
        lambda: check_overfull(TODAY),
    ):
        with pytest.raises(FeedsUnavailableError):
            ask()


def test_a_killed_server(kind: str, server: Valkey) -> None:
    record([Impression(1, TODAY, [1])])
    with servers.dead(server):
        everything_is_unavailable()
        feeds_breaker.reset()
        everything_is_unavailable()
    feeds_breaker.reset()
    assert shown_among(1, [1], today=TODAY) == set(), "it came back empty"
    record([Impression(1, TODAY, [2])])
    assert shown_among(1, [1, 2], today=TODAY) == {2}


def test_a_server_that_is_down_when_it_is_first_needed(kind: str, server: Valkey) -> None:
    with servers.dead(server):
        everything_is_unavailable()
    feeds_breaker.reset()
    record([Impression(1, TODAY, [2])])
    assert shown_among(1, [1, 2], today=TODAY) == {2}
    assert impressions._chosen._found == kind


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [False, True])
def test_a_frozen_server_costs_a_page_one_short_wait(kind: str, server: Valkey, *, is_new: bool) -> None:
    """A new process does not know the server's kind."""
    record([Impression(1, TODAY, [1])])
    impressions._chosen._found = None if is_new else kind
    with servers.frozen(server), waits_once_a_second():
        begin = time.monotonic()
        with pytest.raises(FeedsUnavailableError):
            shown_among(1, [1], today=TODAY)
        assert servers.HASTE <= time.monotonic() - begin < SHORT
        everything_is_unavailable()  # and nobody waits again
    feeds_breaker.reset()
    assert shown_among(1, [1], today=TODAY) == {1}


def test_a_server_that_was_flushed(client: redis.Redis) -> None:
    record([Impression(1, TODAY, [1])])
    client.flushall()
    client.script_flush()
    assert shown_among(1, [1], today=TODAY) == set()
    record([Impression(1, TODAY, [1])])
    assert shown_among(1, [1], today=TODAY) == {1}


# --- Keys and servers of another kind --------------------------------------------------------------------
def test_a_day_of_another_kind_is_unknown_and_replaced_when_something_is_recorded(client: redis.Redis) -> None:
    for key in (key_of(1), key_of(1, TODAY - DAY), key_of(1, TODAY - 2 * DAY)):
        client.lpush(key, "something")
    record([Impression(1, TODAY - 3 * DAY, [3])])
    assert shown_among(1, [0, 3], today=TODAY) == {3}
    assert all(found.shard != shard_of(1) for found in shard_fills(TODAY))
    record([Impression(1, TODAY, [0]), Impression(1, TODAY - 3 * DAY, [4])])
    assert shown_among(1, [0, 3, 4], today=TODAY) == {0, 3, 4}
    assert client.type(key_of(1, TODAY - DAY)) == b"list", "nothing was recorded there"


def test_days_of_the_other_kind_are_asked_in_one_round_trip(trips: list[None], client: redis.Redis) -> None:
    client.lpush(key_of(1, TODAY - DAY), "something")
    trips.clear()
    shown_among(1, [1], today=TODAY)
    assert len(trips) == 1


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda: shown_among(1, [1], today=TODAY), set()),
        (lambda: record([Impression(1, TODAY, [1])]), None),
        (lambda: shard_fills(TODAY), []),
    ],
)
def test_a_server_that_lost_the_module(
    module_server: Valkey, feeds_server: Valkey, use: Use, chosen: None, ask: Callable[[], object], answer: object
) -> None:
    use(module_server)
    record([Impression(1, TODAY, [1])])
    assert impressions._chosen._found == "module"
    use(feeds_server)
    assert ask() == answer
    assert impressions._chosen._found == "bitmap"
    record([Impression(1, TODAY, [2])])
    assert 2 in shown_among(1, [1, 2], today=TODAY)


@pytest.mark.parametrize("ask", [lambda: shown_among(1, [1], today=TODAY), lambda: record([Impression(1, TODAY, [3])])])
def test_a_server_that_gained_the_module(
    module_server: Valkey, feeds_server: Valkey, use: Use, chosen: None, ask: Callable[[], object]
) -> None:
    """Another process already uses the module."""
    use(feeds_server)
    record([Impression(1, TODAY, [5])])
    stale = impressions._chosen
    impressions._chosen = impressions._FilterChoice()
    use(module_server)
    record([Impression(1, TODAY, [1])])
    impressions._chosen = stale
    assert stale._found == "bitmap"
    assert ask() in ({1}, None)
    assert stale._found == "module"
    assert 1 in shown_among(1, [1, 2], today=TODAY), "nothing was replaced"


def test_the_kind_may_be_set(client: redis.Redis, kind: str, settings: Settings) -> None:
    settings.BLOOM = "bitmap"
    record([Impression(1, TODAY, [1])])
    assert client.type(key_of(1)) == b"string"
    client.flushall()
    settings.BLOOM = "module"
    if kind == "module":
        record([Impression(1, TODAY, [1])])
        assert client.type(key_of(1)) != b"string"
        assert shown_among(1, [1], today=TODAY) == {1}
    else:
        everything_is_unavailable()


# --- Capacity --------------------------------------------------------------------------------------------
@pytest.fixture
def small(settings: Settings) -> None:
    settings.IMPRESSION_SHARDS = 2
    settings.IMPRESSION_CAPACITY = 1_000


def of_shard(shard: int) -> int:
    return next(user for user in range(1, 100) if shard_of(user) == shard)


def test_how_full_the_shards_are(kind: str, small: None) -> None:
    assert shard_fills(TODAY) == []
    record([Impression(of_shard(1), TODAY, range(1, 501))])
    (found,) = shard_fills(TODAY)
    about = pytest.approx(500, rel=0.05)
    assert found == ShardFill(TODAY, 1, about, pytest.approx(1_000, rel=0.01))
    assert not found.is_over
    assert shard_fills(TODAY - DAY) == []


def test_a_shard_over_its_capacity_is_reported_once(
    kind: str, small: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    record([Impression(of_shard(0), TODAY, range(1, 1_301)), Impression(of_shard(1), TODAY, range(1, 901))])
    for _ in range(3):
        (over,) = check_overfull(TODAY)
        assert (over.shard, over.is_over) == (0, True)
        monkeypatch.setattr(impressions, "_chosen", impressions._FilterChoice())
        monkeypatch.setattr(tasks, "database_now", lambda: datetime(TODAY.year, TODAY.month, TODAY.day, tzinfo=UTC))
        tasks.check_impressions()
    (line,) = caplog.messages
    assert line.startswith(f"Shard 0 of {TODAY} has about 1")
    assert "FEEDSITE_IMPRESSION_CAPACITY" in line
    record([Impression(of_shard(1), TODAY, range(901, 1_301)), Impression(of_shard(0), TODAY + DAY, range(1, 1_301))])
    assert len(check_overfull(TODAY)) == 2
    assert len(check_overfull(TODAY + DAY)) == 1
    assert [message[:21] for message in caplog.messages[1:]] == [f"Shard 1 of {TODAY}", f"Shard 0 of {TODAY + DAY}"]


@pytest.mark.slow
def test_how_full_the_fullest_shard_is_can_be_measured(kind: str, small: None) -> None:
    record([Impression(of_shard(0), TODAY, range(1, 301)), Impression(of_shard(1), TODAY, range(1, 901))])
    check_overfull(TODAY)
    (line,) = re.findall(r"^feedsite_impressions_fill_ratio (\S+)$", metrics.exposition().decode(), re.MULTILINE)
    assert float(line) == pytest.approx(0.9, rel=0.05)
    check_overfull(TODAY + DAY)
    assert "feedsite_impressions_fill_ratio 0.0\n" in metrics.exposition().decode()


def test_beyond_the_capacity_nothing_is_lost(kind: str, small: None) -> None:
    user = of_shard(0)
    record([Impression(user, TODAY, range(1, 3_901))])
    assert shown_among(user, range(1, 3_901), today=TODAY) == set(range(1, 3_901))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bitmap"], indirect=True)
def test_what_has_no_room_at_all_is_counted_and_hides_nothing(
    kind: str, small: None, caplog: pytest.LogCaptureFixture
) -> None:
    def dropped() -> float:
        (line,) = re.findall(r"^feedsite_impressions_dropped_total (\S+)$", metrics.exposition().decode(), re.MULTILINE)
        return float(line)

    user, before = of_shard(0), dropped()
    record([Impression(user, TODAY, range(1, 20_001))])
    assert dropped() - before == pytest.approx(16_000, rel=0.1)
    assert "impressions, because the filters of the day are full" in caplog.text
    assert len(shown_among(user, range(1, 20_001), today=TODAY)) == pytest.approx(4_000, rel=0.1)
    assert len(shown_among(user, range(10**12, 10**12 + 10_000), today=TODAY)) < 10_000 * 0.001 * 4 * 1.5
    assert all(feeds_for_tasks().ttl(key) > 0 for key in feeds_for_tasks().keys("bf:global:*"))


@pytest.mark.parametrize("kind", ["bitmap"], indirect=True)
def test_only_a_user_whose_blocks_are_full_costs_a_further_round_trip(
    kind: str, small: None, trips: list[None], client: redis.Redis
) -> None:
    record([Impression(of_shard(0), TODAY, range(1, 1_501)), Impression(of_shard(1), TODAY, range(1, 501))])
    for user, count in ((of_shard(0), 2), (of_shard(1), 1)):
        del trips[:]
        shown_among(user, range(1, 101), today=TODAY)
        assert len(trips) == count


def test_the_check_is_scheduled() -> None:
    scheduled = {entry["task"] for entry in django_settings.CELERY_BEAT_SCHEDULE.values()}
    assert tasks.check_impressions.name in scheduled


def test_the_clients_are_those_of_pages_and_of_workers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's batch may take longer than a page."""
    used: list[redis.Redis] = []
    name = "pipelined_with_errors"
    send = impressions.BitmapFilter.known.__globals__[name]
    for module in ("seen.bloom", "seen.bitmap_bloom", "seen.module_bloom"):
        monkeypatch.setattr(f"{module}.{name}", lambda client, commands: used.append(client) or send(client, commands))
    record([Impression(1, TODAY, [1])])
    assert set(used) == {connections.feeds_for_tasks()}
    used.clear()
    shown_among(1, [1], today=TODAY)
    assert set(used) == {connections.feeds()}
