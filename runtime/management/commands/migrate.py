"""`migrate` without blocking readers for long.

See docs/decisions.md: Own code in place of a library.
"""

import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as MigrateCommand
from django.db import DatabaseError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.exceptions import AmbiguityError
from django.db.migrations.executor import MigrationExecutor
from psycopg.errors import LockNotAvailable

from runtime.management.commands.makemigrations import Autodetector
from runtime.members import refuse_with_members
from runtime.older_database import refuse_older

LOCK_SECONDS = 0.5
"""Less than PostgreSQL's `deadlock_timeout` (1 s): of a migration and a request that wait for each other, the migration
gives up first.
"""
PATIENCE_SECONDS = 600.0
"""For how long attempts are repeated."""
PAUSE_SECONDS = 2.0
"""Pause between two attempts, so that queries that waited behind the first one run."""
OLDEST = """
    SELECT pid, coalesce(nullif(application_name, ''), '?'), state,
        extract(epoch FROM clock_timestamp() - xact_start)::int
    FROM pg_stat_activity a
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < now()
        AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND locktype = 'relation' AND relation >= 16384)
    ORDER BY xact_start LIMIT 1
"""
"""The oldest transaction that has a lock on one of our tables. Nobody waits for it while the migration pauses."""


class Command(MigrateCommand):
    """Migrates without blocking readers for long.

    DDL that waits for a long query blocks all later readers. So it waits briefly for a lock, rolls back, and retries. A
    non-atomic migration must be repeatable.
    """

    autodetector = Autodetector

    def add_arguments(self, parser: CommandParser) -> None:
        """Add Django's options, and the wait for PostgreSQL."""
        super().add_arguments(parser)
        parser.add_argument(
            "--wait", type=float, default=0, help="Seconds to wait for a PostgreSQL that does not answer (default 0)."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate. Restores the connection's `lock_timeout` for callers that continue."""
        connection = connections[options["database"]]
        self._connect(connection, time.monotonic() + options["wait"])
        refuse_older(connection)
        if options["migration_name"] and _is_backwards(connection, options["app_label"], options["migration_name"]):
            refuse_with_members(connection, "migrate")
        if settings.POOLED:
            _require_no_migrations(connection)
            super().handle(*args, **options)
            return
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            (before,) = cursor.fetchone()
        try:
            self._try(connection, *args, **options)
        finally:
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, false)", [before])

    def _connect(self, connection: BaseDatabaseWrapper, until: float) -> None:
        """Wait for PostgreSQL. `until` by time.monotonic(). Raises OperationalError after that."""
        while True:
            try:
                connection.ensure_connection()
            except OperationalError:
                if time.monotonic() > until:
                    raise
                self.stderr.write("PostgreSQL does not answer. Trying again.")
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def _try(self, connection: BaseDatabaseWrapper, *args: Any, **options: Any) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{LOCK_SECONDS * 1000:.0f}ms"])
            try:
                super().handle(*args, **options)
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable) or time.monotonic() > until:
                    raise
                self.stderr.write(f"A long transaction locks a table{_suspect(connection)}. Trying again.")
                time.sleep(PAUSE_SECONDS)
            else:
                return


def _suspect(connection: BaseDatabaseWrapper) -> str:
    """Words for the session that most likely has the lock, and how to end it. Empty if PostgreSQL hides it."""
    with connection.cursor() as cursor:
        cursor.execute(OLDEST)
        found = cursor.fetchone()
    if found is None:
        return ""
    pid, application, state, seconds = found
    since = timedelta(seconds=seconds)
    return f": session {pid} ({application}, {state}, since {since}). SELECT pg_terminate_backend({pid}) ends it"


def _is_backwards(connection: BaseDatabaseWrapper, app: str, name: str) -> bool:
    executor = MigrationExecutor(connection)
    try:
        goal = None if name == "zero" else executor.loader.get_migration_by_prefix(app, name).name
    except (AmbiguityError, KeyError):
        return False  # Django reports it
    return any(is_backwards for _, is_backwards in executor.migration_plan([(app, goal)]))


def _require_no_migrations(connection: BaseDatabaseWrapper) -> None:
    """Raise CommandError if migrations are missing: behind a pooler, `lock_timeout` would affect other sessions."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError(
            "Migrations cannot run through a pooler (FEEDSITE_PREPARE=0). Run `migrate` with FEEDSITE_PREPARE=1 and a "
            "FEEDSITE_DATABASE_URL that names PostgreSQL itself."
        )
