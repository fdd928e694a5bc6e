"""Reads that may lag, from a replica of PostgreSQL if the site has one (FEEDSITE_REPLICA_URL).

The primary is the truth. A replica *proposes*: which items fit a query, whom to follow, what to recommend. A proposal
is shown after the primary has verified and hydrated it, so hidden or deleted items are gone at once. The router leaves
every other read on the primary: only `lagging` asks it for the replica.

Members find their own writes. After a request that may have written, the position of the primary's log is noted
(`note_write`), and the member reads the primary until the replica has replayed the log up to there. The note is a row
of an unlogged table. PostgreSQL empties that table when it crashes, and then the row of user 0 is missing too. The
request that finds no row of user 0 writes one, which stands for all notes before it.

A replica that is more than `REPLICA_LAG_SECONDS` behind is not read. If it fails a read, the primary does it again.

See docs/decisions.md: Only reads that say so go to a replica.
"""

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections, models, router

from runtime import metrics
from storage.breaker import OpenError
from storage.connections import fetch
from storage.postgresql.base import REPLICA, outage_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

PRIMARY = DEFAULT_DB_ALIAS

SERVED = "replica"
AWAY, FAILED, FOREIGN, BEHIND, OWN = "away", "failed", "foreign", "behind", "own"
"""Why the primary reads: the replica failed a moment ago; just now; is not a replica of this primary; is too far
behind; has not what the reader wrote.
"""

NOTE = """
    INSERT INTO feedsite_written AS noted (user_id, lsn) VALUES (%s, pg_current_wal_insert_lsn())
    ON CONFLICT (user_id) DO UPDATE SET lsn = greatest(noted.lsn, excluded.lsn) RETURNING (lsn - '0/0')::bigint
"""
NEEDED = """
    SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint, extract(epoch FROM clock_timestamp())::float8,
        (SELECT (lsn - '0/0')::bigint FROM feedsite_written WHERE user_id = 0),
        (SELECT (lsn - '0/0')::bigint FROM feedsite_written WHERE user_id = %(reader)s)
"""
STANDING = """
    SELECT pg_is_in_recovery(), (coalesce(pg_last_wal_replay_lsn(), '0/0') - '0/0')::bigint,
        coalesce(extract(epoch FROM pg_last_xact_replay_timestamp()), 0)::float8
"""
CONFLICTS = frozenset({"40001", "40P01"})
"""The states of reads that a replica has cancelled for its replay."""
SYSTEM = "SELECT system_identifier FROM pg_control_system()"


# --- How far it is ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Standing:
    """How far a replica has replayed the log: up to `position` in bytes, and to a commit of the time `committed` (Unix,
    by the primary's clock; 0 where it has replayed none since it started).
    """

    is_replica: bool
    position: int
    committed: float


@dataclass(frozen=True, slots=True)
class Needed:
    """How far a replica should be. The primary's log was at `position` at the time `now`; the replica may lack
    `REPLICA_LAG_SECONDS` of that, but nothing up to `own`.
    """

    position: int
    now: float
    own: int

    def hindrance(self, standing: Standing) -> str:
        """The reason why a replica of that standing cannot serve the read; empty if it can."""
        if not standing.is_replica or standing.position > self.position:
            return FOREIGN
        if standing.position < self.own:
            return OWN
        return BEHIND if self.lag(standing) > settings.REPLICA_LAG_SECONDS else ""

    def lag(self, standing: Standing) -> float:
        """Seconds that it is behind at most. While the first write after a pause travels, that is the whole pause.
        Infinite where the replica has replayed no commit since it started.
        """
        if standing.position >= self.position:
            return 0.0
        return max(self.now - standing.committed, 0.0) if standing.committed else math.inf


def _needed(reader_id: int) -> Needed:
    ((position, now, of_all, own),) = fetch(NEEDED, {"reader": reader_id})
    if not reader_id:
        return Needed(position, now, 0)
    if of_all is None:  # the notes were lost in a crash: replicas must have the log up to now
        ((of_all,),) = fetch(NOTE, [0])
    return Needed(position, now, max(of_all, own or 0))


def _standing() -> Standing:
    return Standing(*fetch(STANDING, on=REPLICA)[0])


# --- Reading ---------------------------------------------------------------------------------------------
def is_configured() -> bool:
    """Whether the site has a replica."""
    return REPLICA in connections


