"""The client of a Redis Cluster: redis-py's `RedisCluster` and pipeline, with one deadline for each trip.

redis-py waits for one node after the other, so a thread makes the trip. Replicas are not asked: they may lack writes.

See docs/decisions.md: Experiments that were not worth it.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import hiredis
import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, ClusterPipeline, PipelineCommand, RedisCluster
from redis.connection import HiredisRespSerializer
from redis.exceptions import AskError, ClusterDownError, MovedError, RedisClusterException, TryAgainError
from redis.retry import Retry

from runtime.cluster_address import parse

T = TypeVar("T")

OUTAGES = (redis.ConnectionError, redis.TimeoutError, OSError, ClusterDownError, RedisClusterException)
"""Errors of redis-py for a node that does not answer, or a slot without a node."""


class Plain(NamedTuple):
    """A node's client that gives replies as they are sent."""

    connection_pool: redis.ConnectionPool
    connection: None = None

    @staticmethod
    def parse_response(connection: Any, command_name: str, **options: Any) -> Any:
        """Read a reply unchanged. redis-py's own client would turn scores into floats."""
        return connection.read_response()


class Pipeline(ClusterPipeline):
    """redis-py's pipeline with plain replies."""

    def __init__(self, cluster: RedisCluster) -> None:
        super().__init__(
            nodes_manager=cluster.nodes_manager,
            commands_parser=cluster.commands_parser,
            cluster_response_callbacks={},
            retry=cluster.retry,
            lock=cluster._lock,
        )

    def get_redis_connection(self, node: ClusterNode) -> Any:
        """A client of the node that gives plain replies."""
        return Plain(super().get_redis_connection(node).connection_pool)

    def run(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send the commands and return the replies, with errors in their places. Raises `OUTAGES`.

        A command for a moved slot goes to the other node at the end.
        """
        stack = [PipelineCommand(command, None, place) for place, command in enumerate(commands)]  # type: ignore[no-untyped-call]
        self.send_cluster_commands(stack, raise_on_error=False, allow_redirections=False)  # type: ignore[no-untyped-call]
        for sent in stack:
            if isinstance(sent.result, OUTAGES):
                raise sent.result
        return [self._follow(sent) for sent in stack]

    def _follow(self, sent: PipelineCommand) -> Any:
        error: Any = sent.result
        if not isinstance(error, (AskError, TryAgainError)):  # MovedError is an AskError
            return error
        if (
            isinstance(error, AskError)
            and not isinstance(error, MovedError)
            and self.get_node(error.host, error.port) is None  # type: ignore[no-untyped-call]
        ):
            raise redis.ConnectionError("a slot moves to a node that has no other yet")
        try:
            return self.parent_execute_command(*sent.args)  # type: ignore[no-untyped-call]
        except redis.ResponseError as refusal:
            if isinstance(refusal, OUTAGES):
                raise
            return refusal


class Cluster(redis.Redis):
    """The client of a cluster, for all threads and forks. Connects at the first trip. Its own pipelines, scans and
    transactions do not work.
    """

    def __init__(self, url: str, timeout: float) -> None:
        super().__init__(connection_pool=Trips(self))
        self.address, self.timeout = parse(url), timeout
        self._forget()

    def _forget(self) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._cluster: RedisCluster | None = None

    def _connected(self) -> RedisCluster:
        with self._lock:
            if self._cluster is None:
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

    def _within(self, ask: Callable[[RedisCluster], T]) -> T:
        """Call `ask` in a thread and wait for its answer within `timeout`.

        Raises redis.ConnectionError or redis.TimeoutError: the commands may have run.
        """
        if self._pid != os.getpid():
            self._forget()
        answer: Future[T] = Future()
        threading.Thread(target=self._answer, args=(ask, answer), name="cluster", daemon=True).start()
        try:
            return answer.result(self.timeout)
        except TimeoutError as error:
            answer.cancel()
            raise redis.TimeoutError("not every node has answered in time") from error

    def _answer(self, ask: Callable[[RedisCluster], T], answer: "Future[T]") -> None:
        with suppress(InvalidStateError):  # the caller has given up
            try:
                try:
                    answer.set_result(ask(self._connected()))
                except redis.AuthenticationError:
                    raise
                except OUTAGES:
                    self._look()  # another node may have the slots now
                    if not answer.cancelled():
                        answer.set_result(ask(self._connected()))
            except OUTAGES as error:
                is_known = isinstance(error, redis.AuthenticationError)
                answer.set_exception(error if is_known else redis.ConnectionError(str(error)))
            except Exception as error:  # noqa: BLE001 (the caller raises it)
                answer.set_exception(error)

    def _look(self) -> None:
        if self._cluster is not None:
            with suppress(*OUTAGES):
                self._cluster.nodes_manager.initialize()

    def ask(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Replies to commands of one key each, with errors in their places."""
        return self._within(lambda cluster: Pipeline(cluster).run(commands))

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command to its key's node, or to all."""
        return self._within(lambda cluster: cluster.execute_command(*args, **options))  # type: ignore[no-untyped-call]

    def owner_url(self, key: str) -> str:
        """The address of a key's primary. Raises redis.ConnectionError."""

        def owner(cluster: RedisCluster) -> ClusterNode:
            cluster.nodes_manager.initialize()
            node: ClusterNode = cluster.get_node_from_key(key)  # type: ignore[no-untyped-call]
            return node

        node = self._within(owner)
        return self.address.url_of(node.host, node.port)

    def close(self) -> None:
        """Close the connections. The client stays usable."""
        if self._cluster is not None:
            self._cluster.close()


class Trips(redis.ConnectionPool):
    """Takes the place of a connection pool: hands out trips to the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(protocol=2)
        self._ask = partial(Cluster.ask, cluster)

    def get_connection(self, command_name: str | None = None, *keys: Any, **options: Any) -> Any:
        """A new trip."""
        return Trip(self._ask)

    def release(self, connection: Any) -> None:
        """Do nothing: a trip has nothing to give back."""


class Trip:
    """Takes the place of a connection: sends at once, and holds the replies."""

    def __init__(self, ask: Callable[[Sequence[Sequence[Any]]], list[Any]]) -> None:
        self._ask = ask
        self._replies: deque[Any] = deque()

    pack_command = HiredisRespSerializer().pack
    """Encodes a command as RESP."""

    def send_packed_command(self, packed: Sequence[bytes]) -> None:
        """Send RESP-encoded commands."""
        reader = hiredis.Reader()
        reader.feed(b"".join(packed))
        commands = []
        while (command := reader.gets()) is not False:
            commands.append([command[0].decode(), *command[1:]])
        self._replies += self._ask(commands)

    def read_response(self, timeout: float | None = None) -> Any:
        """The next reply. Raises an error reply."""
        reply = self._replies.popleft()
        if isinstance(reply, redis.RedisError):
            raise reply
        return reply

    def replies(self) -> Iterator[Any]:
        """The replies, including errors, without end."""
        while True:
            yield self._replies.popleft()

    def disconnect(self) -> None:
        """Discard unread replies."""
        self._replies.clear()
