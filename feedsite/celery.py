"""The Celery application. The broker is a hint: the delivery table is the queue of record."""

import logging
import os
from typing import Any

import redis
from celery import Celery
from kombu.exceptions import KombuError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")

logger = logging.getLogger(__name__)

app = Celery("feedsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def enqueue(task: str, *args: Any) -> bool:
    """Send a task to the workers, by name; False if the broker did not take it.

    Whoever calls has written what is to be done into PostgreSQL already, or can do without: so a dead broker is
    logged, costs at most a second in a second, and never reaches a user.
    """
    from feedsite.breaker import OpenError
    from feedsite.connections import broker_breaker  # settings are not ready when Celery loads this module

    try:
        with broker_breaker.asking():
            app.send_task(task, args)
    except OpenError:
        return False
    except (KombuError, redis.RedisError, OSError) as error:
        logger.warning("the broker did not take %s%s: %s", task, args, error)
        return False
    return True
