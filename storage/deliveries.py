"""Deliveries: a table that is the queue of a fan-out.

Celery tasks only start the work: `sweep` repeats lost ones. A claim counts the attempt first, so that one that kills
the worker counts. After FAN_OUT_ATTEMPTS the row is parked until an admin retries it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import F
from django.db.models.functions import Greatest, Now
from django.utils.translation import gettext_lazy as _

from runtime import metrics
from storage.connections import FeedsRefusedError, FeedsUnavailableError, feeds_errors, fetch
from storage.draws import DrawRevision
from storage.queue import HintTask

logger = logging.getLogger(__name__)

SWEEP_LENGTH = 1_000
OUTAGE_PAUSE = timedelta(seconds=5)
SWEEP = """
    UPDATE {table} SET enqueued = enqueued + 1, sweep_at = now() + %(retry)s * 2 ^ least(enqueued, 10)
    WHERE {key} = ANY(ARRAY(
        SELECT {key} FROM {table} WHERE sweep_at <= now() AND parked_at IS NULL
        ORDER BY sweep_at LIMIT %(count)s FOR UPDATE SKIP LOCKED))
    RETURNING {key}
"""


class DeliveryQuerySet(models.QuerySet[Any]):
    """Filters for a table of deliveries."""

    def parked(self) -> Self:
        """Deliveries given up after too many attempts."""
        return self.filter(parked_at__isnull=False)

    def pending(self) -> Self:
        """Deliveries that the sweeper still tries."""
        return self.filter(parked_at=None)


class AbstractDelivery(models.Model):
    """An incomplete fan-out. Pages read it here, so no page waits for a worker.

    Each INSERT and ON CONFLICT draws a `revision`. A fan-out deletes only its own.
    """

    revision = models.IntegerField(db_default=DrawRevision())
    attempts = models.IntegerField(
        _("attempts"), default=0, help_text=_("Counted before each try, so a killed worker counts too.")
    )
    enqueued = models.IntegerField(default=0, help_text="Times that the sweeper enqueued it.")
    sweep_at = models.DateTimeField(
        _("next try"), db_default=Now(), db_index=True, help_text=_("When it's queued again.")
    )
    parked_at = models.DateTimeField(_("given up"), null=True, blank=True)
    last_error = models.TextField(_("last error"), blank=True)
    created_at = models.DateTimeField(_("since"), db_default=Now())

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        abstract = True


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a claimed delivery."""

    name: str
    """What is delivered, for logs."""
    find_row: Callable[[], models.QuerySet[Any]]
    """Find the row. Empty if another revision has replaced it."""
    number: int
    is_counted: bool = True
    """Whether the row counts this attempt. It does not count the parts of a split delivery."""

    def run(self, work: Callable[[], bool]) -> bool:
        """Do the work and return its result. False after an error, which the row records.

        An outage of Redis does not count as an attempt.
        """
        try:
            with feeds_errors():
                return work()
        except FeedsRefusedError as error:
            self._failed(str(error))
        except FeedsUnavailableError as error:
            # An admin may have reset the count.
            attempts = Greatest(F("attempts") - int(self.is_counted), 0)
            self.find_row().update(attempts=attempts, sweep_at=Now() + OUTAGE_PAUSE, last_error=str(error))
        except Exception as error:
            logger.exception("delivery of %s failed and is tried again", self.name)
            self._failed(f"{type(error).__name__}: {error}")
        return False

    def park(self) -> None:
        """Give the delivery up until an admin retries it."""
        logger.error(
            "delivery of %s failed %s times and is parked. Admin → Deliveries retries it",
            self.name,
            settings.FAN_OUT_ATTEMPTS,
        )
        metrics.deliveries_given_up.inc()
        self.find_row().update(parked_at=Now())

    def _failed(self, error: str) -> None:
        metrics.deliveries_failed.inc()
        self.find_row().update(last_error=error)
        if self.number >= settings.FAN_OUT_ATTEMPTS:
            self.park()


def due_query(model: type[AbstractDelivery]) -> str:
    """SQL query that has a row if `sweep` has something to enqueue."""
    return f"(SELECT NULL::timestamptz FROM {model._meta.db_table} WHERE sweep_at <= now() AND parked_at IS NULL)"


def sweep(model: type[AbstractDelivery], task: HintTask[..., Any]) -> int:
    """Enqueue the task of overdue deliveries until the broker refuses. Returns how many were due."""
    meta = model._meta
    query = SWEEP.format(table=meta.db_table, key=meta.pk.column)
    due = fetch(query, {"retry": settings.FAN_OUT_RETRY_AFTER, "count": SWEEP_LENGTH})
    for (key,) in due:
        if not task.delay(key):
            break
    return len(due)


def retry(rows: models.QuerySet[Any], task: HintTask[..., Any]) -> int:
    """Start parked deliveries again. Returns how many."""
    keys = list(rows.values_list("pk", flat=True))
    rows.model.objects.filter(pk__in=keys).update(attempts=0, enqueued=0, parked_at=None, sweep_at=Now())
    for key in keys:
        task.delay(key)
    return len(keys)
