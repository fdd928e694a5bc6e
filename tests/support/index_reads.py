"""How much of an index is read: for sweeps, which must not look again at what they have taken."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection

from storage.connections import fetch

READ = "SELECT pg_stat_get_tuples_returned(%s::regclass::oid)"


@contextmanager
def old_snapshot() -> Iterator[None]:
    """A transaction that keeps what is deleted meanwhile from being cleared, as a backup does."""
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT count(*) FROM pg_class")
        yield
        other.rollback()


def entries_read(index: str) -> int:
    """Entries of an index that its scans returned so far, dead ones too."""
    fetch("SELECT pg_stat_force_next_flush()")
    fetch("SELECT pg_stat_clear_snapshot()")
    return int(fetch(READ, [index])[0][0])
