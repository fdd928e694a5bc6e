"""Rows of long work: workers claim one, do it part by part, and note in each part's transaction how far they came.

A worker that was killed claims its row no longer after `CLAIM_LIFE`, and another goes on. A sweep sends the rows that
no worker is at, and forgets old ones.

See docs/decisions.md: Imports are rows with a cursor.
"""

from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from storage.queue import enqueue

CLAIM_LIFE = timedelta(seconds=60)
"""A worker that has not come further for so long is taken for dead."""
FRESH = timedelta(seconds=10)
"""A row is left to the task that was sent with it for so long."""
SWEPT, FORGOTTEN = 100, 1_000
"""Rows that one sweep sends, and deletes."""
KEPT = timedelta(days=30)
"""A finished row is kept for so long: its user finds the report."""


class ClaimedRow(models.Model):
    """The part of a row that says whether a worker is at it. A part that came further sets `attempts` to 0."""

    attempts = models.SmallIntegerField(default=0, help_text="Since a worker last came further.")
    tried_at = models.DateTimeField(null=True, help_text="When a worker last took it, or came further.")
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def claim(self) -> bool:
        """Take the row, unless it is finished or a worker is at it; counts as an attempt."""
        return bool(_free(type(self)).filter(pk=self.pk).update(tried_at=Now(), attempts=F("attempts") + 1))

    def release(self) -> None:
        """Let any worker go on with the row at once. That it came further stays known, to a minute."""
        _rows(type(self)).filter(pk=self.pk).update(tried_at=Now() - CLAIM_LIFE)


def sweep(model: type[ClaimedRow], task: str) -> int:
    """Send the rows that no worker is at to `task`, and forget old ones; how many were to be sent."""
    waiting = _free(model).filter(created_at__lt=Now() - FRESH)
    ids = list(waiting.order_by("pk").values_list("pk", flat=True)[:SWEPT])
    for pk in ids:
        if not enqueue(task, pk):
            break
    old = _rows(model).filter(finished_at__lt=Now() - KEPT).values_list("pk", flat=True)[:FORGOTTEN]
    _rows(model).filter(pk__in=list(old)).delete()
    return len(ids)


def _rows(model: type[ClaimedRow]) -> "models.QuerySet[Any]":
    return model._default_manager.all()


def unclaimed() -> Q:
    """The condition that no living worker is at a row, by the clock of PostgreSQL."""
    return Q(tried_at=None) | Q(tried_at__lt=Now() - CLAIM_LIFE)


def _free(model: type[ClaimedRow]) -> "models.QuerySet[Any]":
    """Unfinished rows that no living worker is at."""
    return _rows(model).filter(unclaimed(), finished_at=None)
