"""Log lines as text or JSON, with the id of their request.

The answer and the request's tasks have the id too. Queries, headers and bodies are never logged.

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
"""Attributes of every record. Others come from `extra`."""


def valid_or_new_id(given: str) -> str:
    """The id of a request: `given` if valid, else a new one."""
    return given if SANE.fullmatch(given) else f"{random.getrandbits(64):016x}"


class AboutFilter(logging.Filter):
    """Adds `about` to records, for the plain format."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add `about`. Every record passes."""
        about = " ".join(filter(None, (request_id.get(), task_name.get())))
        record.about = f" [{about}]" if about else ""
        return True


class Outage:
    """Tells when an outage of PostgreSQL begins and ends, so that it is logged twice only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = None
        self._left_out = 0

    def begins(self) -> bool:
        """Note an error. True if the outage is new. Repeats are counted."""
        with self._lock:
            is_first = self._since is None
            if is_first:
                self._since, self._left_out = time.monotonic(), 0
            else:
                self._left_out += 1
        return is_first

    def ends(self) -> None:
        """Note that PostgreSQL answers this process. Logs the end of an outage."""
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
    """A filter that lets one line per outage pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop repeated records of one outage."""
        told = [record.exc_info[1] if record.exc_info else None]
        told += [each for each in record.args or () if isinstance(each, BaseException)]
        cause = next((cause for error in told if error and (cause := outage_cause(error))), None)
        if cause is None:
            return True
        if not outage.begins():
            return False
        what, why = (" ".join(str(each).split()) for each in (record.getMessage().partition("Traceback")[0], cause))
        record.msg, record.args = f"PostgreSQL does not answer: {why}. So this failed: {what}", ()
        record.exc_info = record.exc_text = None
        return True


AWAY = ("08", "57P", "25006", "25P03", "25P04")
"""Beginnings of SQLSTATEs that say that PostgreSQL cannot serve now."""


def outage_cause(error: BaseException) -> BaseException | None:
    """The error among the causes that says that PostgreSQL is away, or None."""
    import psycopg  # the supervisor uses this module without psycopg

    for _ in range(5):
        if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
            return error if (error.sqlstate or "08").startswith(AWAY) else None
        cause = error.__cause__ or error.__context__
        if cause is None:
            return None
        error = cause
    return None


class RefusalFilter(logging.Filter):
    """Drops Django's lines for 404 and 503, which the access log has, and tracebacks of expected errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a line to drop. Removes the traceback unless the status is 500."""
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
    """JSON lines with `at` in UTC, the traceback as `error`, and what `extra` names."""

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
            # Skip the request that Django adds: it would be written with its address and query.
            if name not in KNOWN and name not in fields and isinstance(value, str | int | float | bool):
                fields[name] = value
        return json.dumps(fields, ensure_ascii=False, default=str)


# --- Tasks -----------------------------------------------------------------------------------------------
@before_task_publish.connect
def add_request_id(headers: dict[str, Any], **kwargs: Any) -> None:
    """Add the request's id to the task's message."""
    if about := request_id.get():
        headers["request_id"] = about


@task_prerun.connect
def set_context(task: Any, **kwargs: Any) -> None:
    """Set the request's id and the task's name for the logs of a beginning task."""
    given = task.request.get("request_id") or (task.request.headers or {}).get("request_id")
    request_id.set(given if isinstance(given, str) and SANE.fullmatch(given) else "")
    task_name.set(task.name)


@task_postrun.connect
def clear_context(**kwargs: Any) -> None:
    """Clear the request's id and the task's name when the task ends."""
    request_id.set("")
    task_name.set("")
