"""Sends tasks to the workers. The broker is a hint: PostgreSQL has the work first.

See docs/decisions.md: What strangers choose has a lane.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from celery import current_task, shared_task
from celery.contrib.django.task import DjangoTask
from django.conf import settings
from django.db import transaction
from kombu import Connection, Producer

from runtime.afterwards import once_answered
from storage.breaker import BreakerOpenError
from storage.connections import BROKER_FAILURES, broker_breaker

logger = logging.getLogger(__name__)

CONFIRM_SECONDS = 0.5
"""How long RabbitMQ may take to confirm a message. Redis confirms by its reply."""

OUTSIDE = "outside"
"""The lane: the queue of tasks that wait for hosts that members chose, or read files that strangers made. It has
processes of its own.
"""
QUEUES = ("celery", OUTSIDE)


class FullBrokerError(Exception):
    """RabbitMQ takes no messages: its disk or its memory is full."""


NOBODY = "feedsite.nobody"
"""The name of no queue."""

Function = TypeVar("Function", bound=Callable[..., Any])
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result", covariant=True)

QUESTIONS: dict[str, str] = {}
"""Periodic task → the query that has a row if there is work (storage.quiet)."""
WORK: dict[str, str] = {}
"""Name of work → the query of the times since which its rows wait (operation.gauges)."""


def only_if_rows(task: str, query: str, *, work: str = "") -> Callable[[Function], Function]:
    """Decorate a periodic task: beat sends it only if the query has a row.

    `work`: what waits, if the query selects since when. A failed try must not move this time.
    """
    QUESTIONS[task] = query
    if work:
        WORK[work] = query
    return lambda function: function


class HintTask(DjangoTask[Arguments, Result]):
    """A task of the site. `delay` and `delay_on_commit` send it to the workers, the latter once a request is answered.

    `delay` is falsy if the broker did not take it. A dead broker is only logged: the work is in PostgreSQL, or can be
    skipped.
    """

    abstract = True

    def delay_on_commit(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Any:
        """Send the task after the commit, and after the answer of a request."""
        transaction.on_commit(partial(once_answered, partial(self.delay, *args, **kwargs)))

    def apply_async(self, *args: Any, **options: Any) -> Any:
        """Send the task. None if the broker did not take it."""
        try:
            with broker_breaker.guard():
                return super().apply_async(*args, **options | {"confirm_timeout": CONFIRM_SECONDS})
        except BreakerOpenError:
            return None
        except BROKER_FAILURES as error:
            logger.warning(
                "the broker did not accept the task %s%s. A sweep repeats it if needed: %s", self.name, args[:1], error
            )
            return None


def task(name: str, **options: Any) -> Callable[[Callable[Arguments, Result]], HintTask[Arguments, Result]]:
    """Decorate a function that workers call. In `tasks.py` are those that only beat sends."""
    return shared_task(name=name, base=HintTask, **options)


def check_lane() -> None:
    """Raise RuntimeError in a task that is not of the lane. Called before strangers' hosts and files are waited for."""
    if current_task and current_task.name not in settings.CELERY_TASK_ROUTES:
        raise RuntimeError(f"{current_task.name} waits for strangers and is not in the lane {OUTSIDE}")


def check_room(connection: Connection) -> None:
    """Raise FullBrokerError if RabbitMQ is full: it does not refuse messages, but lets senders wait."""
    connection.connect()
    if connection.transport.driver_type != "amqp":
        return
    try:  # nobody gets the message
        Producer(connection).publish("?", routing_key=NOBODY, confirm_timeout=CONFIRM_SECONDS)
    except TimeoutError as error:
        raise FullBrokerError("RabbitMQ takes no messages: its disk or its memory is full") from error
