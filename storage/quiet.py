"""Beat's scheduler: asks PostgreSQL whether there is work before it sends a periodic task.

A task costs ten times the CPU of a question. It is sent every `UNASKED_SECONDS` in any case, so a wrong query only
delays a task.

Each worker has a beat. One of all works: it holds an advisory lock. While PostgreSQL does not answer, the last holder
goes on and sends every task. Behind a pooler, which gives no session to hold a lock, it has a lease on the cache
server. While that does not answer, every beat works: tasks that are sent twice cost time only.

See docs/decisions.md: Beat asks PostgreSQL before it sends a task.
See docs/decisions.md: Own code in place of a library.
"""

import logging
import time
import uuid
from typing import Any

from celery.beat import PersistentScheduler, ScheduleEntry
from django.conf import settings
from django.core.cache import cache
from django.db import Error, connection

from storage import keys
from storage.connections import fetch
from storage.queue import QUESTIONS

logger = logging.getLogger(__name__)
starts = logging.getLogger("feedsite.starts")

UNASKED_SECONDS = 600.0
WAIT_SECONDS = 2.0
"""How long a question waits for PostgreSQL. A frozen server must not block beat."""
LEAST_SECONDS = 1.0
"""How long beat sleeps at least. What is due meanwhile is asked together: waking costs more than a question."""
TURN_SECONDS = 2.0
"""How often a waiting beat asks for the lock."""
LEASE_SECONDS = 15
"""How long the working beat of a pooled site is waited for. It renews its lease several times meanwhile."""
LOCK = 0x62656174
"""The advisory lock of the working beat."""
TAKE_LOCK = f"SELECT pg_try_advisory_lock({LOCK})"
HOLDER = f"""
    SELECT coalesce(host(client_addr), 'this machine'), backend_start FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = {LOCK}
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
OTHER = "another beat is active, so this one waits"
OUTAGE = "PostgreSQL does not answer, so beat waits for it (docs/runbook.md, PostgreSQL is down)"


class Scheduler(PersistentScheduler):
    """Celery's scheduler with a question before each task."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sent_at: dict[str, float] = {}
        """When each task was sent (monotonic time)."""
        self.lock_session: Any = None
        """The session that holds the lock."""
        self.is_at_work = False
        self.waits_for: str | None = None
        """What the log says that this beat waits for. Empty while it works, None at the start."""
        self.is_cut_off = False
        """PostgreSQL did not answer the last time."""
        self.name = uuid.uuid4().hex
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due if this beat has the lock. Returns seconds to wait."""
        has_turn = self._has_lease() if settings.POOLED else self._has_lock()
        self.is_at_work = has_turn
        waits_for = "" if has_turn else OUTAGE if self.is_cut_off else OTHER
        if waits_for != self.waits_for:
            self.waits_for = waits_for
            holder = _describe_holder() if waits_for == OTHER else ""
            starts.info("%s%s", waits_for or "beat is active", holder)
        if not has_turn:
            return TURN_SECONDS
        seconds = float(super().tick(*args, **kwargs))
        return max(seconds, LEAST_SECONDS) if seconds else 0.0  # 0: another entry may be due

    def _has_lock(self) -> bool:
        """Take the lock if it is free. True if this beat has it, or had it when PostgreSQL went away."""
        try:
            if self.lock_session is None or connection.connection is not self.lock_session:
                is_mine = fetch(TAKE_LOCK)[0][0]
                self.lock_session = connection.connection if is_mine else None
            self.is_cut_off = False
        except Error:
            connection.close()
            self.is_cut_off = True
            return self.is_at_work
        return self.lock_session is not None

    def _has_lease(self) -> bool:
        """Take or renew the lease. True if this beat has it, or if the cache server does not answer."""
        is_mine = cache.get_or_set(keys.beat(), self.name, LEASE_SECONDS) == self.name
        if is_mine:
            cache.set(keys.beat(), self.name, LEASE_SECONDS)
        return is_mine

    def sync(self) -> None:
        """Save which tasks were sent. If a full disk prevents it, every task is sent once after a restart."""
        try:
            super().sync()
        except OSError as error:
            logger.warning("beat cannot save which tasks it has sent: %s", error)

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send a task, unless its query finds no work. Every ten minutes in any case."""
        task, now = str(entry.task), time.monotonic()
        query = QUESTIONS.get(task)
        if query and now < self.sent_at.get(task, -UNASKED_SECONDS) + UNASKED_SECONDS and not has_work(query):
            return
        self.sent_at[task] = now
        super().apply_entry(entry, producer)


def _describe_holder() -> str:
    """Words for the log: where and since when the working beat runs. Empty if unknown."""
    try:
        found = fetch(HOLDER)
    except Error:
        connection.close()
        return ""
    return f" ({found[0][0]}, since {found[0][1]:%Y-%m-%d %H:%M} UTC)" if found else ""


def has_work(query: str) -> bool:
    """Whether the query finds work. Also True on an error, for example before a migration."""
    try:
        return bool(fetch(f"SELECT EXISTS ({query})")[0][0])
    except Error as error:
        connection.close()  # the next question gets a new session
        logger.info("PostgreSQL does not answer, so beat sends the task anyway: %s", error)
        return True