class Router:
    """Django's router: the replica for reads that may lag, the primary for everything else."""

    def db_for_read(self, model: object, *, reader: int | None = None, **hints: Any) -> str:
        """`reader`: the read may lag, but must find what this user wrote; 0 without such a user."""
        if reader is None:
            return PRIMARY
        standing = _standing()  # first: no replica is ahead of what the primary says later
        hindrance = _needed(reader).hindrance(standing)
        if hindrance:
            metrics.replica_reads.labels(hindrance).inc()
        return PRIMARY if hindrance else REPLICA

    def db_for_write(self, model: object, **hints: Any) -> str:
        """The primary, also for rows that came from the replica."""
        return PRIMARY

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """The replica has the tables of the primary."""
        return db == PRIMARY


def lagging(reader_id: int | None, read: Callable[[str], T], *, seconds: float = 0) -> T:
    """The answer of `read` from the database whose alias it is given: the replica's, or the primary's.

    `reader_id` is the reader whose writes it must find; None without such a reader. `read` only reads, and may be
    called twice: the primary is asked if the replica fails, or has not answered within `seconds`
    (`REPLICA_TIMEOUT_SECONDS`). On the replica it does not find what its own request has written.

    See docs/decisions.md: Only reads that say so go to a replica.
    """
    if not is_configured():
        return read(PRIMARY)
    try:
        with outage_of(REPLICA).asking(seconds or settings.REPLICA_TIMEOUT_SECONDS), _replica(seconds):
            on = router.db_for_read(models.Model, reader=reader_id or 0)
            if on == REPLICA:
                found = read(REPLICA)
                metrics.replica_reads.labels(SERVED).inc()
                return found
    except OpenError:
        metrics.replica_reads.labels(AWAY).inc()
    except Error as error:
        logger.warning("The replica failed a read: %s", error)
        metrics.replica_reads.labels(FAILED).inc()
    return read(PRIMARY)


@contextmanager
def _replica(seconds: float = 0) -> Iterator[None]:
    """The thread's connection to the replica, whose statements may take `seconds` (`REPLICA_TIMEOUT_SECONDS`) each. An
    outage keeps all reads away for a while. A read that the replica has cancelled for its replay keeps none away.
    """
    wrapper: Any = connections[REPLICA]
    if seconds:  # such reads are few: a connection of their own
        wrapper.close()
    wrapper.bound(seconds or settings.REPLICA_TIMEOUT_SECONDS)
    try:
        wrapper.ensure_connection()
        yield
    except Error as error:
        wrapper.close()
        if isinstance(error, (OperationalError, InterfaceError)) and _state(error) not in CONFLICTS:
            outage_of(REPLICA).trip()
        raise
    finally:
        if seconds:
            wrapper.close()


def _state(error: Error) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)


# --- Writing ---------------------------------------------------------------------------------------------
def note_write(user_id: int | None) -> None:
    """After the last commit of a request that may have written: `user_id` finds it from now on.

    See docs/decisions.md: Only reads that say so go to a replica.
    """
    if not user_id or not is_configured():
        return
    try:
        try:
            fetch(NOTE, [user_id])
        except OperationalError:  # the connection may be all that was lost
            connections[PRIMARY].close()
            fetch(NOTE, [user_id])
    except Error as error:
        # A primary that crashed has an empty table, which says so. Else they may miss it for `REPLICA_LAG_SECONDS`.
        logger.warning("It is not noted that user %s has written: %s", user_id, error)


# --- Looking after it ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Condition:
    """`lag` in seconds, infinite where it is unknown."""

    is_replica: bool
    lag: float
    is_of_primary: bool


def condition() -> Condition:
    """Asked now. Raises django.db.Error."""
    needed = _needed(0)
    with _replica():
        standing, system = _standing(), fetch(SYSTEM, on=REPLICA)
    return Condition(standing.is_replica, needed.lag(standing), system == fetch(SYSTEM))


def observe() -> None:
    """Set the gauges."""
    if not is_configured():
        return
    try:
        found = condition()
    except Error:
        metrics.replica_up.labels(REPLICA).set(0)
        return
    metrics.replica_up.labels(REPLICA).set(found.is_replica and found.is_of_primary)
    metrics.replica_lag_seconds.set(found.lag)
