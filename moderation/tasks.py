from celery import shared_task

from moderation import hashes


@shared_task(name="moderation.forget_attempts")
def forget_attempts() -> None:
    """Periodic: delete old attempts to send blocked pictures."""
    hashes.forget_attempts()
