"""Lines of the log: for people, or as JSON for machines, each with the id of its request.

A request has an id: the one that came with it, if it looks like one, else a new one. It is in the answer's header, in
every line that is logged on the way, and in those of the tasks that the request sent. Queries, headers and bodies are
not logged.

See docs/decisions.md: Code written by hand, and why it stays.
"""

import json
import logging
import random
import re
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


class RefusalFilter(logging.Filter):
    """Takes the traceback off Django's line on a request that was refused, or that a server failed which is away: the
    answer is meant, and the line names the address. Of an outage it names the cause, too.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Take the traceback from records of answers other than 500. Every record passes."""
        status = getattr(record, "status_code", 500)
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
