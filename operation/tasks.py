"""The workers' tasks for the site's operators."""

from celery import shared_task

from operation import gauges
from storage.connections import database_now


@shared_task(name="operation.observe")
def observe() -> None:
    """Set the gauges that no process counts."""
    gauges.observe(now=database_now())


@shared_task(name="operation.census")
def census() -> None:
    """Count the users and their levels."""
    gauges.census()
