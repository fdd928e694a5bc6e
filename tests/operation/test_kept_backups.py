"""The site's automatic backups and trial restores."""

import io
import logging
import os
import re
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.models import User
from operation import backup, dumps, kept_backups, tasks, upgrade
from operation.doctor import disks
from operation.dumps import BackupError
from operation.kept_backups import DatedBackup, backup_folder, backups_to_delete, is_due, stored_backups
from relations import actions as relations
from runtime import metrics
from runtime.environment import OptionsError, validated_options
from seen import played, store
from seen.filter_store import FilterKey, month_of
from seen.lmdb_store import LmdbStore
from storage.connections import fetch
from tests.support.buckets import BucketServer
from tests.support.effort import some
from tests.support.factories import ItemFactory, UserFactory
from tests.support.streams import database_url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.BACKUP_TO_SECRET = str(tmp_path / "kept")
    return tmp_path / "kept"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketServer]:
    server = BucketServer(tmp_path_factory.mktemp("bucket"))
    yield server
    server.stop()


def made(*days: float, now: datetime) -> list[DatedBackup]:
    """Backups of these ages in days."""
    times = sorted((now - timedelta(days=each) for each in days), reverse=True)
    return [DatedBackup(at, f"feedsite-{at:%Y%m%dT%H%M%S}Z.backup") for at in times]


def left_of(found: list[DatedBackup], newest: DatedBackup) -> list[str]:
    """The names that stay beside the newest: the number of weeks depends on the day."""
    gone = backups_to_delete([newest, *found], days=7, weeks=4)
    return [each.name for each in found if each not in gone]


# --- When, and which ---------------------------------------------------------------------------------------
def test_one_is_due_after_three_at_night_in_the_zone_of_the_site(settings: Any) -> None:
    settings.SITE_ZONE = ZoneInfo("Asia/Shanghai")
    three = datetime(2026, 11, 27, 19, tzinfo=UTC)  # of the 28th there
    before = DatedBackup(three - timedelta(minutes=1), "")
    assert is_due(None, three)
    assert is_due(before, three)
    assert is_due(before, three + timedelta(hours=10))
    assert not is_due(before, three - timedelta(seconds=1))
    assert not is_due(DatedBackup(three, ""), three + timedelta(hours=23))
    assert is_due(DatedBackup(three, ""), three + timedelta(hours=24))


def test_the_newest_of_days_and_weeks_are_kept(settings: Any) -> None:
    now = datetime(2026, 11, 27, 4, tzinfo=UTC)  # a Friday
    found = made(0, 0.01, *range(1, 60), now=now)
    gone = backups_to_delete(found, days=7, weeks=4)
    left = [each.made_at.date().isoformat() for each in found if each not in gone]
    assert left == [
        *("2026-11-27", "2026-11-26", "2026-11-25", "2026-11-24", "2026-11-23", "2026-11-22", "2026-11-21"),
        *("2026-11-15", "2026-11-08"),
    ]
    assert backups_to_delete(found[:1], days=1, weeks=0) == []
    old = made(100, 101, 400, now=now)
    assert backups_to_delete(old, days=7, weeks=4) == [], "however old, while there are no newer ones"


