"""Tasks for the workers. The broker is a hint: what has to be done stands in PostgreSQL before a task is sent."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from celery import current_app

from storage.breaker import OpenError
from storage.connections import BROKER_FAILURES, broker_breaker

logger = logging.getLogger(__name__)

CONFIRM_SECONDS = 0.5
"""How long RabbitMQ may take to say that it has a message. Redis answers each command."""

Function = TypeVar("Function", bound=Callable[..., Any])

QUESTIONS: dict[str, str] = {}
"""Periodic task → the query that has a row when there is something to do (storage.quiet)."""


def asks(task: str, query: str) -> Callable[[Function], Function]:
    """Have beat send the task of that name only when the query has a row."""
    QUESTIONS[task] = query
    return lambda function: function


def enqueue(task: str, *args: Any, after_seconds: float | None = None) -> bool:
    """Send a task to the workers, by name, to be run at once or later; False if the broker did not take it.

    The caller has written what is to be done into PostgreSQL already, or can do without the task: a dead broker is
    logged, costs at most a second in a second, and never reaches a user.
    """
    try:
        with broker_breaker.asking():
            current_app.send_task(task, args, countdown=after_seconds, confirm_timeout=CONFIRM_SECONDS)
    except OpenError:
        return False
    except BROKER_FAILURES as error:
        logger.warning("the broker did not take %s%s: %s", task, args, error)
        return False
    return True
