"""Dumps of PostgreSQL, by its own programs.

A dump is SQL of whoever wrote it. So it runs as a role that can neither run programs nor read files on the server.
"""

import os
import re
import secrets
import shutil
import subprocess
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psycopg
from django.db import connection
from django.db.migrations import RunSQL
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from runtime.embedded import ServerError, postgres_binaries
from storage.connections import fetch

CHUNK_BYTES = 1 << 20
TIMEOUT = b"SET transaction_timeout = 0;\n"
"""A line that pg_restore always writes at the beginning."""
TIMEOUTS_SINCE = 170_000
"""The first version of PostgreSQL that knows this setting."""
DEBIAN = Path("/usr/lib/postgresql")
"""Debian's folder of PostgreSQL's programs, by major version."""
HEADING_BYTES = 1024
"""The beginning has at least this many bytes, and this line is among them."""
ROLE = "feedsite_restore_"
"""The beginning of the names of roles that restore."""

# Before version 16 a role that makes roles can give itself every other power.
POWERS = """
    SELECT rolsuper, (rolcreaterole AND current_setting('server_version_num')::int < 160000) OR EXISTS (
        SELECT FROM unnest(ARRAY['pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files']) AS name
        WHERE pg_has_role(rolname, name, 'MEMBER')
    ) FROM pg_roles WHERE rolname = current_user
"""
CALLED = [
    *("array_agg", "ascii", "generate_series", "int2", "int4", "int8", "length", "lower", "normalize"),
    *("regexp_replace", "replace", "statement_timestamp", "substr", "translate", "varchar"),
]
"""PostgreSQL's functions that the site's defaults, indexes and own functions call."""
# PostgreSQL's own objects are below this number. Expressions of tables are stored as trees that name functions.
STRANGE = r"""
    WITH tree (text) AS (
        SELECT adbin::text FROM pg_attrdef
        UNION ALL SELECT conbin::text FROM pg_constraint WHERE oid >= 16384
        UNION ALL SELECT concat(indexprs, indpred) FROM pg_index WHERE indexrelid >= 16384
        UNION ALL SELECT concat(polqual, polwithcheck) FROM pg_policy
        UNION ALL SELECT tgqual::text FROM pg_trigger
        UNION ALL SELECT typdefaultbin::text FROM pg_type WHERE oid >= 16384
        UNION ALL SELECT stxexprs::text FROM pg_statistic_ext
        UNION ALL SELECT partexprs::text FROM pg_partitioned_table
        UNION ALL SELECT concat(ev_qual, ev_action) FROM pg_rewrite r WHERE oid >= 16384 AND NOT EXISTS (
            SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = ev_class AND deptype = 'e'
        )
        UNION ALL SELECT concat(prosqlbody, proargdefaults) FROM pg_proc WHERE oid >= 16384
    ), calls AS MATERIALIZED (
        SELECT DISTINCT called[1]::oid AS oid
        FROM tree, regexp_matches(text, ':(?:funcid|aggfnoid|winfnoid) (\d+)', 'g') AS called
    )
    SELECT oid::regprocedure::text FROM pg_proc p
    WHERE oid >= 16384 AND prosqlbody IS NULL AND position('$$' || prosrc || '$$' IN %(known)s) = 0 AND NOT EXISTS (
        SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'
    )
    UNION ALL
    SELECT oid::regprocedure::text FROM pg_proc
    WHERE oid IN (TABLE calls) AND oid < 16384 AND proname <> ALL (%(called)s)
    UNION ALL
    SELECT oid::regprocedure::text FROM pg_proc WHERE oid >= 16384 AND prosqlbody::text ~ ':commandType [^1]'
    UNION ALL
    SELECT format('rule %%s', rulename) FROM pg_rewrite WHERE oid >= 16384 AND ev_type <> '1'
    UNION ALL
    SELECT oid::regoperator::text FROM pg_operator WHERE oid >= 16384
"""
"""Functions that no migration of the site made, those of PostgreSQL that its tables don't call, and what writes: a
superuser may write PostgreSQL's own tables. Views read, and are the only rules.
"""

LOCK_SECONDS = 60.0
"""How long a dump waits for a locked table. `doctor` says who has it."""

Progress = Callable[[str, int], None]
"""Called with the current member, and the number of bytes just done."""
Parameters = dict[str, Any]
"""Of a connection, as for psycopg."""


class BackupError(Exception):
    """A backup or restore failed. The message says what to do."""


def make_dump() -> Iterator[bytes]:
    """A dump of the site's database, without extensions. Raises BackupError."""
    command = ["pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--extension=plpgsql"]
    command.append(f"--lock-wait-timeout={LOCK_SECONDS:.0f}s")
    with _run_client(command, connection.get_connection_params(), stdout=subprocess.PIPE) as process:
        yield from chunks(process.stdout)


@contextmanager
def restricted_role(database: str) -> Iterator[Parameters]:
    """How to connect to a database as a role that can only write there. The site's own, unless it is a superuser.

    At the end the site owns what the role made. After an error it is deleted. Raises BackupError.
    """
    site = connection.get_connection_params() | {"dbname": database}
    with psycopg.connect(**site, autocommit=True) as session:
        is_superuser, has_powers = session.execute(POWERS).fetchone() or (False, False)
        if not is_superuser:
            if has_powers:
                raise BackupError(
                    f"The role {session.info.user} may run programs or read files on the database server, and so could "
                    "a backup. Take these rights from it, or give the site another role."
                )
            yield site
            return
        name, password = f"{ROLE}{os.getpid()}_{secrets.token_hex(4)}", secrets.token_urlsafe()
        role = sql.Identifier(name)
        sealed = session.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
        session.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(sealed)))
        try:
            ((schema,),) = session.execute("SELECT current_schema").fetchall()
            # Of a dump's operators and functions, more exact ones would be called in place of PostgreSQL's.
            session.execute("SET search_path = pg_catalog")
            for right, place in (("CONNECT", ("DATABASE", database)), ("USAGE, CREATE", ("SCHEMA", schema))):
                session.execute(
                    sql.SQL(f"GRANT {right} ON {place[0]} {{}} TO {{}}").format(sql.Identifier(place[1]), role)
                )
            yield site | {"user": name, "password": password}
            if found := session.execute(STRANGE, {"known": _statements(), "called": CALLED}).fetchone():
                raise BackupError(f"The backup is not of this site: {found[0]} could run programs or read files.")
            session.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(role))
        finally:
            session.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
            session.execute(sql.SQL("DROP ROLE {}").format(role))


