"""Deliveries: the rows that are a fan-out's queue of record, whatever it delivers.

A row is inserted in the transaction that makes something to deliver, and deleted when every window that should hold it
does. Celery only says when: a lost, doubled, late or reordered message changes nothing, and `sweep` repeats what was
lost. A worker that claims a row counts the attempt before the work, so that an attempt that kills the worker counts
too. After FAN_OUT_ATTEMPTS the row is parked, until an admin has it tried again.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import F
from django.db.models.functions import Greatest, Now
from django.utils.translation import gettext_lazy as _

from runtime import metrics
from storage.connections import FeedsRefusedError, FeedsUnavailableError, feeds_errors, fetch
from storage.draws import DrawRevision
from storage.queue import enqueue

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
    """Verbs for reading a table of deliveries."""

    def parked(self) -> Self:
        """Given up after too many attempts; read all the same, until an admin retries."""
        return self.filter(parked_at__isnull=False)

    def pending(self) -> Self:
        """Deliveries that the sweeper still tries."""
        return self.filter(parked_at=None)


class AbstractDelivery(models.Model):
    """Something whose fan-out is not complete. Readers add it to their pages, so no page waits for a worker.

    `revision` is drawn by every INSERT and every ON CONFLICT: a fan-out deletes only the revision that it worked for,
    never what a later one has to do.
    """

    task: ClassVar[str]
    """The Celery task that delivers a row by its key."""

    revision = models.IntegerField(db_default=DrawRevision())
    attempts = models.IntegerField(
        _("attempts"), default=0, help_text=_("Fan-outs begun; counted before the work, so that a kill counts.")
    )
    enqueued = models.IntegerField(default=0, help_text="Times that the sweeper enqueued it.")
    sweep_at = models.DateTimeField(
        _("tried again"), db_default=Now(), db_index=True, help_text=_("When the sweeper enqueues it again.")
    )
    parked_at = models.DateTimeField(_("given up"), null=True, blank=True)
    last_error = models.TextField(_("last error"), blank=True)
    created_at = models.DateTimeField(_("since"), db_default=Now())

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        abstract = True


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a delivery; the claim of the row has counted it."""

    name: str
    """The name of the delivered thing, for logs."""
    row: models.QuerySet[Any]
    """The row; nothing where that is not what was claimed any more."""
    number: int
    is_counted: bool = True
    """Whether this attempt was counted on the row; the parts of a split one were not."""

    def run(self, work: Callable[[], bool]) -> bool:
        """The work's result; False where it fails, which is noted on the row: the fault of one delivery must not stop
        the others.

        An outage of the feeds server is no failure of the delivery: the count of the attempt is taken back.
        """
        try:
            with feeds_errors():
                return work()
        except FeedsRefusedError as error:
            self._failed(str(error))
        except FeedsUnavailableError as error:
            # An admin may have set the count to 0 in the meantime.
            attempts = Greatest(F("attempts") - int(self.is_counted), 0)
            self.row.update(attempts=attempts, sweep_at=Now() + OUTAGE_PAUSE, last_error=str(error))
        except Exception as error:
            logger.exception("fan-out of %s failed", self.name)
            self._failed(f"{type(error).__name__}: {error}")
        return False

    def park(self) -> None:
        """Give up, until an admin retries."""
        logger.error("delivery of %s is parked after %s attempts", self.name, settings.FAN_OUT_ATTEMPTS)
        metrics.deliveries_given_up.inc()
        self.row.update(parked_at=Now())

    def _failed(self, error: str) -> None:
        metrics.deliveries_failed.inc()
        self.row.update(last_error=error)
        if self.number >= settings.FAN_OUT_ATTEMPTS:
            self.park()


def due(model: type[AbstractDelivery]) -> str:
    """The query of what `sweep` would enqueue."""
    return f"(SELECT FROM {model._meta.db_table} WHERE sweep_at <= now() AND parked_at IS NULL)"


def sweep(model: type[AbstractDelivery]) -> int:
    """Enqueue due deliveries again (lost by the broker, a dead worker or an outage); returns their number."""
    meta = model._meta
    query = SWEEP.format(table=meta.db_table, key=meta.pk.column)
    due = fetch(query, {"retry": settings.FAN_OUT_RETRY_AFTER, "count": SWEEP_LENGTH})
    for (key,) in due:
        if not enqueue(model.task, key):
            break
    return len(due)


def retry(rows: models.QuerySet[Any]) -> int:
    """Take deliveries out of the park and start them anew; how many."""
    keys = list(rows.values_list("pk", flat=True))
    rows.model.objects.filter(pk__in=keys).update(attempts=0, enqueued=0, parked_at=None, sweep_at=Now())
    for key in keys:
        enqueue(rows.model.task, key)
    return len(keys)
