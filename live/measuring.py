from datetime import datetime

from live.models import State
from runtime import metrics
from storage import ids
from storage.connections import fetch

STATES = "SELECT state, count(*) FROM live_livesession GROUP BY state"
BEHIND = "SELECT count(*), min(version) FROM live_host WHERE applied <> version"


def measure(*, now: datetime) -> None:
    """Record sessions by state, and how far lineups are behind."""
    counts = dict(fetch(STATES))
    for state in State.values:
        metrics.live_sessions.labels(state).set(counts.get(state, 0))
    behind, oldest = fetch(BEHIND)[0]
    metrics.live_lineups_behind.set(behind)
    age = (now - ids.moment(oldest)).total_seconds() if behind else 0.0
    metrics.live_lineup_lag_seconds.set(max(0.0, age))
