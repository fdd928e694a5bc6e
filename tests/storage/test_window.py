import time
from pathlib import Path

import pytest
import redis

from runtime.embedded import Home, wait_for
from storage.connections import client_of, feeds_for_tasks, pipelined
from storage.window import (
    INFINITY,
    MEASURE_EVERY,
    OWN_MEMBERS,
    PIPELINE_LENGTH,
    READ_MOST,
    Slice,
    Window,
    WindowEntry,
    deliver,
)
from tests.support.clusters import free_ports
from tests.support.servers import Valkey, restart

WINDOW = Window("inbox:1")


def run(*commands: tuple[object, ...]) -> list[object]:
    return pipelined(feeds_for_tasks(), commands)


def read(last_id: int = INFINITY, count: int = 10) -> Slice:
    (reply,) = run(WINDOW.read_command(last_id, count))
    return Window.slice(reply, count)  # type: ignore[arg-type]


def entries(*ids: int) -> list[WindowEntry]:
    return [WindowEntry(item_id, 7) for item_id in ids]


def build(*ids: int, floor: int = 0, epoch: int = 1) -> None:
    run(WINDOW.drop(), WINDOW.begin("t", epoch))
    assert run(WINDOW.complete("t", epoch, floor, entries(*ids))) == [1]


def test_no_key_is_no_window(feeds: redis.Redis) -> None:
    assert not read().is_usable


@pytest.mark.slow
def test_a_key_without_floor_is_no_window(feeds: redis.Redis) -> None:
    feeds.zadd(WINDOW.key, {"7:100": 100})
    assert not read().is_usable


def test_a_built_window_is_read_newest_first_down_to_its_floor(feeds: redis.Redis) -> None:
    build(100, 300, 200, floor=50)
    found = read()
    assert (found.entries, found.senders) == ((300, 200, 100), (7, 7, 7))
    assert (found.bound, found.floor, found.epoch) == (50, 50, 1)
    assert not found.is_truncated


def test_a_slice_that_ends_early_is_bound_by_its_last_entry(feeds: redis.Redis) -> None:
    build(100, 200, 300, floor=50)
    found = read(count=2)
    assert (found.entries, found.bound, found.is_truncated) == ((300, 200), 199, True)
    assert read(last_id=200, count=2).entries == (100,)


@pytest.mark.parametrize("item_id", [INFINITY - 1, 3_475_742_308_069_376, 1])
def test_ids_are_exact_scores(feeds: redis.Redis, item_id: int) -> None:
    build(item_id)
    assert read().entries == (item_id,)
    assert read(last_id=item_id).entries == ()
    assert read(last_id=item_id + 1).entries == (item_id,)


def test_a_window_under_construction_is_not_used_but_takes_deliveries(feeds: redis.Redis) -> None:
    run(WINDOW.begin("t", 1))
    assert not read().is_usable
    assert deliver(feeds, WindowEntry(500, 7), [WINDOW.key], [10]) == [0]
    run(WINDOW.complete("t", 1, 50, entries(100)))
    assert read().entries == (500, 100)


def test_only_one_builds_for_an_epoch(feeds: redis.Redis) -> None:
    assert run(WINDOW.begin("a", 1), WINDOW.begin("b", 1), WINDOW.begin("c", 2)) == [1, 0, 1]
    assert run(WINDOW.complete("a", 1, 0, entries(1))) == [0], "its construction was begun anew"
    assert run(WINDOW.complete("c", 2, 0, entries(2))) == [1]
    assert run(WINDOW.begin("d", 2), WINDOW.begin("e", 1)) == [0, 1], "epochs have no order"


def test_a_construction_that_was_lost_is_not_completed(feeds: redis.Redis) -> None:
    run(WINDOW.begin("t", 1), WINDOW.drop())
    assert run(WINDOW.complete("t", 1, 0, entries(1))) == [0]
    assert not feeds.exists(WINDOW.key)


def test_a_builder_that_died_does_not_hold_the_window_for_long(feeds: redis.Redis) -> None:
    run(WINDOW.begin("t", 1))
    assert 0 < feeds.ttl(WINDOW.key) <= 60


def test_a_window_of_another_run_of_the_server_is_not_used(feeds: redis.Redis, feeds_server: Valkey) -> None:
    build(100)
    saved = feeds.dump(WINDOW.key)
    restart(feeds_server)
    feeds.restore(WINDOW.key, 0, saved)  # perhaps older than the last deliveries
    assert not read().is_usable
    assert run(WINDOW.begin("t", 1)) == [1], "it is built anew"
    assert run(WINDOW.complete("t", 1, 0, entries(100, 200))) == [1]
    assert read().entries == (200, 100)


