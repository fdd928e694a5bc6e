"""What runs on this machine, since when, and how much waits. `doctor` says what is wrong."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import msgspec
from django.conf import settings
from django.db import Error

from operation import kept_backups
from operation.dumps import BackupError
from operation.gauges import BACKLOG, last_observed, queue_lengths
from runtime.programs import RunningProgram, running_programs
from runtime.version import VERSION
from storage.connections import BROKER_FAILURES, fetch, site_now

T = TypeVar("T")
FAILURES: tuple[type[Exception], ...] = (Error, BackupError, *BROKER_FAILURES)


class SiteStatus(msgspec.Struct):
    """The answer of `status`. A fact is None if there is none, or if `unknown` says why nobody knows it."""

    version: str
    """Of the code on the disk."""
    url: str
    programs: list[RunningProgram]
    queues: dict[str, int] | None
    deliveries: int | None
    lag_seconds: float | None
    """For how long the oldest delivery waits."""
    beat_at: datetime | None
    backup_at: datetime | None
    unknown: dict[str, str]


def status() -> SiteStatus:
    """Ask the servers. One that does not answer is named in `unknown`."""
    unknown: dict[str, str] = {}

    def ask(name: str, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except FAILURES as error:
            unknown[name] = (str(error).strip().splitlines() or [type(error).__name__])[0]
            return None

    now = site_now()
    deliveries, _, lag = ask("deliveries", lambda: fetch(BACKLOG, {"now": now})[0]) or (None, 0, 0.0)
    return SiteStatus(
        version=VERSION,
        url=settings.SITE_URL,
        programs=running_programs(settings.DATA_DIR),
        queues=ask("queues", queue_lengths),
        deliveries=deliveries,
        lag_seconds=None if deliveries is None else max(lag, 0.0),
        beat_at=ask("beat", last_observed),
        backup_at=ask("backup", lambda: newest_backup(now)) if settings.BACKUP_TO_SECRET else None,
        unknown=unknown,
    )


def newest_backup(now: datetime) -> datetime | None:
    """When the newest backup was made. Raises BackupError."""
    found = kept_backups.believably_dated(kept_backups.stored_backups(kept_backups.backup_folder()), now)
    return found[0].made_at if found else None
