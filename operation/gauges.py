"""Gauges that a task sets, so that `/metrics` never queries a table."""

import logging
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import redis
from celery import current_app
from django.conf import settings
from django.core.cache import cache
from django.db import OperationalError, transaction
from kombu.exceptions import ChannelError

from accounts.about import actions as about
from accounts.mail.sending import unsent
from accounts.models import Level
from media import resizing
from operation.doctor.outside import certificate_ends
from operation.doctor.redis_servers import primaries
from operation.locks import holders
from runtime import metrics
from storage import keys, replica
from storage.connections import client_of, fetch
from storage.postgresql import is_lock_timeout
from storage.queue import QUEUES, WORK

logger = logging.getLogger(__name__)

SIGN_KEPT = timedelta(days=1)
"""How long `doctor` can tell when beat last worked."""
LOCK_SECONDS = 5
"""How long measuring waits for a locked table."""
WAIT_SECONDS = 1.0
"""Seconds for the broker to report queue lengths."""
CENSUS_SECONDS = 60.0
"""Seconds for counting all users on a replica."""

BACKLOG = """
    SELECT count(*) FILTER (WHERE parked_at IS NULL), count(*) FILTER (WHERE parked_at IS NOT NULL),
        coalesce(extract(epoch FROM %(now)s - min(not_before) FILTER (WHERE parked_at IS NULL)), 0)::float8
    FROM (SELECT parked_at, not_before FROM timeline_delivery
        UNION ALL SELECT parked_at, created_at FROM live_replaydelivery) AS delivery (parked_at, not_before)
"""
SESSIONS = """
    SELECT sum(numbackends)::float8 / current_setting('max_connections')::int FROM pg_stat_database
"""
CENSUS = "SELECT level, count(*), count(*) FILTER (WHERE is_big_v) FROM accounts_user GROUP BY level"

ITEMS = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'items_item'::regclass"
"""PostgreSQL's estimate, because counting a large table is expensive."""


def observe(*, now: datetime) -> None:
    """Set the gauges, and record that beat and a worker work."""
    metrics.sessions.set(fetch(SESSIONS)[0][0])
    metrics.lock_age.set(max((each.seconds for each in holders()), default=0.0))
    try:
        with transaction.atomic():
            fetch("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_SECONDS}s"])
            _observe_work(now)
    except OperationalError as error:
        if not is_lock_timeout(error):
            raise
        logger.warning("a table is locked, so the work that waits was not measured: %s", error)
    for queue, length in queue_lengths().items():
        metrics.queue_length.labels(queue).set(length)
    for server, (used, evicted) in memory().items():
        metrics.redis_memory.labels(server).set(used)
        metrics.redis_evicted.labels(server).set(evicted)
    replica.observe()
    metrics.sampled_at.set(now.timestamp())
    cache.set(keys.observed(), now.timestamp(), SIGN_KEPT.total_seconds())


def _observe_work(now: datetime) -> None:
    pending, parked, oldest = fetch(BACKLOG, {"now": now})[0]
    metrics.deliveries_pending.set(pending)
    metrics.deliveries_parked.set(parked)
    metrics.delivery_oldest.set(max(oldest, 0.0))
    for work, seconds in oldest_waits().items():
        metrics.waiting.labels(work).set(seconds)


def memory() -> dict[str, tuple[float, int]]:
    """Per server the used share of its maxmemory, and how many keys it has evicted.

    Of a cluster the fullest primary, and all keys. A server that does not answer is left out.
    """
    found: dict[str, tuple[float, int]] = {}
    for role, url in primaries():
        with suppress(redis.RedisError), client_of(url, WAIT_SECONDS) as client:
            info = client.info()
            share = info["used_memory"] / allowed if (allowed := info.get("maxmemory")) else 0.0
            fullest, evicted = found.get(role, (0.0, 0))
            found[role] = max(share, fullest), evicted + info.get("evicted_keys", 0)
    return found


def oldest_waits() -> dict[str, float]:
    """For how many seconds the oldest row of each work waits. 0: none waits."""
    current_app.loader.import_default_modules()
    oldest = " UNION ALL ".join(f"SELECT '{work}', min(since) FROM ({WORK[work]}) AS row (since)" for work in WORK)
    query = f"SELECT work, extract(epoch FROM now() - since)::float8 FROM ({oldest}) AS oldest (work, since)"
    return {work: max(seconds or 0.0, 0.0) for work, seconds in fetch(query)}


def last_observed() -> datetime | None:
    """When `observe` last ran. None after a day, or if the cache lost it."""
    found = cache.get(keys.observed())
    return datetime.fromtimestamp(found, UTC) if isinstance(found, float) else None


def set_user_gauges() -> None:
    """Set the gauges of users per level, letters given up and pictures without sizes. Scans the whole table of users,
    so it runs rarely.
    """
    rows = replica.read_from_replica(None, lambda on: fetch(CENSUS, on=on), seconds=CENSUS_SECONDS)
    found = {level: (users, big_vs) for level, users, big_vs in rows}
    for level in Level.values:
        metrics.users.labels(str(level)).set(found.get(level, (0, 0))[0])
    metrics.letters_failed.set(unsent().count())
    metrics.pictures_unsized.set(resizing.count_lacking())
    metrics.big_vs.set(sum(big_vs for _, big_vs in found.values()))
    ((items,),) = fetch(ITEMS)
    users = sum(users for users, _ in found.values())
    with suppress(OSError):  # doctor says why
        if urlsplit(settings.SITE_URL).scheme == "https":
            metrics.certificate_ends.labels(settings.SITE_URL).set(certificate_ends())
    about.store_counts(users=users, active=users - found.get(Level.DORMANT, (0, 0))[0], items=items)


def queue_lengths() -> dict[str, int]:
    """The length of each of Celery's queues. Raises the broker client's errors."""
    with current_app.connection_for_read(connect_timeout=WAIT_SECONDS) as connection:
        return {name: _length(connection.default_channel, name) for name in QUEUES}


def _length(channel: Any, name: str) -> int:
    """The length of a queue. Does not create it."""
    try:
        return int(channel.queue_declare(queue=name, passive=True).message_count)
    except ChannelError:
        return 0
