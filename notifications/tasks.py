from notifications import bells, forgetting
from notifications.push import waiting
from storage.queue import only_if_rows, task


@task("notifications.forget_old")
def forget_old() -> None:
    """Periodic: delete old entries."""
    forgetting.forget_old()


@task("notifications.sweep_bells")
@only_if_rows(
    "notifications.sweep_bells",
    "SELECT coalesce(tried_at, created_at) FROM notifications_ringing",
    work="bells",
)
def sweep_bells() -> None:
    """Periodic: send lost bells to the workers."""
    bells.sweep()


@task("notifications.sweep_pushes")
@only_if_rows("notifications.sweep_pushes", waiting.DUE, work="pushes")
def sweep_pushes() -> None:
    """Periodic: enqueue tasks of devices with a lost task, a dead worker or a pause that is over."""
    waiting.sweep()
