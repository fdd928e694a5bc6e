"""Backup and restore of everything that cannot be rebuilt, in one file.

An uncompressed zip: `manifest.json`, `database.dump` (pg_dump's compressed format), `plays` (not merged yet),
`played.mdb` (filters of plays, if on this machine), `media/…` (unless in a bucket) and `secret_key` (if in the data
folder).

The site may run meanwhile. Plays are read first, then the filters into which they are merged, so each play is in at
least one. A restore removes plays of accounts deleted in between.

See docs/decisions.md: Own code in place of a library.
"""

import json
import lzma
import os
import secrets
import shutil
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

import msgspec
import psycopg
from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from lmdb.verify import VerifyError, verify

from accounts.models import User
from media import store as media
from media.files import PREFIXES, Stored, StoreError, is_stored_name
from operation import dumps
from operation.dumps import BackupError, Progress, chunks, copy
from runtime.disk import sync
from runtime.older_database import is_applied, known_migrations, upgrade_refusal
from seen import forgetting, lmdb_file, played
from seen.lmdb_store import LmdbStore
from seen.store import store
from storage import keys
from storage.connections import database_now, feeds_for_tasks, fetch, pipelined

FORMAT = 1
MEDIA = "media/"
"""Prefix of media files in the archive."""
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, KeyError, ValueError, psycopg.Error)
"""What damage raises. Bits of a zip also say that a member is compressed, encrypted or of a later version."""
KEYS_AT_ONCE = 500
TRIAL_MS = 60_000
"""Life of a value that is tried, in milliseconds."""

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
UNFINISHED = "SELECT FROM pg_class WHERE oid = 'accounts_user'::regclass AND relowner::regrole::text LIKE %s"
"""A row if a killed restore left the table of users."""
DELETED = "SELECT id FROM accounts_user WHERE deleted_at IS NOT NULL AND id > %s ORDER BY id LIMIT %s"
DELETED_AT_ONCE = 500


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


class Manifest(msgspec.Struct):
    """What a backup says about itself."""

    format: int
    migrations: list[tuple[str, str]]
    users: int
    made_at: str = ""
    left_out: list[str] = []


class DumpedKey(msgspec.Struct, array_like=True):
    """A key of the plays' server and its value, as Redis's DUMP."""

    key: bytes
    ttl: int
    value: bytes


# --- Making one ------------------------------------------------------------------------------------------
def missing_parts() -> list[str]:
    """What this backup lacks, in sentences."""
    said = [] if isinstance(store(), LmdbStore) else [FILTERS_LEFT_OUT]
    return [*said, MEDIA_LEFT_OUT] if media.store().is_remote else said


def upper_size_bound() -> int:
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
            copy(_play_chunks(), member, "plays", progress)
        filters = store()
        if isinstance(filters, LmdbStore):
            with archive.open("played.mdb", "w", force_zip64=True) as member:
                copy(_filter_chunks(filters), member, "played.mdb", progress)
        with archive.open("database.dump", "w", force_zip64=True) as member:
            copy(dumps.make_dump(), member, "database.dump", progress)
        for stored in _media():
            with (
                suppress(FileNotFoundError),
                media.store().open(stored.name) as picture,
                archive.open(f"{MEDIA}{stored.name}", "w", force_zip64=True) as member,
            ):
                copy(chunks(picture), member, "media", progress)
        secret = settings.DATA_DIR / "secret_key"
        if secret.exists():
            archive.writestr("secret_key", secret.read_bytes())


def _manifest(now: datetime) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "made_at": now.isoformat(),
        "postgresql": fetch("SHOW server_version_num")[0][0],
        "migrations": sorted(map(list, MigrationRecorder(connection).applied_migrations())),
        "users": User.objects.count(),
        "left_out": missing_parts(),
    }


def _filter_chunks(filters: LmdbStore) -> Iterator[bytes]:
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
            yield from chunks(copied)
    finally:
        copier.join()
    if failed:
        raise BackupError(f"The filters of what was played cannot be read: {failed[0]}")


