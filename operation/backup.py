"""Backup and restore of everything that cannot be rebuilt, in one file.

An uncompressed zip: `manifest.json`, `database.dump` (pg_dump's compressed format), `plays` (not merged yet),
`played.mdb` (filters of plays, if on this machine), `media/…` (unless in a bucket) and `secret_key` (if in the data
folder).

The site may run meanwhile. Plays are read first, then the filters into which they are merged, so each play is in at
least one. A restore removes plays of accounts deleted in between.

See docs/decisions.md: Own code in place of a library.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import msgspec
import psycopg
from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader

from accounts.models import User
from media import store as media
from media.files import NAME, PREFIXES, Stored, StoreError
from runtime.disk import sync
from runtime.embedded import ServerError, postgres_binaries
from runtime.older_database import is_older
from seen import forgetting, played
from seen.lmdb_store import LmdbStore
from seen.store import store
from storage import keys
from storage.connections import database_now, feeds_for_tasks, fetch, pipelined

FORMAT = 1
CHUNK_BYTES = 1 << 20
MEDIA = "media/"
"""Prefix of media files in the archive."""
KEYS_AT_ONCE = 500
TIMEOUT = b"SET transaction_timeout = 0;\n"
"""A line that pg_restore always writes at the beginning."""
TIMEOUTS_SINCE = 170_000
"""The first version of PostgreSQL that knows this setting."""
DEBIAN = Path("/usr/lib/postgresql")
"""Debian's folder of PostgreSQL's programs, by major version."""
HEADING_BYTES = 1024
"""The beginning has at least this many bytes, and this line is among them."""

OTHERS = """
    SELECT relname FROM pg_class
    WHERE relnamespace = current_schema::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT EXISTS (
        SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
    ) ORDER BY relname
"""
EMPTY = """
    SELECT format('DROP TABLE IF EXISTS %%I.%%I CASCADE', current_schema, relname) FROM pg_class
    WHERE relnamespace = current_schema::regnamespace AND relkind IN ('r', 'p')
    UNION ALL
    SELECT format('DROP SEQUENCE IF EXISTS %%I.%%I CASCADE', current_schema, relname) FROM pg_class
    WHERE relnamespace = current_schema::regnamespace AND relkind = 'S'
    UNION ALL
    SELECT format('DROP FUNCTION IF EXISTS %%s CASCADE', oid::regprocedure) FROM pg_proc
    WHERE pronamespace = current_schema::regnamespace AND proname ~ %s
