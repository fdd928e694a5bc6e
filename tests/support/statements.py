"""Counts what PostgreSQL is asked, by the ORM and past it (storage.connections.fetch)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements of the block, as a list that fills."""
    seen: list[str] = []
    execute = psycopg.Cursor.execute

    def count(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(str(query))
        return execute(cursor, query, *args, **kwargs)

    with patch.object(psycopg.Cursor, "execute", count):
        yield seen
