"""A Redis Cluster as one client: commands go to the nodes that have their keys, in one round trip for all nodes.

Every command has one key (DESIGN: every script and command touches one slot). `Cluster.ask` writes to all nodes first
and reads then, so that a page waits for the slowest node and not for their sum, and puts the replies back in the order
of the commands. Only primaries are asked: a replica may lack what was acknowledged.

The map of slots is asked for once (CLUSTER SLOTS), and again beside the callers when a node does not answer or says
that a slot is elsewhere. A command that a node refuses with MOVED or ASK was not run. It goes to the node that the
refusal names, in the given order. A node that fails to answer is left alone for a second (Breaker): its commands fail
at once with `NodeDownError`, those of other nodes do not.

See docs/decisions.md: Code written by hand, and why it stays.
See docs/decisions.md: A cluster client of our own.
"""

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import AskError, ClusterDownError, MovedError, NoScriptError, TryAgainError
from redis.retry import Retry

from runtime.cluster_address import ClusterAddress
from storage.breaker import Breaker

Command = tuple[Any, ...]
Place = tuple[str, int]

ROUNDS = 6
"""Times that a command is sent at most: slots that move, and scripts that a node does not know."""
LEAST_SHARE = 0.25
"""The share of the time-out that one wait has at least: a node that is asked late, after others took their time."""
LOOK_AGAIN_SECONDS = 0.25
"""Seconds from one look at the cluster to the next, while a node that has slots does not answer."""
LOOKS = 240
"""Looks at the cluster until a node that does not answer is asked again."""
KEPT_CONNECTIONS = 32
"""Connections to a node that wait for the next caller."""
WITHOUT_KEY = frozenset({"CLUSTER", "COMMAND", "CONFIG", "INFO", "TIME"})
"""Any node answers these."""
ASKING = b"*1\r\n$6\r\nASKING\r\n"
TO_ALL = frozenset({"FLUSHALL", "FLUSHDB", "PING", "SCRIPT LOAD"})
"""Every primary is told these, by `Cluster.execute_command` only."""


class NodeDownError(redis.ConnectionError):
    """A node does not answer, or has no slot to answer for at the moment; the others may."""


class Node:
    """The connections to one server of the cluster."""

    def __init__(self, place: Place, options: Mapping[str, Any]) -> None:
        self.place = place
        self.breaker = Breaker(name="feeds node")
        self._options = dict(options)
        self._kind = self._options.pop("connection_class", redis.Connection)
        self._free: list[Any] = []

    def __repr__(self) -> str:
        return f"{self.place[0]}:{self.place[1]}"

    def connection(self) -> Any:
        """A new one, which is not connected yet."""
        return self._kind(host=self.place[0], port=self.place[1], **self._options)

    def take(self, timeout: float) -> Any:
        """A connection whose every wait ends after `timeout` seconds. Raises what redis-py raises."""
        while self._free:
            try:
                connection = self._free.pop()
            except IndexError:  # another thread was faster
                break
            try:
                # Unexpected bytes, or the end: the server was restarted, or has dropped the connection.
                if not connection.can_read():
                    connection._get_socket().settimeout(timeout)
                    return connection
            except (redis.RedisError, OSError):
                pass
            connection.disconnect()
        connection = self.connection()
        connection.socket_timeout = connection.socket_connect_timeout = timeout
        connection.connect()
        return connection

    def give(self, connection: Any) -> None:
        """Take back a connection that owes no reply."""
        if len(self._free) < KEPT_CONNECTIONS:
            self._free.append(connection)
        else:
            connection.disconnect()


class Call(NamedTuple):
    """A command on its way: its place among the replies, packed, its slot (none: any node), and the node that is to
    answer it.
    """

    position: int
    packed: bytes
    slot: int | None
    asked: Node | None = None
    """The node that ASK named: only for this once, and it must be told so."""


