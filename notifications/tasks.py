from celery import shared_task

from accounts.models import User
from notifications import actions, forgetting
from notifications.push import sending, waiting
from storage.queue import asks, enqueue


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
    """Have acts wait for the devices of their recipients."""
    sending.push(act_ids)


@shared_task(name="notifications.push_device")
def push_device(subscription_id: int) -> None:
    """Send what waits for a device."""
    sending.push_device(subscription_id)


@shared_task(name="notifications.push_trial")
def push_trial(subscription_id: int) -> None:
    """Send the test that waits for a device."""
    sending.push_device(subscription_id)


@shared_task(name="notifications.sweep_pushes")
@asks("notifications.sweep_pushes", waiting.DUE, work="pushes")
def sweep_pushes() -> None:
    """Periodic: enqueue tasks of devices with a lost task, a dead worker or a pause that is over."""
    waiting.sweep()