"""
"""Statements that drop tables, sequences and functions. A later version may have some that no earlier backup names."""
DELETED = "SELECT id FROM accounts_user WHERE deleted_at IS NOT NULL AND id > %s ORDER BY id LIMIT %s"
DELETED_AT_ONCE = 500

Progress = Callable[[str, int], None]
"""Called with the current member, and the number of bytes just done."""


def progress_on(bar: Any) -> Progress:
    """A function that shows progress on a bar of tqdm."""

    def progress(member: str, size: int) -> None:
        bar.set_description(member, refresh=False)
        bar.update(size)

    return progress


FILTERS_LEFT_OUT = (
    "The filters of plays are NOT in this backup. They are on the server of FEEDSITE_PLAYED_STORE_URL. Back up that "
    "server too."
)


MEDIA_LEFT_OUT = (
    "Pictures and videos are NOT in this backup. They are in the bucket of FEEDSITE_MEDIA_STORE. Copy that bucket, or "
    "turn on its versions."
)


class BackupError(Exception):
    """A backup or restore failed. The message says what to do."""


class Play(msgspec.Struct, array_like=True):
    """A key of the plays' server and its value, as Redis's DUMP."""

    key: bytes
    ttl: int
    value: bytes


# --- Making one ------------------------------------------------------------------------------------------
def left_out() -> list[str]:
    """What this backup lacks, in sentences."""
    said = [] if isinstance(store(), LmdbStore) else [FILTERS_LEFT_OUT]
    return [*said, MEDIA_LEFT_OUT] if media.store().is_remote else said


def most_bytes() -> int:
    """The most bytes that a backup may take. Raises StoreError."""
    ((database,),) = fetch("SELECT pg_database_size(current_database())")
    filters = settings.DATA_DIR / "played" / "data.mdb"
    has_filters = isinstance(store(), LmdbStore) and filters.exists()
    return int(database) + (filters.stat().st_size if has_filters else 0) + sum(stored.size for stored in _media())


def backup(path: Path, *, now: datetime, progress: Progress) -> None:
    """Write a backup, readable only by its owner. The file appears when complete and synced. Raises BackupError."""
    if path.exists():
        raise BackupError(f"{path} exists already.")
    try:
        # A private file, even in a folder where others can write.
        handle, draft = tempfile.mkstemp(".part", f"{path.name}.", path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                _write(file, now=now, progress=progress)
                file.flush()
                os.fsync(handle)  # before the rename: so a file of this name is complete after a power failure
            Path(draft).rename(path)
        finally:
            Path(draft).unlink(missing_ok=True)
        sync(path.parent)
    except OSError as error:
        raise BackupError(f"{path} cannot be written: {error.strerror}.") from error
    except played.PlayedUnavailableError as error:
        raise BackupError(f"The server of plays does not answer: {error}") from error
    except StoreError as error:
        raise BackupError(f"The store of media does not answer: {error}") from error


def _write(file: IO[bytes], *, now: datetime, progress: Progress) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", json.dumps(_manifest(now), indent=1))
        with archive.open("plays", "w", force_zip64=True) as member:
            _copy(_plays(), member, "plays", progress)
        filters = store()
        if isinstance(filters, LmdbStore):
            with archive.open("played.mdb", "w", force_zip64=True) as member:
                _copy(_filters(filters), member, "played.mdb", progress)
        with archive.open("database.dump", "w", force_zip64=True) as member:
            _copy(_database(), member, "database.dump", progress)
        for stored in _media():
            with (
                suppress(FileNotFoundError),
                media.store().open(stored.name) as picture,
                archive.open(f"{MEDIA}{stored.name}", "w", force_zip64=True) as member,
            ):
                _copy(_chunks(picture), member, "media", progress)
        secret = settings.DATA_DIR / "secret_key"
        if secret.exists():
            archive.writestr("secret_key", secret.read_bytes())


def _manifest(now: datetime) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "made_at": now.isoformat(),
        "postgresql": fetch("SHOW server_version_num")[0][0],
        "migrations": sorted(map(list, MigrationLoader(connection).applied_migrations)),
        "users": User.objects.count(),
        "left_out": left_out(),
    }


def _database() -> Iterator[bytes]:
    command = ["pg_dump", "--format=custom", "--no-owner", "--no-privileges"]
    with _client(command, stdout=subprocess.PIPE) as process:
        yield from _chunks(process.stdout)


def _filters(filters: LmdbStore) -> Iterator[bytes]:
    reading, writing = os.pipe()
    failed: list[BaseException] = []

    def copy() -> None:
        try:
            filters.copy(writing)
        except BaseException as error:  # noqa: BLE001 (raised again by the reader)
            failed.append(error)
        finally:
            os.close(writing)

    copier = threading.Thread(target=copy)
    copier.start()
    try:
        with os.fdopen(reading, "rb") as copied:
            yield from _chunks(copied)
    finally:
        copier.join()
    if failed:
        raise BackupError(f"The filters of what was played cannot be read: {failed[0]}")


def _plays() -> Iterator[bytes]:
    client = played.client()
    encoder = msgspec.msgpack.Encoder()
    with played.errors():
        for pattern in keys.PLAYS:
            batch: list[bytes] = []
            for key in client.scan_iter(match=pattern, count=KEYS_AT_ONCE):
                batch.append(key)
                if len(batch) == KEYS_AT_ONCE:
                    yield _framed(encoder.encode(_dumped(client, batch)))
                    batch = []
            if batch:
                yield _framed(encoder.encode(_dumped(client, batch)))


def _media() -> Iterator[Stored]:
    """The media files to back up. None from a bucket, which its owner backs up."""
    for prefix in () if media.store().is_remote else PREFIXES:
        yield from (stored for stored in media.store().listing(prefix) if NAME.fullmatch(stored.name))


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def _dumped(client: Any, found: list[bytes]) -> list[Play]:
    replies = pipelined(client, [each for key in found for each in (("PTTL", key), ("DUMP", key))])
    pairs = zip(found, replies[0::2], replies[1::2], strict=True)
    return [Play(key, max(ttl, 0), value) for key, ttl, value in pairs if value is not None]


# --- And back --------------------------------------------------------------------------------------------
def restore(path: Path, *, progress: Progress) -> dict[str, Any]:
    """Fill an empty site and return the manifest. The site must not run. Raises BackupError.

    PostgreSQL is last, in one transaction, so a failed restore can be repeated.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest: dict[str, Any] = json.loads(archive.read("manifest.json"))
            members = set(archive.namelist())
            _check(manifest, members)
            if "played.mdb" in members:
                _restore_filters(archive, progress)
            _restore_media(archive, progress)
            # Windows from another history may claim to be complete.
            feeds_for_tasks().flushdb()
            _restore_plays(archive)
            # Before the database: a restore cannot be repeated once there are users.
            if "secret_key" in members and not os.environ.get("FEEDSITE_SECRET_KEY"):
                _replace(settings.DATA_DIR / "secret_key", archive.read("secret_key"))
            _restore_database(archive, progress)
            _forget_deleted()
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise BackupError(f"{path} is not a whole backup: {error}") from error
    except OSError as error:
        raise BackupError(f"{path} cannot be restored: {error.strerror or error}.") from error
    except played.PlayedUnavailableError as error:
        raise BackupError(f"The server of plays does not answer: {error}") from error
    except StoreError as error:
        raise BackupError(f"The files of media cannot be written: {error}") from error
    return manifest


