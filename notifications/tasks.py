from celery import shared_task

from accounts.models import User
from notifications import actions, forgetting
from notifications.push import sending
from storage.queue import enqueue


@shared_task(name="notifications.forget_old")
def forget_old() -> None:
    """Periodic: delete old entries."""
    forgetting.forget_old()


@shared_task(name="notifications.announce")
def announce(user_id: int) -> None:
    """Announce acts that came soon after an announced one."""
    actions.announce_to(user_id)


@shared_task(name="notifications.put_away")
def put_away(user_id: int, below: int) -> None:
    """Continue deleting the user's notifications, and queue the rest."""
    user = User.objects.filter(pk=user_id).first()
    rest = actions.put_away(user=user, below=below) if user else None
    if rest is not None:
        enqueue("notifications.put_away", user_id, rest)


@shared_task(name="notifications.push")
def push(act_ids: list[int]) -> None:
    """Push acts to the devices of their recipients."""
    sending.push(act_ids)


@shared_task(name="notifications.push_again")
def push_again(act_id: int, subscription_id: int, attempt: int) -> None:
    """Push an act again to a device."""
    sending.push([act_id], only=subscription_id, attempt=attempt)


@shared_task(name="notifications.push_trial")
def push_trial(subscription_id: int) -> None:
    """Send a trial message to a device."""
    sending.push_trial(subscription_id)
