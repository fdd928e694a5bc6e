"""Lines of the log: for people, or as JSON for machines, each with the id of its request.

A request has an id: the one that came with it, if it looks like one, else a new one. It is in the answer's header, in
every line that is logged on the way, and in those of the tasks that the request sent. Queries, headers and bodies are
not logged.

See docs/decisions.md: Own code in place of a library.
"""

import json
import logging
import random
import re
import threading
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from celery.signals import before_task_publish, task_postrun, task_prerun

HEADER = "X-Request-ID"
SANE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

request_id: ContextVar[str] = ContextVar("request_id", default="")
task_name: ContextVar[str] = ContextVar("task_name", default="")

KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "about"}
"""Attributes that every record has; the others are what `extra` named."""


def chosen_id(given: str) -> str:
    """The id of a request that came with `given`."""
    return given if SANE.fullmatch(given) else f"{random.getrandbits(64):016x}"


class AboutFilter(logging.Filter):
    """Gives every record `about`: the request and the task that it belongs to, for the plain format."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Give the record `about`: the ids of its request and task. Every record passes."""
        about = " ".join(filter(None, (request_id.get(), task_name.get())))
        record.about = f" [{about}]" if about else ""
        return True


class Outage:
    """An outage of PostgreSQL, as this process meets it: told once when it begins, and once when it is over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = None
        self._left_out = 0

    def begins(self) -> bool:
        """Whether this is the first news of it. Others are counted."""
        with self._lock:
            is_first = self._since is None
            if is_first:
                self._since, self._left_out = time.monotonic(), 0
            else:
                self._left_out += 1
        return is_first

    def ends(self) -> None:
        """PostgreSQL gave this process a session."""
        if self._since is None:
            return
        with self._lock:
            if self._since is None:
                return
            seconds, self._since = time.monotonic() - self._since, None
        logging.getLogger("postgresql").warning(
            "PostgreSQL answers again, after %.0f s. %d further lines about it were left out.", seconds, self._left_out
        )


outage = Outage()


class OutageFilter(logging.Filter):
    """Lets one line of an outage of PostgreSQL pass, without its traceback. Each request, task and question that fails
    meanwhile would be one more.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is no news of an outage, or the first."""
        told = [record.exc_info[1] if record.exc_info else None]
        told += [each for each in record.args or () if isinstance(each, BaseException)]
        cause = next((cause for error in told if error and (cause := cause_away(error))), None)
        if cause is None:
            return True
        if not outage.begins():
            return False
        what, why = (" ".join(str(each).split()) for each in (record.getMessage().partition("Traceback")[0], cause))
        record.msg, record.args = f"PostgreSQL does not answer: {why}. So this failed: {what}", ()
        record.exc_info = record.exc_text = None
        return True


AWAY = ("08", "57P", "25006", "25P03", "25P04")
"""The beginnings of the codes of errors by which PostgreSQL says that it cannot serve just now."""


def cause_away(error: BaseException) -> BaseException | None:
    """The error of psycopg that says that PostgreSQL is away, among the causes of an error."""
    import psycopg  # which the supervisor, that has this module too, does without

    for _ in range(5):
        if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
            return error if (error.sqlstate or "08").startswith(AWAY) else None
        cause = error.__cause__ or error.__context__
        if cause is None:
            return None
        error = cause
    return None


class RefusalFilter(logging.Filter):
    """Leaves out Django's line on an answer 404 or 503, which the access log has.

    Takes the traceback off its line on a request that was refused, or that a server failed which is away: the answer
    is meant, and the line names the address. Of an outage it names the cause, too.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Take the traceback from records of answers other than 500."""
        status = getattr(record, "status_code", 500)
        if record.name == "django.request" and status in (404, 503) and not record.exc_info:
            return False
        if record.name.startswith("django.") and record.exc_info and status != 500:
            if status > 500:
                cause = " ".join(str(record.exc_info[1]).split())
                record.msg, record.args = f"{record.getMessage()}: {cause}", ()
            record.exc_info = record.exc_text = None
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `at` (UTC), `level`, `logger`, `message`; `request_id` and `task` where there are some;
    `error` (the traceback); and what `extra` named.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        fields: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if about := request_id.get():
            fields["request_id"] = about
        if task := task_name.get():
            fields["task"] = task
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        for name, value in vars(record).items():
            # Django names the request in `extra`; it would be written with its address and query.
            if name not in KNOWN and name not in fields and isinstance(value, str | int | float | bool):
                fields[name] = value
        return json.dumps(fields, ensure_ascii=False, default=str)


# --- Tasks -----------------------------------------------------------------------------------------------
@before_task_publish.connect
def hand_on(headers: dict[str, Any], **kwargs: Any) -> None:
    """A task belongs to the request that sent it."""
    if about := request_id.get():
        headers["request_id"] = about


@task_prerun.connect
def take_over(task: Any, **kwargs: Any) -> None:
    """Take the request's id from the task that begins, so that its lines name both."""
    given = task.request.get("request_id") or (task.request.headers or {}).get("request_id")
    request_id.set(given if isinstance(given, str) and SANE.fullmatch(given) else "")
    task_name.set(task.name)


@task_postrun.connect
def let_go(**kwargs: Any) -> None:
    """Forget the request's id and the task, which has ended."""
    request_id.set("")
    task_name.set("")
