"""Celery tasks of accounts."""

from celery import shared_task
from django.core.management import call_command

from accounts import levels


@shared_task(name="accounts.lower_levels")
def lower_levels() -> None:
    """Periodic: lower the levels of those who have not been seen for long."""
    levels.lower_levels()


@shared_task(name="accounts.clear_sessions")
def clear_sessions() -> None:
    """Periodic: drop sessions that have expired, which Django itself leaves in the table."""
    call_command("clearsessions")
