"""Plays stay known at every moment, however the migration goes."""

import gzip
import io
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
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
from seen.lmdb_store import LmdbStore
from seen.merging import merge_shards
from seen.migration import migrate, old
from seen.migration.old import HISTORY, MIGRATED, Phase
from seen.played import Play, PlayedUnavailableError
from tests.support.changed_settings import changed
from tests.support.effort import some, tries
from tests.support.filter_stores import STORES, made_store
from tests.support.impression_servers import LATELY as NOW
from tests.support.servers import servers
from tests.support.streams import database_url

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


def written(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def middle(month: int) -> datetime:
    """The middle of a month in the store's numbers."""
    return datetime(month // 12, month % 12 + 1, 15, tzinfo=UTC)


def merge(at: datetime) -> int:
    return merge_shards(ring.node_before(at), range(settings.PLAYED_SHARDS), now=at).users


def kept(filters: FilterStore) -> tuple[int, int]:
    """Numbers of histories and marks."""
    return filters.count(HISTORY), filters.count(MIGRATED)


# --- With a file only --------------------------------------------------------------------------------------
@pytest.mark.usefixtures("clock")
def test_a_file_is_migrated(filters: FilterStore, command: Say, tmp_path: Path) -> None:
    path = written(tmp_path / "plays.txt", ["7 1 2 3", f"8 4:{seconds(NOW - 24 * HOUR)} 5", f"9 6:{seconds(NOW)}"])
    assert "migration  none" in command("--status")
    assert unseen(7, [1, 2, 3, 4], now=NOW) == [1, 2, 3, 4]
    assert "Read 3 lines" in command(path)
    for _ in range(2):
        assert unseen(7, [4, 3, 2, 1], now=NOW) == [4]
        assert unseen(8, [1, 4, 5], now=NOW) == [1]
        assert unseen(9, [6, 7], now=NOW) == [7]
        assert kept(filters) == (3, 0)
        assert "left       3" in command("--status")
        with pytest.raises(CommandError, match=r"3 of 3 users of plays\.txt are not merged yet"):
            command("--cut-over")
        assert merge(NOW) == 0, "the hour is not over"
    played.record([Play(7, 4, NOW)], now=NOW)
    assert merge(NOW + HOUR) == 3
    assert kept(filters) == (0, 3)
    assert not played.client().keys("played:user:*")
    assert unseen(7, [5, 4, 3, 2, 1], now=NOW) == [5]
    assert unseen(8, [1, 4, 5], now=NOW) == [1]
    status = command("--status")
    assert "marked     3 users\nmerged     3\nleft       0\nrate       " in status
    assert "The file was read before" in command(path), "who is merged is not merged again"
    assert merge(NOW + HOUR) == 0
    assert kept(filters) == (0, 3)
    assert "Cut over. 3 users were checked" in command("--cut-over")
    assert kept(filters) == (0, 0)
    assert "It was already cut over" in command("--cut-over")
    assert unseen(7, [5, 4, 3, 2, 1], now=NOW) == [5]
    for args in (("--rollback",), (path,)):
        with pytest.raises(CommandError, match="was cut over"):
            command(*args)


def test_a_play_belongs_to_its_month_and_one_without_a_time_to_this(
    filters: FilterStore, command: Say, tmp_path: Path, clock: list[datetime]
) -> None:
    month = month_of(NOW)
    moments = [middle(month - ago) for ago in (4, 3, 2, 1, 0)]
    dated = " ".join(f"{number}:{seconds(moment)}" for number, moment in enumerate(moments, 1))
    command(written(tmp_path / "plays.txt", [f"7 {dated} 6"]))
    merge(NOW + HOUR)
    found = filters.read([FilterKey(7, month - ago) for ago in range(6)])
    assert [data is not None for data in found] == [True, True, True, True, False, False]
    assert unseen(7, range(1, 7), now=NOW) == [1]
    later = middle(month + 3)
    assert unseen(7, range(1, 7), now=later) == [1, 2, 3, 4], "three whole months"


@pytest.mark.usefixtures("clock")
def test_users_without_plays_that_are_asked_are_over_at_once(
    filters: FilterStore, command: Say, tmp_path: Path
) -> None:
    command(written(tmp_path / "plays.txt", [f"7 1:{seconds(NOW - timedelta(days=200))}"]))
    assert kept(filters) == (0, 1)
    assert merge(NOW + HOUR) == 0


@pytest.mark.usefixtures("clock")
def test_a_user_may_have_several_lines(
    filters: FilterStore, command: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "CHUNK", 2)
    command(written(tmp_path / "one.txt", ["7 1", "7 2", "8 1", "7 3"]))
    assert unseen(7, [1, 2, 3, 4], now=NOW) == [4]
    merge(NOW + HOUR)
    command(written(tmp_path / "two.txt", ["7 4"]))
    assert kept(filters) == (1, 2)
    assert unseen(7, [1, 2, 3, 4], now=NOW) == []
    merge(NOW + HOUR)
    assert unseen(7, [1, 2, 3, 4, 5], now=NOW) == [5]
    assert "5 users were checked" in command("--cut-over")


@pytest.mark.usefixtures("clock")
def test_users_without_a_mark_on_the_ring_are_marked_by_another_run(
    filters: FilterStore, command: Say, tmp_path: Path
) -> None:
    path = written(tmp_path / "plays.txt", ["7 1", "8 2"])
    command(path)
    played.client().delete(*played.client().keys("played:user:*"))
    assert merge(NOW + HOUR) == 0
    assert unseen(7, [1], now=NOW) == []
    command(path)
    assert merge(NOW + HOUR) == 2


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("has_history", [False, True])
def test_a_history_that_comes_while_its_user_is_merged_stays_marked(
    filters: FilterStore, command: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_history: bool
) -> None:
    """The command marks on the node that is being merged."""
    played.record([Play(7, 1, NOW)], now=NOW)
    command(written(tmp_path / "other.txt", ["7 3" if has_history else "9 1"]))
    update = filters.update

    def meanwhile(*args: Any) -> None:
        update(*args)
        monkeypatch.undo()
        monkeypatch.setattr(store, "_store", filters)
        monkeypatch.setattr(settings, "PLAYED_SHARDS", 4)
        monkeypatch.setattr(timezone, "now", lambda: NOW)
        command(written(tmp_path / "plays.txt", ["7 2"]))

    monkeypatch.setattr(filters, "update", meanwhile)
    shard = ring.shard_of(7)
    merge_shards(ring.node_of(NOW), [shard], now=NOW + HOUR)
    assert unseen(7, [1, 2], now=NOW) == []
    assert filters.read([FilterKey(7, HISTORY)]) != [None]
    merge_shards(ring.node_of(NOW + HOUR), [shard], now=NOW + 2 * HOUR)
    assert filters.read([FilterKey(7, HISTORY)]) == [None]
    assert unseen(7, [1, 2], now=NOW) == []


# --- With the old Redis ------------------------------------------------------------------------------------
def remember(old_redis: redis.Redis, user_id: int, *item_ids: int, at: datetime = NOW - HOUR) -> None:
    old_redis.zadd(f"played:{user_id}", dict.fromkeys(map(str, item_ids), at.timestamp() * 1000))


@pytest.mark.usefixtures("clock")
def test_an_old_redis_is_migrated(
    filters: FilterStore, old_redis: redis.Redis, command: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(old_redis, 7, 1, 2)
    old_redis.zadd("played:7", {"3": 0, "no id": 1, "00": 2, "99999999999999999": 3})
    remember(old_redis, 8, *range(1, 2000))
    remember(old_redis, 9, 1)
    assert unseen(7, [1, 2, 3, 4], now=NOW) == [4], "before it begins"
    command(written(tmp_path / "users.txt", ["7", "8 5000"]))
    assert unseen(8, [1, 1999, 2000, 5000], now=NOW) == [2000]
    played.record([Play(7, 4, NOW), Play(9, 2, NOW)], now=NOW)
    assert old_redis.zscore("played:7", "4") == NOW.timestamp() * 1000, "double writing"
    assert merge(NOW + HOUR) == 3
    assert filters.count(MIGRATED) == 3, "who plays is migrated, in the file or not"
    with monkeypatch.context() as patch:
        patch.setattr(old, "client", None)  # migrated users cause no query to it
        assert unseen(7, [5, 4, 3, 2, 1], now=NOW) == [5]
        assert unseen(8, [*range(1, 2001), 5000], now=NOW) == [2000]
        assert unseen(9, [1, 2, 3], now=NOW) == [3]
        merge(NOW + 2 * HOUR)
    assert unseen(10, [1], now=NOW) == [1]
    assert "2 users were checked" in command("--cut-over")
    played.record([Play(7, 5, NOW)], now=NOW)
    assert old_redis.zscore("played:7", "5") is None
    old_redis.flushdb()
    assert unseen(7, range(1, 7), now=NOW) == [6]
    with pytest.raises(CommandError, match="The old data has no plays since then"):
        command("--rollback")


@pytest.mark.usefixtures("clock")
def test_a_rollback_returns_to_the_old_data(
    filters: FilterStore, old_redis: redis.Redis, command: Say, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match="No migration is running"):
        command("--rollback")
    path = written(tmp_path / "users.txt", ["7", "8"])
    remember(old_redis, 7, 1)
    remember(old_redis, 8, 1)
    command(path)
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
    assert "Read 2 lines" in command(path)
    merge(NOW + HOUR)
    old_redis.flushdb()
    assert unseen(7, [1, 2, 3, 4], now=NOW) == [4]


@pytest.mark.usefixtures("clock")
def test_a_merge_that_ends_after_a_rollback_migrates_nobody(
    filters: FilterStore, old_redis: redis.Redis, command: Say, tmp_path: Path
) -> None:
    path = written(tmp_path / "users.txt", ["7"])
    remember(old_redis, 7, 1)
    command(path)
    before = old.unmigrated([7], now=NOW)
    command("--rollback")
    old.migrated(before)
    assert filters.count(MIGRATED) == 1
    remember(old_redis, 7, 2)
    assert unseen(7, [1, 2, 3], now=NOW) == [3]
    command(path)
    assert unseen(7, [1, 2, 3], now=NOW) == [3]
    merge(NOW + HOUR)
    old_redis.flushdb()
    assert unseen(7, [1, 2, 3], now=NOW) == [3]


@pytest.mark.usefixtures("clock", "old_redis")
def test_a_cut_over_needs_whole_files_and_everybody_in_them(
    filters: FilterStore, command: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "CHUNK", 1)
    path = written(tmp_path / "users.txt", ["7", "8", "x"])
    with pytest.raises(CommandError, match=r"users.txt line 3: 'x' is not an id"):
        command(path)
    merge(NOW + HOUR)
    with pytest.raises(CommandError, match="not read completely"):
        command("--cut-over")
    path.write_text("7\n8\n9\n")
    command(path)
    with pytest.raises(CommandError, match="1 of 3 users"):
        command("--cut-over")
    merge(NOW + HOUR)
    path.write_text("7\n8\n")
    with pytest.raises(CommandError, match="2 lines now, 3 when"):
        command("--cut-over")
    path.unlink()
    with pytest.raises(CommandError, match="No such file"):
        command("--cut-over")
    assert old.state().phase == Phase.RUNNING
    assert filters.count(MIGRATED) == 3


@pytest.mark.usefixtures("clock")
def test_a_run_ends_when_it_is_rolled_back_meanwhile(
    filters: FilterStore, command: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = migrate._stage

    def rolled_back(*args: Any, **options: Any) -> None:
        stage(*args, **options)
        if old.state().phase == Phase.RUNNING:
            migrate.rollback(clock=lambda: NOW)

    monkeypatch.setattr(migrate, "_stage", rolled_back)
    with pytest.raises(CommandError, match="was rolled back meanwhile"):
        command(written(tmp_path / "plays.txt", ["7 1"]))
    assert unseen(7, [1], now=NOW) == [], "its history is still the old data"
    assert filters.count(HISTORY) == 1


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
    filters: FilterStore, command: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
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
    command(written(tmp_path / "users.txt", ["7"]))
    merge(NOW + HOUR)
    assert cost(ask) == ["redis", "store"]
    merge(NOW + HOUR)
    command("--cut-over")
    assert cost(ask) == ["redis", "store"]
    assert cost(play) == ["redis", "store"]


# --- Files -------------------------------------------------------------------------------------------------
WRONG: dict[str, tuple[bytes, str]] = {
    "empty line": (b"\n", "'' is not an id"),
    "no id": (b"x 1\n", "'x' is not an id"),
    "id 0": (b"0 1\n", "'0' is not an id"),
    "leading zero": (b"07 1\n", "'07' is not an id"),
    "negative": (b"-7 1\n", "'-7' is not an id"),
    "user too large": (b"9007199254740992 1\n", "9007199254740992 is not an id"),
    "item too large": (b"7 1 9007199254740993\n", "9007199254740993 is not an id"),
    "very large": (b"7 1 99999999999999999999\n", "'99999999999999999999' is neither an id nor id:seconds"),
    "item no id": (b"7 1 2a 3\n", "'2a' is neither an id nor id:seconds"),
    "no time": (b"7 1 2: 3\n", "'2:' is neither an id nor id:seconds"),
    "milliseconds": (b"7 1:1795252000000\n", "'1:1795252000000' is neither"),
    "future": (b"7 1:1999999999\n", "1999999999 is in the future"),
    "too old": (b"7 1:17\n", "17 is before 2000"),
    "commas": (b"7,1,2\n", "'7,1,2' is not an id"),
    "two spaces": (b"7  1\n", "'' is neither an id nor id:seconds"),
    "space at the end": (b"7 1 \n", "'' is neither an id nor id:seconds"),
    "CRLF": (b"7 1\r\n", r"'1\\r' is neither an id nor id:seconds"),
    "not UTF-8": (b"7 \xff\n", r"'\\\\xff' is neither an id nor id:seconds"),
    "no newline": (b"7 1", "the file ends in the middle"),
    "no ids": (b"7\n", "no ids, and FEEDSITE_PLAYED_OLD_URL names no Redis"),
    "endless": (b"7" + b" 1" * 5_000_000 + b"\n", "longer than 8000000 bytes"),
}


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("filters", ["lmdb"], indirect=True)
def test_a_wrong_line_is_named_and_what_is_before_it_is_read(
    filters: FilterStore, command: Say, tmp_path: Path, wrong: str, is_packed: bool, clock: list[datetime]
) -> None:
    line, message = WRONG[wrong]
    pack = gzip.compress if is_packed else bytes
    path = tmp_path / "plays.txt"
    path.write_bytes(pack(b"1 1\n2 2\n" + line))
    with pytest.raises(CommandError, match=f"^plays.txt line 3: {message}") as refusal:
        command(path)
    assert "\n" not in str(refusal.value)
    assert [unseen(user_id, [user_id], now=NOW) for user_id in (1, 2)] == [[], []]
    assert kept(filters) == (2, 0)
    path.write_bytes(pack(b"1 1\n2 2\n3 3\n"))
    assert "Continuing after line 2." in command(path), "the line was mended"
    assert old.state().files[0].lines == 3
    assert unseen(3, [3], now=NOW) == []


@pytest.mark.parametrize("filters", ["lmdb"], indirect=True)
@pytest.mark.usefixtures("clock")
def test_files_that_are_not_whole(filters: FilterStore, command: Say, tmp_path: Path) -> None:
    path = tmp_path / "plays.gz"
    whole = gzip.compress(b"".join(b"%d 1\n" % number for number in range(1, 50)))
    path.write_bytes(whole[:-12])
    with pytest.raises(CommandError, match=r"plays.gz line [0-9]+: the file ends in the middle"):
        command(path)
    path.write_bytes(whole[:-8] + b"\0\0\0\0" + whole[-4:])
    with pytest.raises(CommandError, match=r"plays.gz line [0-9]+: not readable .*CRC"):
        command(path)
    path.write_bytes(whole)
    assert "Read 49 lines" in command(path)
    path.unlink()
    with pytest.raises(CommandError, match="No such file"):
        command(path)
    with pytest.raises(CommandError, match="Is a directory"):
        command(tmp_path)
    assert len(old.state().files) == 2


@pytest.mark.parametrize("filters", ["lmdb"], indirect=True)
@pytest.mark.usefixtures("clock")
def test_another_file_of_that_name_is_read_from_its_first_line(
    filters: FilterStore, command: Say, tmp_path: Path
) -> None:
    path = written(tmp_path / "plays.txt", ["1 1", "x"])
    with pytest.raises(CommandError):
        command(path)
    written(path, ["2 2", "3 3", "4 4"])
    assert "The file has changed" in command(path)
    assert unseen(2, [2], now=NOW) == []


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
    filters: FilterStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """What was read once stays known and is merged an hour later."""
    monkeypatch.setattr(migrate, "CHUNK", 1)
    monkeypatch.setattr(settings, "PLAYED_SHARDS", 1)
    path = written(tmp_path / "plays.txt", ["1 11", "2 12", "3 13"])

    def run() -> None:
        migrate.run(path, clock=lambda: NOW, say=lambda _: None, quiet=True)

    def forgotten() -> list[list[int]]:
        return [unseen(user_id, [user_id + 10], now=NOW) for user_id in (1, 2, 3)]

    deaths = 0
    for step in itertools.count():
        filters.update([old.STATE_KEY, *old.shelved([1, 2, 3])], lambda key, data: None)
        filters.update([FilterKey(one, month_of(NOW)) for one in (1, 2, 3)], lambda key, data: None)
        died = die(step, after, run)
        run()
        assert forgotten() == [[], [], []], step
        died |= die(step, after, lambda: merge(NOW + HOUR))
        assert forgotten() == [[], [], []], step
        merge(NOW + HOUR)
        assert kept(filters) == (0, 3)
        assert forgotten() == [[], [], []], step
        deaths += died
        if not died:
            break
    assert deaths > 15


VICTIM = """
import os, signal, sys
import django
django.setup()
from django.core.management import call_command
from seen.migration import migrate

stage, parts = migrate._stage, []

def last(*args, **options):
    stage(*args, **options)
    parts.append(None)
    if len(parts) == 4:
        os.kill(os.getpid(), signal.SIGKILL)

migrate._stage = last
call_command("played_migrate", sys.argv[1])
"""
"""Killed where most work repeats. From outside this moment cannot be chosen."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.long
def test_a_killed_run_goes_on_where_it_was(command: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 24_000
    text = "".join(f"{number} {number + 1} {number + 2}\n" for number in range(1, count + 1)).encode()
    path = tmp_path / "plays"
    path.write_bytes(gzip.compress(text))
    made = LmdbStore(tmp_path / "played")
    monkeypatch.setattr(store, "_store", made)
    shards = changed(PLAYED_SHARDS=settings.PLAYED_SHARDS, PLAYED_TASK_SHARDS=settings.PLAYED_SHARDS)
    environ = {
        **os.environ,
        **shards,
        "FEEDSITE_DATABASE_URL": database_url(),
        "FEEDSITE_SECRET_KEY": settings.SECRET_KEY,
        "FEEDSITE_PLAYED_URL": settings.PLAYED_URL,
        "FEEDSITE_DATA_DIR": str(tmp_path),
    }
    victim = subprocess.run(
        [sys.executable, "-c", VICTIM, str(path)], env=environ, stderr=subprocess.PIPE, check=False, timeout=240
    )
    assert victim.returncode == -signal.SIGKILL, victim.stderr.decode()
    (file,) = old.state().files
    assert 0 < file.offset < len(text), "it was killed in the middle"
    assert made.count(HISTORY) > file.lines, "of a part that it had not written down"
    out = command(path)
    assert f"Continuing after line {file.lines:,}." in out
    assert f"Read {count:,} lines" in out
    assert made.count(HISTORY) == count
    assert {len(unseen(user, [user + 1, user + 2, user + 3], now=NOW)) for user in range(1, count, 97)} == {1}


# --- However it goes ---------------------------------------------------------------------------------------
class Migrating(RuleBasedStateMachine):
    """People play during migration, rollback and a second migration. Commands and merges die at any step."""

    kind: ClassVar[str]
    has_old_redis: ClassVar[bool]
    folder: ClassVar[Path]
    numbers = itertools.count()

    @initialize(
        histories=st.dictionaries(
            st.integers(1, 4),
            st.dictionaries(st.integers(1, 40), st.integers(0, 70), min_size=1, max_size=6),
            min_size=2,
        ),
        is_dated=st.booleans(),
    )
    def begin(self, histories: dict[int, dict[int, int]], is_dated: bool) -> None:
        played.client().flushdb()
        self.patch = pytest.MonkeyPatch()
        self.store = made_store(self.kind, self.folder / str(next(self.numbers)), self.patch)
        self.patch.setattr(migrate, "CHUNK", 1)
        self.patch.setattr(settings, "PLAYED_SHARDS", 2)
        self.now = NOW
        self.is_over = False
        self.acknowledged: dict[int, set[int]] = {}
        self.old = {user_id: set(plays) for user_id, plays in histories.items()}
        self.is_known = self.has_old_redis
        lines = []
        for user_id, plays in histories.items():
            moments = {item_id: NOW - timedelta(days=days) for item_id, days in plays.items()}
            if self.has_old_redis:
                for item_id, moment in moments.items():
                    remember(old.client(), user_id, item_id, at=moment)
                lines.append(str(user_id))
            else:
                dates = {item_id: f":{seconds(moment)}" if is_dated else "" for item_id, moment in moments.items()}
                lines.append(" ".join([str(user_id), *(f"{item_id}{date}" for item_id, date in dates.items())]))
        self.path = written(self.folder / "plays.txt", lines)

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
        migrate.run(self.path, clock=lambda: self.now, say=lambda _: None, quiet=True)
        self.is_known = True

    @precondition(lambda self: not self.is_over and old.state().phase != Phase.NONE)
    @rule()
    def roll_back(self) -> None:
        migrate.rollback(clock=lambda: self.now, say=lambda _: None)

    @precondition(lambda self: not self.is_over)
    @rule()
    def cut_over(self) -> None:
        try:
            migrate.cut_over(clock=lambda: self.now, say=lambda _: None, quiet=True)
        except migrate.MigrationError:
            return
        self.is_over = True
        if self.has_old_redis:
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
        if self.is_over and self.has_old_redis:
            old.client().flushdb()

    @invariant()
    def nothing_is_forgotten(self) -> None:
        for user_id in range(1, 6) if hasattr(self, "now") else ():
            item_ids = self.acknowledged.get(user_id, set()) | (
                self.old.get(user_id, set()) if self.is_known else set()
            )
            assert not set(unseen(user_id, sorted(item_ids), now=self.now)) & item_ids

    @invariant()
    def the_old_redis_has_everything_until_the_cut_over(self) -> None:
        if not getattr(self, "has_old_redis", False) or not hasattr(self, "now") or self.is_over:
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
            assert self.store.count(MIGRATED) == self.store.count(HISTORY) == 0 or self.kind == "redis"
            self.nothing_is_forgotten()
        finally:
            if self.has_old_redis:
                old.client().flushdb()
            self.patch.undo()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("has_old_redis", "kind"), [(False, "lmdb"), (True, "redis")])
def test_nothing_is_forgotten_however_it_goes(
    kind: str, has_old_redis: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if has_old_redis:
        request.getfixturevalue("old_redis")
    machine = type("Machine", (Migrating,), {"kind": kind, "has_old_redis": has_old_redis, "folder": tmp_path})
    run_machine(
        machine,
        settings=hypothesis_settings(
            max_examples=tries(8, 35), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