# --- A folder ----------------------------------------------------------------------------------------------
def test_the_task_makes_one_a_day_and_removes_old_ones(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir()
    old = made(*range(1, 40), now=timezone.now() - timedelta(days=3))
    others = ["feedsite-by-hand.backup", "notes.txt"]
    for name in (*(each.name for each in old), *others, "feedsite-20260101T030000Z.backup.x1.part"):
        (folder / name).write_text("")
    tasks.back_up()
    newest, *older = stored_backups(backup_folder())
    assert zipfile.ZipFile(folder / newest.name).testzip() is None
    assert timezone.now() - newest.made_at < timedelta(minutes=5)
    assert [each.name for each in older] == left_of(old, newest)
    assert all((folder / name).exists() for name in others), "other names are left alone"
    assert not list(folder.glob("*.part")), "what a killed process left"
    assert metrics.registry.get_sample_value("feedsite_backup_made_seconds") == pytest.approx(
        newest.made_at.timestamp(), abs=1
    )
    tasks.back_up()
    assert stored_backups(backup_folder())[0] == newest, "one a day"
    assert not caplog.records


def test_one_that_fails_is_logged_and_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(dumps, "_binary", lambda name: "/bin/false")
        tasks.back_up()
    assert [each.partition(": exit")[0] for each in caplog.messages] == ["the backup failed: pg_dump failed"]
    assert list(folder.iterdir()) == []
    tasks.back_up()
    assert len(stored_backups(backup_folder())) == 1


@pytest.mark.sessions
def test_two_workers_make_one(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with psycopg.connect(database_url()) as other:
        assert other.execute(kept_backups.TRY_LOCK).fetchone() == (True,)
        with caplog.at_level(logging.ERROR):
            tasks.back_up()
    assert "Another process is making a backup now." in caplog.text
    assert not folder.exists()


def test_a_folder_that_is_none(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.write_text("a file")
    tasks.back_up()
    assert f"{folder} (FEEDSITE_BACKUP_TO) cannot be used" in caplog.text


def test_the_command_without_a_file(folder: Path, settings: Any) -> None:
    out = io.StringIO()
    call_command("backup", stdout=out)
    assert re.match(r"feedsite-\d{8}T\d{6}Z\.backup\. It holds secrets", out.getvalue())
    assert (folder / stored_backups(backup_folder())[0].name).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    settings.BACKUP_TO_SECRET = ""
    with pytest.raises(CommandError, match="set FEEDSITE_BACKUP_TO"):
        call_command("backup")


def test_the_doctor_looks_at_the_newest(folder: Path, settings: Any) -> None:
    def state(now: datetime) -> str:
        return {each.name: each.state for each in disks.backups(now)}["backups"]

    now = timezone.now()
    assert state(now) == "error", "there is none"
    call_command("backup", stdout=io.StringIO())
    assert [state(now + timedelta(hours=hours)) for hours in (0, 29, 31, 91)] == ["ok", "ok", "warning", "error"]
    settings.BACKUP_TO_SECRET = ""
    assert state(now) == "ok", "they are made by other means, perhaps"


@pytest.mark.parametrize("day", ["20260231T030000", "00000000T000000", "00010101T000000", "20261128T250000"])
def test_one_of_no_day_is_none(folder: Path, settings: Any, day: str) -> None:
    folder.mkdir()
    (folder / f"feedsite-{day}Z.backup").touch()
    kept_backups.back_up_if_due(now=datetime(2026, 11, 28, 12, tzinfo=UTC))
    assert [each.name for each in stored_backups(backup_folder())] == ["feedsite-20261128T120000Z.backup"]


def test_one_of_the_future_ends_no_backups(folder: Path, settings: Any) -> None:
    """A clock ran two days ahead, and was set right."""
    settings.BACKUP_DAYS, settings.BACKUP_WEEKS = 2, 1
    now = timezone.now()
    later = [each.name for each in made(-2, -1.9, -400, now=now)]
    folder.mkdir()
    for name in (*later, made(3, now=now)[0].name):
        (folder / name).write_text("")
    findings = {each.name: each for each in disks.backups(now)}
    assert findings["backups"].state == "warning", "the newest real one is three days old"
    assert findings["backup dates"].state == "warning"
    assert "3 of the future" in findings["backup dates"].text
    tasks.back_up()
    names = [each.name for each in stored_backups(backup_folder())]
    assert set(later) < set(names), "they are left alone"
    (newest, *_) = kept_backups.believably_dated(stored_backups(backup_folder()), timezone.now())
    assert timezone.now() - newest.made_at < timedelta(minutes=5)
    assert metrics.registry.get_sample_value("feedsite_backup_made_seconds") == pytest.approx(
        newest.made_at.timestamp(), abs=1
    )
    tasks.back_up()
    assert [each.name for each in stored_backups(backup_folder())] == names, "one a day"
    assert "backups" not in {each.name for each in disks.backups(timezone.now()) if each.state != "ok"}


# --- A bucket ----------------------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.slow
def test_a_bucket_keeps_them_and_gives_them_back(server: BucketServer, settings: Any) -> None:
    settings.BACKUP_TO_SECRET = server.made("backups")
    where = backup_folder()
    UserFactory()
    old = made(*range(3, 40), now=timezone.now())
    for each in old:
        where.bucket.client.put_object(Bucket="backups", Key=each.name, Body=b"")  # type: ignore[attr-defined]
    tasks.back_up()
    newest, *older = stored_backups(where)
    assert [each.name for each in older] == left_of(old, newest)
    assert not list((settings.DATA_DIR / "backups" / "unsent").iterdir()), "nothing stays here"
    out = io.StringIO()
    call_command("restore", newest.name, "--check", stdout=out)
    assert "is good" in out.getvalue()
    with pytest.raises(CommandError, match="The bucket of FEEDSITE_BACKUP_TO failed"):
        call_command("restore", "feedsite-20260101T030000Z.backup", "--check")
    assert not list((settings.DATA_DIR / "backups" / "unsent").iterdir())


@pytest.mark.slow
def test_a_bucket_that_does_not_answer(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.BACKUP_TO_SECRET = "s3://key:secret@localhost/backups?endpoint=http://127.0.0.1:1"
    tasks.back_up()
    assert "the backup failed: The bucket of FEEDSITE_BACKUP_TO failed: the bucket does not answer" in caplog.text
    assert "secret" not in caplog.text.replace("FEEDSITE_BACKUP_TO", "")


# --- A restore on trial --------------------------------------------------------------------------------------
def databases() -> int:
    with connection.cursor() as cursor:
        # Other tests share the server.
        cursor.execute("SELECT count(*) FROM pg_database WHERE starts_with(datname, current_database())")
        (count,) = cursor.fetchone()
    return int(count)


def test_a_backup_is_tried_while_the_site_runs(tmp_path: Path, media_folder: Path) -> None:
    ann, bob = UserFactory(), UserFactory()
    ItemFactory(sender=ann)
    relations.follow(follower=bob, followee=ann)
    path, out, before = tmp_path / "site.backup", io.StringIO(), databases()
    call_command("backup", path, stdout=io.StringIO())
    UserFactory()
    call_command("restore", path, "--check", stdout=out)
    assert "2 users, 1 items, 1 follows, 0 pictures and videos in 0 files." in out.getvalue()
    assert databases() == before


@pytest.mark.long
def test_a_damaged_backup_is_found_out(tmp_path: Path) -> None:
    UserFactory.create_batch(3)
    path, before = tmp_path / "site.backup", databases()
    call_command("backup", path, stdout=io.StringIO())
    with zipfile.ZipFile(path) as archive:
        dump = archive.getinfo("database.dump")
    whole = path.read_bytes()
    middle = dump.header_offset + dump.file_size // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    with pytest.raises(CommandError):
        call_command("restore", path, "--check")
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CommandError, match="not a whole backup"):
        call_command("restore", path, "--check")
    path.write_bytes(whole)
    assert "pg_restore failed" in refusal(changed(path, tmp_path / "other.backup", database=b"")), "not: it is too old"
    # In the archive's directory, a bit says that a member is encrypted, and a number how it is compressed.
    entry = whole.rindex(b"PK\x01\x02", 0, whole.rindex(b"database.dump"))
    for at, bit in ((8, 1), (10, 8), (10, 14), (10, 255)):
        path.write_bytes(whole[: entry + at] + bytes([whole[entry + at] ^ bit]) + whole[entry + at + 1 :])
        with pytest.raises(CommandError, match="not a whole backup"):
            call_command("restore", path, "--check")
    path.write_bytes(whole.replace(b'"users": 3', b'"users": 4'))
    with pytest.raises(CommandError):
        call_command("restore", path, "--check")
    assert databases() == before


def changed(path: Path, target: Path, **members: bytes) -> Path:
    """The backup with other bytes in some members."""
    with zipfile.ZipFile(path) as found, zipfile.ZipFile(target, "w") as archive:
        for name in found.namelist():
            archive.writestr(name, members.get(name.partition(".")[0], found.read(name)))
    return target


def refusal(path: Path) -> str:
    with pytest.raises(CommandError) as refused:
        call_command("restore", path, "--check", stdout=io.StringIO())
    return str(refused.value)


def plays_of(*batch: tuple[bytes, int, bytes]) -> bytes:
    data = msgspec.msgpack.encode(batch)
    return len(data).to_bytes(8, "big") + data


@pytest.mark.long
@pytest.mark.slow
def test_what_could_not_be_restored_is_not_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is tried as a restore would use it."""
    UserFactory()
    client = played.client()
    client.zadd("played:recent:7", {"1001": 1795252000000.0})
    client.set("played:kept", 1)
    plays, text = client.dump("played:recent:7"), client.dump("played:kept")
    assert plays
    assert text
    monkeypatch.setattr(store, "_store", LmdbStore(tmp_path / "played"))
    month = month_of(timezone.now())
    store.store().update([FilterKey(user_id, month) for user_id in range(200)], lambda key, old: b"x" * 3_000)
    whole, other = tmp_path / "site.backup", tmp_path / "other.backup"
    call_command("backup", whole, stdout=io.StringIO())
    call_command("restore", whole, "--check", stdout=io.StringIO())
    good = plays_of((b"played:recent:7", 0, plays))
    with zipfile.ZipFile(whole) as archive:
        filters = archive.read("played.mdb")
    before = client.keys("*")
    for bad in (
        good[:-1],
        good[:5],
        good + b"x",
        len(good).to_bytes(8, "big") + good[8:],
        (2**63).to_bytes(8, "big"),
        plays_of((b"played:recent:7", 0, plays[:-1])),
        plays_of((b"played:recent:7", 0, text)),
        plays_of((b"celery", 0, plays)),
        b"nonsense",
    ):
        assert "play" in refusal(changed(whole, other, plays=bad)) or "Input data" in refusal(other), bad
    assert client.keys("*") == before
    for length in some(2, (0, len(filters) // 2, 100, 4096, 8192, len(filters) - 4096)):
        assert "filters of plays" in refusal(changed(whole, other, played=filters[:length])), length
    for at in some(2, (20, len(filters) // 2 // 4096 * 4096 + 4, 44, 8192 + 10)):
        flipped = filters[:at] + bytes([filters[at] ^ 255]) + filters[at + 1 :]
        assert "filters of plays" in refusal(changed(whole, other, played=flipped)), at
    for manifest in (b"", b"[]", b"{}", b'{"format": 1, "migrations": [], "users": "many"}'):
        assert "not a whole backup" in refusal(changed(whole, other, manifest=manifest))
    assert "secret key" in refusal(changed(whole, other, secret_key=b"\n"))
    User.objects.all().delete()
    (tmp_path / "empty").unlink(missing_ok=True)
    call_command("backup", tmp_path / "empty", stdout=io.StringIO())
    assert "no users" in refusal(tmp_path / "empty")
    assert not list(tmp_path.glob("check.*"))


@pytest.mark.slow
def test_a_database_without_a_table_is_not_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    UserFactory()
    real = dumps._run_client
    monkeypatch.setattr(
        dumps,
        "_run_client",
        lambda command, to, **streams: real([*command, "--exclude-table=live_host"], to, **streams),
    )
    call_command("backup", tmp_path / "site.backup", stdout=io.StringIO())
    monkeypatch.setattr(dumps, "_run_client", real)
    assert "live_host is missing" in refusal(tmp_path / "site.backup")


@pytest.fixture
def unchanged_server() -> Iterator[None]:
    """Fails if a test leaves a role or a database."""
    before = databases()
    yield
    roles = fetch("SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", [f"{dumps.ROLE}{os.getpid()}_"])
    assert (roles, databases()) == ([], before)


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged_server")
def test_a_dump_neither_runs_programs_nor_reads_files(tmp_path: Path) -> None:
    """The tests' role is a superuser, as under `up`."""
    UserFactory()
    mark = tmp_path / "mark"
    whole, other = tmp_path / "site.backup", tmp_path / "other.backup"
    call_command("backup", whole, stdout=io.StringIO())
    with zipfile.ZipFile(whole) as archive:
        dump = archive.read("database.dump")
    begin = dump.index(b"CREATE FUNCTION public.items_post_changed()")
    end = dump.index(b"$$;", dump.index(b"$$", begin) + 2) + 3
    program = f"COPY (SELECT 1) TO PROGRAM 'touch {mark}';"
    trigger = "CREATE FUNCTION public.items_post_changed() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
    statements = [
        f"{trigger} {program} RETURN NULL; END $$;",
        f"\\! touch {mark}",
        f"RESET SESSION AUTHORIZATION; {program}",
        "SELECT pg_read_file('/etc/passwd');",
        program,
        f"RESET ROLE; {program}",
        "SET ROLE feedsite;",
        "GRANT pg_execute_server_program TO CURRENT_USER;",
        "ALTER ROLE CURRENT_USER SUPERUSER;",
        "CREATE TEMP TABLE x (y text); COPY x FROM '/etc/passwd';",
        "SELECT lo_import('/etc/passwd');",
    ]
    for statement in some(4, statements):
        message = "items_post_changed" if statement.startswith(trigger) else "psql failed"
        assert len(statement) <= end - begin
        hostile = dump[:begin] + statement.encode().ljust(end - begin) + dump[end:]
        assert message in refusal(changed(whole, other, database=hostile)), statement
        assert not mark.exists(), statement


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged_server")
@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("ALTER TABLE live_host ADD evil text DEFAULT pg_read_file('/etc/hostname')", "pg_read_file"),
        (
            "ALTER TABLE live_host ADD evil xml DEFAULT query_to_xml('SELECT pg_read_file(''/x'')', true, true, '')",
            "query_to_xml",
        ),
        ("CREATE VIEW evil AS SELECT pg_read_file('/etc/hostname')", "pg_read_file"),
        ("ALTER TABLE live_host ADD CONSTRAINT evil CHECK (pg_read_file('/etc/hostname') <> 'x')", "pg_read_file"),
        ("CREATE FUNCTION evil() RETURNS text LANGUAGE sql AS 'SELECT pg_read_file(''/etc/hostname'')'", "evil"),
        ("CREATE FUNCTION evil() RETURNS text LANGUAGE sql RETURN pg_read_file('/etc/hostname')", "pg_read_file"),
        # A superuser may write what a function of PostgreSQL runs, and whose role is one.
        (
            """CREATE FUNCTION evil() RETURNS int LANGUAGE sql BEGIN ATOMIC
                UPDATE pg_catalog.pg_authid SET rolsuper = rolsuper; SELECT 1;
            END; ALTER TABLE live_host ADD CONSTRAINT evil CHECK (evil() = 1)""",
            "evil",
        ),
        (
            "CREATE RULE evil AS ON INSERT TO live_host DO ALSO UPDATE pg_catalog.pg_proc SET prosrc = prosrc",
            "rule evil",
        ),
    ],
)
def test_no_table_of_a_dump_reads_files_later(change: str, name: str) -> None:
    """The site's own role is a superuser, and would call it."""
    with connection.cursor() as cursor:
        cursor.execute(change)
        try:
            with (
                pytest.raises(BackupError, match=name),
                dumps.restricted_role(connection.get_connection_params()["dbname"]),
            ):
                pass
        finally:
            cursor.execute("DROP VIEW IF EXISTS evil; DROP RULE IF EXISTS evil ON live_host")
            cursor.execute("ALTER TABLE live_host DROP COLUMN IF EXISTS evil, DROP CONSTRAINT IF EXISTS evil")
            cursor.execute("DROP FUNCTION IF EXISTS evil")


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged_server")
def test_the_search_for_strange_functions_calls_none(tmp_path: Path) -> None:
    """A more exact operator in `public` comes before PostgreSQL's own, and the search runs as a superuser."""
    UserFactory()
    mark, path = tmp_path / "mark", tmp_path / "site.backup"
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION evil(oid, integer) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN "
            "IF current_setting('is_superuser') = 'on' THEN "
            f"COPY (SELECT 1) TO PROGRAM 'touch {mark}'; END IF; RETURN false; END$$; "
            "CREATE OPERATOR >= (LEFTARG = oid, RIGHTARG = integer, FUNCTION = evil)"
        )
        try:
            call_command("backup", path, stdout=io.StringIO())
        finally:
            cursor.execute("DROP FUNCTION evil CASCADE")
    mark.unlink(missing_ok=True)
    assert "evil" in refusal(path)
    assert not mark.exists()


