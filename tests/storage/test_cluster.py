import os
import time

import pytest
import redis
from django.conf import settings
from redis.crc import key_slot

from runtime.embedded import Valkey, wait_for
from storage import connections
from storage.cluster import Cluster
from storage.connections import (
    FeedsUnavailableError,
    feeds_breaker,
    feeds_errors,
    pipelined,
    pipelined_with_errors,
    register_script,
)
from storage.window import INFINITY, MEASURE_EVERY, PIPELINE_LENGTH, Slice, Window, WindowEntry, deliver
from tests.support.clusters import ValkeyCluster
from tests.support.servers import frozen
from web.health import ping

WINDOW = Window("inbox:1")
SLOT = key_slot(WINDOW.key.encode())
ECHO = register_script("return {KEYS[1], ARGV[1]}")


@pytest.fixture
def client(cluster: ValkeyCluster) -> Cluster:
    """Patient: a slow machine is no outage."""
    client = connections.feeds_for_tasks()
    assert isinstance(client, Cluster)
    return client


def names(count: int) -> list[str]:
    return [f"inbox:{number}" for number in range(count)]


def sides(cluster: ValkeyCluster) -> tuple[Valkey, Valkey]:
    source = cluster.primary_of(WINDOW.key)
    return source, next(node for node in cluster.nodes if node is not source and cluster.is_primary(node))


def build(client: redis.Redis, *ids: int) -> None:
    entries = [WindowEntry(item_id, 7) for item_id in ids]
    pipelined(client, [WINDOW.drop(), WINDOW.begin("t", 1), WINDOW.complete("t", 1, 0, entries)])


def read(client: redis.Redis) -> Slice:
    return Window.slice(pipelined(client, [WINDOW.read_command(INFINITY, 10)])[0], 10)


# --- Replies ---------------------------------------------------------------------------------------------
def test_replies_come_in_the_order_of_the_commands(cluster: ValkeyCluster, client: Cluster) -> None:
    keys = names(200)
    assert len({cluster.primary_of(key) for key in keys}) == 3
    pipelined(client, [("SET", key, key) for key in keys])
    packed = [f"*2\r\n$3\r\nGET\r\n${len(key)}\r\n{key}\r\n".encode() for key in keys]
    mixed = [part for key, get in zip(keys, packed, strict=True) for part in (get, ("EVALSHA", ECHO, 1, key, 1))]
    assert pipelined(client, mixed) == [part for key in map(str.encode, keys) for part in (key, [key, b"1"])]


def test_an_error_stands_in_its_place_or_is_raised(client: Cluster) -> None:
    commands = [("SET", "a", "x"), ("INCR", "a"), ("SET", "b", "y"), ("GET", "b")]
    ok, error, *others = pipelined_with_errors(client, commands)
    assert (ok, str(error)[:17], others) == (b"OK", "value is not an i", [b"OK", b"y"])
    with pytest.raises(redis.ResponseError):
        pipelined(client, commands)
    assert pipelined(client, [("GET", "b")]) == [b"y"], "the connections are in step"


def test_replies_are_as_the_server_sends_them(client: Cluster) -> None:
    """Windows compare scores as bytes."""
    commands = [("ZADD", "a", 1, "x"), ("ZSCORE", "a", "x"), ("HSET", "b", "f", "v"), ("HGETALL", "b")]
    assert pipelined(client, commands) == [1, b"1", 1, [b"f", b"v"]]


def test_redis_pys_own_methods(client: Cluster) -> None:
    assert client.set("a", "x")
    assert client.get("a") == b"x"
    assert client.ping()
    client.flushdb()
    assert all(reply is None for reply in pipelined(client, [("GET", key) for key in names(50)]))


@pytest.mark.slow
def test_nodes_are_asked_at_once(cluster: ValkeyCluster, client: Cluster) -> None:
    keys = {cluster.primary_of(key): key for key in names(30)}
    seconds = []
    for _ in range(5):  # a busy machine may be slow now and then
        start = time.monotonic()
        assert pipelined(client, [("BLPOP", key, 0.5) for key in keys.values()]) == [None] * 3
        seconds.append(time.monotonic() - start)
        if seconds[-1] < 2 * 0.5:
            break
    assert min(seconds) < 2 * 0.5, seconds


