"""Reads that may lag, from a replica of PostgreSQL if there is one (FEEDSITE_REPLICA_URL).

The primary is the truth. A replica *proposes*: which items fit a query, whom to follow, what to recommend. A
proposal is shown after the primary has verified and hydrated it, so hidden or deleted items are gone at once. No router
moves a read here: a caller whose read may lag says so, by `lagging`.

Readers find their own writes. After a request of theirs that may have written, the position of the primary's log is
noted (`note_write`), and a replica reads for them when it has replayed the log up to there. The note is a row of an
unlogged table: PostgreSQL empties it when it crashes, and then the row of user 0 is missing too. The request that finds
no row writes one, and no replica that is behind that position reads for signed-in readers: what was forgotten was
before it.

No request reads from a replica that is more than `REPLICA_LAG_SECONDS` behind. Where it is, or fails, or cancels a
read that its replay conflicts with, the same read runs on the primary.

See docs/decisions.md: Replica lag is measured by the primary's clock and positions.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections

from runtime import metrics
from storage.connections import fetch
from storage.postgresql.base import Connection
from storage.scout import Scout

logger = logging.getLogger(__name__)

T = TypeVar("T")

PRIMARY = DEFAULT_DB_ALIAS
REPLICA = "replica"

SERVED = "replica"
AWAY, FAILED, CONFLICT, FOREIGN, BEHIND, OWN = "away", "failed", "conflict", "foreign", "behind", "own"
"""Why the primary reads: the replica failed a moment ago; just now; cancelled the read; is not a replica of this
primary; is too far behind; has not what the reader wrote.
"""
TRAVEL_SECONDS = 0.5
"""Seconds that `condition` waits for a replica to have what the primary had when the look began."""
CONFLICTS = frozenset({"40001", "40P01"})

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


class ReplicaFailedError(Exception):
    """The replica did not do what it was asked for; `outcome` is how."""

    def __init__(self, outcome: str, error: Exception) -> None:
        super().__init__(str(error).strip())
        self.outcome = outcome


# --- How far it is ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Standing:
    """How far a replica had replayed the log: up to `position` in bytes, and to a commit of the time `committed` (Unix,
    by the primary's clock). A replica keeps what it had: replay does not go back.
    """

    is_replica: bool
    position: int
    committed: float


@dataclass(frozen=True, slots=True)
class Needed:
    """How far a replica should be: the primary's log was at `position` at the time `now`, of which it may miss
    `REPLICA_LAG_SECONDS`, but nothing up to `own`.
    """

    position: int
    now: float
    own: int

    def hindrance(self, standing: Standing) -> str:
        """The reason why a replica of that standing cannot serve the read; empty if it can."""
        if not standing.is_replica:
            return FOREIGN
        if standing.position < self.own:
            return OWN
        return BEHIND if self.lag(standing) > settings.REPLICA_LAG_SECONDS else ""

    def lag(self, standing: Standing) -> float:
        """Seconds, not fewer than it is behind. After a pause without writes, a replica that misses the first write is
        as far behind as that pause was long; for as long as that write travels. Infinite where it has replayed no
        commit since it started.
        """
        if standing.position >= self.position:
            return 0.0
        return max(self.now - standing.committed, 0.0) if standing.committed else math.inf


class _Noted(NamedTuple):
    """A row of `NEEDED`."""

    position: int
    now: float
    of_all: int | None
    """Up to which place of the log replicas must be for all readers; None where the notes are lost."""
    own: int | None


def _needed(reader_id: int) -> Needed:
    (noted,) = fetch(NEEDED, {"reader": reader_id}, into=_Noted._make)
    if not reader_id:
        return Needed(noted.position, noted.now, 0)
    of_all = noted.of_all
    if of_all is None:  # the notes were lost in a crash: replicas must have the log up to now
        ((of_all,),) = fetch(NOTE, [0])
    return Needed(noted.position, noted.now, max(of_all, noted.own or 0))


def _ask(connection: Connection) -> Standing:
    is_replica, position, committed = fetch(STANDING, on=REPLICA)[0]
    standing = Standing(is_replica, position, committed)
    connection.standing = standing
    return standing


# --- Reading ---------------------------------------------------------------------------------------------
def is_configured() -> bool:
    """Whether the site has a replica."""
    return REPLICA in connections


def lagging(reader_id: int | None, read: Callable[[str], T], *, seconds: float = 0) -> T:
    """The answer of `read` from the database whose alias it is given: the replica's, or the primary's.

    `reader_id` is the reader whose writes it must find; None without such a reader. `read` only reads, and may be
    called twice: what a replica has not answered within `seconds` (`REPLICA_TIMEOUT_SECONDS`) the primary is asked. It
    finds nothing that its own request has written before.

    See docs/decisions.md: Reads go to a replica by name and not by a router.
    """
    if not is_configured():
        return read(PRIMARY)
    try:
        outcome = _hindrance(reader_id or 0)
        if not outcome:
            with _replica(seconds):
                found = read(REPLICA)
            metrics.replica_reads.labels(SERVED).inc()
            return found
    except ReplicaFailedError as error:
        outcome = error.outcome
    metrics.replica_reads.labels(outcome).inc()
    return read(PRIMARY)


def _hindrance(reader_id: int) -> str:
    """Why the replica cannot read for them, if it cannot: one question to the primary, and one to the replica where it
    does not suffice what was last heard on this connection.
    """
    if scout.is_out:
        return AWAY
    with _replica() as connection:
        heard = connection.standing
        standing: Standing = heard or _ask(connection)
    needed = _needed(reader_id)
    if standing.position > needed.position:
        return FOREIGN
    hindrance = needed.hindrance(standing)
    if hindrance and heard:
        with _replica() as connection:
            hindrance = needed.hindrance(_ask(connection))
    return hindrance


@contextmanager
def _replica(seconds: float = 0) -> Iterator[Connection]:
    """The thread's connection to the replica, for `seconds` (`REPLICA_TIMEOUT_SECONDS`). Raises ReplicaFailedError if
    it fails.
    """
    wrapper = connections[REPLICA]
    try:
        wrapper.ensure_connection()
        connection: Connection = cast("Any", wrapper.connection)
        connection.deadline = time.monotonic() + (seconds or settings.REPLICA_TIMEOUT_SECONDS)
        if seconds and not settings.POOLED:
            fetch("SELECT set_config('statement_timeout', %s, false)", [str(int(seconds * 1000))], on=REPLICA)
        yield connection
    except Error as error:
        wrapper.close()
        raise _failure(error) from error
    if seconds:
        wrapper.close()  # and its timeout with it: such reads are few


def _failure(error: Error) -> ReplicaFailedError:
    """The failure of a read, noted: an outage keeps all reads away until the replica answers, a cancelled read none."""
    state = getattr(error.__cause__, "sqlstate", None)
    if state in CONFLICTS:
        logger.info("The replica cancelled a read: %s", error)
        return ReplicaFailedError(CONFLICT, error)
    logger.warning("The replica failed a read: %s", error)
    if isinstance(error, OperationalError | InterfaceError):
        scout.send()
    return ReplicaFailedError(FAILED, error)


def _look() -> None:
    """Ask the replica once, on a connection that ends with the answer."""
    try:
        with _replica() as connection:
            _ask(connection)
    finally:
        connections.close_all()


scout = Scout(REPLICA, _look)


# --- Writing ---------------------------------------------------------------------------------------------
def note_write(user_id: int | None) -> None:
    """After the last commit of a request that may have written: `user_id` finds it from now on.

    See docs/decisions.md: The position of a user's last write is a row of an unlogged table.
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
    """`lag` in seconds, infinite where it is unknown.

    `system` names the cluster of which it is a replica; that of the primary is the same."""

    is_replica: bool
    lag: float
    is_of_primary: bool


def condition() -> Condition:
    """Asked now. Raises ReplicaFailedError, and what the primary fails."""
    system = "SELECT system_identifier FROM pg_control_system()"
    needed = _needed(0)
    with _replica() as connection:
        theirs = fetch(system, on=REPLICA)
        standing = _ask(connection)
        until = time.monotonic() + TRAVEL_SECONDS
        # The first write after a pause is no lag while it travels.
        while needed.lag(standing) and time.monotonic() < until:
            time.sleep(TRAVEL_SECONDS / 10)
            standing = _ask(connection)
    return Condition(standing.is_replica, needed.lag(standing), theirs == fetch(system))


def observe() -> None:
    """Set the gauges."""
    if not is_configured():
        return
    try:
        found: Any = condition()
    except ReplicaFailedError:
        found = None
    metrics.replica_up.labels(REPLICA).set(bool(found and found.is_replica and found.is_of_primary))
    if found:
        metrics.replica_lag_seconds.set(found.lag)
