"""Refuses databases and backups that this version cannot upgrade.

Version 0.2.0 squashed all migrations: `replaces` names those that are gone.
"""

from collections.abc import Collection, Set

from django.core.management.base import CommandError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

_FIRST = ("accounts", "0001_initial")
"""A migration that every database of before 0.2.0 has, and no newer one."""


def known_migrations() -> list[Migration]:
    """The migrations of this version."""
    return list(MigrationLoader(None).disk_migrations.values())


def is_applied(migration: Migration, applied: Set[tuple[str, str]]) -> bool:
    """Whether a database with these migrations has this one, or all that it replaces."""
    return (migration.app_label, migration.name) in applied or (
        bool(migration.replaces) and applied >= {*migration.replaces}
    )


def upgrade_refusal(what: str, applied: Collection[tuple[str, str]]) -> str:
    """Why this version cannot upgrade a database or backup with these migrations, or ""."""
    if _FIRST in applied:
        return f"The {what} is of version 0.1.0. Only version 0.1.0 can use it: `git checkout v0.1.0`."
    for migration in known_migrations():
        missing = [f"{app}.{name}" for app, name in migration.replaces if (app, name) not in applied]
        if 0 < len(missing) < len(migration.replaces):
            return (
                f"The {what} lacks {missing[-1]}, a migration that this version no longer has. First upgrade it with "
                "the last version that has it: `git log --max-count=1 --format='git checkout %H~1' -- "
                f"'*/migrations/{missing[-1].partition('.')[2]}.py'` prints how."
            )
    return ""


def refuse_older(connection: BaseDatabaseWrapper) -> None:
    """Raise CommandError for an older database."""
    if why := upgrade_refusal("database", MigrationRecorder(connection).applied_migrations()):
        raise CommandError(why)
