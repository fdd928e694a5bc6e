"""Bounded periodic tasks for moves, unused media and lost files."""

import time
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from media.actions import DAY, delete_media, finish_moves
from media.files import PREFIXES
from media.models import FileMove, MediaFile, Use, VideoConversion
from media.store import incoming, store
from storage.connections import database_now

UNUSED = timedelta(days=1)
"""How long an unused medium and an idempotency key are kept."""
COUNTED = DAY
"""How long a finished conversion counts for its owner's day."""
WITHDRAWN = timedelta(days=30)
"""How long a withdrawn medium can be restored."""
ORPHAN_SECONDS = 86_400
"""From this age a file without a row is removed: its process died."""
BATCH = 500
KEYS = 5_000
"""Idempotency keys forgotten per run."""
FILES = 200_000
"""Files checked per run. With over 4.8 million in all, each day starts at another folder."""


def sweep() -> int:
    """Finish moves, and remove unused and long withdrawn media."""
    moved = finish_moves()
    keyed = MediaFile.objects.exclude(key="").filter(created_at__lt=Now() - UNUSED).order_by("created_at")
    MediaFile.objects.filter(pk__in=list(keyed.values_list("pk", flat=True)[:KEYS])).update(key="")
    unused = MediaFile.objects.filter(use=Use.NONE, created_at__lt=Now() - UNUSED).order_by("created_at")
    withdrawn = MediaFile.objects.filter(withdrawn_at__lt=Now() - WITHDRAWN).order_by("withdrawn_at")
    counted = VideoConversion.objects.filter(finished_at__lt=Now() - COUNTED).order_by("finished_at")
    VideoConversion.objects.filter(pk__in=list(counted.values_list("pk", flat=True)[:BATCH])).delete()
    return moved + sum(map(_forget, (unused, withdrawn)))


@transaction.atomic
def _forget(due: QuerySet[MediaFile]) -> int:
    ids = list(due.values_list("pk", flat=True)[:BATCH])
    # Asked again under the lock: a member may have used a medium since.
    rows = list(due.select_for_update(skip_locked=True).filter(pk__in=ids).order_by("pk"))
    delete_media(rows)
    return len(rows)


def sweep_files(prefixes: Iterable[str]) -> int:
    """Remove old files without a row."""
    removed = 0
    files = (each for prefix in prefixes for each in store().listing(prefix))
    names = (each.name for each in islice(files, FILES) if each.age > ORPHAN_SECONDS)
    while batch := list(islice(names, BATCH)):
        for name in orphaned_names(batch):
            store().delete(name)
            removed += 1
    return removed


def orphaned_names(names: list[str]) -> list[str]:
    """Names that no medium has or will get."""
    stems = {name: name.partition(".")[0] for name in names}
    asked = set(stems.values())
    known = set(MediaFile.objects.filter(name__in=asked).values_list("name", flat=True))
    known |= set(FileMove.objects.filter(name__in=asked).values_list("name", flat=True))
    known |= set(FileMove.objects.filter(to__in=asked).values_list("to", flat=True))
    waiting = VideoConversion.objects.filter(original__in=asked, finished_at=None)
    known |= set(waiting.values_list("original", flat=True))
    return [name for name, stem in stems.items() if stem not in known]


def sweep_incoming() -> int:
    """Remove old files that killed processes left."""
    until, removed = time.time() - ORPHAN_SECONDS, 0
    for path in incoming().iterdir():
        if path.stat().st_mtime < until:
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def sweep_hourly_share() -> int:
    """Sweep an hour's share of the folders. A day covers all."""
    now = database_now()
    part = PREFIXES[now.hour :: 24]
    first = now.toordinal() % len(part)
    return sweep_incoming() + sweep_files(part[first:] + part[:first])
