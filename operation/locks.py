"""Sessions of PostgreSQL for whose locks others wait, or will wait."""

import re
from typing import NamedTuple

from django.conf import settings

from storage.connections import fetch

WAITED_SECONDS = 1.0
"""A shorter wait is usual."""
IDLE_SECONDS = 10.0
"""The site's own transactions are idle for less."""
STATEMENT_LENGTH = 200
TEXT = re.compile(r"'(?:[^']|'')*'")
"""A string in a statement: it may be personal."""

# A session that waits may block others itself: the chain leads to those that wait for nobody. Without
# pg_read_all_stats, PostgreSQL tells only the role and the process of other roles' sessions.
HOLDERS = """
    WITH RECURSIVE waiter AS MATERIALIZED (
        SELECT pid, min(waitstart) AS since FROM pg_locks WHERE NOT granted GROUP BY pid
    ), edge AS MATERIALIZED (
        SELECT w.pid AS waiter, w.since, unnest(pg_blocking_pids(w.pid)) AS blocker
        FROM waiter w JOIN pg_stat_activity a USING (pid)
        WHERE a.datname = current_database() AND w.since < clock_timestamp() - make_interval(secs => %(waited)s)
    ), chain AS (
        SELECT waiter, since, blocker FROM edge
        UNION SELECT chain.waiter, chain.since, edge.blocker FROM chain JOIN edge ON edge.waiter = chain.blocker
    )
    SELECT h.pid, coalesce(h.application_name, ''), h.usename::text, coalesce(host(h.client_addr), 'this machine'),
        coalesce(h.state, ''), extract(epoch FROM clock_timestamp() - h.xact_start)::float8, coalesce(h.query, ''),
        (SELECT array_agg(DISTINCT l.relation::regclass::text) FROM pg_locks l
            WHERE l.pid = ANY(array_agg(chain.waiter)) AND (NOT l.granted OR l.locktype = 'tuple')
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())),
        array_agg(coalesce(nullif(w.application_name, ''), w.usename::text, '?') ORDER BY chain.since),
        extract(epoch FROM clock_timestamp() - min(chain.since))::float8
    FROM chain JOIN pg_stat_activity h ON h.pid = chain.blocker JOIN pg_stat_activity w ON w.pid = chain.waiter
    WHERE NOT EXISTS (SELECT FROM edge WHERE edge.waiter = chain.blocker)
    GROUP BY h.pid, h.application_name, h.usename, h.client_addr, h.state, h.xact_start, h.query
    ORDER BY min(chain.since)
"""

# A session hides its state from other roles (see above). Then only a lock on a whole table counts.
IDLE = """
    SELECT a.pid, coalesce(a.application_name, ''), a.usename::text, coalesce(host(a.client_addr), 'this machine'),
        coalesce(a.state, ''), extract(epoch FROM clock_timestamp() - a.xact_start)::float8, coalesce(a.query, ''),
        array_agg(DISTINCT l.relation::regclass::text), '{}'::text[], 0::float8
    FROM pg_stat_activity a JOIN pg_locks l USING (pid)
        JOIN pg_class c ON c.oid = l.relation AND c.relkind IN ('r', 'p')
    WHERE a.datname = current_database() AND l.database = a.datid AND l.granted
        AND (
            a.state LIKE 'idle in transaction%%'
                AND a.state_change < clock_timestamp() - make_interval(secs => %(idle)s)
                AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')
            OR a.state IS NULL AND l.mode IN ('ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        )
    GROUP BY a.pid, a.application_name, a.usename, a.client_addr, a.state, a.xact_start, a.query
"""


class LockHolder(NamedTuple):
    """A session for which others wait."""

    pid: int
    application: str
    role: str
    address: str
    state: str
    age: float | None
    """Seconds since its transaction began. None: only a superuser may know."""
    query: str
    tables: list[str | None] | None
    waiters: list[str]
    """The applications of those that wait, the longest first."""
    waited: float

    @property
    def seconds(self) -> float:
        """For how long at least it has had its locks."""
        return max(self.age or 0.0, self.waited)

    @property
    def statement(self) -> str:
        """Its last statement on one line, without strings."""
        line = " ".join(TEXT.sub("'…'", self.query).split())
        return "".join(each for each in line if each.isprintable())[:STATEMENT_LENGTH]

    @property
    def ending(self) -> str:
        """The line that ends it."""
        end = f"SELECT pg_terminate_backend({self.pid})"
        if "postgres" in settings.SERVERS.names:
            return f"""manage.py shell --command 'from storage.connections import fetch; fetch("{end}")'"""
        return f'runuser -u postgres -- psql --command "{end}"'


def holders() -> list[LockHolder]:
    """Sessions for which others have waited for a second, without those that wait themselves."""
    return fetch(HOLDERS, {"waited": WAITED_SECONDS}, into=LockHolder._make)


def idle_holders() -> list[LockHolder]:
    """Sessions that have locks and do nothing. Perhaps nobody waits for them now."""
    return fetch(IDLE, {"idle": IDLE_SECONDS}, into=LockHolder._make)
