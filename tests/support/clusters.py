import gc
import logging
import random
import shutil
import signal
import socket
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import redis
from django.conf import settings
from redis.crc import key_slot

from runtime.embedded import Home, Valkey, wait_for
from storage import connections
from storage.cluster import Cluster
from tests.support.servers import HASTE

logger = logging.getLogger(__name__)

SLOTS = 16384
PATIENT = 60_000
"""Milliseconds of silence before failover."""


class Line(NamedTuple):
    """A node in another node's view."""

    port: int
    epoch: int
    link: str
    slots: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Moving slots, in brackets there, are left out."""
        _, address, _, _, _, _, epoch, link, *slots = text.split()
        port = address.split("@")[0].rpartition(":")[2]
        return cls(int(port), int(epoch), link, tuple(part for part in slots if not part.startswith("[")))


class ValkeyCluster:
    """`replicas` for each of the `primaries`."""

    def __init__(self, primaries: int = 3, replicas: int = 0) -> None:
        self.primaries, self.replicas = primaries, replicas
        self._build()

    def _build(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="feedsite-cluster-"))
        self.home = Home(self.folder)
        self.home.make()
        self.places: dict[Valkey, int] = {}
        self._clients: dict[Valkey, Any] = {}
        self._moving: tuple[int, Valkey, Valkey] | None = None
        for number in range(self.primaries * (1 + self.replicas)):
            self._start(f"node{number}")
        self.nodes = list(self.places)
        self._join()

    def _start(self, name: str) -> None:
        for _ in range(20):
            port, bus = free_ports()
            options = {
                "bind": "127.0.0.1",
                "port": str(port),
                "cluster-port": str(bus),
                "cluster-enabled": "yes",
                "cluster-node-timeout": str(PATIENT),
                "cluster-require-full-coverage": "no",
                "cluster-replica-validity-factor": "0",
                "cluster-allow-replica-migration": "no",
                "repl-diskless-sync-delay": "0",
                "save": "",
                "maxmemory": "64mb",
                "maxmemory-policy": "allkeys-lru",
                "zset-max-listpack-entries": "512",
            }
            server = Valkey(self.home, name, options)
            server.start()
            if wait_for(lambda server=server: server.answers() or server.has_ended(), 30) and not server.has_ended():  # type: ignore[misc]
                self.places[server] = port
                return
            server.stop()  # another process took the port
        raise AssertionError("a node does not start")

    def _join(self) -> None:
        primaries, others = self.nodes[: self.primaries], self.nodes[self.primaries :]
        share = SLOTS // self.primaries
        for number, node in enumerate(primaries):
            last = SLOTS - 1 if node is primaries[-1] else share * (number + 1) - 1
            self.ask(node, "CLUSTER", "ADDSLOTSRANGE", share * number, last)
        for number, node in enumerate(self.nodes):
            self.ask(node, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number:
                bus = self.at(self.nodes[0]).config_get("cluster-port")["cluster-port"]
                self.ask(node, "CLUSTER", "MEET", "127.0.0.1", self.places[self.nodes[0]], bus)
        self.wait(lambda: all(self.info(node)["cluster_known_nodes"] == str(len(self.nodes)) for node in self.nodes))
        for number, node in enumerate(others):
            self.ask(node, "CLUSTER", "REPLICATE", self.name(primaries[number // self.replicas]))
        self.settled()

    # --- Facts of the cluster ----------------------------------------------------------------------------
    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{self.places[node]}" for node in self.nodes[: self.primaries])

    @contextmanager
    def client(self, timeout: float = 5.0) -> Iterator[Cluster]:
        client = connections.client_of(self.url, timeout)
        assert isinstance(client, Cluster)
        yield client
        client.close()

    def at(self, node: Valkey) -> Any:
        if node not in self._clients:
            path = str(node.socket)
            self._clients[node] = redis.Redis(
                unix_socket_path=path, protocol=2, decode_responses=True, socket_timeout=10
            )
        return self._clients[node]

    def ask(self, node: Valkey, *command: Any) -> Any:
        return self.at(node).execute_command(*command)

    def info(self, node: Valkey) -> dict[str, str]:
        said = self.ask(node, "CLUSTER", "INFO")
        return said if isinstance(said, dict) else dict(line.split(":", 1) for line in said.split())

    def name(self, node: Valkey) -> str:
        return str(self.ask(node, "CLUSTER", "MYID"))

    def primary_of(self, key: str) -> Valkey:
        """The primary, according to the answering nodes."""
        slot, by_port = key_slot(key.encode()), {port: node for node, port in self.places.items()}
        for first, last, primary, *_ in self.slots():
            if int(first) <= slot <= int(last):
                return by_port[int(primary[1])]
        raise AssertionError(f"nobody has {key}")

    def slots(self) -> list[Any]:
        return list(self.ask(next(node for node in self.nodes if not node.has_ended()), "CLUSTER", "SLOTS"))

    def replica_of(self, node: Valkey) -> Valkey:
        name = self.name(node)
        lines = self.ask(node, "CLUSTER", "REPLICAS", name)
        ports = [int(str(line).split()[1].split("@")[0].rpartition(":")[2]) for line in lines]
        return next(other for other, port in self.places.items() if port == ports[0])

    def is_primary(self, node: Valkey) -> bool:
        return bool(self.at(node).info("replication")["role"] == "master")

    def in_sync(self, node: Valkey) -> bool:
        facts = self.at(node).info("replication")
        return facts["role"] == "master" or facts["master_link_status"] == "up"

    # --- Changes of the cluster ----------------------------------------------------------------------------
    def wait(self, condition: Any) -> None:
        if not wait_for(condition, 60):
            raise AssertionError("the cluster does not come to rest; its nodes say:\n" + self.views())

    def views(self) -> str:
        """Addresses, flags, epochs and slots according to each answering node."""
        said = []
        for node in self.nodes:
            try:
                said.append(f"{self.places[node]}:\n{self.ask(node, 'CLUSTER', 'NODES')}")
            except redis.RedisError as error:
                said.append(f"{self.places[node]}: {error}")
        return "\n".join(said)

    def settled(self) -> None:
        """Wait until all nodes run and agree on each slot's owner."""

        def is_well(node: Valkey) -> bool:
            said = self.info(node)
            if (said["cluster_state"], said["cluster_slots_ok"]) != ("ok", str(SLOTS)) or not self.in_sync(node):
                return False
            return {line.link for line in self.lines(node)} == {"connected"}

        self.wait(lambda: all(is_well(node) for node in self.nodes) and self.is_agreed())

    def is_agreed(self) -> bool:
        """Whether nodes agree on each slot's primary and epoch."""
        return len({self.owners(node) for node in self.nodes if not node.has_ended()}) == 1

    def owners(self, node: Valkey) -> frozenset[tuple[int, int, tuple[str, ...]]]:
        """Ports, epochs and slot ranges according to the node."""
        return frozenset((line.port, line.epoch, line.slots) for line in self.lines(node) if line.slots)

    def lines(self, node: Valkey) -> list[Line]:
        return [Line.of(text) for text in self.ask(node, "CLUSTER", "NODES").splitlines()]

    def patience(self, milliseconds: int) -> None:
        """How long a node may be silent before failover."""
        for node in self.nodes:
            self.ask(node, "CONFIG", "SET", "cluster-node-timeout", milliseconds)

    def take_over(self, replica: Valkey) -> None:
        """Promote it as it is. The old primary becomes its replica."""
        former = self.primary_of_replica(replica)
        self.ask(replica, "CLUSTER", "FAILOVER", "TAKEOVER")
        self.ask(replica, "CONFIG", "SET", "primaryauth", "")
        self.wait(lambda: self.is_primary(replica) and not self.is_primary(former))
        # Else a client that asks another node still hears of the old one.
        self.wait(lambda: all(self.knows(node, replica) for node in self.nodes if not node.has_ended()))

    def knows(self, node: Valkey, primary: Valkey) -> bool:
        """Whether the node knows the other's slots."""
        return self.places[primary] in {port for port, _, _ in self.owners(node)}

    def cut_off(self, replica: Valkey) -> None:
        """It misses all writes until `take_over`."""
        self.ask(replica, "CONFIG", "SET", "primaryauth", "wrong")
        self.ask(self.primary_of_replica(replica), "CLIENT", "KILL", "TYPE", "replica")
        self.wait(lambda: not self.in_sync(replica))

    def primary_of_replica(self, replica: Valkey) -> Valkey:
        port = self.at(replica).info("replication")["master_port"]
        return next(node for node, its in self.places.items() if its == port)

    def begin_move(self, slot: int, source: Valkey, target: Valkey) -> None:
        self._moving = (slot, source, target)
        self.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.name(source))
        self.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.name(target))

    def move_keys(self, slot: int, source: Valkey, target: Valkey) -> None:
        while keys := self.ask(source, "CLUSTER", "GETKEYSINSLOT", slot, 100):
            self.ask(source, "MIGRATE", "127.0.0.1", self.places[target], "", 0, 5000, "KEYS", *keys)

    def end_move(self, slot: int, source: Valkey, target: Valkey) -> None:
        """Wait until all nodes know the new epoch: a slot that soon moves back may keep two owners."""
        others = [node for node in self.nodes if node not in (source, target) and self.is_primary(node)]
        for node in (target, source, *others):
            self.ask(node, "CLUSTER", "SETSLOT", slot, "NODE", self.name(target))
        self._moving = None
        self.wait(self.is_agreed)

    def move(self, slot: int, source: Valkey, target: Valkey) -> None:
        """Move a slot as `valkey-cli --cluster reshard` does."""
        self.begin_move(slot, source, target)
        self.move_keys(slot, source, target)
        self.end_move(slot, source, target)

    def mend(self) -> None:
        """Nodes that do not settle are replaced."""
        try:
            self._mend()
        except (AssertionError, redis.RedisError):
            logger.exception("the tests that follow get a new cluster")
            self.stop()
            self._build()

    def _mend(self) -> None:
        for node in self.nodes:
            if node.has_ended():
                node.start()
        self.wait(lambda: all(node.answers() for node in self.nodes))
        self.patience(PATIENT)
        if self._moving:
            self.move_keys(*self._moving)
            self.end_move(*self._moving)
        for node in self.nodes:
            self.ask(node, "CONFIG", "SET", "primaryauth", "")
        self.settled()

    def stop(self) -> None:
        for client in self._clients.values():
            client.close()
        for node in self.nodes:
            if node.process is not None:
                node.process.send_signal(signal.SIGCONT)
                node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_ports() -> tuple[int, int]:
    """One for clients and one for nodes, below the kernel's ephemeral ports."""
    while True:
        ports = random.sample(range(15_000, 32_000), 2)
        with ExitStack() as stack:
            try:
                for port in ports:
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return ports[0], ports[1]


@contextmanager
def feeds_on(cluster: ValkeyCluster) -> Iterator[None]:
    """Pages wait briefly, because nodes come and go."""
    before = settings.REDIS_URL, settings.REDIS_TIMEOUT_SECONDS
    settings.REDIS_URL, settings.REDIS_TIMEOUT_SECONDS = cluster.url, HASTE
    forget_clients()
    try:
        yield
    finally:
        settings.REDIS_URL, settings.REDIS_TIMEOUT_SECONDS = before
        forget_clients()


def forget_clients() -> None:
    for client in (connections.feeds, connections.feeds_for_tasks):
        if client.cache_info().currsize:
            client().close()
        client.cache_clear()
    connections.feeds_breaker.reset()
    # redis-py leaves the connections of a node that went away to the garbage collector.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