def _play_chunks() -> Iterator[bytes]:
    client = played.client()
    encoder = msgspec.msgpack.Encoder()
    with played.errors():
        for pattern in keys.PLAYS:
            batch: list[bytes] = []
            for key in client.scan_iter(match=pattern, count=KEYS_AT_ONCE):
                batch.append(key)
                if len(batch) == KEYS_AT_ONCE:
                    yield _length_prefixed(encoder.encode(_dump_keys(client, batch)))
                    batch = []
            if batch:
                yield _length_prefixed(encoder.encode(_dump_keys(client, batch)))


def _media() -> Iterator[Stored]:
    """The media files to back up. None from a bucket, which its owner backs up."""
    for prefix in () if media.store().is_remote else PREFIXES:
        yield from (stored for stored in media.store().listing(prefix) if is_stored_name(stored.name))


def _length_prefixed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def _dump_keys(client: Any, found: list[bytes]) -> list[DumpedKey]:
    replies = pipelined(client, [each for key in found for each in (("PTTL", key), ("DUMP", key))])
    pairs = zip(found, replies[0::2], replies[1::2], strict=True)
    return [DumpedKey(key, max(ttl, 0), value) for key, ttl, value in pairs if value is not None]


# --- And back --------------------------------------------------------------------------------------------
def restore(path: Path, *, progress: Progress) -> Manifest:
    """Fill an empty site and return the manifest. The site must not run. Raises BackupError.

    PostgreSQL is last, in one transaction, so a failed restore can be repeated.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest_of(archive)
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
                _replace_file(settings.DATA_DIR / "secret_key", archive.read("secret_key"))
            _restore_database(archive, manifest, progress)
            _forget_deleted()
    except DAMAGED as error:
        raise BackupError(f"{path} is not a whole backup: {error}") from error
    except OSError as error:
        raise BackupError(f"{path} cannot be restored: {error.strerror or error}.") from error
    except played.PlayedUnavailableError as error:
        raise BackupError(f"The server of plays does not answer: {error}") from error
    except StoreError as error:
        raise BackupError(f"The files of media cannot be written: {error}") from error
    return manifest


def _manifest_of(archive: zipfile.ZipFile) -> Manifest:
    return msgspec.json.decode(archive.read("manifest.json"), type=Manifest)


def _check(manifest: Manifest, members: set[str]) -> None:
    _check_version(manifest, members)
    if has_users():
        raise BackupError("This site is not empty. A restore needs an empty database.")
    if others := _foreign_tables():
        raise BackupError(
            f"The database has tables of another program ({others[0]}). A restore would delete them. "
            "Give the site its own database."
        )
    if "played.mdb" in members and settings.PLAYED_STORE_URL:
        raise BackupError("The backup has filters of plays for LMDB. Remove FEEDSITE_PLAYED_STORE_URL for the restore.")


def has_users() -> bool:
    """Whether the site has users, and not from a killed restore."""
    is_there = "accounts_user" in connection.introspection.table_names() and User.objects.exists()
    return is_there and not fetch(UNFINISHED, (f"{dumps.ROLE}%",))


def _check_version(manifest: Manifest, members: set[str]) -> None:
    if manifest.format != FORMAT:
        raise BackupError("A newer version of the site made this backup. Restore it with that version.")
    if not {"database.dump", "plays"} <= members:
        raise BackupError("The backup has no database in it.")
    if why := upgrade_refusal("backup", manifest.migrations):
        raise BackupError(why)
    names = {name for each in known_migrations() for name in [(each.app_label, each.name), *each.replaces]}
    mine = {each.app_label for each in known_migrations()}
    if newer := [name for app, name in manifest.migrations if app in mine and (app, name) not in names]:
        raise BackupError(
            f"A newer version of the site made this backup (it has {newer[0]}). Restore it with that version."
        )


def _restore_filters(archive: zipfile.ZipFile, progress: Progress) -> None:
    """Put the filters of plays into place. The old folder is kept as `played.before-restore`."""
    folder = settings.DATA_DIR / "played"
    draft = folder.with_name("played.restoring")
    _extract_filters(archive, draft, progress)
    if folder.exists():
        before = folder.with_name("played.before-restore")
        shutil.rmtree(before, ignore_errors=True)
        folder.rename(before)
    draft.rename(folder)
    sync(folder.parent)


def _extract_filters(archive: zipfile.ZipFile, folder: Path, progress: Progress) -> None:
    """Write the filters of plays into a new folder, and check their structure. Raises BackupError."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    data = folder / "data.mdb"
    with archive.open("played.mdb") as member, data.open("wb") as file:
        copy(chunks(member), file, "played.mdb", progress)
        file.flush()
        os.fsync(file.fileno())
    try:
        with data.open("rb") as file:
            lmdb_file.check_file(file.fileno())
        if wrong := verify(str(data), subdir=False):  # type: ignore[no-untyped-call]
            raise VerifyError(wrong[0])
    except (VerifyError, lmdb_file.TornError) as error:
        raise BackupError(f"The filters of plays in the backup are damaged: {error}") from error


