"""Restored into its own folder with its own servers."""

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts import actions as accounts
from accounts.models import User
from items import actions as items
from media import actions as media
from operation import backup, dumps
from relations import actions as relations
from runtime.embedded import NAMESPACE, die_with_parent, wait_for
from runtime.management.commands.check_all import clean_environ
from seen import played
from seen.filter_store import FilterKey, month_of
from seen.redis_store import RedisStore
from seen.store import store
from storage.connections import client_of
from tests.support.factories import UserFactory
from tests.support.pictures import jpeg, upload
from timeline.home import home_page

pytestmark = pytest.mark.django_db(transaction=True)

RESTORE = """
import io, json, sys
import django
django.setup()
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from accounts.models import User
from feedsite import celery
from storage.connections import feeds_for_tasks
from seen import played
from seen.filter_store import FilterKey, month_of
from seen.store import store
from tests.support.workers import prompt_tasks
from timeline import fanout, inbox, outbox
from timeline.home import home_page

THIS_MONTH = month_of(timezone.now())
TASKS = {task.name: task.run for task in (inbox.materialise, outbox.materialise, fanout.fan_out)}
celery.app.send_task = prompt_tasks(lambda name, args: TASKS[name](*args))  # a worker at hand

def pages():
    found = {}
    for reader in User.objects.order_by("pk"):
        page = home_page(reader)
        found[reader.username] = [[item.id for item in page.items], page.sources]
    return found

def refused(path):
    try:
        call_command("restore", path, stdout=io.StringIO())
    except CommandError as error:
        return str(error)

with settings.SERVERS.ensure():
    torn = refused(sys.argv[2])
    # The site is of a later version than the backup, and migrated.
    call_command("migrate", interactive=False, verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE accounts_tomorrow (user_id bigint REFERENCES accounts_user)")
        cursor.execute("CREATE FUNCTION accounts_of_tomorrow() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('accounts', '9999_tomorrow', now())")
        cursor.execute("CREATE TABLE of_others (name text)")
        others = refused(sys.argv[1])
        cursor.execute("DROP TABLE of_others")
    feeds_for_tasks().set("inbox:1", "of another past")
    viewed = refused(sys.argv[4])
    call_command("restore", sys.argv[1], stdout=io.StringIO())
    feeds = feeds_for_tasks()
    left = feeds.keys("*")
    first, again = pages(), pages()
    told = {
        "torn": torn, "others": others, "viewed": viewed, "left": len(left), "first": first, "again": again,
        "refused": refused(sys.argv[1]),
        "tomorrow": [name for name in connection.introspection.table_names() if "tomorrow" in name],
        "gone": store().read([FilterKey(int(sys.argv[3]), 24316), FilterKey(int(sys.argv[3]), THIS_MONTH)]),
        "filter": (store().read([FilterKey(7, 24316)])[0] or b"").decode(),
        "plays": {key.decode(): played.client().zrange(key, 0, -1, withscores=True)[0][1]
                  for key in played.client().keys("played:recent:*")},
        "secret": (settings.DATA_DIR / "secret_key").read_text(),
    }
print(json.dumps(told))
"""


OLDER = Path("/usr/lib/postgresql/15/bin")
"""Debian 12's PostgreSQL, the oldest supported."""
OLDER_SITE = """
import io, sys
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from accounts.models import User

with settings.SERVERS.ensure():
    call_command("migrate", interactive=False, verbosity=0)
    User.objects.create_user("mira", password="x")
    call_command("backup", sys.argv[1], stdout=io.StringIO())
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    call_command("restore", sys.argv[1], stdout=io.StringIO())
    call_command("migrate", check_unapplied=True, verbosity=0)
    print(connection.pg_version // 10_000, *User.objects.values_list("username", flat=True))
"""


def make(path: Path) -> None:
    backup.backup(path, now=timezone.now(), progress=lambda member, size: None)