@pytest.mark.usefixtures("unchanged_server")
def test_only_a_role_without_powers_restores(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = connection.get_connection_params()
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE ordinary LOGIN")
        try:
            monkeypatch.setattr(connection, "get_connection_params", lambda: parameters | {"user": "ordinary"})
            with dumps.restricted_role(parameters["dbname"]) as role:
                assert role["user"] == "ordinary", "the site's own"
            cursor.execute("GRANT pg_read_server_files TO ordinary")
            with (
                pytest.raises(BackupError, match="ordinary may run programs"),
                dumps.restricted_role(parameters["dbname"]),
            ):
                pass
        finally:
            cursor.execute("DROP ROLE ordinary")


@pytest.mark.usefixtures("unchanged_server")
def test_a_killed_restore_can_be_repeated() -> None:
    """Killed after its transaction, before the site owns the tables."""
    UserFactory()
    with connection.cursor() as cursor:
        assert backup.has_users()
        cursor.execute(
            "CREATE ROLE feedsite_restore_killed; ALTER TABLE accounts_user OWNER TO feedsite_restore_killed"
        )
        try:
            assert not backup.has_users()
        finally:
            cursor.execute("ALTER TABLE accounts_user OWNER TO CURRENT_USER; DROP ROLE feedsite_restore_killed")


# --- PostgreSQL's own programs -------------------------------------------------------------------------------
def test_a_client_that_is_missing_or_too_old_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = connection.pg_version // 10_000
    monkeypatch.setattr(dumps, "postgres_binaries", lambda: tmp_path / "none")
    monkeypatch.setattr(dumps, "DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert dumps.missing_client().startswith(f"pg_dump of PostgreSQL {server} or newer is missing. Install")
    (tmp_path / "bin").mkdir()
    for name in ("pg_dump", "pg_restore", "psql"):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {server - 1}.4 (Debian {server - 1}.4-1)'\n")
        program.chmod(0o755)
    said = dumps.missing_client()
    assert f"this machine has {server - 1}" in said
    assert f"postgresql-client-{server}" in said
    (finding, *_) = disks.backups(timezone.now())
    assert (finding.state, finding.text) == ("warning", said)
    with pytest.raises(upgrade.UnfitUpgradeError, match=f"postgresql-client-{server}"):
        upgrade.check_client()
    with pytest.raises(BackupError):
        backup.backup(tmp_path / "site.backup", now=timezone.now(), progress=lambda member, size: None)
    fitting = tmp_path / str(server) / "bin"  # as Debian installs several versions
    fitting.mkdir(parents=True)
    for name in ("pg_dump", "pg_restore", "psql"):
        (fitting / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {server}.1'\n")
        (fitting / name).chmod(0o755)
    assert dumps.missing_client() == ""
    assert dumps._binary("psql") == str(fitting / "psql")


# --- The settings --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "refusal"),
    [
        ("/srv/backups", ""),
        ("s3://key:secret@s3.example.org/backups", ""),
        ("backups", "it does not begin with a slash"),
        ("s3://s3.example.org/backups", "it has no key:secret@ before the host"),
        ("s3://key:secret@s3.example.org/photos", "is the bucket of FEEDSITE_MEDIA_STORE"),
    ],
)
def test_where_backups_may_go(monkeypatch: pytest.MonkeyPatch, value: str, refusal: str) -> None:
    monkeypatch.setitem(os.environ, "FEEDSITE_MEDIA_STORE", "s3://other:key@s3.example.org/photos")
    monkeypatch.setitem(os.environ, "FEEDSITE_BACKUP_TO", value)
    if not refusal:
        assert validated_options().backup_to == value
        return
    with pytest.raises(OptionsError, match=re.escape(refusal)) as refused:
        validated_options()
    assert "key:secret@s3.example.org/photos" not in str(refused.value)
