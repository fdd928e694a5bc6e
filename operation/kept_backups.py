"""The site's own daily backups in a folder or bucket (FEEDSITE_BACKUP_TO).

Files with other names are left alone.
"""

import contextlib
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from operation.backup import backup
from operation.backup_folder import BackupFolder
from operation.dumps import BackupError, Progress
from runtime import metrics
from storage.connections import fetch

NAME = re.compile(r"feedsite-(2\d{7}T\d{6})Z\.backup", re.ASCII)
TIME = "%Y%m%dT%H%M%S"
HOUR = 3
"""The daily backup is made after this hour in the site's time zone."""
LATE = timedelta(hours=30)
"""If the newest backup is older, something is wrong."""
AHEAD = timedelta(hours=1)
"""A backup that is dated later than this from now is not believed: a clock was wrong."""
TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtext('operation.kept_backups'))"


class DatedBackup(NamedTuple):
    """A backup and its time."""

    made_at: datetime
    name: str


def backup_folder() -> BackupFolder:
    """The place of FEEDSITE_BACKUP_TO. Raises BackupError if it is not set."""
    where: str = settings.BACKUP_TO_SECRET
    if not where:
        raise BackupError("Give a file, or set FEEDSITE_BACKUP_TO to a folder or bucket for backups.")
    if not where.startswith("s3://"):
        return BackupFolder(Path(where))
    from operation.backup_bucket import BackupBucket  # boto3 takes 20 MB

    return BackupBucket(where)


def stored_backups(where: BackupFolder) -> list[DatedBackup]:
    """The backups, newest first. Raises BackupError."""
    found = []
    for match in filter(None, map(NAME.fullmatch, where.names())):
        with contextlib.suppress(ValueError):  # no such day
            found.append(DatedBackup(datetime.strptime(match[1], TIME).replace(tzinfo=UTC), match[0]))
    return sorted(found, reverse=True)


def believably_dated(found: list[DatedBackup], now: datetime) -> list[DatedBackup]:
    """Those with a believable date. The others count as none, and are left alone."""
    return [each for each in found if each.made_at <= now + AHEAD]


def is_due(newest: DatedBackup | None, now: datetime) -> bool:
    """Whether no backup was made since the last time that one was due (`HOUR` in the site's time zone)."""
    local = now.astimezone(settings.SITE_ZONE)
    due = local.replace(hour=HOUR, minute=0, second=0, microsecond=0)
    due -= timedelta(days=local < due)
    return newest is None or newest.made_at < due


def backups_to_delete(found: list[DatedBackup], *, days: int, weeks: int) -> list[DatedBackup]:
    """Backups to delete: all but the newest one and the newest of each of the last days and weeks."""
    wanted = {each.name for each in found[:1]}
    for period, most in (("%Y-%m-%d", days), ("%G-%V", weeks)):
        newest = {}
        for each in reversed(found):
            newest[each.made_at.astimezone(settings.SITE_ZONE).strftime(period)] = each.name
        wanted |= {newest[key] for key in sorted(newest, reverse=True)[:most]}
    return [each for each in found if each.name not in wanted]


def make_stored_backup(*, now: datetime, progress: Progress) -> str:
    """Make a backup, and delete superfluous ones. Returns its name. Raises BackupError."""
    where, name = backup_folder(), f"feedsite-{now.astimezone(UTC):{TIME}}Z.backup"
    with transaction.atomic():
        if not fetch(TRY_LOCK)[0][0]:
            raise BackupError("Another process is making a backup now.")
        where.make(name, partial(backup, now=now, progress=progress))
    for each in backups_to_delete(
        believably_dated(stored_backups(where), now), days=settings.BACKUP_DAYS, weeks=settings.BACKUP_WEEKS
    ):
        where.delete(each.name)
    metrics.backup_made_at.set(now.timestamp())
    return name


def back_up_if_due(*, now: datetime) -> None:
    """Make the daily backup if due. Raises BackupError."""
    newest = next(iter(believably_dated(stored_backups(backup_folder()), now)), None)
    metrics.backup_made_at.set(newest.made_at.timestamp() if newest else 1)  # 0: no backups are wanted
    if is_due(newest, now):
        make_stored_backup(now=now, progress=lambda member, size: None)
