"""Django's PostgreSQL backend with a client-side deadline, because a frozen server does not end a statement.

See docs/decisions.md: PostgreSQL gets a deadline of our own.
See docs/servers.md, PgBouncer.
"""

import math
import time
from collections.abc import Generator, Mapping
from functools import cache
from typing import Any, cast

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base

from runtime.logs import outage
from storage.breaker import BREAKER_SECONDS, Breaker, BreakerOpenError

Waiting = Generator[Any, Any, Any]
"""An operation of psycopg on a connection. It yields what it waits for, and is sent what came, if anything."""

GRACE_SECONDS = 0.5
"""How much longer than the server the client waits."""
LOCK_SECONDS, LOCK_SHARE = 3.0, 0.8
"""How long a bounded statement waits for a lock at most, and at most of its bound. So an error says that it waited."""
LOST_CLIENTS = " ".join(
    f"-c tcp_{name}"
    for name in ("keepalives_idle=10", "keepalives_interval=5", "keepalives_count=3", "user_timeout=25000")
)
"""Let PostgreSQL notice within half a minute that a session's machine is gone. By default its locks stay for hours."""
ONE_PLAN = "-c plan_cache_mode=force_generic_plan"
"""Plan each prepared statement once a session. See docs/decisions.md: A prepared statement is planned once."""
REPLICA = "replica"
"""The alias of the replica (storage.replica)."""
REPLICA_SECONDS = 10.0
"""How long a failed replica is left alone."""
PROBE_SECONDS = 2.0
"""How long a probe waits for the connection, and again for the answer."""
OUTAGES = frozenset({"25006", "25P03", "25P04"})
"""SQL states that psycopg treats as programming errors: the server takes no writes (standby, switchover), or has ended
the session.
"""


class Connection(psycopg.Connection[Any]):
    """A connection on which a wait lasts at most `seconds`.

    After that it closes, trips the breaker and raises psycopg.OperationalError. Also closes if its server takes no
    writes.
    """

    seconds: float = math.inf
    breaker: Breaker | None = None

    def wait(self, gen: Waiting, *args: Any, **kwargs: Any) -> Any:
        """Wait for the server. Raises psycopg.OperationalError after `seconds`."""
        return super().wait(self._until(time.monotonic() + self.seconds, gen), *args, **kwargs)

    def _until(self, deadline: float, gen: Waiting) -> Waiting:
        try:
            awaited = next(gen)
            while True:
                came = yield awaited
                if not came and time.monotonic() > deadline:
                    self.close()
                    if self.breaker:
                        self.breaker.trip()
                    raise psycopg.OperationalError("the server did not answer in time")
                awaited = gen.send(came)
        except StopIteration as ended:
            return ended.value
        except psycopg.Error as error:
            if error.sqlstate in OUTAGES:
                self.close()
                raise psycopg.OperationalError(str(error)) from error
            raise


def milliseconds(seconds: float) -> str:
    """Seconds as text of whole milliseconds, for PostgreSQL's settings."""
    return str(int(seconds * 1000))


def probe(parameters: Mapping[str, Any], question: str = "SELECT 1") -> Any:
    """Ask a question on a new connection and return the answer's first row. Raises psycopg.Error."""
    impatient = {"connect_timeout": int(PROBE_SECONDS), "tcp_user_timeout": milliseconds(PROBE_SECONDS)}
    with Connection.connect(**{**parameters, **impatient}) as session:
        session.seconds = PROBE_SECONDS
        return session.execute(question).fetchone()


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection with a bound of `seconds` for each statement. A thread's own value comes first."""

    seconds: float = math.inf

    def get_connection_params(self) -> dict[str, Any]:
        """Add time-outs and ONE_PLAN, except behind a pooler, which would keep them for the next client."""
        parameters: dict[str, Any] = super().get_connection_params()
        if settings.POOLED:
            return parameters
        said = f"{parameters.get('options', '')} {LOST_CLIENTS} {ONE_PLAN}"
        if self.seconds < math.inf:
            lock = milliseconds(min(LOCK_SECONDS, LOCK_SHARE * self.seconds))
            said += f" -c statement_timeout={milliseconds(self.seconds)} -c lock_timeout={lock}"
        return parameters | {"options": said.strip()}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection:
        """Connect. Raises psycopg.OperationalError at once while the server is left alone."""
        if math.isinf(self.seconds):
            return self._note_connected(super().get_new_connection(conn_params))
        breaker = breaker_of(self.alias)
        try:
            with breaker.guard(conn_params["connect_timeout"]):
                connection = self._note_connected(super().get_new_connection(conn_params))
        except BreakerOpenError as error:
            raise psycopg.OperationalError(str(error)) from error
        connection.seconds, connection.breaker = self.seconds + GRACE_SECONDS, breaker
        return connection

    def _note_connected(self, connection: Any) -> Connection:
        if self.alias != REPLICA:
            outage.ends()
        return to_own_connection(connection)

    def bound(self, seconds: float) -> None:
        """Bound this thread's statements to `seconds`, on its open connection too."""
        self.seconds = seconds
        if self.connection is not None:
            self.connection.seconds = seconds + GRACE_SECONDS


def to_own_connection(connection: Any) -> Connection:
    """Turn Django's connection into ours by changing its class, for lack of a setting."""
    connection.__class__ = Connection
    return cast("Connection", connection)


@cache
def breaker_of(alias: str) -> Breaker:
    """The breaker of a server. A replica is left alone for longer: the site works without it."""
    name, seconds = ("replica", REPLICA_SECONDS) if alias == REPLICA else ("postgresql", BREAKER_SECONDS)
    return Breaker(seconds, name=name, failures=(psycopg.errors.ConnectionTimeout,), slow_share=math.inf)
