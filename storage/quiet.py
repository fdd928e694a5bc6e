"""Beat's scheduler: it asks PostgreSQL whether there is something to do before it sends a task for it.

Most periodic tasks find nothing most of the time, and a task costs ten times the processor time of a question: a
message through the broker, a process that wakes up, a session with PostgreSQL. A task with a question
(`storage.queue.asks`) is sent when that query has a row. It is sent at every period while PostgreSQL does not answer,
and once in `UNASKED_SECONDS` in any case: a query that overlooks something delays the task, and loses nothing.

One beat is at work on all machines. It holds a lock of PostgreSQL in the session in which it asks, so the lock goes
with the process. Others wait for it. While PostgreSQL does not answer, the one that held the lock last goes on. Behind
a pooler, which lends sessions, there is no lock.

See docs/decisions.md: Beat asks PostgreSQL before it sends a task.
See docs/decisions.md: Own code in place of a library.
"""

import logging
import time
from typing import Any

from celery.beat import PersistentScheduler, ScheduleEntry
from django.conf import settings
from django.db import Error, connection

from storage.connections import fetch
from storage.queue import QUESTIONS

logger = logging.getLogger(__name__)
starts = logging.getLogger("feedsite.starts")

UNASKED_SECONDS = 600.0
WAIT_SECONDS = 2.0
"""Seconds that a question waits for PostgreSQL: a frozen server must not hold up beat."""
TURN_SECONDS = 2.0
"""How often a beat that waits asks for the lock."""
LOCK = 0x62656174
"""The advisory lock of the beat at work."""
# PostgreSQL notices within half a minute that the machine of a session is gone.
TAKE_LOCK = f"""
    SELECT pg_try_advisory_lock({LOCK}), set_config('tcp_keepalives_idle', '10', false),
        set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)
"""
HOLDER = f"""
    SELECT coalesce(host(client_addr), 'this machine'), backend_start FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = {LOCK}
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""  # noqa: S608 (a constant)


class Scheduler(PersistentScheduler):
    """Celery's scheduler, with the question before the task."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sent_at: dict[str, float] = {}
        """The monotonic time at which each task was sent."""
        self.lock_session: Any = None
        """The session that holds the lock."""
        self.is_at_work: bool | None = None
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due, if this is the beat at work; seconds until the next look."""
        has_turn = settings.POOLED or self._has_lock()
        if has_turn != self.is_at_work:
            self.is_at_work = has_turn
            starts.info("beat is at work" if has_turn else f"another beat is at work{_holder()}; this one waits")
        return float(super().tick(*args, **kwargs)) if has_turn else TURN_SECONDS

    def _has_lock(self) -> bool:
        """Whether this beat holds the lock, or held it when PostgreSQL went away. It is asked for once a session."""
        try:
            if self.lock_session is None or connection.connection is not self.lock_session:
                is_mine = fetch(TAKE_LOCK)[0][0]
                self.lock_session = connection.connection if is_mine else None
        except Error as error:
            connection.close()
            logger.info("PostgreSQL does not say whether another beat is at work: %s", error)
            return bool(self.is_at_work)
        return self.lock_session is not None

    def sync(self) -> None:
        """Note when what was last sent. On a full disk beat goes on without the note, and sends everything once at its
        next start.
        """
        try:
            super().sync()
        except OSError as error:
            logger.warning("beat cannot note what it has sent: %s", error)

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send the task of an entry that is due, if there is something to do."""
        task, now = str(entry.task), time.monotonic()
        query = QUESTIONS.get(task)
        if query and now < self.sent_at.get(task, -UNASKED_SECONDS) + UNASKED_SECONDS and not is_wanted(query):
            return
        self.sent_at[task] = now
        super().apply_entry(entry, producer)


def _holder() -> str:
    """Where the beat at work runs, and since when, as far as PostgreSQL says it."""
    try:
        found = fetch(HOLDER)
    except Error:
        connection.close()
        return ""
    return f" ({found[0][0]}, since {found[0][1]:%Y-%m-%d %H:%M} UTC)" if found else ""


def is_wanted(query: str) -> bool:
    """Whether the query has a row; True where PostgreSQL does not answer, or does not understand it: before the
    migration that makes its table, for example.
    """
    try:
        return bool(fetch(f"SELECT EXISTS ({query})")[0][0])
    except Error as error:
        connection.close()  # the next question begins anew
        logger.info("PostgreSQL does not say what there is to do: %s", error)
        return True
