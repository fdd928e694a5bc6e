from contextlib import suppress

from django.conf import settings

from storage import deliveries
from storage.connections import FeedsUnavailableError
from storage.queue import only_if_rows, task
from timeline import backfill, check, fanout
from timeline.models import Delivery

CHECK_SECONDS = 2.0
"""Seconds that one comparison of windows with PostgreSQL may take."""


@task("timeline.sweep")
@only_if_rows("timeline.sweep", f"{deliveries.due_query(Delivery)} UNION ALL {backfill.DUE}")
def sweep() -> None:
    """Enqueue lost deliveries and backfills again."""
    deliveries.sweep(Delivery, fanout.fan_out)
    backfill.sweep()


# Repairs nothing, because that would hide the cause.
@task("timeline.check_sample")
def check_sample() -> None:
    """Compare random readers' windows with PostgreSQL."""
    with suppress(FeedsUnavailableError):  # no page uses windows that do not answer
        check.sample_differences(count=settings.CHECK_READERS, seconds=CHECK_SECONDS)
