"""Reads that may lag, from a replica of PostgreSQL if the site has one (FEEDSITE_REPLICA_URL).

A replica *proposes*, and the primary verifies and hydrates.

`note_write` stores the position of the primary's log. The member reads the primary until the replica has replayed it. A
crash empties the unlogged table of notes: then the row of user 0 is missing, and the next request writes one that
stands for all lost notes.

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
"""Why the primary serves a read. The replica: failed a moment ago; failed now; is not of this primary; is too far
behind; lacks the reader's own writes.
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
"""SQL states of reads that the replica cancelled for its replay."""
SYSTEM = "SELECT system_identifier FROM pg_control_system()"


# --- How far it is ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Standing:
    """How far a replica is. `position`: replayed bytes. `committed`: the last commit's Unix time by the primary's
    clock, or 0 if it replayed none since its start.
    """

    is_replica: bool
    position: int
    committed: float


@dataclass(frozen=True, slots=True)
class Needed:
    """How far a replica should be.

    Within `REPLICA_LAG_SECONDS` of `position`, the primary's at `now`, and at least at `own`, the position of the
    reader's last write.
    """

    position: int
    now: float
    own: int

    def hindrance(self, standing: Standing) -> str:
        """Why a replica cannot serve the read, or empty."""
        if not standing.is_replica or standing.position > self.position:
            return FOREIGN
        if standing.position < self.own:
            return OWN
        return BEHIND if self.lag(standing) > settings.REPLICA_LAG_SECONDS else ""

    def lag(self, standing: Standing) -> float:
        """How many seconds a replica is behind at most, including a pause without writes.

        Infinite without a replayed commit since its start.
        """
        if standing.position >= self.position:
            return 0.0
        return max(self.now - standing.committed, 0.0) if standing.committed else math.inf


def _needed(reader_id: int) -> Needed:
    ((position, now, of_all, own),) = fetch(NEEDED, {"reader": reader_id})
    if not reader_id:
        return Needed(position, now, 0)
    if of_all is None:  # a crash lost the notes
        ((of_all,),) = fetch(NOTE, [0])
    return Needed(position, now, max(of_all, own or 0))


def _standing() -> Standing:
    return Standing(*fetch(STANDING, on=REPLICA)[0])


# --- Reading ---------------------------------------------------------------------------------------------
def is_configured() -> bool:
    """Whether the site has a replica."""
    return REPLICA in connections


class Router:
    """Sends reads that may lag to the replica, and all others to the primary."""

    def db_for_read(self, model: object, *, reader: int | None = None, **hints: Any) -> str:
        """The alias to read from: the primary, or the replica if `reader` is given and it is not too far behind.

        `reader`: the read may lag but must find this user's writes. 0: nobody's.
        """
        if reader is None:
            return PRIMARY
        standing = _standing()  # first, so that the replica is not ahead of the primary's answer
        hindrance = _needed(reader).hindrance(standing)
        if hindrance:
            metrics.replica_reads.labels(hindrance).inc()
        return PRIMARY if hindrance else REPLICA

    def db_for_write(self, model: object, **hints: Any) -> str:
        """The primary's alias, also for rows read from the replica."""
        return PRIMARY

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """Whether migrations run here: on the primary only."""
        return db == PRIMARY


def lagging(reader_id: int | None, read: Callable[[str], T], *, seconds: float = 0) -> T:
    """The answer of `read`, called with the alias of the replica or of the primary.

    The primary repeats it if the replica fails or takes longer than `seconds` (`REPLICA_TIMEOUT_SECONDS`). The replica
    has the earlier writes of `reader_id`, but not those of this request.
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
        logger.warning("the replica failed, so the primary served the read: %s", error)
        metrics.replica_reads.labels(FAILED).inc()
    return read(PRIMARY)


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
    """Note the primary's position for a user who may have written, after the last commit."""
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


# --- Looking after it ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Condition:
    """Whether the server is a replica of this primary, and its lag."""

    is_replica: bool
    lag: float
    """Seconds. Infinite if unknown."""
    is_of_primary: bool


def condition() -> Condition:
    """Ask replica and primary now. Raises django.db.Error."""
    needed = _needed(0)
    with _replica():
        standing, system = _standing(), fetch(SYSTEM, on=REPLICA)
    return Condition(standing.is_replica, needed.lag(standing), system == fetch(SYSTEM))


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
