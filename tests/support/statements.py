"""Statements sent by the ORM and by storage.connections.fetch."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg

from storage.connections import number_parameters


@contextmanager
def statements() -> Iterator[list[str]]:
    """The list fills during the block."""
    seen: list[str] = []

    def noting(execute: Any) -> Any:
        def note(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(query.decode() if isinstance(query, bytes) else str(query))
            return execute(cursor, query, *args, **kwargs)

        return note

    with (
        patch.object(psycopg.Cursor, "execute", noting(psycopg.Cursor.execute)),
        patch.object(psycopg.ServerCursor, "execute", noting(psycopg.ServerCursor.execute)),
    ):
        yield seen


def as_sent(statement: str) -> str:
    """The statement without empty lines, with PostgreSQL's placeholders even if psycopg fills them in."""
    lines = number_parameters(statement)[0].decode().splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines if line.strip())
