"""Celery tasks of accounts."""

from celery import shared_task

from accounts import levels


@shared_task(name="accounts.lower_levels")
def lower_levels() -> None:
    """Periodic: lower the levels of those who have not been seen for long."""
    levels.lower_levels()
