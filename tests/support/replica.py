import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import psycopg
from django.db import connections

from feedsite.settings import replica_database
from runtime.embedded import Home, Postgres, ServerError, wait_for
from storage import replica
from storage.connections import fetch
from storage.postgresql.base import breaker_of


def sockets_of_primary() -> str:
    """The sockets of the tests' first process."""
    return unquote(os.environ["FEEDSITE_DATABASE_URL"].partition("host=")[2])


def flushed() -> str:
    """The tests' primary does not flush on commit. Returns its position."""
    ((position,),) = fetch("SELECT pg_logical_emit_message(false, 'test', '', true)::text")
    return str(position)


class Replica(Postgres):
    """Streams all changes of every database."""

    settings: ClassVar[dict[str, str]] = Postgres.settings | {"shared_buffers": "64MB"}

    def __init__(self, folder: Path) -> None:
        home = Home(folder)
        home.make()
        super().__init__(home, durable=False)

    def initialise(self) -> None:
        draft = self.data.with_name("postgres.new")
        copy = ["--host", sockets_of_primary(), "--username", "feedsite", "--pgdata", str(draft)]
        with psycopg.connect(host=sockets_of_primary(), user="feedsite", dbname="feedsite", autocommit=True) as primary:
            primary.execute("ALTER SYSTEM SET wal_keep_size = '1GB'")  # all tests write while it is copied
            primary.execute("SELECT pg_reload_conf()")
        for is_last in (False, False, True):  # other tests create and drop databases
            try:
                self.run("pg_basebackup", *copy, "--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
                break
            except ServerError:
                if is_last:
                    raise
                shutil.rmtree(draft, ignore_errors=True)
        draft.rename(self.data)

    def run_sql(self, statement: str) -> Any:
        with psycopg.connect(host=str(self.home.sockets), user="feedsite", dbname="feedsite", autocommit=True) as own:
            cursor = own.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return row and row[0]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It receives the log but does not replay it."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def pause(self) -> None:
        self.run_sql("SELECT pg_wal_replay_pause()")
        assert wait_for(lambda: self.run_sql("SELECT pg_get_wal_replay_pause_state()") == "paused", 60)

    def resume(self) -> None:
        self.run_sql("SELECT pg_wal_replay_resume()")

    def catch_up(self) -> None:
        behind = f"SELECT pg_last_wal_replay_lsn() < '{flushed()}'"
        assert wait_for(lambda: not self.run_sql(behind), 60)

    def cut_off(self) -> None:
        self.run_sql("ALTER SYSTEM SET primary_conninfo = ''")
        self.run_sql("SELECT pg_reload_conf()")
        assert wait_for(lambda: self.run_sql("SELECT count(*) FROM pg_stat_wal_receiver") == 0, 60)

    def promote(self) -> None:
        assert self.run_sql("SELECT pg_promote(true, 60)")


@contextmanager
def failed_over(server: Replica) -> Iterator[None]:
    """The server is this process's primary."""
    primary = connections["default"]
    before = {name: primary.settings_dict[name] for name in ("HOST", "PORT")}
    try:
        primary.close()
        primary.settings_dict |= {"HOST": str(server.home.sockets), "PORT": ""}
        yield
    finally:
        primary.close()
        primary.settings_dict |= before


@contextmanager
def in_use(host: str) -> Iterator[None]:
    """The server is this process's replica, with enough time for a busy machine."""
    primary: dict[str, Any] = dict(connections["default"].settings_dict)
    given = primary | {"HOST": host, "PORT": "", "OPTIONS": {}}
    connections.settings[replica.REPLICA] = replica_database(primary, given)
    try:
        yield
    finally:
        breaker_of(replica.REPLICA).reset()
        connections[replica.REPLICA].close()
        del connections[replica.REPLICA]
        del connections.settings[replica.REPLICA]
