from celery import shared_task

from live import lineup, measuring, reminders, replays, snapshot, timing
from live.models import ReplayDelivery
from storage import deliveries
from storage.connections import database_now
from storage.queue import asks


@shared_task(name="live.apply")
def apply(host_id: int) -> None:
    """Write a host's committed lineup to Redis."""
    lineup.apply(host_id)


@shared_task(name="live.sweep")
@asks(
    "live.sweep",
    f"{lineup.LEFT} UNION ALL {reminders.LEFT} UNION ALL {deliveries.due(ReplayDelivery)}",
    work="reminders of live sessions",
)
def sweep() -> None:
    """Periodic: queue lost work again."""
    lineup.sweep(now=database_now())
    deliveries.sweep(ReplayDelivery)
    reminders.sweep()


@shared_task(name="live.fan_out")
def fan_out(session_id: int) -> None:
    """Deliver a replay to its followers' windows."""
    replays.fan_out(session_id)


@shared_task(name="live.materialise_replays")
def materialise_replays(user_id: int, token: str) -> None:
    """Build a window of replays for construction `token`."""
    replays.materialise(user_id, token)


@shared_task(name="live.forget_snapshots")
def forget_snapshots() -> None:
    """Periodic: delete expired snapshots in PostgreSQL."""
    snapshot.forget_kept(now=database_now())


@shared_task(name="live.run")
@asks("live.run", timing.DUE)
def run() -> None:
    """Periodic: start, end and miss sessions that are due."""
    timing.run(now=database_now())


@shared_task(name="live.remind")
def remind(session_id: int) -> None:
    """Send the reminders of a session that has started."""
    reminders.send(session_id)


@shared_task(name="live.measure")
def measure() -> None:
    """Periodic: record the metrics."""
    measuring.measure(now=database_now())
