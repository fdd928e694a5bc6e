"""Migrates old histories of plays into the month filters. Each user merges once, and no request waits.

The command marks the users of the old Redis (seen.migration.old) for the hourly merge. Repeating work changes nothing.

Source: the deduplication article, 4, its figure 11.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import connection

from runtime.addresses import names_cluster
from seen.filter_store import FilterKey
from seen.migration import old
from seen.migration.old import MIGRATED, Migration, Phase
from seen.played import client, errors, mark_commands
from seen.store import store
from storage.connections import pipelined

CHUNK = 2_000
"""Users to mark together."""
LOCK = "feedsite.played_migrate"
Clock = Callable[[], datetime]
Say = Callable[[str], None]


class MigrationError(Exception):
    """The migration cannot go on."""


class MigrationStatus(NamedTuple):
    """How far the migration is."""

    migration: Migration
    merged: int
    """Users marked as migrated."""
    left: int
    """The other users whom the last whole run found."""


# --- Running -----------------------------------------------------------------------------------------------
def run(*, clock: Clock) -> int:
    """Mark the users of the old Redis who are not migrated. Returns how many it knows.

    Raises MigrationError, PlayedUnavailableError, StoreUnavailableError. Run it again then.
    """
    with _migration_lock():
        _begin(clock())
        users = 0
        for some in _chunks():
            with errors():
                pipelined(client(), mark_commands(_unmigrated(some), now=clock()))
            users += len(some)

        def note(migration: Migration) -> Migration:
            if migration.phase != Phase.RUNNING:
                raise MigrationError(f"The migration was {migration.phase} meanwhile.")
            migration.users = users
            return migration

        old.change_state(note)
        return users


def _begin(now: datetime) -> None:
    if not settings.PLAYED_OLD_URL or names_cluster(settings.PLAYED_OLD_URL):
        raise MigrationError("FEEDSITE_PLAYED_OLD_URL names no single Redis server.")
    if old.state().phase in (Phase.NONE, Phase.ROLLED_BACK):
        for _ in store().clear(MIGRATED):  # left by a merge that was running at the rollback
            pass

    def begin(migration: Migration) -> Migration:
        if migration.phase == Phase.CUT_OVER:
            raise MigrationError("The migration was cut over. The old data is no longer used.")
        return migration if migration.phase == Phase.RUNNING else Migration(Phase.RUNNING, began_at=now.timestamp())

    old.change_state(begin)


def _chunks() -> Iterator[list[int]]:
    """The users of the old Redis, in parts."""
    some: set[int] = set()
    with errors():
        for user_id in old.users():
            some.add(user_id)
            if len(some) == CHUNK:
                yield list(some)
                some.clear()
    if some:
        yield list(some)


def _unmigrated(user_ids: list[int]) -> list[int]:
    found = store().read([FilterKey(user_id, MIGRATED) for user_id in user_ids])
    return [user_id for user_id, mark in zip(user_ids, found, strict=True) if not mark]


# --- Ending ------------------------------------------------------------------------------------------------
def cut_over(*, clock: Clock, say: Say = print) -> int:
    """Stop using the old data, if all users are migrated. Returns the number of users checked.

    Checks every user, because counts may be wrong after a failure. Who has only plays that were written twice needs no
    migration.
    """
    with _migration_lock():
        migration = old.state()
        users = left = 0
        if migration.phase != Phase.CUT_OVER:
            if migration.phase != Phase.RUNNING:
                raise MigrationError("No migration is running.")
            for some in _chunks():
                users += len(some)
                with errors():
                    left += len(old.users_with_older_plays(_unmigrated(some), since=migration.began_at, now=clock()))
            if left:
                raise MigrationError(
                    f"{left:,} of {users:,} users are not merged yet. Wait for the merges (--status). If the number "
                    "stays the same, run played_migrate again."
                )
            _end(Phase.CUT_OVER, clock())
        _clear_marks(say)
    return users


def rollback(*, clock: Clock, say: Say = print) -> None:
    """Return to the old data. Merged plays do no harm."""
    phase = old.state().phase
    if phase == Phase.CUT_OVER:
        raise MigrationError("The migration was cut over. The old data has no plays since then.")
    if phase == Phase.NONE:
        raise MigrationError("No migration is running.")
    _end(Phase.ROLLED_BACK, clock())
    _clear_marks(say)


def _end(phase: Phase, now: datetime) -> None:
    def change(migration: Migration) -> Migration:
        if migration.phase == Phase.CUT_OVER:
            raise MigrationError("The migration was cut over meanwhile.")
        migration.phase = phase
        migration.ended_at = now.timestamp()
        return migration

    old.change_state(change)


def _clear_marks(say: Say) -> None:
    cleared = sum(store().clear(MIGRATED))
    if cleared:
        say(f"{cleared:,} marks were removed.")


def status() -> MigrationStatus:
    """How far the migration is. On a server the counts are approximate after a failure."""
    migration = old.state()
    merged = store().count(MIGRATED)
    return MigrationStatus(
        migration, merged, max(migration.users - merged, 0) if migration.phase == Phase.RUNNING else 0
    )


@contextmanager
def _migration_lock() -> Iterator[None]:
    """Let one run at a time into the block. A killed command loses its lock."""
    with connection.cursor() as cursor:
        for _ in range(50):
            cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [LOCK])
            if cursor.fetchone() == (True,):
                break
            time.sleep(0.1)
        else:
            raise MigrationError("Another played_migrate is running.")
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", [LOCK])
