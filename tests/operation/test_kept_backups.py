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

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from operation import backup, kept_backups, tasks, upgrade
from operation.backup import BackupError
from operation.doctor import disks
from operation.kept_backups import Kept, is_due, kept, place, superfluous
from relations import actions as relations
from runtime import metrics
from runtime.environment import OptionsError, checked
from tests.support.buckets import BucketServer
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


def made(*days: float, now: datetime) -> list[Kept]:
    """Backups of these ages in days."""
    times = sorted((now - timedelta(days=each) for each in days), reverse=True)
    return [Kept(at, f"feedsite-{at:%Y%m%dT%H%M%S}Z.backup") for at in times]


# --- When, and which ---------------------------------------------------------------------------------------
def test_one_is_due_after_three_at_night_in_the_zone_of_the_site(settings: Any) -> None:
    settings.SITE_ZONE = ZoneInfo("Asia/Shanghai")
    three = datetime(2026, 11, 27, 19, tzinfo=UTC)  # of the 28th there
    before = Kept(three - timedelta(minutes=1), "")
    assert is_due(None, three)
    assert is_due(before, three)
    assert is_due(before, three + timedelta(hours=10))
    assert not is_due(before, three - timedelta(seconds=1))
    assert not is_due(Kept(three, ""), three + timedelta(hours=23))
    assert is_due(Kept(three, ""), three + timedelta(hours=24))


def test_the_newest_of_days_and_weeks_are_kept(settings: Any) -> None:
    now = datetime(2026, 11, 27, 4, tzinfo=UTC)  # a Friday
    found = made(0, 0.01, *range(1, 60), now=now)
    gone = superfluous(found, days=7, weeks=4)
    left = [each.made_at.date().isoformat() for each in found if each not in gone]
    assert left == [
        *("2026-11-27", "2026-11-26", "2026-11-25", "2026-11-24", "2026-11-23", "2026-11-22", "2026-11-21"),
        *("2026-11-15", "2026-11-08"),
    ]
    assert superfluous(found[:1], days=1, weeks=0) == []
    old = made(100, 101, 400, now=now)
    assert superfluous(old, days=7, weeks=4) == [], "however old, while there are no newer ones"


# --- A folder ----------------------------------------------------------------------------------------------
def test_the_task_makes_one_a_day_and_removes_old_ones(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir()
    old = [each.name for each in made(*range(1, 40), now=timezone.now() - timedelta(days=3))]
    others = ["feedsite-by-hand.backup", "notes.txt"]
    for name in (*old, *others, "feedsite-20260101T030000Z.backup.x1.part"):
        (folder / name).write_text("")
    tasks.back_up()
    newest, *older = kept(place())
    assert zipfile.ZipFile(folder / newest.name).testzip() is None
    assert timezone.now() - newest.made_at < timedelta(minutes=5)
    assert 8 <= len(older) <= 9, "6 further days, and the newest of 4 weeks, of which they fill one or two"
    assert all((folder / name).exists() for name in others), "other names are left alone"
    assert not list(folder.glob("*.part")), "what a killed process left"
    assert metrics.registry.get_sample_value("feedsite_backup_made_seconds") == pytest.approx(
        newest.made_at.timestamp(), abs=1
    )
    tasks.back_up()
    assert kept(place())[0] == newest, "one a day"
    assert not caplog.records


def test_one_that_fails_is_logged_and_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(backup, "_binary", lambda name: "/bin/false")
        tasks.back_up()
    assert [each.partition(": exit")[0] for each in caplog.messages] == ["the backup failed: pg_dump failed"]
    assert list(folder.iterdir()) == []
    tasks.back_up()
    assert len(kept(place())) == 1


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
    assert (folder / kept(place())[0].name).stat().st_mode & 0o777 == 0o600
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


# --- A bucket ----------------------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.slow
def test_a_bucket_keeps_them_and_gives_them_back(server: BucketServer, settings: Any) -> None:
    settings.BACKUP_TO_SECRET = server.made("backups")
    where = place()
    for each in made(*range(3, 40), now=timezone.now()):
        where.bucket.client.put_object(Bucket="backups", Key=each.name, Body=b"")  # type: ignore[attr-defined]
    tasks.back_up()
    newest, *older = kept(where)
    assert 8 <= len(older) <= 9
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
        cursor.execute("SELECT count(*) FROM pg_database")
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
    path.write_bytes(whole.replace(b'"users": 3', b'"users": 4'))
    with pytest.raises(CommandError):
        call_command("restore", path, "--check")
    assert databases() == before


# --- PostgreSQL's own programs -------------------------------------------------------------------------------
def test_a_client_that_is_missing_or_too_old_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = connection.pg_version // 10_000
    monkeypatch.setattr(backup, "postgres_binaries", lambda: tmp_path / "none")
    monkeypatch.setattr(backup, "DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert backup.missing_client().startswith(f"pg_dump of PostgreSQL {server} or newer is missing. Install")
    (tmp_path / "bin").mkdir()
    for name in ("pg_dump", "pg_restore", "psql"):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {server - 1}.4 (Debian {server - 1}.4-1)'\n")
        program.chmod(0o755)
    said = backup.missing_client()
    assert f"this machine has {server - 1}" in said
    assert f"postgresql-client-{server}" in said
    (finding, *_) = disks.backups(timezone.now())
    assert (finding.state, finding.text) == ("warning", said)
    with pytest.raises(upgrade.UpgradeError, match=f"postgresql-client-{server}"):
        upgrade.check_client()
    with pytest.raises(BackupError):
        backup.backup(tmp_path / "site.backup", now=timezone.now(), progress=lambda member, size: None)
    fitting = tmp_path / str(server) / "bin"  # as Debian installs several versions
    fitting.mkdir(parents=True)
    for name in ("pg_dump", "pg_restore", "psql"):
        (fitting / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {server}.1'\n")
        (fitting / name).chmod(0o755)
    assert backup.missing_client() == ""
    assert backup._binary("psql") == str(fitting / "psql")


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
        assert checked().backup_to == value
        return
    with pytest.raises(OptionsError, match=re.escape(refusal)) as refused:
        checked()
    assert "key:secret@s3.example.org/photos" not in str(refused.value)
