"""The client of a Redis Cluster. redis-py's `RedisCluster` knows slots, nodes and connections.

A trip writes to all nodes before it reads, and has one deadline. redis-py asks one node after the other for the slots,
so a thread does that: at the start and after a failure. Replicas are not asked: they may lack writes.

See docs/decisions.md: Experiments that were not worth it.
"""

import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import hiredis
import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.connection import HiredisRespSerializer
from redis.exceptions import AskError, ClusterDownError, MovedError, RedisClusterException, TryAgainError
from redis.retry import Retry

from runtime.addresses import CLUSTERS, parse
from storage.replies import LEAST_WAIT_SECONDS, borrowed_connection

UNSERVED = (ClusterDownError, RedisClusterException)
"""Errors of redis-py for a slot without a node that answers."""
AGAIN_SECONDS = 0.01
"""The pause before a command of several keys whose slot is moving goes out again."""

Commands = Sequence[Sequence[Any]]


@contextmanager
def _outages() -> Iterator[None]:
    try:
        yield
    except UNSERVED as error:
        raise redis.ConnectionError(str(error)) from error
    except TimeoutError as error:
        raise redis.TimeoutError("no node has said in time which node has which slots") from error


class Cluster(redis.Redis):
    """The client of a cluster, for all threads and forks. Connects at the first trip. Its own pipelines, scans and
    transactions do not work. Its methods raise redis.ConnectionError or redis.TimeoutError: the commands may have run.
    """

    def __init__(self, url: str, timeout: float) -> None:
        super().__init__(connection_pool=ClusterPool(self))
        self.address, self.timeout = parse(url, CLUSTERS), timeout
        self._forget()

    def _forget(self) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._cluster: RedisCluster | None = None
        self._thread = ThreadPoolExecutor(1, "cluster")
        self._looking: Future[RedisCluster] | None = None

    def _current_cluster(self) -> RedisCluster:
        if self._pid != os.getpid():
            self._forget()
        return self._cluster or self._start_slot_lookup().result(self.timeout)

    def _start_slot_lookup(self) -> "Future[RedisCluster]":
        """Begin to look which node has which slots, unless that is under way."""
        with self._lock:
            if self._looking is None or self._looking.done():
                self._looking = self._thread.submit(self._find_slots)
            return self._looking

    def _find_slots(self) -> RedisCluster:
        if self._cluster is not None:
            self._cluster.nodes_manager.initialize()
            return self._cluster
        first, *others = self.address.nodes
        self._cluster = RedisCluster.from_url(
            self.address.url_of(*first),
            startup_nodes=[ClusterNode(*node) for node in others],  # type: ignore[no-untyped-call]
            protocol=2,
            socket_timeout=self.timeout,
            socket_connect_timeout=self.timeout,
            retry=Retry(NoBackoff(), 0),
            require_full_coverage=False,
        )
        return self._cluster

    def execute_many(self, commands: Commands) -> list[Any]:
        """Replies to commands of one key each, with errors in their places."""
        with _outages():
            try:
                return self._run_commands(self._current_cluster(), commands)
            except redis.AuthenticationError:
                raise
            except redis.TimeoutError:
                self._start_slot_lookup()  # another node may have the slots by the next trip
                raise
            except (redis.ConnectionError, *UNSERVED):
                return self._run_commands(self._start_slot_lookup().result(self.timeout), commands)

    def _run_commands(self, cluster: RedisCluster, commands: Commands) -> list[Any]:
        until = time.monotonic() + self.timeout
        replies: list[Any] = [None] * len(commands)
        heirs: dict[int, ClusterNode | None] = dict.fromkeys(range(len(commands)))
        while heirs:
            for place, reply in _replies(cluster, commands, heirs, until):
                replies[place] = reply
                if isinstance(reply, UNSERVED):
                    raise reply
            moved = {place: replies[place] for place in heirs if isinstance(replies[place], (AskError, TryAgainError))}
            heirs = {place: _redirect_node(cluster, reply) for place, reply in moved.items()}
            if heirs and time.monotonic() > until:
                raise redis.TimeoutError("slots were moving all the time")
        return replies

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command to its key's node, or to all, one after the other."""
        with _outages():
            return self._current_cluster().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def owner_url(self, key: str) -> str:
        """The address of a key's primary."""
        with _outages():
            self._current_cluster()
            node: ClusterNode = self._start_slot_lookup().result(self.timeout).get_node_from_key(key)  # type: ignore[no-untyped-call]
        return self.address.url_of(node.host, node.port)

    def close(self) -> None:
        """Close the connections. The client stays usable."""
        if self._cluster is not None:
            self._cluster.close()


