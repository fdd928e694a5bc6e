"""RabbitMQ as the tests' broker: `TEST_BROKER=rabbitmq` (CONTRIBUTING.md)."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from amqp.exceptions import AMQPError
from kombu import Connection
from kombu.exceptions import KombuError

from runtime.embedded import EmbeddedServer, Home
from storage.queue import QUEUES

IS_WANTED = os.environ.get("TEST_BROKER") == "rabbitmq"
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Debian's. The one on the PATH switches to another user."""


class Rabbit(EmbeddedServer):
    """Logs to its output, and starts no other program."""

    stop_signal = signal.SIGTERM

    def __init__(self, home: Home) -> None:
        super().__init__(home, "rabbit")
        self.folder = home.data_dir / "rabbit"
        self.port, self.own_port = free_ports(2)

    @property
    def socket(self) -> Path:
        raise NotImplementedError("RabbitMQ listens to a port")

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")

    def environ(self) -> Sequence[str]:
        places: Mapping[str, object] = {
            "HOME": self.folder,  # of the Erlang cookie
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_CONFIG_FILE": self.folder / "rabbitmq",
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.folder / "plugins",
            "RABBITMQ_MNESIA_BASE": self.folder / "data",
            "RABBITMQ_LOGS": "-",
            "RUNNING_UNDER_SYSTEMD": "1",  # the script becomes the server instead of its parent
            "RABBITMQ_NODENAME": f"feedsite{self.port}@localhost",
            "RABBITMQ_DIST_PORT": self.own_port,
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"-start_epmd false -erl_epmd_port {self.own_port}",
            "RABBITMQ_CTL_ERL_ARGS": f"-dist_listen false -start_epmd false -erl_epmd_port {self.own_port}",
        }
        return [f"{name}={value}" for name, value in places.items()]

    def command(self) -> Sequence[str]:
        return ["env", *self.environ(), str(PROGRAM)]

    @contextmanager
    def full(self) -> Iterator[None]:
        """Its disk has less room than it asks for."""
        for_free = ["env", *self.environ(), str(PROGRAM.with_name("rabbitmqctl")), "set_disk_free_limit"]
        subprocess.run([*for_free, str(10**15)], check=True, capture_output=True)
        try:
            yield
        finally:
            subprocess.run([*for_free, str(10**7)], check=True, capture_output=True)

    def answers(self) -> bool:
        with suppress(KombuError, OSError), Connection(self.url, connect_timeout=0.5) as connection:
            connection.ensure_connection(max_retries=1, timeout=0.5)
            return True
        return False

    def empty(self) -> None:
        with suppress(KombuError, AMQPError, OSError), Connection(self.url, connect_timeout=1) as connection:
            for name in QUEUES:
                connection.channel().queue_purge(name)


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