def _statements() -> str:
    """The SQL of all migrations of this version."""
    operations = (each for one in MigrationLoader(None).disk_migrations.values() for each in one.operations)
    return "\n".join(each.sql for each in operations if isinstance(each, RunSQL) and isinstance(each.sql, str))


def restore_dump(dump: IO[bytes], to: Parameters, progress: Progress) -> None:
    """Run a dump's statements in one transaction. Raises BackupError."""
    # pg_restore itself would fail on a setting that servers before TIMEOUTS_SINCE do not know.
    psql = ["psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]
    with (
        _run_client(psql, to, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process,
        closing(_script(dump, to, progress)) as script,
        suppress(BrokenPipeError),  # psql ended, and says why
    ):
        assert process.stdin is not None
        # Without the COMMIT, as after a kill, PostgreSQL keeps nothing.
        process.stdin.write(b"BEGIN;\n")
        for lines in script:
            process.stdin.write(lines)
        process.stdin.write(b"COMMIT;\n")
        process.stdin.close()


def _script(dump: IO[bytes], to: Parameters, progress: Progress) -> Generator[bytes, None, None]:
    """Yield the dump's SQL, without what this server does not understand. Raises BackupError."""
    command = ["pg_restore", "--no-owner", "--no-privileges", "--no-comments", "--file", "-"]
    failed: list[BaseException] = []
    with _run_client(command, to, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        statements: IO[bytes] = process.stdin

        def feed() -> None:
            try:
                with suppress(BrokenPipeError), statements:  # it ended, and says why
                    copy(chunks(dump), statements, "database.dump", progress)
            except BaseException as error:  # noqa: BLE001 (raised again by the reader)
                failed.append(error)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            heading = process.stdout.readlines(HEADING_BYTES)
            # psql could run programs from a dump. This line forbids it. Without any line pg_restore says what is wrong.
            if heading and not any(line.startswith(b"\\restrict ") for line in heading):
                raise BackupError("pg_restore is too old. Install its newest minor version.")
            is_old = int(fetch("SHOW server_version_num")[0][0]) < TIMEOUTS_SINCE
            yield b"".join(line for line in heading if not (is_old and line == TIMEOUT))
            yield from chunks(process.stdout)
        except BaseException:
            process.kill()  # the feeder waits for it
            raise
        finally:
            feeder.join()
        if failed:
            raise failed[0]


# --- Programs and bytes ----------------------------------------------------------------------------------
@contextmanager
def _run_client(command: list[str], to: Parameters, **streams: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program of PostgreSQL in the block. Raises BackupError if it fails."""
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    environ = os.environ | {names[name]: str(value) for name, value in to.items() if name in names and value}
    environ |= {f"PG{name.upper()}": str(to[name]) for name in ("sslmode", "sslrootcert") if name in to}
    with subprocess.Popen(
        [_binary(command[0]), *command[1:]], env=environ, stderr=subprocess.PIPE, **streams
    ) as process:
        words: list[bytes] = []
        assert process.stderr is not None
        listener = threading.Thread(target=lambda: words.extend(process.stderr or ()))
        listener.start()
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.close()
            code = process.wait()
            listener.join()
    if code:
        said = b"".join(words).decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
        wrong = [line for line in said if "error" in line.lower()] or said  # notices come first
        raise BackupError(f"{command[0]} failed: {wrong[0]}")


def _binary(name: str) -> str:
    """The path of a PostgreSQL program that is not older than the server. Raises BackupError."""
    server = int(fetch("SHOW server_version_num")[0][0]) // 10_000
    found = []
    with suppress(ServerError):
        found.append(postgres_binaries() / name)
    found += sorted(DEBIAN.glob(f"[1-9][0-9]/bin/{name}"), reverse=True)
    if elsewhere := shutil.which(name):
        found.append(Path(elsewhere))
    majors = {path: _client_major_version(path) for path in found if path.exists()}
    for path, major in majors.items():
        if major >= server:
            return str(path)
    newest = f"; this machine has {max(majors.values())}" if majors else ""
    raise BackupError(
        f"{name} of PostgreSQL {server} or newer is missing{newest}. Install postgresql-client-{server}. "
        "If your system has no such package, get it from apt.postgresql.org."
    )


def missing_client() -> str:
    """Why PostgreSQL's client cannot make backups, or empty."""
    try:
        for name in ("pg_dump", "pg_restore", "psql"):
            _binary(name)
    except BackupError as error:
        return str(error)
    return ""


def _client_major_version(path: Path) -> int:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(match[1]) if match else 0


def chunks(stream: IO[bytes] | None) -> Iterator[bytes]:
    """What is left of a file."""
    assert stream is not None
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def copy(parts: Iterator[bytes], target: IO[bytes], member: str, progress: Progress) -> None:
    """Write the parts of a member into a file."""
    for chunk in parts:
        target.write(chunk)
        progress(member, len(chunk))
