"""Plays stay known at every moment, however the migration goes."""

import io
import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import pytest
import redis
from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from seen import merging, played, ring, store
from seen.checker import unseen
from seen.filter_store import FilterKey, FilterStore, month_of
from seen.merging import merge_shards
from seen.migration import migrate, old
from seen.migration.old import MIGRATED, Phase
from seen.played import Play, PlayedUnavailableError
from tests.support.effort import some, tries
from tests.support.filter_stores import STORES, made_store
from tests.support.impression_servers import LATELY as NOW
from tests.support.servers import servers

pytestmark = pytest.mark.django_db
Say = Callable[..., str]
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _few_shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(settings, "PLAYED_SHARDS", 4)
    played.client().flushdb()
    yield
    played.client().flushdb()


@pytest.fixture(params=STORES)
def filters(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FilterStore:
    """An empty store of each kind."""
    return made_store(request.param, tmp_path / "played", monkeypatch)


@pytest.fixture
def old_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    """The Redis that held all plays, empty."""
    monkeypatch.setattr(settings, "PLAYED_OLD_URL", f"unix://{servers.broker.socket}?db=3")
    old.client().flushdb()
    yield old.client()
    old.client().flushdb()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The commands' current time."""
    moment = [NOW]
    monkeypatch.setattr(timezone, "now", lambda: moment[0])
    return moment


@pytest.fixture
def command() -> Say:
    def run(*args: Any, **options: Any) -> str:
        out = io.StringIO()
        call_command("played_migrate", *map(str, args), stdout=out, stderr=out, **{"verbosity": 0, **options})
        return out.getvalue()

    return run


def middle(month: int) -> datetime:
    """The middle of a month in the store's numbers."""
    return datetime(month // 12, month % 12 + 1, 15, tzinfo=UTC)


def merge(at: datetime) -> int:
    return merge_shards(ring.node_before(at), range(settings.PLAYED_SHARDS), now=at).users


# --- With the old Redis ------------------------------------------------------------------------------------
def remember(old_redis: redis.Redis, user_id: int, *item_ids: int, at: datetime = NOW - HOUR) -> None:
    old_redis.zadd(f"played:{user_id}", dict.fromkeys(map(str, item_ids), at.timestamp() * 1000))


@pytest.mark.usefixtures("clock")
def test_an_old_redis_is_migrated(
    filters: FilterStore, old_redis: redis.Redis, command: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(old_redis, 7, 1, 2)
    old_redis.zadd("played:7", {"3": 0, "no id": 1, "00": 2, "99999999999999999": 3})
    remember(old_redis, 8, *range(1, 2000))
    old_redis.set("played:9", "no plays")
    for key in ("played:", "played:x", "played:07", "played:9007199254740992", "played:7:x", "other:5"):
        old_redis.zadd(key, {"1": 1})
    assert unseen(7, [1, 2, 3, 4], now=NOW) == [4], "before it begins"
    assert "migration  none" in command("--status")
    assert "Marked 2 users." in command()
    assert "users      2\nmerged     0\nleft       2" in command("--status")
    with pytest.raises(CommandError, match="2 of 2 users are not merged yet"):
        command("--cut-over")
    assert merge(NOW) == 0, "the hour is not over"
    assert unseen(8, [1, 1999, 2000], now=NOW) == [2000]
    played.record([Play(7, 4, NOW), Play(10, 2, NOW)], now=NOW)
    assert old_redis.zscore("played:7", "4") == NOW.timestamp() * 1000, "double writing"
    assert merge(NOW + HOUR) == 3
    assert not played.client().keys("played:user:*")
    assert filters.count(MIGRATED) == 3, "who plays is migrated, too"
    with monkeypatch.context() as patch:
        patch.setattr(old, "client", None)  # migrated users cause no query to it
        assert unseen(7, [5, 4, 3, 2, 1], now=NOW) == [5]
        assert unseen(8, [1, 1999, 2000], now=NOW) == [2000]
        assert unseen(10, [1, 2, 3], now=NOW) == [1, 3]
        merge(NOW + 2 * HOUR)
    assert "merged     3\nleft       0\nrate       " in command("--status")
    assert "Marked 3 users." in command(), "who is merged is not marked again"
    assert merge(NOW + HOUR) == 0
    played.record([Play(11, 1, NOW)], now=NOW)
    assert "Cut over. 4 users were checked" in command("--cut-over"), "plays of 11 were written twice"
    assert filters.count(MIGRATED) == 0
    assert "It was already cut over" in command("--cut-over")
    played.record([Play(7, 5, NOW)], now=NOW)
    assert old_redis.zscore("played:7", "5") is None
    old_redis.flushdb()
    assert unseen(7, range(1, 7), now=NOW) == [6]
    assert unseen(11, [1], now=NOW) == []
    for args, refusal in ((["--rollback"], "The old data has no plays since then"), ([], "was cut over")):
        with pytest.raises(CommandError, match=refusal):
            command(*args)


def test_a_play_belongs_to_its_month_and_one_without_a_time_to_this(
    filters: FilterStore, old_redis: redis.Redis, command: Say, clock: list[datetime]
) -> None:
    month = month_of(NOW)
    for number, ago in enumerate((4, 3, 2, 1, 0), 1):
        remember(old_redis, 7, number, at=middle(month - ago))
    old_redis.zadd("played:7", {"6": 0})
    remember(old_redis, 8, 1, at=NOW - timedelta(days=200))
    command()
    merge(NOW + HOUR)
    assert filters.count(MIGRATED) == 2
    found = filters.read([FilterKey(7, month - ago) for ago in range(6)])
    assert [data is not None for data in found] == [True, True, True, True, False, False]
    assert unseen(7, range(1, 7), now=NOW) == [1]
    later = middle(month + 3)
    assert unseen(7, range(1, 7), now=later) == [1, 2, 3, 4], "three whole months"


@pytest.mark.usefixtures("clock")
def test_the_keys_pattern_may_have_any_signs(
    filters: FilterStore, old_redis: redis.Redis, command: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "PLAYED_OLD_KEY", "a*[b]?\\{uid}:plays")
    old_redis.zadd("a*[b]?\\7:plays", {"1": NOW.timestamp() * 1000})
    old_redis.zadd("aab?\\8:plays", {"1": 1})
    assert "Marked 1 users." in command()


@pytest.mark.usefixtures("clock")
def test_users_without_a_mark_on_the_ring_are_marked_by_another_run(
    filters: FilterStore, old_redis: redis.Redis, command: Say
) -> None:
    remember(old_redis, 7, 1)
    remember(old_redis, 8, 2)
    command()
    played.client().delete(*played.client().keys("played:user:*"))
    assert merge(NOW + HOUR) == 0
    assert unseen(7, [1], now=NOW) == []
    command()
    assert merge(NOW + HOUR) == 2


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("moment", [0.0, NOW.timestamp(), NOW.timestamp() * 1e6])
def test_a_cut_over_waits_for_old_plays_of_any_time(
    filters: FilterStore, old_redis: redis.Redis, command: Say, moment: float
) -> None:
    """A time of 0, in seconds, or in nanoseconds."""
    command()
    old_redis.zadd("played:7", {"1": moment})
    played.record([Play(7, 2, NOW)], now=NOW)
    with pytest.raises(CommandError, match="1 of 1 users are not merged yet"):
        command("--cut-over")
    merge(NOW + HOUR)
    command("--cut-over")
    old_redis.flushdb()
    assert unseen(7, [1, 2, 3], now=NOW) == [3]


@pytest.mark.usefixtures("clock")
def test_a_rollback_returns_to_the_old_data(filters: FilterStore, old_redis: redis.Redis, command: Say) -> None:
    with pytest.raises(CommandError, match="No migration is running"):
        command("--rollback")
    remember(old_redis, 7, 1)
    remember(old_redis, 8, 1)
    command()
    merge(NOW + HOUR)
    played.record([Play(7, 2, NOW)], now=NOW)
    command("--rollback")
    assert "migration  rolled back" in command("--status")
    assert filters.count(MIGRATED) == 0
    assert {int(each) for each in old_redis.zrange("played:7", 0, -1)} == {1, 2}
    old_redis.zadd("played:7", {"3": 1})  # the old version still runs
    assert unseen(7, [1, 2, 3, 4], now=NOW) == [4]
    merge(NOW + HOUR)
    assert filters.count(MIGRATED) == 0, "merges go on, and migrate nobody"
    assert unseen(7, [1, 2, 3, 4], now=NOW) == [4]
    with pytest.raises(CommandError, match="No migration is running"):
        command("--cut-over")
    assert "Marked 2 users." in command()
    merge(NOW + HOUR)
    old_redis.flushdb()
    assert unseen(7, [1, 2, 3, 4], now=NOW) == [4]


@pytest.mark.usefixtures("clock")
def test_a_merge_that_ends_after_a_rollback_migrates_nobody(
    filters: FilterStore, old_redis: redis.Redis, command: Say
) -> None:
    remember(old_redis, 7, 1)
    command()
    before = old.unmigrated_plays([7], now=NOW)
    command("--rollback")
    old.mark_migrated(before)
    assert filters.count(MIGRATED) == 1
    remember(old_redis, 7, 2)
    assert unseen(7, [1, 2, 3], now=NOW) == [3]
    command()
    assert unseen(7, [1, 2, 3], now=NOW) == [3]
    merge(NOW + HOUR)
    old_redis.flushdb()
    assert unseen(7, [1, 2, 3], now=NOW) == [3]


@pytest.mark.usefixtures("clock")
def test_a_run_ends_when_it_is_rolled_back_meanwhile(
    filters: FilterStore, old_redis: redis.Redis, command: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    unmigrated = migrate._unmigrated

    def rolled_back(user_ids: list[int]) -> list[int]:
        migrate.rollback(clock=lambda: NOW)
        return unmigrated(user_ids)

    remember(old_redis, 7, 1)
    monkeypatch.setattr(migrate, "_unmigrated", rolled_back)
    monkeypatch.setattr(migrate, "_migration_lock", nullcontext)
    with pytest.raises(CommandError, match="was rolled back meanwhile"):
        command()
    assert unseen(7, [1], now=NOW) == []


@pytest.mark.parametrize("url", ["", "redis+cluster://one:6379,two:6379"])
def test_without_an_old_server_there_is_no_migration(
    filters: FilterStore, command: Say, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setattr(settings, "PLAYED_OLD_URL", url)
    with pytest.raises(CommandError, match="FEEDSITE_PLAYED_OLD_URL names no single Redis server"):
        command()


def test_without_the_old_redis_nothing_is_acknowledged_nor_answered(
    filters: FilterStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "PLAYED_OLD_URL", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(PlayedUnavailableError):
        played.record([Play(7, 1, NOW)], now=NOW)
    with pytest.raises(PlayedUnavailableError):
        unseen(7, [1], now=NOW)


# --- The cost ----------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("clock")
def test_round_trips(
    filters: FilterStore, command: Say, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """One each to Redis and the store, and one to the old Redis for unmigrated users."""
    trips: list[str] = []

    def counted(name: str, call: Any) -> Any:
        def wrapped(*args: Any, **options: Any) -> Any:
            trips.append(name)
            return call(*args, **options)

        return wrapped

    def cost(call: Callable[[], object]) -> list[str]:
        trips.clear()
        call()
        return trips.copy()

    monkeypatch.setattr(played, "pipelined", counted("redis", played.pipelined))
    monkeypatch.setattr(old, "pipelined", counted("old", old.pipelined))
    monkeypatch.setattr(filters, "read_briefly", counted("store", filters.read_briefly))

    def ask() -> object:
        return unseen(7, range(1, 1000), now=NOW)

    def play() -> None:
        played.record([Play(user_id, 1, NOW) for user_id in range(1, 100)], now=NOW)

    assert cost(ask) == ["redis", "store"]
    assert cost(play) == ["redis"]
    request.getfixturevalue("old_redis")
    assert cost(ask) == ["redis", "store", "old"]
    assert cost(play) == ["redis", "store", "old"]
    command()
    merge(NOW + HOUR)
    assert cost(ask) == ["redis", "store"]
    merge(NOW + HOUR)
    command("--cut-over")
    assert cost(ask) == ["redis", "store"]
    assert cost(play) == ["redis", "store"]


# --- Killed ------------------------------------------------------------------------------------------------
class DiedError(Exception):
    """The process died."""


def die(step: int, after: bool, call: Callable[[], object]) -> bool:
    """Die at the `step`th server call, before or after its effect. False without that many calls."""
    calls = itertools.count()

    def dying(call: Any) -> Any:
        def wrapped(*args: Any, **options: Any) -> Any:
            if next(calls) < step:
                return call(*args, **options)
            if after:
                call(*args, **options)
            raise DiedError

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for module in (merging, migrate, old):
            patch.setattr(module, "pipelined", dying(module.pipelined))
        for name in ("read", "update", "clear"):
            patch.setattr(store._store, name, dying(getattr(store._store, name)))
        with suppress(migrate.MigrationError):
            try:
                call()
            except DiedError:
                return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("after", some(1, [True, False]))
def test_a_run_and_its_merge_may_end_at_any_step(
    filters: FilterStore, old_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr(migrate, "CHUNK", 1)
    monkeypatch.setattr(settings, "PLAYED_SHARDS", 1)
    for user_id in (1, 2, 3):
        remember(old_redis, user_id, user_id + 10)

    def run() -> None:
        migrate.run(clock=lambda: NOW)

    def forgotten() -> list[list[int]]:
        return [unseen(user_id, [user_id + 10], now=NOW) for user_id in (1, 2, 3)]

    deaths = 0
    for step in itertools.count():
        filters.update([old.STATE_KEY, *(FilterKey(one, MIGRATED) for one in (1, 2, 3))], lambda key, data: None)
        filters.update([FilterKey(one, month_of(NOW)) for one in (1, 2, 3)], lambda key, data: None)
        died = die(step, after, run)
        run()
        assert forgotten() == [[], [], []], step
        died |= die(step, after, lambda: merge(NOW + HOUR))
        assert forgotten() == [[], [], []], step
        merge(NOW + HOUR)
        assert filters.count(MIGRATED) == 3
        assert forgotten() == [[], [], []], step
        deaths += died
        if not died:
            break
    assert deaths > 10


# --- However it goes ---------------------------------------------------------------------------------------
class Migrating(RuleBasedStateMachine):
    """People play during migration, rollback and a second migration. Commands and merges die at any step."""

    kind: ClassVar[str]
    folder: ClassVar[Path]
    numbers = itertools.count()

    @initialize(
        histories=st.dictionaries(
            st.integers(1, 4),
            st.dictionaries(st.integers(1, 40), st.integers(0, 70), min_size=1, max_size=6),
            min_size=2,
        )
    )
    def begin(self, histories: dict[int, dict[int, int]]) -> None:
        played.client().flushdb()
        self.patch = pytest.MonkeyPatch()
        self.store = made_store(self.kind, self.folder / str(next(self.numbers)), self.patch)
        self.patch.setattr(migrate, "CHUNK", 1)
        self.patch.setattr(settings, "PLAYED_SHARDS", 2)
        self.now = NOW
        self.is_over = False
        self.acknowledged: dict[int, set[int]] = {}
        self.old = {user_id: set(plays) for user_id, plays in histories.items()}
        for user_id, plays in histories.items():
            for item_id, days in plays.items():
                remember(old.client(), user_id, item_id, at=NOW - timedelta(days=days))

    @rule(user_id=st.integers(1, 5), item_ids=st.sets(st.integers(1, 60), min_size=1, max_size=5))
    def play(self, user_id: int, item_ids: set[int]) -> None:
        played.record([Play(user_id, item_id, self.now) for item_id in item_ids], now=self.now)
        self.acknowledged.setdefault(user_id, set()).update(item_ids)

    @rule(minutes=st.sampled_from([20, 60, 60, 130]))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(late=st.integers(0, 7))
    def merge(self, late: int) -> None:
        merge(self.now - late * HOUR)

    @precondition(lambda self: not self.is_over)
    @rule()
    def run(self) -> None:
        migrate.run(clock=lambda: self.now)

    @precondition(lambda self: not self.is_over and old.state().phase != Phase.NONE)
    @rule()
    def roll_back(self) -> None:
        migrate.rollback(clock=lambda: self.now, say=lambda _: None)

    @precondition(lambda self: not self.is_over)
    @rule()
    def cut_over(self) -> None:
        try:
            migrate.cut_over(clock=lambda: self.now, say=lambda _: None)
        except migrate.MigrationError:
            return
        self.is_over = True
        old.client().flushdb()

    @rule(step=st.integers(0, 16), after=st.booleans(), waits=st.booleans())
    def merge_and_die(self, step: int, after: bool, waits: bool) -> None:
        if waits:
            self.now += HOUR
        die(step, after, lambda: merge(self.now))

    @precondition(lambda self: not self.is_over)
    @rule(step=st.integers(0, 16), after=st.booleans(), what=st.sampled_from(["run", "run", "roll_back", "cut_over"]))
    def command_and_die(self, step: int, after: bool, what: str) -> None:
        die(step, after, getattr(self, what))
        self.is_over = old.state().phase == Phase.CUT_OVER
        if self.is_over:
            old.client().flushdb()

    @invariant()
    def nothing_is_forgotten(self) -> None:
        for user_id in range(1, 6) if hasattr(self, "now") else ():
            item_ids = self.acknowledged.get(user_id, set()) | self.old.get(user_id, set())
            assert not set(unseen(user_id, sorted(item_ids), now=self.now)) & item_ids

    @invariant()
    def the_old_redis_has_everything_until_the_cut_over(self) -> None:
        if not hasattr(self, "now") or self.is_over:
            return
        for user_id in range(1, 6):
            found = {int(each) for each in old.client().zrange(f"played:{user_id}", 0, -1)}
            assert found >= self.acknowledged.get(user_id, set()) | self.old.get(user_id, set())

    def teardown(self) -> None:
        if not hasattr(self, "now"):
            return
        try:
            if not self.is_over:
                for _ in range(2):  # the second run restores lost marks
                    self.run()
                for _ in range(ring.NODES + 1):
                    self.now += HOUR
                    merge(self.now)
            self.cut_over()  # again, if one died while removing the marks
            assert self.is_over
            assert self.store.count(MIGRATED) == 0 or self.kind == "redis"
            self.nothing_is_forgotten()
        finally:
            old.client().flushdb()
            self.patch.undo()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("old_redis")
@pytest.mark.parametrize("kind", STORES)
def test_nothing_is_forgotten_however_it_goes(kind: str, tmp_path: Path) -> None:
    machine = type("Machine", (Migrating,), {"kind": kind, "folder": tmp_path})
    run_machine(
        machine,
        settings=hypothesis_settings(
            max_examples=tries(8, 35), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
