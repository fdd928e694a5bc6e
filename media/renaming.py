"""Renames all files of an account that was hidden, in the order of their ids, a batch at a time.

An `OwnerRename` row is the queue. Renaming twice is harmless. The row stays for `STRAGGLERS`, to catch what requests
were still writing.
"""

from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models.functions import Now

from media.actions import rename
from media.models import MediaFile, OwnerRename, Use
from media.signals import owner_hidden
from storage import claims
from storage.queue import task

BATCH = 50
ROUNDS = 40
"""Batches per task, so that other tasks get their turn."""
STRAGGLERS = timedelta(seconds=60)
UNSEEN = (Use.NONE, Use.LATER)
"""Uses that copy no facts of the medium."""


def begin(owner_id: int) -> None:
    """Have the owner's files renamed, in the transaction that hides the owner."""
    anew = {"last_id": 0, "attempts": 0, "tried_at": None, "created_at": Now()}
    OwnerRename.objects.update_or_create(owner_id=owner_id, defaults=anew)
    transaction.on_commit(partial(claims.enqueue_turn, run, OwnerRename, owner_id))


def end(owner_id: int) -> None:
    """Stop, in the transaction that shows the owner again. What has a new name keeps it."""
    OwnerRename.objects.filter(pk=owner_id).delete()


@task("media.rename_files_of")
def run(owner_id: int, turn: str | None = None) -> None:
    """Rename some of the owner's files, and enqueue the rest."""
    row = OwnerRename.objects.filter(pk=owner_id).first()
    if row is None or not row.claim(turn):
        return
    same = OwnerRename.objects.filter(pk=owner_id, created_at=row.created_at)  # else it was ended or begun anew
    for _ in range(ROUNDS):
        media = MediaFile.objects.filter(owner_id=owner_id, pk__gt=row.last_id).order_by("pk")
        ids = list(media.values_list("pk", flat=True)[:BATCH])
        if not ids:
            same.filter(created_at__lt=Now() - STRAGGLERS).delete()
            row.release()
            return
        _rename(ids)
        row.last_id = ids[-1]
        if not same.update(last_id=row.last_id, attempts=0, tried_at=Now()):
            return
    row.release()
    claims.enqueue_turn(run, OwnerRename, owner_id)


def _rename(ids: list[int]) -> None:
    with transaction.atomic():  # first, because one that is being used meanwhile has its use after this lock
        rename(list(MediaFile.objects.select_for_update().filter(pk__in=ids, use__in=UNSEEN).order_by("pk")))
    used = MediaFile.objects.filter(pk__in=ids).exclude(use__in=UNSEEN)
    owner_hidden.send(sender=MediaFile, media=list(used))


def enqueue_unfinished() -> None:
    """Enqueue what a dead worker left."""
    claims.sweep(OwnerRename, run)
