import logging
import time
from typing import Any

from celery.worker.control import inspect_command

from operation import gauges, kept_backups
from operation.dumps import BackupError
from storage.connections import database_now
from storage.queue import task

logger = logging.getLogger(__name__)


@task("operation.observe")
def observe() -> None:
    """Set the sampled gauges."""
    gauges.observe(now=database_now())


@task("operation.census")
def census() -> None:
    """Count users and their levels."""
    gauges.set_user_gauges()


@task("operation.back_up")
def back_up() -> None:
    """Make the daily backup if due. A failure is logged, and retried in the next period."""
    try:
        kept_backups.back_up_if_due(now=database_now())
    except BackupError as error:
        logger.error("the backup failed: %s", error)


@inspect_command()
def wall_clock(state: Any) -> float:
    """The time of a worker's machine, for `doctor`."""
    return time.time()
