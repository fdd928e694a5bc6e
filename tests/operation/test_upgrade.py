import io
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.test.utils import CaptureQueriesContext

from media import actions as media
from operation.backup import upper_size_bound
from operation.doctor import postgresql
from operation.doctor.findings import ERROR
from operation.upgrade import ROOM_BYTES, UnfitUpgradeError, check_disk_space, unapplied
from runtime.embedded import command_contains, wait_for
from runtime.older_database import known_migrations
from tests.support.factories import UserFactory
from tests.support.pictures import jpeg, upload

pytestmark = pytest.mark.timeout(900)


@pytest.mark.long
@pytest.mark.sessions  # migrations go past a pooler
@pytest.mark.django_db(transaction=True)
def test_missing_migrations_are_listed_and_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    # Browser tests leave an event loop and a variable that a check refuses.
    monkeypatch.delenv("DJANGO_ALLOW_ASYNC_UNSAFE", raising=False)
    with ThreadPoolExecutor(1) as apart:
        apart.submit(migrate_away_and_back).result()
        apart.submit(connections.close_all).result()


def migrate_away_and_back() -> None:
    call_command("migrate", "mail", "zero", verbosity=0)
    try:
        assert "mail.0001_tables" in unapplied()
        said = io.StringIO()
        call_command("upgrade", "--dry-run", stdout=said)
        assert "  missing migrations: mail.0001_tables" in said.getvalue()
        assert said.getvalue().endswith("Nothing was changed.\n")
        assert unapplied(), "a dry run applies nothing"
    finally:
        call_command("migrate", verbosity=0)
    assert unapplied() == []


@pytest.mark.slow
@pytest.mark.sessions
@pytest.mark.django_db
def test_an_upgrade_fails_while_programs_of_another_supervisor_go_on() -> None:
    def upgraded() -> str:
        said = io.StringIO()
        call_command("upgrade", "--no-backup", stdout=said)
        return said.getvalue()

    settings.SERVERS.home.make()
    program = "import os; from pathlib import Path; from runtime.embedded import Home; from runtime.programs import *; "
    program += f"mark_program(Home(Path({str(settings.DATA_DIR)!r}))); os.execvp('sleep', ['sleep', '600'])"
    with subprocess.Popen([sys.executable, "-c", program], cwd=settings.BASE_DIR) as process:
        try:
            assert wait_for(lambda: command_contains(process.pid, "sleep\0"), 60)
            with pytest.raises(CommandError, match=r"The programs still run the old version\."):
                upgraded()
        finally:
            process.kill()
    assert "Database and static files are upgraded to" in upgraded()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("has", "lacks", "why"),
    [
        (("accounts", "0001_initial"), None, r"The database is of version 0\.1\.0\. Only version 0\.1\.0 can use it"),
        (None, ("items", "0013_filter_groups"), r"The database lacks items\.0013_filter_groups, a migration that"),
        (None, ("accounts", "0008_token_codes"), r"The database lacks accounts\.0008_token_codes, a migration that"),
    ],
)
def test_a_database_of_an_older_version_is_refused(
    has: tuple[str, str] | None, lacks: tuple[str, str] | None, why: str
) -> None:
    recorder = MigrationRecorder(connection)
    if has:
        recorder.record_applied(*has)
    if lacks:
        recorder.record_unapplied(*lacks)
    with pytest.raises(CommandError, match=f"^{why}"):
        call_command("migrate", verbosity=0)
    with pytest.raises(
        CommandError,
        match=rf"^{why}.*\n.*`git checkout` the version before.*\nThe step `check` failed\. Nothing has changed",
    ):
        call_command("upgrade", "--no-backup", stdout=io.StringIO())
    found = next(each for each in postgresql.postgresql() if each.name == "migrations")
    assert (found.state, found.todo) == (ERROR, "docs/runbook.md, Upgrade.")


@pytest.mark.slow
@pytest.mark.django_db
def test_a_database_with_all_squashed_migrations_goes_on() -> None:
    """No statement touches its tables."""
    squashed = [(each.app_label, each.name) for each in known_migrations() if each.replaces]
    for name in squashed:
        MigrationRecorder(connection).record_unapplied(*name)
    assert unapplied() == []
    with CaptureQueriesContext(
        connection,
    ) as captured:
        call_command("migrate", verbosity=0)
    writes = [
        each["sql"]
        for each in captured
        if each["sql"].startswith(("INSERT", "UPDATE", "DELETE", "ALTER", "CREATE", "DROP"))
    ]
    assert {each.split(" (")[0] for each in writes} == {'INSERT INTO "django_migrations"'}
    assert len(writes) == len(squashed)


@pytest.mark.slow
@pytest.mark.django_db
def test_a_step_that_fails_says_what_helps(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    with pytest.raises(CommandError, match=r"exists already\.\nThe step `backup` failed\. Nothing has changed"):
        call_command("upgrade", "--backup", str(tmp_path / "there"), stdout=io.StringIO())


@pytest.mark.slow
@pytest.mark.django_db
def test_no_room_for_the_backup_is_said_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000, total=1000, used=0))
    with pytest.raises(CommandError, match=r"Delete old backups(?s:.)*The step `check` failed"):
        call_command("upgrade", "--dry-run", stdout=io.StringIO())


@pytest.mark.django_db
def test_a_backup_goes_into_no_folder_that_is_not_there(tmp_path: Path) -> None:
    """The disk for it is not mounted."""
    with pytest.raises(CommandError, match=r"not does not exist(?s:.)*The step `check` failed"):
        call_command("upgrade", "--backup", str(tmp_path / "not" / "one"), stdout=io.StringIO())
    assert not (tmp_path / "not").exists()


@pytest.mark.django_db
def test_the_room_is_that_of_the_disk_of_the_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data disk has room only for indexes."""
    other = tmp_path / "other"
    other.mkdir()
    free = {settings.DATA_DIR: ROOM_BYTES + 1, other: 2 * upper_size_bound()}
    devices = {other: 1}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free[path]))
    stat = Path.stat
    monkeypatch.setattr(
        Path, "stat", lambda path, **how: SimpleNamespace(st_dev=1) if path in devices else stat(path, **how)
    )
    monkeypatch.setattr(Path, "is_dir", lambda path, **how: path in devices or os.path.isdir(path))  # noqa: PTH112
    assert len(check_disk_space(None)) == 1
    with pytest.raises(UnfitUpgradeError, match="or set `--backup`"):
        check_disk_space(settings.DATA_DIR / "backups" / "one")
    own, others = check_disk_space(other / "not" / "there" / "one")
    assert str(settings.DATA_DIR) in own
    assert f"free in {other};" in others
    free[other] //= 4
    with pytest.raises(UnfitUpgradeError, match=f"free in {other};"):
        check_disk_space(other / "one")


@pytest.mark.django_db
def test_a_backup_takes_no_more_than_is_said(tmp_path: Path) -> None:
    before = upper_size_bound()
    media.upload(owner_id=UserFactory().pk, file=upload(jpeg()))
    assert upper_size_bound() > before
    call_command("backup", str(tmp_path / "one"), stdout=io.StringIO())
    assert (tmp_path / "one").stat().st_size < upper_size_bound()
