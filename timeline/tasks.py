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
    """Deliver an item to its followers' windows."""
    fanout.fan_out(item_id)


@shared_task(name="timeline.fan_out_range")
def fan_out_range(range_id: int) -> None:
    """Deliver an item to a range of followers."""
    fanout.fan_out_range(range_id)


@shared_task(name="timeline.sweep")
@asks("timeline.sweep", f"{deliveries.due(Delivery)} UNION ALL {backfill.DUE}")
def sweep() -> None:
    """Enqueue lost deliveries and backfills again."""
    deliveries.sweep(Delivery)
    backfill.sweep()


@shared_task(name="timeline.backfill")
def run_backfill(backfill_id: int) -> None:
    """Run a demotion."""
    backfill.run(backfill_id)


@shared_task(name="timeline.materialise_inbox")
def materialise_inbox(user_id: int, token: str) -> None:
    """Build an inbox for `token`. On an error of Redis, drop it."""
    try:
        inbox.materialise(user_id, token)
    except redis.RedisError:
        # Perhaps another node failed than the inbox's. Without the inbox, pages can begin it again.
        with suppress(redis.RedisError):
            pipelined(feeds_for_tasks(), [inbox.Inbox(user_id).drop()])
        raise


@shared_task(name="timeline.rise")
def rise(user_id: int) -> None:
    """Deepen the inbox after a rise of the level."""
    inbox.rise(user_id)


@shared_task(name="timeline.deepen_inbox")
def deepen_inbox(user_id: int, token: str) -> None:
    """Deepen an inbox for `token`."""
    inbox.deepen(user_id, int(token))


@shared_task(name="timeline.materialise_outbox")
def materialise_outbox(source: int, token: str) -> None:
    """Build an outbox for `token`."""
    outbox.materialise(source, token, settings.OUTBOX_CAP)


@shared_task(name="timeline.build_active_fans")
def build_active_fans(user_id: int) -> None:
    """Build a big-V's sets of active fans."""
    active_fans.build(user_id)


# Repairs nothing, because that would hide the cause.
@shared_task(name="timeline.check_sample")
def check_sample() -> None:
    """Compare random readers' windows with PostgreSQL."""
    with suppress(FeedsUnavailableError):  # no page uses windows that do not answer
        check.sampled(count=settings.CHECK_READERS, seconds=CHECK_SECONDS)