def _replies(
    cluster: RedisCluster, commands: Commands, heirs: dict[int, ClusterNode | None], until: float
) -> list[tuple[int, Any]]:
    """Send the commands in some places: to the node that has the slot, or to its heir while the slot moves."""
    places = defaultdict(list)
    for place, heir in heirs.items():
        key = commands[place][3 if commands[place][0] in (b"EVAL", b"EVALSHA") else 1]
        places[heir or cluster.get_node_from_key(key)].append(place)  # type: ignore[no-untyped-call]

    found = []
    with ExitStack() as stack:
        connections = [stack.enter_context(borrowed_connection(cluster.get_redis_connection(node))) for node in places]
        for connection, own in zip(connections, places.values(), strict=True):
            asked = [part for place in own for part in ([["ASKING"]] if heirs[place] else []) + [commands[place]]]
            connection.send_packed_command(connection.pack_commands(asked))
        for connection, own in zip(connections, places.values(), strict=True):
            for place in own:
                if heirs[place]:
                    _read(connection, until)
                found.append((place, _read(connection, until)))
    return found


def _read(connection: Any, until: float) -> Any:
    try:
        return connection.read_response(timeout=max(until - time.monotonic(), LEAST_WAIT_SECONDS))
    except redis.ResponseError as error:
        return error


def _redirect_node(cluster: RedisCluster, error: Any) -> ClusterNode | None:
    """The node that a slot moves to, or None if the next trip finds its node."""
    if isinstance(error, MovedError):
        cluster.nodes_manager.move_slot(error)
    elif isinstance(error, TryAgainError):
        time.sleep(AGAIN_SECONDS)
    else:
        node: ClusterNode | None = cluster.get_node(error.host, error.port)  # type: ignore[no-untyped-call]
        if node is None:
            raise redis.ConnectionError("a slot moves to a node that has no other yet")
        return node
    return None


class ClusterPool(redis.ConnectionPool):
    """Takes the place of a connection pool: hands out trips to the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(protocol=2)
        self._cluster = cluster

    def get_connection(self, command_name: str | None = None, *keys: Any, **options: Any) -> Any:
        """A new trip."""
        return ClusterConnection(self._cluster)

    def release(self, connection: Any) -> None:
        """Do nothing: a trip has nothing to give back."""


class ClusterConnection:
    """Takes the place of a connection: sends at once, and holds the replies."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._replies: deque[Any] = deque()

    pack_command = HiredisRespSerializer().pack
    """Encodes a command as RESP."""

    def send_packed_command(self, packed: Sequence[bytes]) -> None:
        """Send RESP-encoded commands."""
        reader = hiredis.Reader()
        reader.feed(b"".join(packed))
        self._replies += self._cluster.execute_many(list(iter(reader.gets, False)))

    def read_response(self, timeout: float | None = None) -> Any:
        """The next reply. Raises an error reply."""
        reply = self._replies.popleft()
        if isinstance(reply, redis.RedisError):
            raise reply
        return reply

    def replies(self, count: int) -> list[Any]:
        """The next replies, including errors."""
        return [self._replies.popleft() for _ in range(count)]

    def disconnect(self) -> None:
        """Discard unread replies."""
        self._replies.clear()