# --- Slots that move -------------------------------------------------------------------------------------
def test_a_slot_that_is_elsewhere_is_found(cluster: ValkeyCluster, client: Cluster) -> None:
    keys = names(30)
    pipelined(client, [("SET", key, key) for key in keys])
    source, target = sides(cluster)
    cluster.move(SLOT, source, target)
    assert pipelined(client, [("GET", key) for key in keys]) == [key.encode() for key in keys]
    cluster.move(SLOT, target, source)


def test_a_slot_that_is_moving_is_served_by_both(cluster: ValkeyCluster, client: Cluster) -> None:
    """New keys are created at the target, in order."""
    tag = "{inbox:1}"
    pipelined(client, [("SET", f"old{tag}", 1)])
    source, target = sides(cluster)
    cluster.ask(target, "SCRIPT", "FLUSH")
    cluster.begin_move(SLOT, source, target)
    commands = [("INCR", f"old{tag}"), ("RPUSH", f"new{tag}", 1, 2), ("RPUSH", f"new{tag}", 3), ("GET", f"old{tag}")]
    assert pipelined(client, commands) == [2, 2, 3, b"2"]
    assert pipelined(client, [("EVALSHA", ECHO, 1, f"new{tag}", "x")]) == [[f"new{tag}".encode(), b"x"]]
    cluster.move_keys(SLOT, source, target)
    assert pipelined(client, [("GET", f"old{tag}"), ("LRANGE", f"new{tag}", 0, -1)]) == [b"2", [b"1", b"2", b"3"]]
    cluster.end_move(SLOT, source, target)
    assert pipelined(client, [("GET", f"old{tag}"), ("LLEN", f"new{tag}")]) == [b"2", 3]
    cluster.move(SLOT, target, source)


@pytest.mark.slow
def test_deliveries_follow_a_window_that_moves(cluster: ValkeyCluster, client: Cluster) -> None:
    windows = [WINDOW.key, *names(PIPELINE_LENGTH + 300)[2:]]
    for first in range(0, len(windows), 100):
        part = [Window(key) for key in windows[first : first + 100]]
        pipelined(client, [window.begin("t", 1) for window in part])
        pipelined(client, [window.complete("t", 1, 0, []) for window in part])
    source, target = sides(cluster)
    # The reads after the replies to the window that moves.
    none = next(f"none:{n}" for n in range(100) if cluster.primary_of(f"none:{n}") is source)

    def give(number: int) -> None:
        # When measured, one more reply.
        item_id = 100 * MEASURE_EVERY + number
        assert deliver(client, WindowEntry(item_id, 7), [*windows, none], [5] * (len(windows) + 1)) == [len(windows)]
        members = pipelined(client, [("ZSCORE", key, f"7:{item_id}") for key in windows])
        assert set(members) == {b"%d" % item_id}

    give(0)
    cluster.begin_move(SLOT, source, target)
    give(1)
    cluster.move_keys(SLOT, source, target)
    give(MEASURE_EVERY)
    give(MEASURE_EVERY + 1)
    cluster.end_move(SLOT, source, target)
    give(2 * MEASURE_EVERY)
    assert read(client).entries == (), "elsewhere it is not trusted"
    cluster.move(SLOT, target, source)
    assert read(client).entries == (), "nor where it was before: it may lack what was lost elsewhere"


# --- Nodes that fail -------------------------------------------------------------------------------------
def test_a_script_that_one_node_lacks_is_loaded_there(cluster: ValkeyCluster, client: Cluster) -> None:
    keys = names(30)
    commands = [("EVALSHA", ECHO, 1, key, number) for number, key in enumerate(keys)]
    expected = [[key.encode(), b"%d" % number] for number, key in enumerate(keys)]
    assert pipelined(client, commands) == expected
    cluster.ask(sides(cluster)[0], "SCRIPT", "FLUSH")
    assert pipelined(client, commands) == expected
    with pytest.raises(redis.exceptions.NoScriptError):
        pipelined(client, [("EVALSHA", "0" * 40, 1, "a")])


def test_a_slot_that_nobody_serves(cluster: ValkeyCluster, client: Cluster) -> None:
    source, _ = sides(cluster)
    cluster.ask(source, "CLUSTER", "DELSLOTS", SLOT)
    try:
        for asks in (lambda: read(client), lambda: deliver(client, WindowEntry(1, 7), [WINDOW.key], [10])):
            feeds_breaker.reset()
            with pytest.raises(FeedsUnavailableError), feeds_errors():
                asks()
    finally:
        cluster.ask(source, "CLUSTER", "ADDSLOTS", SLOT)
        cluster.settled()
    assert wait_for(lambda: answers(client), 30)
    build(client, 5)
    assert read(client).entries == (5,)


