"""Statements sent by the ORM and by storage.connections.fetch."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg
from django.conf import settings

from storage.connections import numbered

FOLDER = settings.BASE_DIR / "tests" / "statements"
"""Long statements, written by tests/architecture/test_statements.py."""
MOST = 40
"""Lines of a statement that needs no file."""


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
    lines = numbered(statement)[0].decode().splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines if line.strip())


def long_ones(executed: Iterable[str]) -> list[str]:
    """Long statements as sent, each once."""
    return [text for text in dict.fromkeys(map(as_sent, executed)) if text.count("\n") > MOST]


def without_file(executed: Iterable[str]) -> list[str]:
    """Ids in a statement do not count."""
    kept = {re.sub(r"\d+", "0", path.read_text()) for path in FOLDER.glob("*.sql")}
    return [text for text in long_ones(executed) if re.sub(r"\d+", "0", text) not in kept]