def _restore_media(archive: zipfile.ZipFile, progress: Progress) -> None:
    for member in archive.namelist():
        name = member.removeprefix(MEDIA)
        if member.startswith(MEDIA) and is_stored_name(name):
            draft = media.incoming() / f"{name.replace('/', '')}.restoring"
            with archive.open(member) as picture, draft.open("wb") as file:
                copy(chunks(picture), file, "media", progress)
            media.store().save(draft, name)


def _restore_plays(archive: zipfile.ZipFile) -> None:
    client = played.client()
    with played.errors():
        for batch in _read_plays(archive):
            pipelined(client, [("RESTORE", each.key, each.ttl, each.value, "REPLACE") for each in batch])


def _read_plays(archive: zipfile.ZipFile) -> Iterator[list[DumpedKey]]:
    """The plays in batches. Raises ValueError."""
    decoder = msgspec.msgpack.Decoder(list[DumpedKey])
    with archive.open("plays") as member:
        while header := member.read(8):
            length = int.from_bytes(header, "big")
            left = archive.getinfo("plays").file_size - member.tell()
            if len(header) < 8 or length > left:
                raise ValueError("the plays end early")
            batch = decoder.decode(member.read(length))
            # Another key could be the queue's, and bring tasks.
            for each in batch:
                _play_key_pattern(each.key)
            yield batch


def _play_key_pattern(key: bytes) -> str:
    """The pattern of a key. Another key could be the queue's, and bring tasks. Raises ValueError."""
    found = [pattern for pattern in keys.PLAYS if fnmatchcase(key.decode(), pattern)]
    if not found:
        raise ValueError(f"{key!r} is not a key of plays")
    return found[0]


def _foreign_tables() -> list[str]:
    """Names of tables and views that are not of this site or Django."""
    # A model's table may keep the name that a library gave it.
    named = {model._meta.db_table.partition("_")[0] for model in apps.get_models()}
    ours = tuple(f"{name}_" for name in {*named, *(app.label for app in apps.get_app_configs()), "django"})
    return [name for (name,) in fetch(OTHERS) if not name.startswith(ours)]


def _restore_database(archive: zipfile.ZipFile, manifest: Manifest, progress: Progress) -> None:
    """Restore PostgreSQL. First drops what an empty site of any version has."""
    labels = "|".join(app.label for app in apps.get_app_configs())
    with transaction.atomic(), connection.cursor() as cursor:
        for (statement,) in fetch(EMPTY, (f"^({labels})_",)):
            cursor.execute(statement)
    connection.close()
    with dumps.restricted_role(connection.settings_dict["NAME"]) as role:
        _run_dump(archive, manifest, role, progress)


def _run_dump(archive: zipfile.ZipFile, manifest: Manifest, role: dumps.Parameters, progress: Progress) -> None:
    with archive.open("database.dump") as dump:
        dumps.restore_dump(dump, role, progress)
    with psycopg.connect(**role) as session:
        _check_tables(session, manifest)


def _forget_deleted() -> None:
    """Remove plays of accounts deleted just before the dump."""
    last, now = 0, database_now()
    while found := [user_id for (user_id,) in fetch(DELETED, (last, DELETED_AT_ONCE))]:
        forgetting.forget(found, now=now)
        last = found[-1]


