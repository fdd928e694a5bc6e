"""Completions: whether a delivery was completed between two moments, so that windows that were read first can be judged
by a statement that runs after them.

A page reads its windows, then asks one statement for the deliveries that are pending and for the items. An item that
was published before the statement is pending, or its delivery was completed before. Completing draws a number from the
sequence `timeline_completions`, after every window was filled: by a trigger (timeline/sql/completions.sql), so that
workers of another version draw too. A connection remembers the number that its last statement saw. Where the statement
that follows the windows sees the same number, each delivery that it finds completed was completed before the windows
were read, which therefore hold the item. Where the number has moved, the windows are read once more: after the
statement, as they must.

The end of a demotion draws too: the inboxes that it filled stand for an outbox from then on.

The memory belongs to one session of PostgreSQL. After a crash, a restore or a failover the sequence may be behind what
was seen, but no session lives on. A pooler that gives a session to several clients lets the connection outlive it;
there the process that serves the statement is not the one that the connection began with, and nothing is remembered.

See docs/decisions.md: Windows first, then one statement.
"""

from typing import Any
from weakref import WeakKeyDictionary

from django.db import connection

LAST = "(SELECT last_value FROM timeline_completions), pg_backend_pid()"
"""Two columns of a statement: the number drawn last, and the process that serves the statement."""

_seen: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def have_moved(last: int, process: int) -> bool:
    """Whether a delivery may have been completed since this thread's connection asked before; it remembers `last`, of
    the columns `LAST`, for the next time.
    """
    session = connection.connection
    before = _seen.get(session)
    if session.info.backend_pid != process:
        return True
    _seen[session] = last
    return before != last