def test_a_construction_is_not_completed_in_another_run(feeds: redis.Redis, feeds_server: Valkey) -> None:
    run(WINDOW.begin("t", 1))
    saved = feeds.dump(WINDOW.key)
    restart(feeds_server)
    feeds.restore(WINDOW.key, 0, saved)
    assert run(WINDOW.complete("t", 1, 0, entries(100))) == [0]


def test_reading_keeps_the_window_alive(feeds: redis.Redis) -> None:
    build(100)
    feeds.expire(WINDOW.key, 10)
    read()
    assert Window.ttl - 60 < feeds.ttl(WINDOW.key) <= Window.ttl


def test_a_delivery_is_idempotent_and_may_come_out_of_order(feeds: redis.Redis) -> None:
    build(100, floor=50)
    for item_id in (300, 200, 300, 200):
        assert deliver(feeds, WindowEntry(item_id, 7), [WINDOW.key], [10]) == []
    assert read().entries == (300, 200, 100)


@pytest.mark.parametrize("item_id", [50, 40])
def test_a_delivery_at_or_below_the_floor_is_ignored(feeds: redis.Redis, item_id: int) -> None:
    build(100, floor=50)
    assert deliver(feeds, WindowEntry(item_id, 7), [WINDOW.key], [10]) == [0]
    assert read().entries == (100,)
    assert feeds.zcard(WINDOW.key) == OWN_MEMBERS + 1, "nothing is left of it"


def test_a_delivery_to_no_window_leaves_no_key(feeds: redis.Redis) -> None:
    assert deliver(feeds, WindowEntry(100, 7), [WINDOW.key], [10]) == [0]
    assert not feeds.exists(WINDOW.key)


def test_trimming_raises_the_floor_to_the_last_entry_that_went(feeds: redis.Redis) -> None:
    build(*range(10, 20), floor=5)
    assert run(WINDOW.trim(4)) == [6]
    found = read()
    assert (found.entries, found.floor) == ((19, 18, 17, 16), 15)
    assert run(WINDOW.trim(4)) == [0]


def test_deliveries_trim_when_the_slack_is_used_up(feeds: redis.Redis, settings: object) -> None:
    settings.WINDOW_SLACK = 3  # type: ignore[attr-defined]
    build(floor=5)
    sizes = []
    for item_id in range(10, 30):
        deliver(feeds, WindowEntry(item_id, 7), [WINDOW.key], [4])
        sizes.append(len(read(count=100).entries))
    assert 7 < max(sizes) <= 7 + MEASURE_EVERY
    found = read(count=100)
    assert found.entries == tuple(range(29, found.floor, -1)), "complete above its floor"


def test_an_entry_that_was_trimmed_and_comes_again_stays_out(feeds: redis.Redis) -> None:
    build(*range(10, 20), floor=5)
    run(WINDOW.trim(4))
    deliver(feeds, WindowEntry(15, 7), [WINDOW.key], [4])
    assert (read().entries, read().floor) == ((19, 18, 17, 16), 15)
    run(WINDOW.trim(2))
    assert (read().entries, read().floor) == ((19, 18), 17)


def test_many_windows_in_one_call(feeds: redis.Redis) -> None:
    windows = [Window(f"inbox:{number}") for number in range(2 * PIPELINE_LENGTH + 1)]
    there = windows[::2]
    run(*(command for one in there for command in (one.begin("t", 1), one.complete("t", 1, 0, []))))
    refused = deliver(feeds, WindowEntry(100, 7), [one.key for one in windows], [10] * len(windows))
    assert refused == list(range(1, len(windows), 2))
    assert sum(feeds.zscore(one.key, "7:100") == 100 for one in windows) == len(there)
    assert feeds.dbsize() == len(there)


def test_a_delivery_that_fails_leaves_no_replies_for_the_next(feeds: redis.Redis) -> None:
    feeds.set("inbox:2", "no window")
    build(100)
    with pytest.raises(redis.ResponseError):
        deliver(feeds, WindowEntry(200, 7), [WINDOW.key, "inbox:2", WINDOW.key], [10] * 3)
    assert feeds.ping() is True
    assert deliver(feeds, WindowEntry(300, 7), [WINDOW.key], [10]) == []
    assert read().entries == (300, 200, 100)


