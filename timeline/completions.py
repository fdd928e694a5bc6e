"""Detects whether a delivery was completed while a page was being read, so that a page can read its windows first.

A trigger (timeline/sql/completions.sql) draws a number when a delivery is completed or a demotion ends. If it differs
from the last one that the connection saw, the page reads the windows again.

The memory belongs to one PostgreSQL session, because the sequence may go back after a crash or failover. Behind a
pooler nothing is remembered.

See docs/decisions.md: Windows first, then one statement.
"""

from typing import Any
from weakref import WeakKeyDictionary

from django.db import connection

LAST = "(SELECT last_value FROM timeline_completions), pg_backend_pid()"
"""Two columns: the last number drawn, and the process that runs the statement."""

_seen: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def may_have_completed(last: int, process: int) -> bool:
    """Whether a delivery may have been completed since the last call. Takes the columns of `LAST`."""
    session = connection.connection
    before = _seen.get(session)
    if session.info.backend_pid != process:
        return True
    _seen[session] = last
    return before != last
