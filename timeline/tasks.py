"""The workers' tasks for the timelines: they take ids and tokens, or nothing, and call what does the work."""

from contextlib import suppress

import redis
from celery import shared_task
from django.conf import settings

from storage import deliveries
from storage.connections import FeedsUnavailableError, feeds_for_tasks, pipelined
from storage.queue import asks
from timeline import active_fans, backfill, check, fanout, inbox, outbox
from timeline.models import Delivery

CHECK_SECONDS = 2.0
"""Seconds that one comparison of windows with PostgreSQL may take."""


@shared_task(name="timeline.fan_out")
def fan_out(item_id: int) -> None:
    """Deliver an item to the windows of its followers."""
    fanout.fan_out(item_id)


@shared_task(name="timeline.fan_out_range")
def fan_out_range(range_id: int) -> None:
    """Deliver an item to one range of its followers."""
    fanout.fan_out_range(range_id)


@shared_task(name="timeline.sweep")
@asks("timeline.sweep", f"{deliveries.due(Delivery)} UNION ALL {backfill.DUE}")
def sweep() -> None:
    """Enqueue deliveries and backfills again that were lost."""
    deliveries.sweep(Delivery)
    backfill.sweep()


@shared_task(name="timeline.backfill")
def run_backfill(backfill_id: int) -> None:
    """Fill inboxes for a demotion, and finish it."""
    backfill.run(backfill_id)


@shared_task(name="timeline.materialise_inbox")
def materialise_inbox(user_id: int, token: str) -> None:
    """Build an inbox, for the construction that `token` names. An error of Redis drops the inbox and is raised."""
    try:
        inbox.materialise(user_id, token)
    except redis.RedisError:
        # Another node than the inbox's may have failed. Pages can begin anew then, before this construction expires.
        with suppress(redis.RedisError):
            pipelined(feeds_for_tasks(), [inbox.Inbox(user_id).drop()])
        raise


@shared_task(name="timeline.rise")
def rise(user_id: int) -> None:
    """Deepen the inbox of a reader whose level has risen."""
    inbox.rise(user_id)


@shared_task(name="timeline.deepen_inbox")
def deepen_inbox(user_id: int, token: str) -> None:
    """Deepen an inbox, for the depth that `token` names."""
    inbox.deepen(user_id, int(token))


@shared_task(name="timeline.materialise_outbox")
def materialise_outbox(source: int, token: str) -> None:
    """Build an outbox, for the construction that `token` names."""
    outbox.materialise(source, token, settings.OUTBOX_CAP)


@shared_task(name="timeline.build_active_fans")
def build_active_fans(user_id: int) -> None:
    """Build the sets of a big-V's active followers."""
    active_fans.build(user_id)


# Tests check their own data, this task the site's. It repairs nothing, which would hide the cause.
@shared_task(name="timeline.check_sample")
def check_sample() -> None:
    """Compare the windows of a few random readers with PostgreSQL; without Redis nothing is checked."""
    with suppress(FeedsUnavailableError):  # windows that do not answer are not used
        check.sampled(count=settings.CHECK_READERS, seconds=CHECK_SECONDS)
