"""Waiting plays are capped per user and merged early."""

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from django.conf import settings

from seen import merging, played, ring, store, tasks
from seen.checker import unseen
from seen.filter_store import FilterKey, month_of
from seen.merging import mark_strays, merge_shards
from seen.played import Play, PlaysFullError
from storage import keys
from tests.support.workers import empty_queue, queue_server

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
MOST = 20


@pytest.fixture(autouse=True)
def plays(plays: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> redis.Redis:
    """An empty server, with a store, few shards and little room."""
    monkeypatch.setattr(settings, "PLAYED_SHARDS", 1)
    monkeypatch.setattr(settings, "PLAYED_WAITING_CAP", MOST)
    monkeypatch.setattr(merging, "PART", 8)
    return plays


def play(user_id: int, *item_ids: int, at: datetime = NOW) -> None:
    played.record([Play(user_id, item_id, at) for item_id in item_ids], now=at)


def crowd(plays: redis.Redis, user_id: int, count: int) -> range:
    """An older version left these plays."""
    moment = NOW.timestamp() * 1000
    plays.zadd(keys.played_recent(user_id), {str(item_id): moment + item_id for item_id in range(1, count + 1)})
    mark_strays(now=NOW)
    return range(1, count + 1)


def asked_early() -> list[int]:
    messages = [json.loads(each) for each in queue_server().lrange("celery", 0, -1)]
    return [
        int(each["headers"]["argsrepr"].strip("(,)"))
        for each in messages
        if each["headers"]["task"] == tasks.merge_user.name
    ]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for module in (merging, played):
        pipelined = module.pipelined

        def watched(client: Any, commands: Any, pipelined: Any = pipelined, **options: Any) -> Any:
            found.extend(commands := list(commands))
            return pipelined(client, commands, **options)

        monkeypatch.setattr(module, "pipelined", watched)
    return found


# --- The cap ---------------------------------------------------------------------------------------------
def test_a_batch_beyond_the_cap_is_refused_whole(plays: redis.Redis) -> None:
    play(7, *range(1, MOST - 1))
    with pytest.raises(PlaysFullError):
        play(7, 101, 102, 103)
    assert plays.zcard(keys.played_recent(7)) == MOST - 2
    assert unseen(7, [1, 101, 102, 103], now=NOW) == [101, 102, 103]
    play(7, 101, 102)
    play(8, *range(1, MOST + 1))
    assert unseen(8, [MOST, MOST + 1], now=NOW) == [MOST + 1]


def test_one_full_user_of_a_batch_refuses_the_call_and_loses_nothing() -> None:
    play(7, *range(1, MOST + 1))
    with pytest.raises(PlaysFullError):
        played.record([Play(7, 99, NOW), Play(8, 1, NOW)], now=NOW)
    assert unseen(7, [99, *range(1, MOST + 1)], now=NOW) == [99]


def test_fast_players_are_merged_early_and_go_on(plays: redis.Redis) -> None:
    play(7, *range(1, MOST // 2))
    assert asked_early() == []
    play(7, *range(MOST // 2, MOST))
    play(7, MOST)
    assert asked_early() == [7], "once, however many calls find it crowded"
    tasks.merge_user(7)
    assert plays.zcard(keys.played_recent(7)) == 0
    play(7, *range(MOST + 1, 2 * MOST + 1))
    assert unseen(7, range(1, 2 * MOST + 2), now=NOW) == [2 * MOST + 1]


def test_the_full_are_asked_for_again_where_the_task_was_lost(plays: redis.Redis) -> None:
    play(7, *range(1, MOST + 1))
    empty_queue()
    plays.delete(keys.played_early(7))  # its seconds are over
    with pytest.raises(PlaysFullError):
        play(7, MOST + 1)
    assert asked_early() == [7]


def test_an_early_merge_leaves_the_mark_to_the_hour(plays: redis.Redis) -> None:
    play(7, *range(1, MOST + 1))
    tasks.merge_user(7)
    merged = merge_shards(ring.node_of(NOW), range(1), now=NOW + HOUR)
    assert (merged.users, merged.plays, merged.failure) == (1, 0, None)
    assert not plays.keys("played:user:*")


def test_a_play_that_comes_during_an_early_merge_is_kept(plays: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    play(7, 1, 2)
    update = store.store().update

    def meanwhile(*args: Any) -> None:
        update(*args)
        monkeypatch.setattr(store.store(), "update", update)
        play(7, 2, 3, at=NOW + HOUR)

    monkeypatch.setattr(store.store(), "update", meanwhile)
    merging.merge_early(7, now=NOW + HOUR)
    assert unseen(7, [1, 2, 3, 4], now=NOW) == [4]
    assert merge_shards(ring.node_of(NOW + HOUR), range(1), now=NOW + 2 * HOUR).plays == 2


# --- Plays over the bound --------------------------------------------------------------------------------
def test_a_crowd_is_merged_in_parts_beside_the_others(plays: redis.Redis, sent: list[tuple[Any, ...]]) -> None:
    crowded = crowd(plays, 7, 100)
    for user_id in range(8, 40):
        play(user_id, user_id)
    merged = merge_shards(ring.node_of(NOW), range(1), now=NOW + HOUR)
    assert merged.failure is None
    assert all(unseen(user_id, [user_id], now=NOW) == [] for user_id in range(8, 40))
    assert plays.keys("played:recent:*") == [b"played:recent:7"], "the rest of the crowd waits, and nobody else"
    assert plays.zcard(keys.played_recent(7)) == 100 - merging.most_rounds() * merging.PART
    assert asked_early() == [7]
    assert unseen(7, [*crowded, 101], now=NOW) == [101]
    rounds = 0
    while plays.exists(keys.played_recent(7)):
        tasks.merge_user(7)
        rounds += 1
    assert 0 < rounds <= 100 // merging.PART
    assert unseen(7, [*crowded, 101], now=NOW) == [101]
    assert all(len(each) <= 4 + 2 * merging.PART for each in sent if each[0] == "EVALSHA" and each[1] == merging.FORGET)
    assert all(each[3] < MOST + 1 for each in sent if each[0] == "ZRANGE"), "no read without an end"


def test_questions_read_a_bounded_number_of_plays(plays: redis.Redis, sent: list[tuple[Any, ...]]) -> None:
    crowded = crowd(plays, 7, 100)
    del sent[:]
    assert unseen(7, [*crowded, 101, 102], now=NOW) == [101, 102]
    reads = [each for each in sent if each[1] == keys.played_recent(7)]
    assert [each[0] for each in reads] == ["ZRANGE", "ZMSCORE"]
    assert reads[0][2:] == (0, MOST)


def test_the_archive_lists_a_crowd_oldest_first(plays: redis.Redis, sent: list[tuple[Any, ...]]) -> None:
    crowd(plays, 7, 3_000)
    del sent[:]
    assert [each.item_id for each in played.dated_plays(7)] == list(range(1, 3_001))
    assert {each[0] for each in sent} == {"ZSCAN"}


# --- One user's trouble ----------------------------------------------------------------------------------
@pytest.mark.parametrize("trouble", ["another type", "no id", "no time", "no filter"])
def test_one_users_failure_stays_theirs(plays: redis.Redis, caplog: pytest.LogCaptureFixture, trouble: str) -> None:
    for user_id in range(1, 11):
        play(user_id, 1)
    key = keys.played_recent(7)
    if trouble == "another type":
        plays.set(key, "rust")
    elif trouble == "no id":
        plays.zadd(key, {"rust": NOW.timestamp() * 1000})
    elif trouble == "no time":
        plays.zadd(key, {"1": float("inf")})
    else:
        store.store().update([FilterKey(7, month_of(NOW))], lambda key, data: b"rust")
    with caplog.at_level(logging.ERROR):
        merged = merge_shards(ring.node_of(NOW), range(1), now=NOW + HOUR)
    assert (merged.users, merged.failed) == (9, 1)
    assert "user 7" in str(merged.failure)
    assert "the plays of user 7 cannot be merged" in caplog.text
    assert plays.keys("played:recent:*") == [b"played:recent:7"]