def _check(manifest: dict[str, Any], members: set[str]) -> None:
    _check_version(manifest, members)
    if "accounts_user" in connection.introspection.table_names() and User.objects.exists():
        raise BackupError("This site is not empty. A restore needs an empty database.")
    if others := _others():
        raise BackupError(
            f"The database has tables of another program ({others[0]}). A restore would delete them. "
            "Give the site its own database."
        )
    if "played.mdb" in members and settings.PLAYED_STORE_URL:
        raise BackupError("The backup has filters of plays for LMDB. Remove FEEDSITE_PLAYED_STORE_URL for the restore.")


def _check_version(manifest: dict[str, Any], members: set[str]) -> None:
    if manifest["format"] != FORMAT:
        raise BackupError("A newer version of the site made this backup. Restore it with that version.")
    if not {"database.dump", "plays"} <= members:
        raise BackupError("The backup has no database in it.")
    if is_older([tuple(each) for each in manifest["migrations"]]):
        raise BackupError(
            "The backup is older than version 0.2.0. This version cannot read it. Restore it with the version that "
            "made it."
        )
    known = MigrationLoader(None).disk_migrations.keys()
    mine = {app for app, _ in known}
    if newer := [name for app, name in manifest["migrations"] if app in mine and (app, name) not in known]:
        raise BackupError(
            f"A newer version of the site made this backup (it has {newer[0]}). Restore it with that version."
        )


