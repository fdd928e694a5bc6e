"""Beat's scheduler: it asks PostgreSQL whether there is something to do before it sends a task for it.

Most periodic tasks find nothing most of the time, and a task costs ten times the processor time of a question: a
message through the broker, a process that wakes up, a session with PostgreSQL. A task with a question
(`storage.queue.asks`) is sent when that query has a row. It is sent at every period while PostgreSQL does not say, and
once in `UNASKED_SECONDS` whatever it says: a query that overlooks something delays that, and loses nothing.

See docs/decisions.md: Beat asks before it sends.
"""

import logging
import time
from typing import Any

from celery.beat import PersistentScheduler, ScheduleEntry
from django.db import Error, connection

from storage.connections import fetch
from storage.queue import QUESTIONS

logger = logging.getLogger(__name__)

UNASKED_SECONDS = 600.0
TOGETHER_SECONDS = 0.2
PATIENCE = 2.0
"""Seconds that a question waits for PostgreSQL: a frozen server must not hold up beat."""


class Scheduler(PersistentScheduler):
    """Celery's scheduler, with the question before the task."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sent_at: dict[str, float] = {}
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due, one entry a call; the seconds until the next call. What falls due close together is sent
        together: beat wakes up seldom.
        """
        seconds: float = super().tick(*args, **kwargs)
        return max(seconds, TOGETHER_SECONDS) if seconds else 0.0

    def sync(self) -> None:
        """Note when what was last sent. On a full disk beat goes on without, and sends everything once at its next
        start.
        """
        try:
            super().sync()
        except OSError as error:
            logger.warning("beat cannot note what it has sent: %s", error)

    def schedules_equal(self, old_schedules: Any, new_schedules: Any) -> bool:
        """Whether Celery may keep its heap: the schedule is that of the settings, and comparing all entries at each
        turn would be most of beat's processor time.
        """
        return old_schedules is not None

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send the task of an entry that is due, if there is something to do."""
        query = QUESTIONS.get(str(entry.task))
        name, now = str(entry.name), time.monotonic()
        if query and now < self.sent_at.get(name, 0.0) + UNASKED_SECONDS and not is_wanted(query):
            return
        self.sent_at[name] = now
        super().apply_entry(entry, producer)


def is_wanted(query: str) -> bool:
    """Whether the query has a row; True where PostgreSQL does not say."""
    try:
        return bool(fetch(f"SELECT EXISTS ({query})")[0][0])
    except Error as error:
        connection.close()  # the next question begins anew
        logger.info("PostgreSQL does not say what there is to do: %s", error)
        return True