def _replace_file(path: Path, content: bytes) -> None:
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


class BackupCheck(msgspec.Struct, frozen=True):
    """When a backup was made, and counts from its restored database."""

    made_at: str
    users: int
    items: int
    follows: int
    media: int
    files: int
    """Media files in the archive."""


def check(path: Path, *, progress: Progress) -> BackupCheck:
    """Restore into a temporary database, and read the rest as a restore does. The site may run. Raises BackupError."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest_of(archive)
            members = archive.namelist()
            _check_version(manifest, set(members))
            _check_plays(archive)
            if "played.mdb" in members:
                with tempfile.TemporaryDirectory(prefix="check.", dir=settings.DATA_DIR) as folder:
                    _extract_filters(archive, Path(folder) / "played", progress)
            if "secret_key" in members and not archive.read("secret_key").strip():
                raise BackupError("The secret key in the backup is empty.")
            for member in members:
                if member.startswith(MEDIA):
                    with archive.open(member) as file, Path(os.devnull).open("wb") as nowhere:
                        copy(chunks(file), nowhere, "media", progress)
            with _scratch_database() as name, dumps.restricted_role(name) as role:
                _run_dump(archive, manifest, role, progress)
                with psycopg.connect(**role) as session:
                    users, items, follows, media_files = session.execute(COUNTS).fetchone() or (0, 0, 0, 0)
    except DAMAGED as error:
        raise BackupError(f"{path} is not a whole backup: {error}") from error
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror or error}.") from error
    except played.PlayedUnavailableError as error:
        raise BackupError(f"The server of plays does not take the plays: {error}") from error
    if not users:
        raise BackupError(
            "The backup has no users. On a new site create the first administrator, then make a new backup."
        )
    if users < manifest.users:  # accounts may be created meanwhile, and rows of deleted ones stay
        raise BackupError(f"The backup should have {manifest.users:,} users, but it has {users:,}.")
    files = sum(member.startswith(MEDIA) for member in members)
    return BackupCheck(manifest.made_at, users, items, follows, media_files, files)


def _check_plays(archive: zipfile.ZipFile) -> None:
    """Let the plays' server read each value, under a key that nothing uses. Raises ValueError."""
    client, key = played.client(), keys.played_trial(secrets.token_hex(4))
    with played.errors():
        try:
            for batch in _read_plays(archive):
                commands = [(("RESTORE", key, TRIAL_MS, each.value, "REPLACE"), ("TYPE", key)) for each in batch]
                kinds = pipelined(client, [command for pair in commands for command in pair])[1::2]
                for each, kind in zip(batch, kinds, strict=True):
                    if kind != keys.PLAYS[_play_key_pattern(each.key)]:
                        raise ValueError(f"{each.key!r} is a {kind.decode()}")
        finally:
            client.delete(key)


def _check_tables(session: psycopg.Connection, manifest: Manifest) -> None:
    """Raise BackupError if a table is missing. Only tables of this version's migrations are known.

    A view in place of one is none: through a view a superuser could write PostgreSQL's own tables.
    """
    applied = set(session.execute("SELECT app, name FROM django_migrations").fetchall())
    tables = {name for (name,) in session.execute("SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')")}
    pending = {each.app_label for each in known_migrations() if not is_applied(each, applied)}
    models = [each for each in apps.get_models(include_auto_created=True) if each._meta.app_label not in pending]
    missing = sorted({each._meta.db_table for each in models if each._meta.managed} - tables)
    missing += [f"{app}.{name}" for app, name in set(manifest.migrations) - applied]
    if missing:
        raise BackupError(f"The database in the backup is incomplete: {missing[0]} is missing.")


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
            # An earlier backup names the extensions, which only a superuser may make.
            with psycopg.connect(**connection.get_connection_params() | {"dbname": name}, autocommit=True) as scratch:
                for (extension,) in session.execute("SELECT quote_ident(extname) FROM pg_extension").fetchall():
                    with suppress(psycopg.Error):
                        scratch.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
            yield name
        finally:
            session.execute(f"DROP DATABASE {quoted} WITH (FORCE)")