@pytest.mark.long
@pytest.mark.slow
def test_a_restored_site_answers_as_before(tmp_path: Path) -> None:
    people = [UserFactory(last_seen_at=timezone.now()) for _ in range(3)]
    for number, person in enumerate(people):
        for other in people[number + 1 :]:
            relations.follow(follower=person, followee=other)
        for words in range(5):
            items.publish(sender=person, content={"text": f"{words} 字"})
    store().update([FilterKey(7, 24316)], lambda key, old: b"a filter")
    played.client().zadd("played:recent:7", {"1001": 1795252000000.0})
    gone = UserFactory()
    accounts.delete_account(user=gone)
    this_month = month_of(timezone.now())
    store().update([FilterKey(gone.pk, this_month)], lambda key, old: b"of a user who deletes the account meanwhile")
    played.client().zadd(f"played:recent:{gone.pk}", {"1002": 1795252000000.0})
    pages = {person.username: [item.id for item in home_page(person).items] for person in people}

    picture = media.upload(owner_id=people[0].pk, file=upload(jpeg()))

    whole, torn = tmp_path / "site.backup", tmp_path / "torn.backup"
    make(whole)
    assert whole.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["site.backup"]
    torn.write_bytes(whole.read_bytes()[:-100])
    with connection.cursor() as cursor:
        # The site's superuser would write what PostgreSQL runs.
        cursor.execute("ALTER TABLE live_host RENAME TO live_was")
        cursor.execute("CREATE VIEW live_host AS SELECT oid, prosrc AS name FROM pg_catalog.pg_proc")
        try:
            make(tmp_path / "viewed.backup")
        finally:
            cursor.execute("DROP VIEW live_host")
            cursor.execute("ALTER TABLE live_was RENAME TO live_host")
    folder = tmp_path / "var"
    done = subprocess.run(
        [sys.executable, "-c", RESTORE, str(whole), str(torn), str(gone.pk), str(tmp_path / "viewed.backup")],
        cwd=settings.BASE_DIR,
        # A slow answer must not count as a dead server.
        env=clean_environ(folder)
        | {"DJANGO_SETTINGS_MODULE": "feedsite.settings", "FEEDSITE_REDIS_TIMEOUT_SECONDS": "60"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert "is not a whole backup" in told["torn"]
    assert "(of_others)" in told["others"]
    assert "live_host is missing" in (told["viewed"] or "")
    assert told["tomorrow"] == []
    assert told["gone"] == [None, None]
    del told["first"][User.objects.get(pk=gone.pk).username], told["again"][User.objects.get(pk=gone.pk).username]
    assert {name: ids for name, (ids, _) in told["first"].items()} == pages
    assert {name: ids for name, (ids, _) in told["again"].items()} == pages
    assert {source for _, sources in told["again"].values() for source in sources} <= {"inbox", "pending"}
    assert told["left"] == 0, "no window of another past"
    assert "This site is not empty" in told["refused"]
    assert told["filter"] == "a filter"
    assert told["plays"] == {"played:recent:7": 1795252000000.0}
    for name in picture.files:
        assert (folder / "media" / "files" / name).read_bytes()
    media.purge(owner_id=people[0].pk, limit=1)
    assert told["secret"] == (settings.DATA_DIR / "secret_key").read_text()
    store().update([FilterKey(7, 24316), FilterKey(gone.pk, this_month)], lambda key, old: None)


def test_every_table_of_a_migrated_site_is_its_own() -> None:
    assert backup._foreign_tables() == []


@pytest.mark.long
@pytest.mark.skipif(not OLDER.exists(), reason="wants Debian's postgresql-15")
def test_a_site_on_the_oldest_postgresql_is_backed_up_and_restored(tmp_path: Path) -> None:
    data, sockets = tmp_path / "postgres", tmp_path / "sockets"
    sockets.mkdir()
    # PostgreSQL does not run as root.
    user = NAMESPACE if os.geteuid() == 0 else ()
    initdb = [*user, str(OLDER / "initdb"), "-D", str(data), "--username=feedsite", "--encoding=UTF8", "--no-locale"]
    subprocess.run([*initdb, "--no-sync", "--auth=trust"], check=True, stdout=subprocess.DEVNULL)
    options = ["-c", "listen_addresses=", "-c", "fsync=off", "-k", str(sockets)]
    server = subprocess.Popen(
        [*user, str(OLDER / "postgres"), "-D", str(data), *options],
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent(signal.SIGINT),
    )
    try:
        url = f"postgresql://feedsite@/postgres?host={sockets}"
        assert wait_for((sockets / ".s.PGSQL.5432").exists, 30)
        done = subprocess.run(
            [sys.executable, "-c", OLDER_SITE, str(tmp_path / "site.backup")],
            cwd=settings.BASE_DIR,
            env=clean_environ(tmp_path / "var")
            | {"DJANGO_SETTINGS_MODULE": "feedsite.settings", "FEEDSITE_DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "15 mira"


@pytest.mark.slow
def test_filters_on_a_server_of_its_own_are_said_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "store", lambda: RedisStore(settings.REDIS_URL))
    told = io.StringIO()
    call_command("backup", tmp_path / "site.backup", stdout=io.StringIO(), stderr=told)
    assert "NOT in this backup" in told.getvalue()
    with zipfile.ZipFile(tmp_path / "site.backup") as archive:
        assert "NOT in this backup" in json.loads(archive.read("manifest.json"))["left_out"][0]
        assert "played.mdb" not in archive.namelist()


@pytest.mark.slow
def test_a_backup_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "site.backup", list[tuple[str, bool]]()
    real = os.fsync

    def fsync(handle: int) -> None:
        name = str(Path(f"/proc/self/fd/{handle}").readlink())
        if name.startswith(str(tmp_path)):
            if name.endswith(".part"):
                with zipfile.ZipFile(name) as archive:
                    assert archive.testzip() is None, "all of it is written"
            seen.append((name, path.exists()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    make(path)
    (draft, was_there), last = seen
    assert draft.startswith(str(path))
    assert draft.endswith(".part")
    assert not was_there
    assert last == (str(tmp_path), True)


@pytest.mark.slow
def test_a_backup_is_its_owners_whatever_others_put_beside_it(tmp_path: Path) -> None:
    """Others may create the temporary file, or a link, first in /tmp."""
    theirs, path = tmp_path / "theirs", tmp_path / "site.backup"
    theirs.write_text("nothing")
    theirs.chmod(0o666)
    (tmp_path / "site.backup.part").symlink_to(theirs)
    make(path)
    assert theirs.read_text() == "nothing"
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_is_overwritten_and_no_half_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "site.backup"
    path.write_text("precious")
    with pytest.raises(CommandError, match="exists already"):
        call_command("backup", path)
    assert path.read_text() == "precious"
    path.unlink()
    monkeypatch.setattr(dumps, "_binary", lambda name: "/bin/false")
    with pytest.raises(CommandError, match="pg_dump failed"):
        call_command("backup", path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", tmp_path / "nowhere" / "site.backup")


def test_a_server_of_plays_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:  # the fixtures ask the real one afterwards
        patch.setattr(played, "client", lambda: client_of("redis://127.0.0.1:1/0", 1))
        with pytest.raises(CommandError, match="The server of plays does not answer"):
            call_command("backup", tmp_path / "site.backup")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "newer version"),
        ({"migrations": [["items", "9999_of_tomorrow"]]}, "9999_of_tomorrow"),
        (
            {"migrations": [["accounts", "0001_initial"], ["items", "0003_search"]]},
            r"^The backup is of version 0\.1\.0\. Only",
        ),
        (
            {"migrations": [["seen", "0001_tables"]]},
            r"^The backup lacks seen\.0002_no_played_history, a migration that",
        ),
        ({}, "has no database"),
    ],
)
def test_what_this_version_cannot_restore_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with zipfile.ZipFile(tmp_path / "site.backup", "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": 1, "migrations": [], "users": 0} | change))
        if change:
            archive.writestr("database.dump", b"")
            archive.writestr("plays", b"")
    with pytest.raises(CommandError, match=message):
        call_command("restore", tmp_path / "site.backup")
