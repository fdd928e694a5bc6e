"""Beat's scheduler: it asks PostgreSQL whether there is something to do before it sends a task for it.

Most periodic tasks find nothing most of the time, and a task costs ten times the processor time of a question: a
message through the broker, a process that wakes up, a session with PostgreSQL. A task with a question
(`storage.queue.asks`) is sent when that query has a row. It is sent at every period while PostgreSQL does not say, and
once in `UNASKED_SECONDS` whatever it says: a query that overlooks something delays that, and loses nothing.

See docs/decisions.md: Beat asks before it sends.
See docs/decisions.md: Code written by hand, and why it stays.
"""

import logging
import time
from typing import Any

from celery.beat import PersistentScheduler, ScheduleEntry
from django.db import Error, ProgrammingError, connection

from storage.connections import fetch
from storage.queue import QUESTIONS

logger = logging.getLogger(__name__)

UNASKED_SECONDS = 600.0
TOGETHER_SECONDS = 0.2
WAIT_SECONDS = 2.0
"""Seconds that a question waits for PostgreSQL: a frozen server must not hold up beat."""


class Scheduler(PersistentScheduler):
    """Celery's scheduler, with the question before the task."""

    _heap: list[tuple[float, int, ScheduleEntry]] | None
    """Celery's heap: when each entry is due, in its clock, and the entry."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sent_at: dict[str, float] = {}
        self.answers: dict[str, bool] = {}
        """Whether there is something to do, by the names of entries that are due."""
        self.asked_at = 0.0
        """The monotonic time at which PostgreSQL was asked."""
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
        if self._has_question(entry) and not self._answer(entry):
            return
        self.sent_at[str(entry.name)] = time.monotonic()
        super().apply_entry(entry, producer)

    def _has_question(self, entry: ScheduleEntry) -> bool:
        since = self.sent_at.get(str(entry.name), 0.0)
        return str(entry.task) in QUESTIONS and time.monotonic() < since + UNASKED_SECONDS

    def _answer(self, entry: ScheduleEntry) -> bool:
        """Whether there is something to do for an entry that is due. One statement asks for all that are due with it;
        the next turns of beat take their answers.
        """
        name = str(entry.name)
        if name not in self.answers or time.monotonic() > self.asked_at + TOGETHER_SECONDS:
            due = [other for _, _, other in self._heap or () if self._has_question(other) and other.is_due()[0]]
            asked = {str(each.name): QUESTIONS[str(each.task)] for each in [entry, *due]}
            self.answers = dict(zip(asked, are_wanted(list(asked.values())), strict=True))
            self.asked_at = time.monotonic()
        return self.answers.pop(name)


def are_wanted(queries: list[str]) -> list[bool]:
    """Whether each query has a row; True where PostgreSQL does not say. One that is wrong, such as before the
    migration that makes its table, takes no other along: then each is asked alone.
    """
    try:
        return list(fetch(f"SELECT {', '.join(f'EXISTS ({query})' for query in queries)}")[0])
    except Error as error:
        connection.close()  # the next question begins anew
        if len(queries) > 1 and isinstance(error, ProgrammingError):
            return [are_wanted([query])[0] for query in queries]
        logger.info("PostgreSQL does not say what there is to do: %s", error)
        return [True for _ in queries]
