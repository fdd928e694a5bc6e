import logging

from celery import shared_task

from operation import gauges, kept_backups
from operation.dumps import BackupError
from storage.connections import database_now

logger = logging.getLogger(__name__)


@shared_task(name="operation.observe")
def observe() -> None:
    """Set the sampled gauges."""
    gauges.observe(now=database_now())


@shared_task(name="operation.census")
def census() -> None:
    """Count users and their levels."""
    gauges.census()


@shared_task(name="operation.back_up")
def back_up() -> None:
    """Make the daily backup if due. A failure is logged, and retried in the next period."""
    try:
        kept_backups.tend(now=database_now())
    except BackupError as error:
        logger.error("the backup failed: %s", error)
