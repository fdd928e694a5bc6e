"""Bounds the time of statements on the primary, for programs that must answer fast: web, stream and gRPC.

PostgreSQL ends a bounded statement. If it is frozen, the client closes the connection `GRACE_SECONDS` later. Then one
thread at a time tries to reconnect, and the others fail at once. Raises django.db.OperationalError or InterfaceError.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections
from psycopg.errors import DiskFull, LockNotAvailable

from storage.postgresql.base import GRACE_SECONDS, DatabaseWrapper, milliseconds

LONG_SECONDS = 60.0
"""The bound for statements of exports, of the admin's pages, and of the hub's question about a batch."""


def set_process_timeout(seconds: float) -> None:
    """Set the most seconds for this process's statements on new connections."""
    DatabaseWrapper.seconds = seconds


@contextmanager
def statement_timeout(seconds: float) -> Iterator[None]:
    """Bound statements on connections made in the block to `seconds`."""
    before = DatabaseWrapper.seconds
    set_process_timeout(seconds)
    try:
        yield
    finally:
        set_process_timeout(before)


def bound_thread_long() -> None:
    """Bound this thread's statements by `LONG_SECONDS` if the process has a bound. Call it before connecting."""
    wrapper = _wrapper()
    if wrapper.seconds < math.inf:
        wrapper.seconds = LONG_SECONDS


@contextmanager
def long_statements() -> Iterator[None]:
    """Let this thread's bounded statements in the block take `LONG_SECONDS`. Not in a transaction."""
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


def is_lock_timeout(error: BaseException) -> bool:
    """Whether a statement ended because it had waited too long for a lock."""
    return isinstance(error.__cause__, LockNotAvailable)


def is_disk_full(error: BaseException) -> bool:
    """Whether a statement failed because PostgreSQL's disk is full."""
    return isinstance(error.__cause__, DiskFull)


def _wrapper() -> DatabaseWrapper:
    return cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS])
