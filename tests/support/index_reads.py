"""Sweeps must not re-read what they have removed."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection

from storage.connections import fetch

READ = "SELECT pg_stat_get_tuples_returned(%s::regclass::oid)"


@contextmanager
def old_snapshot() -> Iterator[None]:
    """A transaction that holds back vacuum, as a backup does."""
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT count(*) FROM pg_class")
        yield
        other.rollback()


def entries_read(index: str) -> int:
    """Dead entries count too."""
    fetch("SELECT pg_stat_force_next_flush()")
    fetch("SELECT pg_stat_clear_snapshot()")
    return int(fetch(READ, [index])[0][0])
