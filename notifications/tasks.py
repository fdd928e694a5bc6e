"""The workers' tasks for the notifications."""

from celery import shared_task

from notifications import actions


@shared_task(name="notifications.forget_old")
def forget_old() -> None:
    """Periodic: drop entries that are too old to be looked for."""
    actions.forget_old()
