"""The workers' tasks for notifications."""

from celery import shared_task

from accounts.models import User
from notifications import actions, forgetting
from storage.queue import enqueue


@shared_task(name="notifications.forget_old")
def forget_old() -> None:
    """Periodic: delete old entries, and complete acts of an earlier version."""
    actions.give_recipients()
    forgetting.forget_old()


@shared_task(name="notifications.announce")
def announce(user_id: int) -> None:
    """Announce acts that came soon after an announced one."""
    actions.announce_to(user_id)


@shared_task(name="notifications.put_away")
def put_away(user_id: int, below: int) -> None:
    """Continue deleting a user's list, and queue the rest."""
    user = User.objects.filter(pk=user_id).first()
    rest = actions.put_away(user=user, below=below) if user else None
    if rest is not None:
        enqueue("notifications.put_away", user_id, rest)
