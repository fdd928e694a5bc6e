"""Real PostgreSQL and Valkey in a temporary folder.

`-p tests.support.servers` loads it: pytest-django reads Django's settings very early, and they need the addresses. The
first process starts PostgreSQL, with a database for each pytest-xdist worker. Every process has its own feeds server,
broker and plays server, because tests flush, freeze and kill them.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import redis
from django.test.utils import override_settings
from redis.connection import AbstractConnection

from runtime.embedded import EmbeddedServer, Home, Postgres, Servers, Valkey, broker, feeds, plays, wait_for
from tests.support import pooler, rabbits
from tests.support.pooler import Pooler
from tests.support.rabbits import Rabbit

PATIENCE, HASTE = 4.0, 0.4
"""Pages' wait for Redis. The short one is for tests that freeze a server."""


class TestServers:
    """The kernel stops them if this process is killed."""

    __test__ = False  # the name looks like a test class

    def __init__(self, folder: Path) -> None:
        home = Home(folder)
        home.make()
        (folder / "static").mkdir()  # where `up` collects. WhiteNoise warns without it.
        self.folder = folder
        self.feeds: Valkey = feeds(home)
        self.plays: Valkey = plays(home, durable=False)
        self.broker: Valkey | Rabbit = Rabbit(home) if rabbits.IS_WANTED else broker(home, durable=False)
        self.postgres: Postgres | None = None
        environ = dict.fromkeys(("FEEDSITE_CACHE_URL", "FEEDSITE_BROKER_URL"), "")
        addresses = Servers(folder, environ)
        self.pooler: Pooler | None = None
        if "PYTEST_XDIST_WORKER" not in os.environ:
            self.postgres = Postgres(home, durable=False)
            os.environ["FEEDSITE_DATABASE_URL"] = addresses.database_url
            if pooler.IS_WANTED:
                self.pooler = Pooler(home, home.sockets)
                os.environ["FEEDSITE_DATABASE_URL"] = self.pooler.database_url
                os.environ["FEEDSITE_PREPARE"] = "0"
        os.environ["FEEDSITE_REDIS_URL"] = os.environ["FEEDSITE_CACHE_URL"] = addresses.redis_url
        os.environ["FEEDSITE_BROKER_URL"] = self.broker.url if isinstance(self.broker, Rabbit) else addresses.broker_url
        os.environ["FEEDSITE_PLAYED_URL"] = addresses.played_url
        os.environ["FEEDSITE_REDIS_TIMEOUT_SECONDS"] = os.environ["FEEDSITE_PLAYED_TIMEOUT_SECONDS"] = str(PATIENCE)
        os.environ["FEEDSITE_DATA_DIR"] = str(folder)
        os.environ["FEEDSITE_ENV_FILE"] = os.devnull

    def all(self) -> list[EmbeddedServer]:
        every = self.postgres, self.pooler, self.feeds, self.plays, self.broker
        return [each for each in every if each is not None]

    def start(self) -> None:
        for server in self.all():
            server.start()
        for server in self.all():
            assert wait_for(server.answers, 90), f"{server.name}: {server.last_words()}"

    def stop(self) -> None:
        for server in reversed(self.all()):
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


servers: TestServers


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    global servers
    servers = TestServers(Path(tempfile.mkdtemp(prefix="feedsite-test-")))
    servers.start()
    try:
        return (yield)
    except BaseException:
        servers.stop()
        raise


def pytest_unconfigure() -> None:
    servers.stop()


@contextmanager
def frozen(*some: EmbeddedServer) -> Iterator[None]:
    """They take connections and do not answer, as on a machine that swaps."""
    processes = [server.process for server in some if server.process is not None]
    assert len(processes) == len(some)
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        with hasty():
            yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


@contextmanager
def frozen_postgres(server: Postgres) -> Iterator[None]:
    assert server.process is not None
    own = server.process.pid
    # First, because it reaps processes that have just ended.
    os.kill(own, signal.SIGSTOP)
    processes = [own, *map(int, Path(f"/proc/{own}/task/{own}/children").read_text().split())]
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@contextmanager
def hasty() -> Iterator[None]:
    """Open connections change too."""
    read = AbstractConnection.read_response

    def hastily(connection: AbstractConnection, *args: Any, **kwargs: Any) -> Any:
        haste = {"timeout": HASTE} if connection.socket_timeout == PATIENCE else {}
        return read(connection, *args, **haste | kwargs)

    with patch.object(AbstractConnection, "read_response", hastily), override_settings(PLAYED_TIMEOUT_SECONDS=HASTE):
        yield


@contextmanager
def dead(server: EmbeddedServer) -> Iterator[None]:
    """Afterwards feeds return empty, the others with their data."""
    server.kill()
    try:
        yield
    finally:
        restart(server)


@contextmanager
def full(server: Valkey) -> Iterator[None]:
    """Out of memory: it refuses writes, but reads and deletes."""
    client = redis.Redis(unix_socket_path=str(server.socket))
    before = client.config_get("maxmemory*")
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", 1)
    try:
        yield
    finally:
        client.config_set("maxmemory", before["maxmemory"])
        client.config_set("maxmemory-policy", before["maxmemory-policy"])


def restart(server: EmbeddedServer) -> None:
    """Kill -9 and start: feeds come back empty."""
    server.kill()
    server.start()
    assert wait_for(server.answers, 90), server.last_words()