@pytest.mark.slow
def test_a_frozen_node_costs_one_wait(cluster: ValkeyCluster) -> None:
    """redis-py may then ask the other nodes."""
    client = connections.feeds()
    build(connections.feeds_for_tasks(), 5)
    assert wait_for(lambda: answers(client), 10)
    source, other = sides(cluster)
    with frozen(source, other):
        for _ in range(3):
            feeds_breaker.reset()
            start = time.monotonic()
            with pytest.raises(FeedsUnavailableError), feeds_errors():
                pipelined(client, [WINDOW.read_command(INFINITY, 10), *[("EXISTS", key) for key in names(30)]])
            assert time.monotonic() - start < 2 * settings.REDIS_TIMEOUT_SECONDS
        start = time.monotonic()
        for _ in range(50):
            feeds_breaker.trip()  # stays open on a slow machine
            with pytest.raises(FeedsUnavailableError), feeds_errors():
                read(client)
        assert time.monotonic() - start < 25 * settings.REDIS_TIMEOUT_SECONDS, "there were not fifty waits"
    feeds_breaker.reset()
    assert wait_for(lambda: answers(client), 10)
    assert read(client).entries == (5,), "it was not replaced, and is in step"


@pytest.mark.slow
def test_all_nodes_frozen_cost_one_wait_or_one_for_the_slots(cluster: ValkeyCluster) -> None:
    """redis-py waits for one after the other."""
    known = connections.client_of(cluster.url, settings.REDIS_TIMEOUT_SECONDS)
    pipelined(known, [("GET", key) for key in names(30)])
    with frozen(*cluster.nodes):
        for client in (known, known, connections.client_of(cluster.url, settings.REDIS_TIMEOUT_SECONDS)):
            start = time.monotonic()
            with pytest.raises(redis.TimeoutError):
                pipelined(client, [("GET", key) for key in names(30)])
            assert time.monotonic() - start < 3 * settings.REDIS_TIMEOUT_SECONDS
    assert wait_for(lambda: answers(known), 30)


def test_a_fork_has_connections_of_its_own(cluster: ValkeyCluster, client: Cluster) -> None:
    pipelined(client, [("SET", "a", "mine")])
    child = os.fork()
    if not child:
        os._exit(pipelined(client, [("GET", "a")] * 100) != [b"mine"] * 100)
    for _ in range(100):
        assert pipelined(client, [("GET", "b")]) == [None]
    assert os.waitpid(child, 0)[1] == 0


def test_no_node_answers(cluster: ValkeyCluster) -> None:
    client = connections.client_of("redis+cluster://127.0.0.1:1,127.0.0.1:2", 0.2)
    with pytest.raises(FeedsUnavailableError), feeds_errors():
        client.get("a")
    assert feeds_breaker.is_open


@pytest.mark.slow
def test_a_cluster_is_well_while_a_node_answers(cluster: ValkeyCluster) -> None:
    *others, _ = cluster.nodes
    with frozen(*others):
        ping(cluster.url.rpartition(",")[0] + f",127.0.0.1:{cluster.places[cluster.nodes[-1]]}")
        with pytest.raises(redis.ConnectionError):
            ping(cluster.url)


def answers(client: Cluster) -> bool:
    try:
        return pipelined(client, [("EXISTS", WINDOW.key)])[0] >= 0
    except redis.RedisError:
        return False


# --- Failover --------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_what_a_replica_took_over_is_not_trusted_whoever_has_it_again(cluster: ValkeyCluster, client: Cluster) -> None:
    """A delivery is lost with the primary, which later takes over again."""
    build(client, 5)
    primary = former = cluster.primary_of(WINDOW.key)
    cluster.ask(primary, "WAIT", 1, 10_000)
    cluster.cut_off(cluster.replica_of(primary))
    assert deliver(client, WindowEntry(6, 7), [WINDOW.key], [10]) == []
    assert read(client).entries == (6, 5)
    for _ in range(2):
        cluster.take_over(cluster.replica_of(primary))
        primary = cluster.primary_of(WINDOW.key)
        cluster.settled()
        assert not read(client).is_usable
        assert pipelined(client, [("ZSCORE", WINDOW.key, "7:5"), ("ZSCORE", WINDOW.key, "7:6")]) == [b"5", None]
    assert primary is former
    assert pipelined(client, [WINDOW.begin("t", 1)]) == [1], "it is built anew"
    build(client, 6, 5)
    assert read(client).entries == (6, 5)
