"""Takes a hidden account out of others' counts, and puts it back when it is shown again, a batch at a time.

A `Recount` row is the queue. A mark on each counted row says whether counts leave it out, so doing a part twice is
harmless. A second walk, after `STRAGGLERS`, catches what requests were still writing.
"""

from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models.functions import Now

from accounts.models import Recount, User
from accounts.signals import account_recounted
from storage import claims
from storage.queue import task

BATCH = 500
ROUNDS = 40
"""Batches per task, so that other tasks get their turn."""
STRAGGLERS = timedelta(seconds=60)


def begin(user_id: int) -> None:
    """Have a user recounted, in the transaction that hides or shows them."""
    row = Recount.objects.create(user_id=user_id)
    transaction.on_commit(partial(claims.enqueue_turn, run, Recount, row.pk))


@task("accounts.recount")
def run(recount_id: int, turn: str | None = None) -> None:
    """Recount some of the user's rows, and enqueue the rest."""
    row = Recount.objects.filter(pk=recount_id).first()
    if row is None or not row.claim(turn):
        return
    for _ in range(ROUNDS):
        if not _recount_part(row):
            row.release()
            return
    row.release()
    claims.enqueue_turn(run, Recount, recount_id)


@transaction.atomic
def _recount_part(row: Recount) -> bool:
    """Recount a batch of each kind. False if nothing is left for now."""
    # The lock makes a recount wait for the last batch of an earlier one, which may do the opposite.
    rows = list(Recount.objects.select_for_update().filter(user_id=row.user_id).order_by("pk"))
    if not rows or rows[-1].pk != row.pk:
        return False
    row = rows[-1]
    Recount.objects.filter(user_id=row.user_id, pk__lt=row.pk).delete()
    is_hidden = not User.objects.active().filter(pk=row.user_id).exists()
    found = account_recounted.send(
        sender=User, user_id=row.user_id, is_hidden=is_hidden, places=row.places, limit=BATCH
    )
    left = any(taken for _, taken in found)
    if not left:
        is_late = Recount.objects.filter(pk=row.pk, created_at__lt=Now() - STRAGGLERS).exists()
        if is_late and row.is_second:
            row.delete()
            return False
        left = row.is_second = is_late
        row.places = {} if is_late else row.places
    row.attempts, row.tried_at = 0, Now()
    row.save(update_fields=["places", "is_second", "attempts", "tried_at"])
    return left


def sweep() -> None:
    """Enqueue what a dead worker left, and second walks."""
    claims.sweep(Recount, run)