def _restore_filters(archive: zipfile.ZipFile, progress: Progress) -> None:
    """Put the filters of plays into place. The old folder is kept as `played.before-restore`."""
    folder = settings.DATA_DIR / "played"
    draft = folder.with_name("played.restoring")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)
    with archive.open("played.mdb") as member, (draft / "data.mdb").open("wb") as file:
        _copy(_chunks(member), file, "played.mdb", progress)
        file.flush()
        os.fsync(file.fileno())
    if folder.exists():
        before = folder.with_name("played.before-restore")
        shutil.rmtree(before, ignore_errors=True)
        folder.rename(before)
    draft.rename(folder)
    sync(folder.parent)


def _restore_media(archive: zipfile.ZipFile, progress: Progress) -> None:
    for member in archive.namelist():
        name = member.removeprefix(MEDIA)
        if member.startswith(MEDIA) and NAME.fullmatch(name):
            draft = media.incoming() / f"{name.replace('/', '')}.restoring"
            with archive.open(member) as picture, draft.open("wb") as file:
                _copy(_chunks(picture), file, "media", progress)
            media.store().save(draft, name)


def _restore_plays(archive: zipfile.ZipFile) -> None:
    client = played.client()
    decoder = msgspec.msgpack.Decoder(list[Play])
    with archive.open("plays") as member, played.errors():
        while length := member.read(8):
            batch = decoder.decode(member.read(int.from_bytes(length, "big")))
            pipelined(client, [("RESTORE", each.key, each.ttl, each.value, "REPLACE") for each in batch])


def _others() -> list[str]:
    """Names of tables and views that are not of this site or Django."""
    ours = (*(f"{app.label}_" for app in apps.get_app_configs()), "django_")
    return [name for (name,) in fetch(OTHERS) if not name.startswith(ours)]


def _restore_database(archive: zipfile.ZipFile, progress: Progress) -> None:
    """Restore PostgreSQL. First drops what an empty site of any version has."""
    labels = "|".join(app.label for app in apps.get_app_configs())
    with transaction.atomic(), connection.cursor() as cursor:
        for (statement,) in fetch(EMPTY, (f"^({labels})_",)):
            cursor.execute(statement)
    connection.close()
    _run_statements(archive, progress)


