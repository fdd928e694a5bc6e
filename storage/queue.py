"""Tasks for the workers. The broker is a hint: what has to be done stands in PostgreSQL before a task is sent."""

import logging
from typing import Any

import redis
from celery import current_app
from kombu.exceptions import KombuError

from storage.breaker import OpenError
from storage.connections import broker_breaker

logger = logging.getLogger(__name__)


def enqueue(task: str, *args: Any) -> bool:
    """Send a task to the workers, by name; False if the broker did not take it.

    The caller has written what is to be done into PostgreSQL already, or can do without the task: a dead broker is
    logged, costs at most a second in a second, and never reaches a user.
    """
    try:
        with broker_breaker.asking():
            current_app.send_task(task, args)
    except OpenError:
        return False
    except (KombuError, redis.RedisError, OSError) as error:
        logger.warning("the broker did not take %s%s: %s", task, args, error)
        return False
    return True
