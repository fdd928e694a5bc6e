from datetime import datetime

from django.db.models import Count, Min

from live.models import Host, LiveSession, State
from runtime import metrics
from storage import ids


def measure(*, now: datetime) -> None:
    """Record sessions by state, and how far lineups are behind."""
    counts = dict(LiveSession.objects.values_list("state").annotate(Count("pk")).order_by())
    for state in State.values:
        metrics.live_sessions.labels(state).set(counts.get(state, 0))
    behind, oldest = Host.objects.behind().aggregate(count=Count("pk"), oldest=Min("version")).values()
    metrics.live_lineups_behind.set(behind)
    age = (now - ids.moment(oldest)).total_seconds() if behind else 0.0
    metrics.live_lineup_lag_seconds.set(max(0.0, age))
