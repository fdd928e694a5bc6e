"""Rows of long work: a worker claims one, and saves its progress with each part.

A task names the turn that it is for, by the row's `tried_at`. Of several tasks for one turn the first takes the row,
the others end. So a row has one task after another, even if the sweep repeats one that waits in a full queue.

See docs/decisions.md: Imports are rows with a cursor.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from storage.queue import HintTask

CLAIM_LIFE = timedelta(seconds=60)
"""A worker without progress for this long is taken for dead."""
FRESH = timedelta(seconds=10)
"""A new row is left to its own task for this long."""
SWEPT, FORGOTTEN = 100, 1_000
"""Rows that one sweep sends, and that it deletes."""
KEPT = timedelta(days=30)
"""How long a finished row stays, so that its user finds the report."""


class ClaimedRow(models.Model):
    """A row of long work that one worker at a time claims. A part that made progress sets `attempts` to 0."""

    attempts = models.SmallIntegerField(default=0, help_text="Since a worker last came further.")
    tried_at = models.DateTimeField(null=True, help_text="When a worker last took it, or came further.")
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def claim(self, turn: str | None = None) -> bool:
        """Take the row unless it is finished or claimed, or another task took this turn. None: any turn."""
        rows = _unclaimed_rows(type(self)).filter(pk=self.pk)
        if turn is not None:
            rows = rows.filter(tried_at=turn or None)
        return bool(rows.update(tried_at=Now(), attempts=F("attempts") + 1))

    def release(self, *, rest: timedelta = timedelta(0)) -> None:
        """End the claim, so that any worker can continue at once or after a rest."""
        _rows(type(self)).filter(pk=self.pk).update(tried_at=Now() + (rest - CLAIM_LIFE))


def enqueue_turn(task: HintTask[..., Any], model: type[ClaimedRow], pk: int) -> None:
    """Enqueue the next turn of a row."""
    for turn in _rows(model).filter(pk=pk).values_list("tried_at", flat=True):
        task.delay(pk, _turn_name(turn))


def _turn_name(tried_at: datetime | None) -> str:
    return tried_at.isoformat() if tried_at else ""


def sweep(model: type[ClaimedRow], task: HintTask[..., Any]) -> int:
    """Enqueue unclaimed rows and delete old ones. Returns the number of unclaimed rows."""
    waiting = _unclaimed_rows(model).filter(created_at__lt=Now() - FRESH)
    turns = list(waiting.order_by("pk").values_list("pk", "tried_at")[:SWEPT])
    for pk, turn in turns:
        if not task.delay(pk, _turn_name(turn)):
            break
    old = _rows(model).filter(finished_at__lt=Now() - KEPT).values_list("pk", flat=True)[:FORGOTTEN]
    _rows(model).filter(pk__in=list(old)).delete()
    return len(turns)


def _rows(model: type[ClaimedRow]) -> "models.QuerySet[Any]":
    return model._default_manager.all()


def unclaimed() -> Q:
    """Filter for rows that no living worker has claimed."""
    return Q(tried_at=None) | Q(tried_at__lt=Now() - CLAIM_LIFE)


def _unclaimed_rows(model: type[ClaimedRow]) -> "models.QuerySet[Any]":
    return _rows(model).filter(unclaimed(), finished_at=None)
