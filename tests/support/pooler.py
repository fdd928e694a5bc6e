"""PgBouncer before the tests' PostgreSQL: `TEST_POOLER=1` (CONTRIBUTING.md)."""

import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.test.utils import override_settings

from runtime.embedded import NAMESPACE, EmbeddedServer, Home, socket_reply

IS_WANTED = os.environ.get("TEST_POOLER") == "1"
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SHIPPED = Path(__file__).parents[2] / "deploy" / "pgbouncer.ini"


class Pooler(EmbeddedServer):
    """deploy/pgbouncer.ini with the tests' paths, for all databases on these sockets. It lends `sessions` per
    database.
    """

    stop_signal = signal.SIGINT

    def __init__(self, home: Home, behind: Path, sessions: int = 20) -> None:
        super().__init__(home, "pooler")
        self.behind = behind
        self.sessions = sessions
        self.folder = home.data_dir / "pooler"

    @property
    def socket(self) -> Path:
        return self.home.sockets / ".s.PGSQL.6432"

    @property
    def database_url(self) -> str:
        return f"postgresql://feedsite@:6432/feedsite?host={quote(str(self.home.sockets), safe='')}"

    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "users").write_text('"feedsite" ""\n')
        said = ConfigParser(interpolation=None)
        said.read(SHIPPED)
        said["databases"] = {"*": f"host={self.behind} port=5432"}
        said["pgbouncer"].update(
            {
                "listen_addr": "",
                "unix_socket_dir": str(self.home.sockets),
                "unix_socket_mode": "0777",
                "auth_type": "trust",
                "auth_file": str(self.folder / "users"),
                "default_pool_size": str(self.sessions),
                "max_client_conn": "2000",
                "query_wait_timeout": "120",
                "server_idle_timeout": "5",  # a database with an open session cannot be copied
            }
        )
        with (self.folder / "pgbouncer.ini").open("w") as file:
            said.write(file)

    def command(self) -> Sequence[str]:
        assert PROGRAM, "PgBouncer is not installed"
        prefix = NAMESPACE if os.geteuid() == 0 else ()
        return [*prefix, PROGRAM, "--quiet", str(self.folder / "pgbouncer.ini")]

    def answers(self) -> bool:
        body = b"\0\3\0\0user\0feedsite\0database\0feedsite\0\0"
        return socket_reply(self.socket, (len(body) + 4).to_bytes(4) + body, b"X\0\0\0\4").startswith(b"R")


@contextmanager
def past(connection: Any) -> Iterator[None]:
    """Bypass it to create and migrate databases."""
    places: dict[str, Any] = connection.settings_dict
    before = places["PORT"]
    connection.close()
    places["PORT"] = ""
    try:
        with override_settings(POOLED=False):
            yield
    finally:
        connection.close()
        places["PORT"] = before
