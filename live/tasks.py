from live import lineup, measuring, reminders, replays, snapshot, timing
from live.models import ReplayDelivery
from storage import deliveries
from storage.connections import database_now
from storage.queue import only_if_rows, task


@task("live.sweep")
@only_if_rows(
    "live.sweep",
    f"{lineup.LEFT} UNION ALL {reminders.LEFT} UNION ALL {deliveries.due_query(ReplayDelivery)}",
    work="reminders of live sessions",
)
def sweep() -> None:
    """Periodic: queue lost work again."""
    lineup.queue_outdated(now=database_now())
    deliveries.sweep(ReplayDelivery, replays.fan_out)
    reminders.sweep()


@task("live.forget_snapshots")
def forget_snapshots() -> None:
    """Periodic: delete expired snapshots in PostgreSQL."""
    snapshot.delete_expired(now=database_now())


@task("live.run")
@only_if_rows("live.run", timing.DUE)
def run() -> None:
    """Periodic: start, end and miss sessions that are due."""
    timing.advance_due(now=database_now())


@task("live.measure")
def measure() -> None:
    """Periodic: record the metrics."""
    measuring.measure(now=database_now())
