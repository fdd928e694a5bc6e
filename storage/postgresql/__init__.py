"""The primary, for programs that may wait for it briefly: web, stream and gRPC.

`bound` is called as such a program starts. Management commands and workers, which migrate and fill windows, wait for as
long as it takes. PostgreSQL ends a bounded statement after `FEEDSITE_DATABASE_TIMEOUT_SECONDS` seconds. A server
that is frozen, or lost on the way, ends none: the client gives up `GRACE_SECONDS` later and closes the connection. Then
one thread at a time tries a new connection, and the others get the error at once. Whatever the reason, the error is
django.db.OperationalError or InterfaceError (web.rest.OUTAGES).
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections

from storage.postgresql.base import GRACE_SECONDS, DatabaseWrapper, milliseconds

LONG_SECONDS = 60.0
"""Seconds that one statement of an export, of a page of the admin, or of the hub's question about a batch may take."""


def bound(seconds: float) -> None:
    """Bound each statement of this process, on the connections that it makes from now on."""
    DatabaseWrapper.seconds = seconds


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Bound each statement of this process within the block, on the connections that it makes there."""
    before = DatabaseWrapper.seconds
    bound(seconds)
    try:
        yield
    finally:
        bound(before)


def bound_thread_long() -> None:
    """Bound the statements of this thread by `LONG_SECONDS`, where the process has a bound; before it connects."""
    wrapper = _wrapper()
    if wrapper.seconds < math.inf:
        wrapper.seconds = LONG_SECONDS


@contextmanager
def long_statements() -> Iterator[None]:
    """Statements of this thread may take `LONG_SECONDS` each, where the process has a bound. Not inside a transaction.

    The bound is changed under the ordinary bound, so a server that does not answer is met before the long wait.
    """
    wrapper = _wrapper()
    if math.isinf(wrapper.seconds):
        yield
        return
    wrapper.ensure_connection()
    session: Any = wrapper.connection
    if not settings.POOLED:
        with wrapper.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, false)", [milliseconds(LONG_SECONDS)])
    session.seconds = LONG_SECONDS + GRACE_SECONDS
    try:
        yield
    finally:
        session.seconds = wrapper.seconds + GRACE_SECONDS
        if wrapper.connection is session and not settings.POOLED:
            try:
                with wrapper.cursor() as cursor:
                    cursor.execute("RESET statement_timeout")
            except Error:
                wrapper.close()


def _wrapper() -> DatabaseWrapper:
    return cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS])