class Cluster(redis.Redis):
    """The client of a cluster; it may be shared by threads and kept across forks.

    redis-py's own methods work for commands of one key, and for `TO_ALL` and `WITHOUT_KEY`; not its pipelines, scans
    and transactions. `scripts` are the sources by digest: what a node does not know of them is loaded there.
    """

    def __init__(self, address: ClusterAddress, timeout: float, scripts: Mapping[str, str]) -> None:
        options: dict[str, Any] = parse_url(address.url_of(*address.nodes[0]))  # type: ignore[no-untyped-call]
        for name in ("host", "port", "db"):
            options.pop(name, None)
        self._options = dict(options) | {
            "protocol": 2,
            "socket_timeout": timeout,
            "socket_connect_timeout": timeout,
            "retry": Retry(NoBackoff(), 0),
            "driver_info": None,  # a round trip less for each connection
        }
        super().__init__(connection_pool=redis.ConnectionPool(protocol=2))  # of no use but for redis-py's constructor
        self.address = address
        self.timeout = timeout
        self._scripts = scripts
        self._pack = Node(address.nodes[0], self._options).connection().pack_command
        self._begin()

    def _begin(self) -> None:
        """Know nothing: of the cluster, and of connections that another process holds."""
        self._pid = os.getpid()
        self._nodes: dict[Place, Node] = {}
        self._owners: list[Node | None] = []
        """By slot; empty until the cluster has said."""
        self._looking = threading.Lock()
        self._looker: threading.Thread | None = None

    # --- Asking ------------------------------------------------------------------------------------------
    def ask(self, commands: Iterable[Command | bytes]) -> list[Any]:
        """The replies in the order of the commands; the error of a node to a command stands in its place.

        A command may be RESP already; its first argument is its key then. All waiting together is no longer than the
        time-out where a node is dead or frozen. Raises NodeDownError, or redis.ConnectionError where no node answers;
        it is not known then what of the commands was done. Where a node lacks a script, everything that it was to do
        is sent to it again.
        """
        until = time.monotonic() + self.timeout
        self._look_at_once(until)
        waiting = [self._call(position, command) for position, command in enumerate(commands)]
        replies: list[Any] = [None] * len(waiting)
        loaded: set[Node] = set()
        for _ in range(ROUNDS):
            waiting = self._round(waiting, replies, loaded, until)
            if not waiting:
                return replies
            if time.monotonic() > until:
                break
        raise NodeDownError("not every node has answered in time, or slots move faster than they can be found")

    def _call(self, position: int, command: Command | bytes) -> Call:
        if isinstance(command, bytes):
            return Call(position, command, key_slot(command.split(b"\r\n", 5)[4]))
        packed = b"".join(self._pack(*command))
        name = command[0]
        if name in WITHOUT_KEY:
            return Call(position, packed, None)
        key = command[3 if name in ("EVALSHA", "EVAL") else 1]
        return Call(position, packed, key_slot(key if isinstance(key, bytes) else str(key).encode()))

    def _round(self, calls: Sequence[Call], replies: list[Any], loaded: set[Node], until: float) -> list[Call]:
        """Send every call once; those that must be sent again, in their order."""
        by_node: dict[Node, list[Call]] = defaultdict(list)
        for call in calls:
            by_node[call.asked or self._owner(call.slot)].append(call)
        again: dict[int, Call] = {}
        with self._connections(by_node, until) as connections:
            for node, mine in by_node.items():
                sent = [ASKING + call.packed if call.asked else call.packed for call in mine]
                connections[node].send_packed_command([b"".join(sent)])
            for node, mine in by_node.items():
                connection = connections[node]
                connection._get_socket().settimeout(self._left(until))
                lacks_script = False
                for call in mine:
                    if call.asked:
                        connection.read_response()
                    reply = _reply(connection)
                    if isinstance(reply, AskError):  # or MovedError, which is one
                        again[call.position] = self._elsewhere(call, reply, node)
                    elif isinstance(reply, TryAgainError):
                        again[call.position] = call
                    else:
                        replies[call.position] = reply
                        lacks_script |= isinstance(reply, NoScriptError)
                if lacks_script and node not in loaded:
                    loaded.add(node)
                    self._load(connection)
                    again = {call.position: call for call in mine} | again
        return [again[position] for position in sorted(again)]

    def _elsewhere(self, call: Call, reply: AskError, said_by: Node) -> Call:
        """The call, for where a node said that its key is."""
        place = self._node((reply.host or said_by.place[0], reply.port))
        if not isinstance(reply, MovedError):
            return call._replace(asked=place)
        self._owners[reply.slot_id] = place
        self._look_soon()
        return call._replace(asked=None)

    def _load(self, connection: Any) -> None:
        commands = [b"".join(self._pack("SCRIPT", "LOAD", source)) for source in self._scripts.values()]
        connection.send_packed_command([b"".join(commands)])
        for _ in commands:
            connection.read_response()

    @contextmanager
    def lanes(self, keys: Sequence[bytes]) -> Iterator[list[Any]]:
        """For each key a connection to the node that has it, for RESP by hand; keys of one node share it.

        A command that a node answers with MOVED or ASK is the caller's to send again, by `ask`.
        """
        self._look_at_once(time.monotonic() + self.timeout)
        nodes = [self._owner(key_slot(key)) for key in keys]
        with self._connections(dict.fromkeys(nodes), time.monotonic() + self.timeout) as connections:
            for connection in connections.values():
                connection._get_socket().settimeout(self.timeout)
            yield [connections[node] for node in nodes]

    @contextmanager
    def _connections(self, nodes: Iterable[Node], until: float) -> Iterator[dict[Node, Any]]:
        """A connection to each node. After an error replies may still be under way on all of them, so all are closed.

        Raises NodeDownError for a node that fails, and for one that failed a moment ago.
        """
        taken: dict[Node, Any] = {}
        try:
            for node in nodes:
                if node.breaker.is_open:
                    raise NodeDownError(f"{node} failed a moment ago")
                try:
                    taken[node] = node.take(self._left(until))
                except (redis.ConnectionError, redis.TimeoutError, OSError):
                    self._failed(node)
                    raise
            yield taken
        except (redis.ConnectionError, redis.TimeoutError, OSError, ClusterDownError) as error:
            for node, connection in taken.items():
                if not connection.is_connected:  # redis-py closes the one that it fails on
                    self._failed(node)
            self._look_soon()
            _close(taken)
            if isinstance(error, NodeDownError | redis.AuthenticationError):
                raise
            raise NodeDownError(str(error)) from error
        except BaseException:
            _close(taken)
            raise
        for node, connection in taken.items():
            node.give(connection)

    def _failed(self, node: Node) -> None:
        node.breaker.trip()
        self._look_soon()

    def _left(self, until: float) -> float:
        return max(until - time.monotonic(), LEAST_SHARE * self.timeout)

    # --- Slots ---------------------------------------------------------------------------------------------
    def _owner(self, slot: int | None) -> Node:
        if slot is None:
            there = [node for node in self.primaries() if not node.breaker.is_open]
            if there:
                return there[0]
        elif (owner := self._owners[slot]) is not None:
            return owner
        self._look_soon()
        raise NodeDownError("no node answers for it" if slot is None else f"no node has slot {slot}")

    def _node(self, place: Place) -> Node:
        return self._nodes.setdefault(place, Node(place, self._options))

    def primaries(self) -> list[Node]:
        """The nodes that have slots, as far as is known."""
        self._look_at_once(time.monotonic() + self.timeout)
        return sorted({node for node in self._owners if node}, key=lambda node: node.place)

    def owner_url(self, key: str) -> str:
        """The address of the primary that has a key, as the cluster says now. Raises redis.ConnectionError."""
        self._look(time.monotonic() + self.timeout)
        return self.address.url_of(*self._owner(key_slot(key.encode())).place)

    def _look_at_once(self, until: float) -> None:
        """Find out who has what, if that is not known at all."""
        if self._pid != os.getpid():
            self._begin()
        if not self._owners:
            self._look(until)

    def _look_soon(self) -> None:
        """Ask for the map of slots again, beside the callers, until the nodes that have slots answer."""
        if self._looker is None or not self._looker.is_alive():
            self._looker = threading.Thread(target=self._look_on, name="cluster", daemon=True)
            with suppress(RuntimeError):  # the interpreter is about to end
                self._looker.start()

    def _look_on(self) -> None:
        for _ in range(LOOKS):
            with suppress(redis.RedisError, OSError):
                self._look(time.monotonic() + self.timeout)
            if self._owners and not any(node.breaker.is_open for node in self.primaries()):
                return
            time.sleep(LOOK_AGAIN_SECONDS)

    def _look(self, until: float) -> None:
        """Ask a node who has what; the ones that failed last of all. Raises redis.ConnectionError."""
        if not self._looking.acquire(timeout=self._left(until)):
            raise redis.ConnectionError("the cluster does not say who has what")
        try:
            known = [self._node(place) for place in self.address.nodes] if not self._nodes else [*self._nodes.values()]
            seeds = [self._node(place) for place in self.address.nodes]
            random.shuffle(known)
            order = sorted(dict.fromkeys([*known, *seeds]), key=lambda node: node.breaker.is_open)
            said: Exception | None = None
            for node in order:
                if time.monotonic() > until:
                    break
                try:
                    connection = node.take(max(until - time.monotonic(), LEAST_SHARE * self.timeout) / 2)
                    try:
                        connection.send_packed_command([b"*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n"])
                        slots = connection.read_response()
                    except BaseException:
                        connection.disconnect()
                        raise
                except (redis.RedisError, OSError) as error:
                    said = error
                    continue
                node.give(connection)
                if slots:
                    self._owners = self._read(slots, node)
                    return
            raise redis.ConnectionError(f"no node of the cluster answers: {said}")
        finally:
            self._looking.release()

    def _read(self, slots: Sequence[Any], said_by: Node) -> list[Node | None]:
        """The reply of CLUSTER SLOTS: ranges of slots, with their primary first."""
        owners: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for first, last, primary, *_ in slots:
            host = primary[0].decode() if primary[0] else said_by.place[0]
            node = self._node((host, primary[1]))
            owners[first : last + 1] = [node] * (last + 1 - first)
        return owners

    # --- As redis-py's client ------------------------------------------------------------------------------
    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send one command to the node of its key, or to all nodes (`TO_ALL`). Raises the error that was replied."""
        name = str(args[0]).upper()
        if name in TO_ALL:
            reply = self._tell_all(args)
        else:
            (reply,) = self.ask([args])
            if isinstance(reply, redis.RedisError):
                raise reply
        parse = self.response_callbacks.get(name)  # type: ignore[no-untyped-call]
        options.pop("keys", None)
        return parse(reply, **options) if parse else reply

    def _tell_all(self, args: Command) -> Any:
        nodes = self.primaries()
        until = time.monotonic() + self.timeout
        with self._connections(nodes, until) as connections:
            for connection in connections.values():
                connection.send_command(*args)
            replies = [connection.read_response() for connection in connections.values()]
        return replies[0]

    def close(self) -> None:
        """Give the connections up; the client can go on."""
        for node in list(self._nodes.values()):
            while node._free:
                node._free.pop().disconnect()


def _reply(connection: Any) -> Any:
    """A reply, or the error that stands for it. Raises what says that the node cannot answer at all."""
    try:
        return connection.read_response()
    except ClusterDownError:
        raise
    except redis.ResponseError as error:
        return error


def _close(connections: Mapping[Node, Any]) -> None:
    for connection in connections.values():
        connection.disconnect()
