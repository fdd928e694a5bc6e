"""Detects whether a delivery was completed while a page was being read, so that a page can read its windows first.

A page first reads its windows. Then one statement reads pending deliveries and items. An item published before the
statement is either pending, or its delivery was completed before. A trigger (timeline/sql/completions.sql) draws a
number from the sequence `timeline_completions` on each completion, after all windows are filled. A trigger also covers
workers of another version. Each connection remembers the number that its last statement saw:

- Same number: every completed delivery was completed before the windows were read, so they hold the item.
- Another number: the page reads the windows again, after the statement.

The end of a demotion draws too, because the inboxes that it filled replace an outbox from then on.

The memory belongs to one PostgreSQL session. After a crash, restore or failover the sequence may go back, but then all
sessions are gone. Behind a pooler the connection outlives the session. There the backend's process id differs from the
connection's, and nothing is remembered.

See docs/decisions.md: Windows first, then one statement.
"""

from typing import Any
from weakref import WeakKeyDictionary

from django.db import connection

LAST = "(SELECT last_value FROM timeline_completions), pg_backend_pid()"
"""Two columns: the last number drawn, and the process that runs the statement."""

_seen: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def have_moved(last: int, process: int) -> bool:
    """Whether a delivery may have been completed since this thread's connection last asked.

    `last` and `process` are the columns of `LAST`. Remembers `last` for the next call.
    """
    session = connection.connection
    before = _seen.get(session)
    if session.info.backend_pid != process:
        return True
    _seen[session] = last
    return before != last
