"""Beat's scheduler: it asks PostgreSQL whether there is something to do before it sends a task for it.

Most periodic tasks find nothing most of the time, and a task costs ten times the processor time of a question: a
message through the broker, a process that wakes up, a session with PostgreSQL. A task with a question
(`storage.queue.asks`) is sent when that query has a row. It is sent at every period while PostgreSQL does not answer,
and once in `UNASKED_SECONDS` in any case: a query that overlooks something delays the task, and loses nothing.

See docs/decisions.md: Beat asks before it sends.
See docs/decisions.md: Code written by hand, and why it stays.
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
WAIT_SECONDS = 2.0
"""Seconds that a question waits for PostgreSQL: a frozen server must not hold up beat."""


class Scheduler(PersistentScheduler):
    """Celery's scheduler, with the question before the task."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sent_at: dict[str, float] = {}
        """The monotonic time at which each task was sent."""
        super().__init__(*args, **kwargs)

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
