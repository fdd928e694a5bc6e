"""Steps of an upgrade, and what each migration locks or reads. Every step can be repeated."""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from operation.backup import most_bytes
from operation.dumps import missing_client
from runtime.embedded import check_major
from runtime.supervisor import NEXT
from runtime.up import turns_file
from storage.connections import fetch

ROOM_BYTES = 2**28
"""Bytes that must stay free in the data folder besides a backup: for new indexes and the log."""
READ_BYTES_PER_SECOND = 50 * 2**20
"""A slow disk's speed, to estimate the time for reading a table."""
TURNS_SECONDS = 600.0
"""Maximum seconds for restarting all programs."""

NAME = r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:ONLY\s+)?\"?(?P<table>\w+)\"?"
KINDS = (
    (rf"CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s.*?\sON\s+{NAME}", "reads"),
    (rf"ALTER\s+TABLE\s+{NAME}.*?\sVALIDATE\s", "reads"),
    (rf"CREATE\s+(?:UNIQUE\s+)?INDEX\s.*?\sON\s+{NAME}", "blocks"),
    (rf"ALTER\s+TABLE\s+{NAME}.*?\s(?:TYPE|SET\s+NOT\s+NULL|GENERATED)\b", "blocks"),
    (rf"ALTER\s+TABLE\s+{NAME}", "holds"),
    (rf"DROP\s+TABLE\s+{NAME}", "holds"),
    (rf"UPDATE\s+{NAME}", "writes"),
    (rf"INSERT\s+INTO\s+{NAME}", "writes"),
    (rf"DELETE\s+FROM\s+{NAME}", "writes"),
)
"""A statement's effect on a table, by its first matching pattern."""
SIZES = """
    SELECT relname, GREATEST(reltuples, 0)::bigint, pg_table_size(oid) FROM pg_class
    WHERE relnamespace = current_schema::regnamespace AND relkind IN ('r', 'p') AND relname = ANY(%s)
"""


class UpgradeError(Exception):
    """A step failed. The message says what to do."""


class Touched(msgspec.Struct, frozen=True):
    """A table that a migration touches. `how`: it `holds`, `reads`, `writes` or `blocks` the table."""

    table: str
    how: str
    rows: int
    size: int

    def __str__(self) -> str:
        seconds = max(1, round(self.size / READ_BYTES_PER_SECOND))
        rows = f"{self.table} ({self.rows:,} rows, {self.size / 2**20:,.0f} MB)"
        return {
            "holds": f"locks {self.table} for milliseconds",
            "reads": f"reads {rows} for about {seconds} s and blocks nothing",
            "writes": f"writes rows of {rows}",
            "blocks": f"BLOCKS writes to {rows} for about {seconds} s",
        }[self.how]


class Unapplied(msgspec.Struct):
    """A migration to apply, and the tables that it touches."""

    name: str
    touches: list[Touched]
    has_code: bool
    """Whether it runs Python or depends on missing tables, so that its effects are not fully known."""

    def __str__(self) -> str:
        said = [str(each) for each in self.touches] + ["runs code, so its time is not known"] * self.has_code
        return f"{self.name}: {'; '.join(said) or 'touches no existing table'}"


# --- Migrations that are missing ----------------------------------------------------------------------------
def unapplied() -> list[Unapplied]:
    """Missing migrations, with their effects."""
    executor = MigrationExecutor(connection)
    loader = MigrationLoader(connection, replace_migrations=False)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    found = []
    sizes = Sizes()
    for migration, is_backwards in plan:
        name = f"{migration.app_label}.{migration.name}"
        try:
            sql = "\n".join(loader.collect_sql([(migration, is_backwards)]))
        except (ValueError, DatabaseError):  # it needs constraints of a table that an earlier one creates
            found.append(Unapplied(name, [], has_code=True))
        else:
            touches = list(dict.fromkeys(touched(sql, sizes)))
            found.append(Unapplied(name, touches, "CANNOT BE WRITTEN AS SQL" in sql))
    return found


class Sizes(dict[str, tuple[int, int] | None]):
    """Rows and bytes by table, read when asked for. None if a table does not exist."""

    def __missing__(self, table: str) -> tuple[int, int] | None:
        self[table] = None
        for name, rows, size in fetch(SIZES, ([table],)):
            self[name] = (int(rows), int(size))
        return self[table]


def touched(sql: str, sizes: "Sizes") -> Iterator[Touched]:
    """The effects of SQL statements on existing tables."""
    for statement in without_comments(sql).split(";"):
        for pattern, how in KINDS:
            if found := re.match(rf"(?is)\s*{pattern}", statement):
                if size := sizes[found["table"]]:
                    yield Touched(found["table"], how, *size)
                break
        for table in re.findall(r"(?i)\sREFERENCES\s+\"?(\w+)", statement):
            if size := sizes[table]:
                yield Touched(table, "holds", *size)  # a foreign key to it


def without_comments(sql: str) -> str:
    """The SQL without its comments."""
    return re.sub(r"(?m)--.*$", "", sql)


# --- Checks ----------------------------------------------------------------------------------------------
def check_room(file: Path | None) -> list[str]:
    """Say how much space is free in the data folder and at the backup, in sentences.

    Raises UpgradeError if it may not suffice, and StoreError.
    """
    needed = {settings.DATA_DIR: ROOM_BYTES}
    if file is not None:
        folder = next(each for each in file.absolute().parents if each.is_dir())
        is_beside = folder.stat().st_dev == settings.DATA_DIR.stat().st_dev
        needed[settings.DATA_DIR if is_beside else folder] = most_bytes() + (ROOM_BYTES if is_beside else 0)
    return [_room(*each) for each in needed.items()]


def _room(folder: Path, needed: int) -> str:
    free = shutil.disk_usage(folder).free
    said = f"{free / 2**20:,.0f} MB free in {folder}; the upgrade may need {needed / 2**20:,.0f} MB"
    if free < needed:
        raise UpgradeError(f"{said}. Delete old backups and logs, or set `--backup` to a file on another disk.")
    return said


def check_client() -> None:
    """Raise UpgradeError without PostgreSQL's client."""
    if missing := missing_client():
        raise UpgradeError(missing)


def check_postgresql() -> None:
    """Raise ServerError if this PostgreSQL cannot read the data."""
    if "postgres" in settings.SERVERS.names:
        check_major(settings.SERVERS.home.data_dir / "postgres")


# --- The restart -----------------------------------------------------------------------------------------
def restart_by_turns(pid: int, told: Callable[[str], None]) -> None:
    """Let `up` restart its programs one after another, and wait. Raises UpgradeError."""
    path = turns_file(settings.SERVERS.home)
    path.unlink(missing_ok=True)
    os.kill(pid, NEXT)
    deadline, read = time.monotonic() + TURNS_SECONDS, 0
    while time.monotonic() < deadline:
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines[read:]:
            if line == "done":
                return
            if line.startswith("failed: "):
                raise UpgradeError(f"{line.removeprefix('failed: ')}. The terminal of `up` has its output.")
            told(line)
        read = len(lines)
        if not Path(f"/proc/{pid}").exists():
            raise UpgradeError("`up` has ended. Start it again.")
        time.sleep(0.1)
    raise UpgradeError(f"`up` did not restart all programs within {TURNS_SECONDS:.0f} s. See its terminal.")
