"""Figures that no process counts in passing, asked for by a task: backlog, queues, users; and the history of all
counts.

So /metrics and the dashboard cost no query of a large table, however often they are asked for.

See docs/decisions.md: Counters are kept as they are, and subtracted when they are drawn.
"""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from celery import current_app
from kombu.exceptions import ChannelError

from about import actions as about
from accounts.models import Level
from operation.models import Sample
from runtime import metrics
from storage import replica
from storage.connections import fetch
from storage.parking import PARKED

KEPT = timedelta(days=2)
WAIT_SECONDS = 1.0
"""Seconds that the broker gets to say how long its queues are."""
CENSUS_SECONDS = 60.0
"""Seconds that counting all users may take a replica."""

BACKLOG = """
    SELECT count(*) FILTER (WHERE parked_at IS NULL), count(*) FILTER (WHERE parked_at IS NOT NULL),
        coalesce(extract(epoch FROM %(now)s - min(not_before) FILTER (WHERE parked_at IS NULL)), 0)::float8
    FROM timeline_delivery
"""
CENSUS = "SELECT level, count(*), count(*) FILTER (WHERE is_big_v) FROM accounts_user GROUP BY level"

ITEMS = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'items_item'::regclass"
"""PostgreSQL's own estimate, so that no public number costs a count of a large table."""


def observe(*, now: datetime) -> None:
    """Set the gauges that say how far the workers are behind, and keep a sample of the minute."""
    pending, parked, oldest = fetch(BACKLOG, {"now": now})[0]
    metrics.deliveries_pending.set(pending)
    metrics.deliveries_parked.set(parked)
    metrics.delivery_oldest.set(max(oldest, 0.0))
    for queue, length in queue_lengths().items():
        metrics.queue_length.labels(queue).set(length)
    replica.observe()
    metrics.sampled_at.set(now.timestamp())
    minute = now.replace(second=0, microsecond=0)
    Sample.objects.bulk_create([Sample(at=minute, figures=figures())], ignore_conflicts=True)
    Sample.objects.filter(at__lt=now - KEPT).delete()


def census() -> None:
    """Count the users of each level: a walk over all of them, so seldom."""
    rows = replica.lagging(None, lambda on: fetch(CENSUS, on=on), seconds=CENSUS_SECONDS)
    found = {level: (users, big_vs) for level, users, big_vs in rows}
    for level in Level.values:
        metrics.users.labels(str(level)).set(found.get(level, (0, 0))[0])
    metrics.big_vs.set(sum(big_vs for _, big_vs in found.values()))
    ((items,),) = fetch(ITEMS)
    users = sum(users for users, _ in found.values())
    about.count(users=users, active=users - found.get(Level.DORMANT, (0, 0))[0], items=items)


def queue_lengths() -> dict[str, int]:
    """Messages that wait by queue, and those that are parked. Raises what the broker's client raises."""
    with current_app.connection_for_read(connect_timeout=WAIT_SECONDS) as connection:
        return {name: _length(connection.default_channel, name) for name in (*current_app.amqp.queues, PARKED)}


def _length(channel: Any, name: str) -> int:
    """How many messages wait, without making the queue: an empty one of Redis is no key, and elsewhere there is none
    before a worker has run.
    """
    try:
        return int(channel.queue_declare(queue=name, passive=True).message_count)
    except ChannelError:
        return 0


def figures() -> dict[str, Any]:
    """The counts of all processes, as a sample keeps them. Counters without labels are numbers, others dicts; `lag` has
    the cumulative counts of the histogram by upper bound (seconds).
    """
    kept: dict[str, Any] = defaultdict(dict) | {"requests": 0.0, "errors": 0.0}
    for name, labels, value in metrics.samples():
        if name == "feedsite_http_seconds_count":
            kept["requests"] += value
            kept["errors"] += value if labels["status"].startswith("5") else 0
        elif name == "feedsite_delivery_seconds_bucket":
            kept["lag"][labels["le"]] = value
        elif name in NUMBERS:
            kept[NUMBERS[name]] = value
        elif name in BY_LABEL:
            key, label = BY_LABEL[name]
            kept[key][labels[label]] = value
    return dict(kept)


NUMBERS = {
    "feedsite_deliveries_pending": "pending",
    "feedsite_deliveries_parked": "parked",
    "feedsite_delivery_oldest_seconds": "oldest",
    "feedsite_fanout_entries_total": "entries",
    "feedsite_oracle_readers_total": "readers",
    "feedsite_big_vs": "big_vs",
    "feedsite_stream_connections": "streams",
}
BY_LABEL = {
    "feedsite_queue_length": ("queues", "queue"),
    "feedsite_home_pages_total": ("pages", "sources"),
    "feedsite_home_misses_total": ("misses", "reason"),
    "feedsite_oracle_differences_total": ("differences", "kind"),
    "feedsite_users": ("levels", "level"),
}
