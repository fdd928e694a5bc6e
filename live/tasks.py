"""What the workers do for live sessions: each task takes ids and calls one function."""

from celery import shared_task
from django.utils import timezone

from live import lineup


@shared_task(name="live.apply")
def apply(host_id: int) -> None:
    """Bring a host's lineup to what is committed now, whatever event sent for it."""
    lineup.apply(host_id)


@shared_task(name="live.sweep")
def sweep() -> None:
    """Periodic: send again for what was lost on the way."""
    lineup.sweep(now=timezone.now())
