"""Refuses databases older than version 0.2.0, which squashed each app's migrations."""

from collections.abc import Collection

from django.core.management.base import CommandError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

_FIRST = ("accounts", "0001_initial")
"""A migration that every older database has, and no newer one."""


def is_older(applied: Collection[tuple[str, str]]) -> bool:
    """Whether these migrations are older than 0.2.0."""
    return _FIRST in applied


def refuse_older(connection: BaseDatabaseWrapper) -> None:
    """Raise CommandError for an older database."""
    if is_older(MigrationRecorder(connection).applied_migrations()):
        raise CommandError(
            "The database is older than version 0.2.0. This version cannot upgrade it. Run the version that made it, "
            "or give this version an empty database."
        )
