"""The upkeep of media by bounded periodic tasks: what is left to be moved, what nothing uses, what has no row."""

import time
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice

from django.db import transaction
from django.db.models.functions import Now

from media.actions import forget, move_files
from media.files import PREFIXES
from media.models import FileMove, MediaFile, Use
from media.store import incoming, store
from storage.connections import database_now

UNUSED = timedelta(days=1)
"""How long a medium waits to be used, and a key of idempotency is remembered."""
WITHDRAWN = timedelta(days=30)
"""How long a withdrawn medium can be brought back."""
ORPHAN_SECONDS = 86_400
"""The age from which a file without a row is one of a process that died."""
BATCH = 500
KEYS = 5_000
"""Keys of idempotency that one turn forgets."""
FILES = 200_000
"""Files that one turn looks at. Of more than that, 4.8 million in all, a day begins with other ones than the last."""


def sweep() -> int:
    """Move what was left, and remove what nothing used for a day or is long withdrawn; how many."""
    moved = move_files(list(FileMove.objects.order_by("pk").values_list("pk", flat=True)[:BATCH]))
    keyed = MediaFile.objects.exclude(key="").filter(created_at__lt=Now() - UNUSED).order_by("created_at")
    MediaFile.objects.filter(pk__in=list(keyed.values_list("pk", flat=True)[:KEYS])).update(key="")
    unused = MediaFile.objects.filter(use=Use.NONE, created_at__lt=Now() - UNUSED).order_by("created_at")
    withdrawn = MediaFile.objects.filter(withdrawn_at__lt=Now() - WITHDRAWN).order_by("withdrawn_at")
    return moved + sum(_forget(rows.values_list("pk", flat=True)[:BATCH]) for rows in (unused, withdrawn))


@transaction.atomic
def _forget(ids: Iterable[int]) -> int:
    rows = list(MediaFile.objects.select_for_update(skip_locked=True).filter(pk__in=list(ids)).order_by("pk"))
    forget(rows)
    return len(rows)


def sweep_files(prefixes: Iterable[str]) -> int:
    """Remove files without a row that are older than a day, of names with these prefixes; how many."""
    removed = 0
    files = (each for prefix in prefixes for each in store().listing(prefix))
    names = (each.name for each in islice(files, FILES) if each.age > ORPHAN_SECONDS)
    while batch := list(islice(names, BATCH)):
        for name in without_row(batch):
            store().delete(name)
            removed += 1
    return removed


def without_row(names: list[str]) -> list[str]:
    """The files among these that no medium has, and none is to get."""
    stems = {name: name.partition(".")[0] for name in names}
    asked = set(stems.values())
    known = set(MediaFile.objects.filter(name__in=asked).values_list("name", flat=True))
    known |= set(FileMove.objects.filter(name__in=asked).values_list("name", flat=True))
    known |= set(FileMove.objects.filter(to__in=asked).values_list("to", flat=True))
    return [name for name, stem in stems.items() if stem not in known]


def sweep_incoming() -> int:
    """Remove what killed processes left on its way a day ago; how many."""
    until, removed = time.time() - ORPHAN_SECONDS, 0
    for path in incoming().iterdir():
        if path.stat().st_mtime < until:
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def turn() -> int:
    """An hour's part of the files: all of them within a day."""
    now = database_now()
    part = PREFIXES[now.hour :: 24]
    first = now.toordinal() % len(part)
    return sweep_incoming() + sweep_files(part[first:] + part[:first])
