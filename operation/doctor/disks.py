import shutil
import time
from datetime import datetime, timedelta
from itertools import islice, takewhile

from django.conf import settings

from media import store as media
from media.files import PREFIXES
from media.models import MediaFile
from media.sweeping import orphaned_names
from operation import kept_backups
from operation.doctor.findings import Findings, make_finding
from operation.dumps import missing_client
from runtime.metrics import machine_memory
from seen.filter_store import StoreUnavailableError
from seen.lmdb_store import LmdbStore
from seen.store import store

NO_CLIENT = "Without it `backup`, `restore` and `upgrade` fail on this machine."
GIB = 2**30
MEDIA_LOOKED_AT = 500
"""Rows of media to check for files, and batch size of files to check for rows."""
MEDIA_LISTED = 1_000
"""Maximum files listed per prefix. There are 16 prefixes."""
MEDIA_SECONDS = 10.0
"""Maximum seconds for finding files and for listing them."""
DAY_SECONDS = 86_400


def disk() -> Findings:
    """Check free space."""
    usage = shutil.disk_usage(settings.DATA_DIR)
    share = usage.free / usage.total
    yield make_finding(
        "disk",
        f"{usage.free / GIB:.1f} GB free ({100 * share:.0f} %) in {settings.DATA_DIR}",
        error=usage.free < GIB / 4 or share < 0.02,
        warning=usage.free < 2 * GIB or share < 0.1,
        todo="Free some space before PostgreSQL stops: docs/runbook.md, Disk full.",
    )


def memory() -> Findings:
    """Check the memory of this machine."""
    available, total = machine_memory()
    yield make_finding(
        "memory",
        f"{available / GIB:.1f} of {total / GIB:.1f} GB available",
        warning=available < 0.05 * total,
        todo="Find what takes it (top -o %MEM), before the kernel kills a program: docs/runbook.md, Memory full.",
    )


def backups(now: datetime) -> Findings:
    """Check PostgreSQL's client, and the newest backup's age."""
    missing = missing_client()
    yield make_finding("postgresql client", missing or "is as new as the server", warning=bool(missing), todo=NO_CLIENT)
    if not settings.BACKUP_TO_SECRET:
        yield make_finding("backups", "the site makes none by itself (FEEDSITE_BACKUP_TO is not set)")
        return
    found = kept_backups.stored_backups(kept_backups.backup_folder())
    dated = kept_backups.believably_dated(found, now)
    newest = next(iter(dated), None)
    age = now - newest.made_at if newest else timedelta.max
    yield make_finding(
        "backups",
        f"the newest is {age.total_seconds() / 3600:.0f} hours old: {newest.name}" if newest else "there is none",
        error=age > 3 * kept_backups.LATE,
        warning=age > kept_backups.LATE,
        todo="Run `manage.py backup`. It makes one now, or says what is wrong: docs/runbook.md, Backups too old.",
    )
    if later := len(found) - len(dated):
        yield make_finding(
            "backup dates",
            f"{later} of the future, which count as none: {found[0].name}",
            warning=True,
            todo="Check the clocks of this machine and of PostgreSQL. Then move these files away.",
        )


def played_store() -> Findings:
    """Check the month filters' size and room."""
    filters = store()
    try:
        months = filters.stats()
    except StoreUnavailableError as error:
        if not isinstance(filters, LmdbStore):  # a server that does not answer
            raise
        todo = "Until then calls with plays get 503, and Discover may repeat items. docs/plays.md, Damaged file."
        yield make_finding("played store", f"cannot be read: {error}", error=True, todo=todo)
        return
    count, size = sum(each.filters for each in months.values()), sum(each.size for each in months.values())
    yield make_finding("played store", f"{count:,} filters, {size // 2**20} MB")
    if isinstance(filters, LmdbStore):
        used, allowed = (filters.folder / "data.mdb").stat().st_size, settings.PLAYED_STORE_BYTES
        yield make_finding(
            "played store room",
            f"{used // 2**20} of {allowed // 2**20} MB",
            error=used > 0.9 * allowed,
            todo="Raise FEEDSITE_PLAYED_STORE_GB and restart. When the file is full, plays cannot be merged.",
        )


def media_files() -> Findings:
    """Check that the newest rows have files, and that some old files have rows."""
    kept = media.store()
    until = time.monotonic() + MEDIA_SECONDS
    newest = MediaFile.objects.order_by("-pk")[:MEDIA_LOOKED_AT]
    looked = list(takewhile(lambda row: time.monotonic() < until, newest))
    lacking = [row.pk for row in looked if not all(map(kept.has, row.files))]
    yield make_finding(
        "media files",
        f"{len(lacking)} of the newest {len(looked):,} have no file" + "".join(f" (id {one})" for one in lacking[:1]),
        error=bool(lacking),
        todo="Copy the files back from a backup of the data folder (media/files) or of the bucket. If there is none, "
        "delete the posts that show them.",
    )
    listed = (file for prefix in PREFIXES[::16] for file in islice(kept.listing(prefix), MEDIA_LISTED))
    in_time = takewhile(lambda file: time.monotonic() < until, listed)
    old = [file.name for file in in_time if file.age > 2 * DAY_SECONDS]
    strays = sum(
        len(orphaned_names(old[start : start + MEDIA_LOOKED_AT])) for start in range(0, len(old), MEDIA_LOOKED_AT)
    )
    yield make_finding(
        "media rows",
        f"{strays} of {len(old):,} old files have no row",
        warning=strays > 0,
        todo="Check that beat and workers run. The task media.sweep_files deletes these files within a day.",
    )
