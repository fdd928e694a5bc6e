"""Plays stay known at every moment, however a merge ends."""

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
import redis
from django.conf import settings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from seen import merging, played, ring, store
from seen.checker import unseen
from seen.filter_store import FilterKey, StoreUnavailableError, month_of
from seen.lmdb_store import LmdbStore
from seen.merging import mark_strays, merge_shards, merge_task_shard, purge
from seen.models import MergeRun
from seen.played import Play, PlaysFullError
from tests.support.effort import tries

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def plays(plays: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> redis.Redis:
    """An empty server, with a store and few shards."""
    monkeypatch.setattr(settings, "PLAYED_SHARDS", 4)
    return plays


def play(user_id: int, *item_ids: int, at: datetime = NOW) -> None:
    played.record([Play(user_id, item_id, at) for item_id in item_ids], now=at)


def waiting(plays: redis.Redis) -> list[bytes]:
    return [key for key in plays.scan_iter() if not key.startswith(b"played:kept")]


def merge(at: datetime) -> int:
    """The whole previous node. Returns the number of plays."""
    return merge_shards(ring.node_before(at), range(settings.PLAYED_SHARDS), now=at).plays


def test_a_play_is_known_at_once_and_after_it_was_merged(plays: redis.Redis) -> None:
    play(7, 1, 2, 3)
    assert unseen(7, [5, 3, 2, 1, 4], now=NOW) == [5, 4]
    assert merge(NOW) == 0, "the hour is not over"
    assert merge(NOW + HOUR) == 3
    assert not waiting(plays)
    assert unseen(7, [5, 3, 2, 1, 4], now=NOW) == [5, 4]
    assert unseen(8, [1, 2, 3], now=NOW) == [1, 2, 3]
    assert merge(NOW + HOUR) == 0


def test_what_was_missed_is_met_one_lap_later() -> None:
    play(7, 1)
    for hours in (2, 3, 4, 5, 6):
        assert merge(NOW + hours * HOUR) == 0
    assert merge(NOW + 7 * HOUR) == 1


def test_a_play_belongs_to_its_own_month() -> None:
    end = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
    play(7, 1, at=end)
    play(7, 2, at=end + 2 * timedelta(minutes=1))
    merge(end + HOUR)
    november, december = store.store().read([FilterKey(7, month_of(end)), FilterKey(7, month_of(end) + 1)])
    assert november
    assert december


@pytest.mark.parametrize(("months", "is_known"), [(0, True), (3, True), (4, False)])
def test_four_months_are_asked(months: int, is_known: bool) -> None:
    play(7, 1)
    merge(NOW + HOUR)
    later = NOW + timedelta(days=30.5 * months)
    assert (unseen(7, [1], now=later) == []) == is_known


def test_a_play_that_comes_while_it_is_merged_is_kept(plays: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    play(7, 1, 2)
    update = store.store().update

    def meanwhile(*args: Any) -> None:
        update(*args)
        play(7, 2, 3, at=NOW + HOUR)

    monkeypatch.setattr(store.store(), "update", meanwhile)
    merge(NOW + HOUR)
    assert unseen(7, [1, 2, 3], now=NOW) == []
    assert {int(member) for member in plays.zrange("played:recent:7", 0, -1)} == {2, 3}
    monkeypatch.undo()
    monkeypatch.setattr(settings, "PLAYED_SHARDS", 4)


@pytest.mark.parametrize("first", ["redis", "store"])
def test_a_merge_between_the_two_reads_of_a_reader_hides_nothing(monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    play(7, 1, 2)
    where, name = (played, "recent_ids") if first == "redis" else (store.store(), "read")
    read = getattr(where, name)

    def then_merged(*args: Any) -> Any:
        monkeypatch.setattr(where, name, read)
        found = read(*args)
        merge(NOW + HOUR)
        return found

    monkeypatch.setattr(where, name, then_merged)
    assert unseen(7, [1, 2, 3], now=NOW) == [3]


@pytest.mark.slow
def test_many_users_are_merged_in_chunks(plays: redis.Redis) -> None:
    count = merging.CHUNK * 3 + 1
    played.record([Play(user_id, user_id + 1000, NOW) for user_id in range(1, count + 1)], now=NOW)
    assert merge(NOW + HOUR) == count
    assert not waiting(plays)
    assert all(unseen(user_id, [user_id + 1000], now=NOW) == [] for user_id in (1, count // 2, count))


def test_users_who_lost_their_mark_are_marked_again(plays: redis.Redis) -> None:
    play(7, 1)
    plays.delete(*plays.keys("played:user:*"))
    assert merge(NOW + HOUR) == 0
    assert mark_strays(now=NOW) == 1
    assert merge(NOW + HOUR) == 1


def test_issued_items_are_left_out_the_last_hundred() -> None:
    played.record_issued([(7, range(1, 81)), (7, range(81, 131))])
    assert unseen(7, range(1, 140), now=NOW) == [*range(1, 31), *range(131, 140)]


# --- Tasks -----------------------------------------------------------------------------------------------
def test_the_tasks_together_merge_everybody(plays: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "PLAYED_SHARDS", 7)
    monkeypatch.setattr(settings, "PLAYED_TASK_SHARDS", 3)
    played.record([Play(user_id, 1, NOW) for user_id in range(1, 51)], now=NOW)
    done = [merge_task_shard(task_shard, now=NOW + HOUR) for task_shard in range(3)]
    assert sum(one.users for one in done) == sum(one.plays for one in done) == 50
    runs = MergeRun.objects.order_by("task_shard")
    assert [(run.node, run.users, run.error) for run in runs] == [
        (ring.node_of(NOW), one.users, "") for one in done if one.users
    ]
    assert not waiting(plays)


def test_a_task_that_fails_is_written_down_and_leaves_its_work(
    plays: redis.Redis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(settings, "PLAYED_TASK_SHARDS", 1)
    play(7, 1)
    (tmp_path / "file").write_text("no folder")
    with monkeypatch.context() as patch:
        patch.setattr(store, "_store", LmdbStore(tmp_path / "file"))
        with pytest.raises(StoreUnavailableError):
            merge_task_shard(0, now=NOW + HOUR)
    assert MergeRun.objects.get().error
    assert merge_task_shard(0, now=NOW + HOUR).plays == 1
    assert unseen(7, [1], now=NOW) == []


def test_bytes_that_are_no_filter_hold_up_their_user_only(plays: redis.Redis) -> None:
    store.store().update([FilterKey(7, month_of(NOW))], lambda key, data: b"rust")
    played.record([Play(user_id, 1, NOW) for user_id in range(1, 11)], now=NOW)
    merged = merge_shards(ring.node_of(NOW), range(settings.PLAYED_SHARDS), now=NOW + HOUR)
    assert (merged.users, str(merged.failure)) == (9, "user 7: too short")
    assert plays.keys("played:recent:*") == [b"played:recent:7"]
    assert unseen(7, [1, 2], now=NOW) == [2], "its plays are in Redis still"


def test_bytes_that_are_no_filter_are_told_and_answer_for_nothing(caplog: pytest.LogCaptureFixture) -> None:
    store.store().update([FilterKey(7, month_of(NOW) - 1)], lambda key, data: b"rust")
    play(7, 1)
    assert merge(NOW + HOUR) == 1
    assert unseen(7, [1, 2], now=NOW) == [2]
    assert "a filter of user 7 is damaged and cannot be read: too short" in caplog.text


def test_filters_are_purged_at_night_only() -> None:
    play(7, 1)
    play(8, 1)
    merge(NOW + HOUR)
    later = datetime(2027, 6, 1, 12, tzinfo=UTC)
    assert purge(now=later) == 0
    assert purge(now=later.replace(hour=3)) == 2
    assert store.store().stats() == {}


def test_the_night_is_the_site_s(settings: Any) -> None:
    settings.SITE_ZONE = ZoneInfo("Asia/Kathmandu")  # UTC+5:45
    play(7, 1)
    merge(NOW + HOUR)
    later = datetime(2027, 6, 1, tzinfo=UTC)
    nights = {later.replace(hour=3), later.replace(hour=18, minute=14), later.replace(hour=23, minute=15)}
    assert {night: purge(now=night) for night in nights} == dict.fromkeys(nights, 0)
    assert purge(now=later.replace(hour=18, minute=15)) == 1


WAITING = 12
"""The machine's limit of waiting plays per user."""


class DiedError(Exception):
    """The process died."""


class Merging(RuleBasedStateMachine):
    """People play beyond the limit. Merges die at any step, run twice, late and early."""

    @initialize()
    def begin(self) -> None:
        played.client().flushdb()
        FOLDERS.append(FOLDER / str(len(FOLDERS)))
        store._store = LmdbStore(FOLDERS[-1])
        self.now = NOW
        self.acknowledged: dict[int, set[int]] = {}

    @rule(user_id=st.integers(1, 3), item_ids=st.sets(st.integers(1, 60), min_size=1, max_size=7))
    def play(self, user_id: int, item_ids: set[int]) -> None:
        waiting = played.client().zcard(f"played:recent:{user_id}")
        try:
            play(user_id, *item_ids, at=self.now)
        except PlaysFullError:
            assert waiting + len(item_ids) > WAITING
            assert played.client().zcard(f"played:recent:{user_id}") == waiting
        else:
            self.acknowledged.setdefault(user_id, set()).update(item_ids)

    @rule(user_id=st.integers(1, 3))
    def merge_early(self, user_id: int) -> None:
        merging.merge_early(user_id, now=self.now)

    @rule(user_id=st.integers(1, 3), count=st.integers(1, 80))
    def crowd(self, user_id: int, count: int) -> None:
        """A version without the limit left these plays."""
        item_ids = range(1000, 1000 + count)
        moment = self.now.timestamp() * 1000
        played.client().zadd(f"played:recent:{user_id}", {str(item_id): moment for item_id in item_ids})
        mark_strays(now=self.now)
        self.acknowledged.setdefault(user_id, set()).update(item_ids)

    @rule(minutes=st.integers(1, 150))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(late=st.integers(0, 7))
    def merge(self, late: int) -> None:
        merge(self.now - late * HOUR)

    @rule(step=st.integers(0, 12), after=st.booleans(), early=st.integers(0, 3))
    def merge_and_die(self, step: int, after: bool, early: int) -> None:
        """Die at the `step`th server call, before or after its effect."""
        calls = itertools.count()
        patch = pytest.MonkeyPatch()

        def dying(call: Any) -> Any:
            def wrapped(*args: Any, **options: Any) -> Any:
                if next(calls) < step:
                    return call(*args, **options)
                if after:
                    call(*args, **options)
                raise DiedError

            return wrapped

        patch.setattr(merging, "pipelined", dying(merging.pipelined))
        patch.setattr(played, "pipelined", dying(played.pipelined))
        patch.setattr(store._store, "update", dying(store.store().update))
        try:
            if early:
                merging.merge_early(early, now=self.now)
            else:
                merge(self.now)
        except DiedError:
            pass
        finally:
            patch.undo()

    @invariant()
    def nothing_is_forgotten(self) -> None:
        for user_id, item_ids in getattr(self, "acknowledged", {}).items():
            assert not set(unseen(user_id, sorted(item_ids), now=self.now)) & item_ids

    def teardown(self) -> None:
        if not hasattr(self, "now"):
            return
        mark_strays(now=self.now)
        for _ in range(ring.NODES + 1):
            self.now += HOUR
            for user_id in (1, 2, 3):
                merging.merge_early(user_id, now=self.now)
            merge(self.now)
        assert not played.client().keys("played:recent:*")
        self.nothing_is_forgotten()


FOLDERS: list[Path] = []
FOLDER = Path()


@pytest.mark.slow
def test_no_play_is_lost_however_merges_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    global FOLDER
    FOLDER = tmp_path
    monkeypatch.setattr(settings, "PLAYED_WAITING_CAP", WAITING)
    monkeypatch.setattr(merging, "PART", 4)
    run_state_machine_as_test(
        Merging,
        settings=hypothesis_settings(
            max_examples=tries(15, 80), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