def test_lazy_delete(feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.window.FORGET_SECONDS", 60)
    build(100, 200)
    assert run(WINDOW.forget(["7:200"], read())) == [1]
    assert read().entries == (100,)


def test_a_slow_reader_deletes_nothing(feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.window.FORGET_SECONDS", 0.05)
    build(100, 200)
    command = WINDOW.forget(["7:200"], read())
    time.sleep(0.1)  # slower than FORGET_SECONDS
    assert run(command) == [0]
    assert read().entries == (200, 100)


def test_a_reader_of_another_epoch_deletes_nothing(feeds: redis.Redis) -> None:
    build(100, epoch=1)
    command = WINDOW.forget(["7:100"], read())
    build(100, epoch=2)
    assert run(command) == [0]


def test_merging_all_of_a_sender(feeds: redis.Redis) -> None:
    build(100, 200, floor=50)
    run(WINDOW.merge([WindowEntry(150, 8), WindowEntry(40, 8)], 0))
    assert read().entries == (200, 150, 100)
    assert read().floor == 50


@pytest.mark.slow
def test_merging_a_part_of_a_sender_raises_the_floor(feeds: redis.Redis) -> None:
    build(100, 200, floor=50)
    run(WINDOW.merge([WindowEntry(150, 8)], 120))
    assert (read().entries, read().floor) == ((200, 150), 120)


def test_merging_into_no_window_makes_none(feeds: redis.Redis) -> None:
    assert run(WINDOW.merge([WindowEntry(150, 8)], 0)) == [0]
    assert not feeds.exists(WINDOW.key)


def test_merging_under_construction(feeds: redis.Redis) -> None:
    run(WINDOW.begin("t", 1), WINDOW.merge([WindowEntry(150, 8)], 0), WINDOW.complete("t", 1, 0, entries(100)))
    assert read().entries == (150, 100)
    run(WINDOW.drop(), WINDOW.begin("t", 1), WINDOW.merge([WindowEntry(150, 8)], 120))
    assert run(WINDOW.complete("t", 1, 0, entries(100))) == [0], "what it lacks nobody would know"


def test_scripts_are_loaded_again_after_a_restart(feeds: redis.Redis) -> None:
    build(100)
    feeds.script_flush()
    assert read().entries == (100,)


def test_a_full_inbox_of_the_many_stays_a_listpack(feeds: redis.Redis, settings: object) -> None:
    cap = settings.LEVEL_CAPS[2] + settings.WINDOW_SLACK  # type: ignore[attr-defined]
    build(*range(3_475_742_308_069_376, 3_475_742_308_069_376 + cap))
    assert feeds.object("encoding", WINDOW.key) == b"listpack"


@pytest.mark.long
def test_a_primary_that_was_replaced_and_comes_back_does_not_trust_what_it_holds(tmp_path: Path) -> None:
    """It never stopped, but lost deliveries as another's replica."""
    home = Home(tmp_path)
    home.make()
    ports = free_ports()
    pair = [Valkey(home, f"one{port}", {"bind": "127.0.0.1", "port": str(port), "save": ""}) for port in ports]
    first, second = (client_of(f"redis://127.0.0.1:{port}", 10) for port in ports)
    try:
        for server in pair:
            server.start()
        assert wait_for(lambda: all(server.answers() for server in pair), 30)
        pipelined(first, [WINDOW.begin("t", 1), WINDOW.complete("t", 1, 0, entries(100))])
        second.replicaof("127.0.0.1", ports[0])
        assert wait_for(lambda: second.exists(WINDOW.key), 60)
        second.replicaof("NO", "ONE")
        # The first replica changes its replication id, at the cost of one window.
        pipelined(first, [WINDOW.begin("t", 1), WINDOW.complete("t", 1, 0, entries(100))])
        assert deliver(first, WindowEntry(200, 7), [WINDOW.key], [10]) == []
        assert Window.slice(pipelined(first, [WINDOW.read_command(INFINITY, 10)])[0], 10).entries == (200, 100)
        first.replicaof("127.0.0.1", ports[1])
        assert wait_for(lambda: not first.zscore(WINDOW.key, "7:200"), 60)
        first.replicaof("NO", "ONE")
        assert first.zscore(WINDOW.key, "7:100") == 100
        assert not Window.slice(pipelined(first, [WINDOW.read_command(INFINITY, 10)])[0], 10).is_usable
    finally:
        first.close()
        second.close()
        for server in pair:
            server.kill()


def test_many_windows_are_read_by_few_scripts(feeds: redis.Redis) -> None:
    windows = [Window(f"inbox:{number}") for number in range(1, 2 * READ_MOST)]
    for window in windows[:-1]:
        begin, complete = window.begin("t", 1), window.complete("t", 1, 50, entries(100, 200, 300))
        assert run(begin, complete) == [1, 1]
    feeds.expire(windows[0].key, 5)
    counts = [2, *[10] * (len(windows) - 1)]
    commands = Window.read_commands(feeds_for_tasks(), [window.key for window in windows], INFINITY, counts)
    assert len(commands) == 2
    found = Window.slices(run(*commands), counts)  # type: ignore[arg-type]
    assert [one.entries for one in found] == [(300, 200), *[(300, 200, 100)] * (len(windows) - 2), ()]
    assert [one.bound for one in found] == [199, *[50] * (len(windows) - 2), INFINITY]
    assert feeds.ttl(windows[0].key) > 5