def _run_statements(archive: zipfile.ZipFile, progress: Progress, database: str = "") -> None:
    # pg_restore itself would fail on a setting that servers before TIMEOUTS_SINCE do not know.
    psql = ["psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]
    with (
        archive.open("database.dump") as member,
        _client(psql, database, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process,
        closing(_script(member, progress)) as script,
        suppress(BrokenPipeError),  # psql ended, and says why
    ):
        assert process.stdin is not None
        # Without the COMMIT, as after a kill, PostgreSQL keeps nothing.
        process.stdin.write(b"BEGIN;\n")
        for lines in script:
            process.stdin.write(lines)
        process.stdin.write(b"COMMIT;\n")
        process.stdin.close()


def _script(dump: IO[bytes], progress: Progress) -> Generator[bytes, None, None]:
    """Yield the dump's SQL, without what this server does not understand. Raises BackupError."""
    command = ["pg_restore", "--no-owner", "--no-privileges", "--file", "-"]
    failed: list[BaseException] = []
    with _client(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        statements: IO[bytes] = process.stdin

        def feed() -> None:
            try:
                with suppress(BrokenPipeError), statements:  # it ended, and says why
                    _copy(_chunks(dump), statements, "database.dump", progress)
            except BaseException as error:  # noqa: BLE001 (raised again by the reader)
                failed.append(error)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            heading = process.stdout.readlines(HEADING_BYTES)
            # psql could run programs from a dump. This line forbids it.
            if not any(line.startswith(b"\\restrict ") for line in heading):
                raise BackupError("pg_restore is too old. Install its newest minor version.")
            is_old = int(fetch("SHOW server_version_num")[0][0]) < TIMEOUTS_SINCE
            yield b"".join(line for line in heading if not (is_old and line == TIMEOUT))
            yield from _chunks(process.stdout)
        except BaseException:
            process.kill()  # the feeder waits for it
            raise
        finally:
            feeder.join()
    if failed:
        raise failed[0]


def _forget_deleted() -> None:
    """Remove plays of accounts deleted just before the dump."""
    last, now = 0, database_now()
    while found := [user_id for (user_id,) in fetch(DELETED, (last, DELETED_AT_ONCE))]:
        forgetting.forget(found, now=now)
        last = found[-1]


def _replace(path: Path, content: bytes) -> None:
    draft = path.with_name(f"{path.name}.restoring")
    draft.touch(mode=0o600)
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync(path.parent)


# --- A restore on trial ---------------------------------------------------------------------------------
COUNTS = """
    SELECT (SELECT count(*) FROM accounts_user), (SELECT count(*) FROM items_item),
        (SELECT count(*) FROM relations_follow), (SELECT count(*) FROM media_mediafile)
"""


class Checked(msgspec.Struct, frozen=True):
    """When a backup was made, and counts from its restored database."""

    made_at: str
    users: int
    items: int
    follows: int
    media: int
    files: int
    """Media files in the archive."""


def check(path: Path, *, progress: Progress) -> Checked:
    """Restore into a temporary database, and read the rest. The site may run. Raises BackupError."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest: dict[str, Any] = json.loads(archive.read("manifest.json"))
            members = archive.namelist()
            _check_version(manifest, set(members))
            for member in members:
                if member != "database.dump":
                    with archive.open(member) as file, Path(os.devnull).open("wb") as nowhere:
                        _copy(_chunks(file), nowhere, "media" if member.startswith(MEDIA) else member, progress)
            with _scratch_database() as name:
                _run_statements(archive, progress, name)
                with psycopg.connect(**{**connection.get_connection_params(), "dbname": name}) as session:
                    users, items, follows, media_files = session.execute(COUNTS).fetchone() or (0, 0, 0, 0)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise BackupError(f"{path} is not a whole backup: {error}") from error
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror or error}.") from error
    if users < manifest["users"]:  # accounts may be created meanwhile, and rows of deleted ones stay
        raise BackupError(f"The backup should have {manifest['users']:,} users, but it has {users:,}.")
    files = sum(member.startswith(MEDIA) for member in members)
    return Checked(manifest["made_at"], users, items, follows, media_files, files)


@contextmanager
def _scratch_database() -> Iterator[str]:
    name = f"{connection.settings_dict['NAME']}_check_{secrets.token_hex(4)}"
    quoted = connection.ops.quote_name(name)
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as session:
        try:
            session.execute(f"CREATE DATABASE {quoted} TEMPLATE template0 ENCODING 'UTF8'")
        except psycopg.errors.InsufficientPrivilege as error:
            role = session.info.user
            raise BackupError(
                f"The role {role} may not create a database for the test. Run this as a superuser of PostgreSQL: "
                f"`ALTER ROLE {role} CREATEDB`."
            ) from error
        try:
            yield name
        finally:
            session.execute(f"DROP DATABASE {quoted} WITH (FORCE)")


# --- Programs and bytes ----------------------------------------------------------------------------------
@contextmanager
def _client(command: list[str], database: str = "", **streams: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program of PostgreSQL in the block, connected like the site. Raises BackupError if it fails."""
    parameters = connection.get_connection_params()
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    environ = os.environ | {names[name]: str(value) for name, value in parameters.items() if name in names and value}
    environ |= {"PGDATABASE": database} if database else {}
    environ |= {f"PG{name.upper()}": str(parameters[name]) for name in ("sslmode", "sslrootcert") if name in parameters}
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
    majors = {path: _major(path) for path in found if path.exists()}
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


def _major(path: Path) -> int:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(match[1]) if match else 0


def _chunks(stream: IO[bytes] | None) -> Iterator[bytes]:
    assert stream is not None
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _copy(chunks: Iterator[bytes], target: IO[bytes], member: str, progress: Progress) -> None:
    for chunk in chunks:
        target.write(chunk)
        progress(member, len(chunk))
