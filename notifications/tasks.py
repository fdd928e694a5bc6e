"""The workers' tasks for the notifications."""

from celery import shared_task

from accounts.models import User
from notifications import actions, forgetting
from storage.queue import enqueue


@shared_task(name="notifications.forget_old")
def forget_old() -> None:
    """Periodic: drop entries that are too old to be looked for, and complete acts of workers of an earlier version."""
    actions.give_recipients()
    forgetting.forget_old()


@shared_task(name="notifications.announce")
def announce(user_id: int) -> None:
    """Tell a user's open pages and apps of acts that came closely after one that was announced."""
    actions.announce_to(user_id)


@shared_task(name="notifications.put_away")
def put_away(user_id: int, below: int) -> None:
    """Go on removing what a user put away, and leave the rest to another task."""
    user = User.objects.filter(pk=user_id).first()
    rest = actions.put_away(user=user, below=below) if user else None
    if rest is not None:
        enqueue("notifications.put_away", user_id, rest)
