"""Steps of an upgrade. Every step can be repeated."""

import shutil
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from operation.backup import upper_size_bound
from operation.dumps import missing_client
from runtime.embedded import check_major

ROOM_BYTES = 2**28
"""Bytes that must stay free in the data folder besides a backup: for new indexes and the log."""


class UnfitUpgradeError(Exception):
    """A step failed. The message says what to do."""


def unapplied() -> list[str]:
    """The names of missing migrations, in their order."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


# --- Checks ----------------------------------------------------------------------------------------------
def check_disk_space(file: Path | None) -> list[str]:
    """Say how much space is free in the data folder and at the backup, in sentences.

    Raises UnfitUpgradeError if it may not suffice, and StoreError.
    """
    needed = {settings.DATA_DIR: ROOM_BYTES}
    if file is not None:
        folder = next(each for each in file.absolute().parents if each.is_dir())
        is_beside = folder.stat().st_dev == settings.DATA_DIR.stat().st_dev
        needed[settings.DATA_DIR if is_beside else folder] = upper_size_bound() + (ROOM_BYTES if is_beside else 0)
    return [_free_space(*each) for each in needed.items()]


def _free_space(folder: Path, needed: int) -> str:
    free = shutil.disk_usage(folder).free
    said = f"{free / 2**20:,.0f} MB free in {folder}; the upgrade may need {needed / 2**20:,.0f} MB"
    if free < needed:
        raise UnfitUpgradeError(f"{said}. Delete old backups and logs, or set `--backup` to a file on another disk.")
    return said


def check_client() -> None:
    """Raise UnfitUpgradeError without PostgreSQL's client."""
    if missing := missing_client():
        raise UnfitUpgradeError(missing)


def check_postgresql() -> None:
    """Raise ServerError if this PostgreSQL cannot read the data."""
    if "postgres" in settings.SERVERS.names:
        check_major(settings.SERVERS.home.data_dir / "postgres")
