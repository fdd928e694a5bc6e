"""Reads that may lag, from a replica of PostgreSQL if the site has one (FEEDSITE_REPLICA_URL).

A replica *proposes*, and the primary verifies and hydrates.

After a write a member reads the primary for `REPLICA_PIN_SECONDS`, on every device. `record_write` stores the time. A
crash empties the unlogged table of times: then the row of user 0 is missing, and the next read writes one that stands
for all lost times.

See docs/decisions.md: Only reads that say so go to a replica.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections

from runtime import metrics
from storage.breaker import BreakerOpenError
from storage.connections import fetch
from storage.postgresql.base import REPLICA, breaker_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

PRIMARY = DEFAULT_DB_ALIAS

SERVED = "replica"
AWAY, FAILED, FOREIGN, BEHIND, OWN = "away", "failed", "foreign", "behind", "own"
"""Why the primary serves a read. The replica: failed a moment ago; failed now; is not of this primary; is too far
behind. Or the reader wrote a moment ago.
"""

NOTE = """
    INSERT INTO feedsite_written (user_id, written_at) VALUES (%s, clock_timestamp())
    ON CONFLICT (user_id) DO UPDATE SET written_at = excluded.written_at RETURNING true
"""
WRITERS = """
    SELECT user_id, written_at > clock_timestamp() - make_interval(secs => %s)
    FROM feedsite_written WHERE user_id IN (0, %s)
"""
STANDING = """
    SELECT pg_is_in_recovery(), system_identifier, coalesce(pg_last_wal_replay_lsn(), '0/0')::text,
        pg_last_xact_replay_timestamp()
    FROM pg_control_system()
"""
# By the primary's clock. A replica that has everything is not behind, however long ago the last commit was. One that
# is ahead is of a primary that was replaced.
COMPARED = """
    SELECT system_identifier = %(system)s AND %(position)s::pg_lsn <= now_at,
        CASE WHEN %(position)s::pg_lsn >= now_at THEN 0
            ELSE extract(epoch FROM clock_timestamp() - %(committed)s::timestamptz) END::float8
    FROM pg_control_system(), pg_current_wal_flush_lsn() AS now_at
"""
CONFLICTS = frozenset({"40001", "40P01"})
"""SQL states of reads that the replica cancelled for its replay."""


# --- How far it is ---------------------------------------------------------------------------------------
class ReplicaCondition(NamedTuple):
    """Whether the server is a replica of this primary, and its lag."""

    is_replica: bool
    is_of_primary: bool
    lag: float
    """Seconds, including a pause without writes. Infinite if it has replayed no commit since its start."""

    @property
    def reason_unusable(self) -> str:
        """Why it cannot serve a read, or empty."""
        if not (self.is_replica and self.is_of_primary):
            return FOREIGN
        return BEHIND if self.lag > settings.REPLICA_LAG_SECONDS else ""


def _measure() -> ReplicaCondition:
    # The replica first, so that it is not ahead of the primary's answer.
    ((is_replica, system, position, committed),) = fetch(STANDING, on=REPLICA)
    return ReplicaCondition(is_replica, *compare_with_primary(system, position, committed))


def compare_with_primary(system: int, position: str, committed: datetime | None) -> tuple[bool, float]:
    """Whether a server is the primary's, and how far it is behind."""
    ((is_of_primary, lag),) = fetch(COMPARED, {"system": system, "position": position, "committed": committed})
    return is_of_primary, math.inf if lag is None else max(lag, 0.0)


@lru_cache(1)
def _measure_cached(_second: int) -> ReplicaCondition:
    return _measure()


def condition() -> ReplicaCondition:
    """Ask replica and primary now. Raises django.db.Error."""
    with _replica():
        return _measure()


def observe() -> None:
    """Set the gauges about the replica."""
    if not is_configured():
        return
    try:
        found = condition()
    except Error:
        metrics.replica_up.labels(REPLICA).set(0)
        return
    metrics.replica_up.labels(REPLICA).set(found.is_replica and found.is_of_primary)
    metrics.replica_lag_seconds.set(found.lag)


# --- Reading ---------------------------------------------------------------------------------------------
def is_configured() -> bool:
    """Whether the site has a replica."""
    return REPLICA in connections


class Router:
    """Only `read_from_replica` reads from the replica. Django would use it for what belongs to a row from there."""

    def db_for_read(self, model: object, **hints: Any) -> str:
        """The primary's alias."""
        return PRIMARY

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """Whether migrations run here: on the primary only."""
        return db == PRIMARY


def read_from_replica(reader_id: int | None, read: Callable[[str], T], *, seconds: float = 0) -> T:
    """The answer of `read`, called with the alias of the replica or of the primary.

    The primary repeats it if the replica fails or takes longer than `seconds` (`REPLICA_TIMEOUT_SECONDS`). The replica
    has the earlier writes of `reader_id`, but not those of this request.
    """
    if not is_configured():
        return read(PRIMARY)
    if reader_id and _wrote_recently(reader_id):
        metrics.replica_reads.labels(OWN).inc()
        return read(PRIMARY)
    try:
        with breaker_of(REPLICA).guard(seconds or settings.REPLICA_TIMEOUT_SECONDS), _replica(seconds):
            outcome = _measure_cached(int(time.monotonic())).reason_unusable
            if not outcome:
                found = read(REPLICA)
                metrics.replica_reads.labels(SERVED).inc()
                return found
    except BreakerOpenError:
        outcome = AWAY
    except Error as error:
        logger.warning("the replica failed, so the primary served the read: %s", error)
        outcome = FAILED
    metrics.replica_reads.labels(outcome).inc()
    return read(PRIMARY)


def _wrote_recently(user_id: int) -> bool:
    """Whether the user may have written within `REPLICA_PIN_SECONDS`."""
    writers = dict(fetch(WRITERS, [settings.REPLICA_PIN_SECONDS, user_id]))
    if 0 not in writers:  # a crash lost the times
        return bool(fetch(NOTE, [0]))
    return any(writers.values())


@contextmanager
def _replica(seconds: float = 0) -> Iterator[None]:
    """Read from the replica in the block, bounded by `seconds`.

    An outage trips the breaker. A read that the replica cancelled to replay changes does not.
    """
    wrapper: Any = connections[REPLICA]
    if seconds:  # rare: gets its own connection
        wrapper.close()
    wrapper.bound(seconds or settings.REPLICA_TIMEOUT_SECONDS)
    try:
        wrapper.ensure_connection()
        yield
    except Error as error:
        wrapper.close()
        if isinstance(error, (OperationalError, InterfaceError)) and _sqlstate(error) not in CONFLICTS:
            breaker_of(REPLICA).trip()
        raise
    finally:
        if seconds:
            wrapper.close()


def _sqlstate(error: Error) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)


# --- Writing ---------------------------------------------------------------------------------------------
def record_write(user_id: int | None) -> None:
    """Note that a user may have written, after the last commit."""
    if not user_id or not is_configured():
        return
    try:
        try:
            fetch(NOTE, [user_id])
        except OperationalError:  # perhaps only the connection is gone
            connections[PRIMARY].close()
            fetch(NOTE, [user_id])
    except Error as error:
        # After a crash the empty table says so. Otherwise the user may miss the write for `REPLICA_LAG_SECONDS`.
        logger.warning("user %s may miss their own newest change for some seconds: %s", user_id, error)
