"""Three healthy sites, seven with one fault each. They share the servers and programs of one running site."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
import redis
from django.conf import settings

from operation import kept_backups
from runtime.embedded import Servers, wait_for
from runtime.management.commands.check_all import clean_environ
from tests.support.clusters import free_ports
from tests.support.disks import on_small_disk
from tests.support.whole_sites import Running, Site

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ROOT = Path(settings.BASE_DIR)
MANAGE = [sys.executable, "-c", "import sys, manage; manage.run_command(['manage.py', *sys.argv[1:]])"]
PRODUCTION = {
    "FEEDSITE_ALLOWED_HOSTS": "feeds.example.org,127.0.0.1",
    "FEEDSITE_URL": "https://feeds.example.org",
    "FEEDSITE_CSRF_TRUSTED_ORIGINS": "https://feeds.example.org",
    "FEEDSITE_HTTPS": "1",
    "FEEDSITE_HSTS_SECONDS": "31536000",
    "FEEDSITE_METRICS_TOKEN": "x1" * 16,
}
DELIVERY = """
    INSERT INTO timeline_delivery (item_id, sender_id, attempts, enqueued, not_before, sweep_at, last_error)
    SELECT id, sender_id, 0, 0, now() - interval '10 minutes', now() + interval '1 day', '' FROM items_item LIMIT 1
"""


class Told(NamedTuple):
    """Exit code, and findings: name → state and text."""

    code: int
    wrong: dict[str, str]
    printed: str

    @property
    def errors(self) -> set[str]:
        return {name for name, said in self.wrong.items() if said.startswith("error")}


class Place:
    def __init__(self, site: Site, folder: Path, ports: dict[str, str]) -> None:
        self.site, self.folder = site, folder
        self.servers = Servers(site.folder, {})
        self.embedded = clean_environ(site.folder) | ports
        self.media = site.folder / "media"
        (folder / "media").symlink_to(self.media)
        self.by_url = self.embedded | {
            "FEEDSITE_DATA_DIR": str(folder),
            "FEEDSITE_DATABASE_URL": self.servers.database_url,
            "FEEDSITE_REDIS_URL": self.servers.redis_url,
            "FEEDSITE_BROKER_URL": self.servers.broker_url,
            "FEEDSITE_CACHE_URL": self.servers.cache_url,
            "FEEDSITE_PLAYED_URL": self.servers.played_url,
            "FEEDSITE_SECRET_KEY": (site.folder / "secret_key").read_text().strip(),
        }

    def doctor(self, environ: dict[str, str], *words: str) -> Told:
        done = subprocess.run([*MANAGE, "doctor", *words], cwd=ROOT, env=environ, capture_output=True, text=True)
        return self.told(done)

    def told(self, done: subprocess.CompletedProcess[str]) -> Told:
        assert "Traceback" not in done.stderr, done.stderr
        found = re.findall(r"^ *(error|warning)  ([^:\n]+): (.*)$", done.stdout, re.MULTILINE)
        return Told(done.returncode, {name: f"{state}: {text}" for state, name, text in found}, done.stdout)

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.servers.database_url, autocommit=True) as session:
            session.execute(statement.encode())

    @contextmanager
    def web(self, environ: dict[str, str]) -> Iterator[str]:
        """Start another web process. Returns its address."""
        port = free_ports()[0]
        more = {"PORT": str(port), "FEEDSITE_WEB_PROCESSES": "1"}
        web = Running([*MANAGE, "program", "web"], ROOT, environ | more)
        try:
            assert web.says("Started worker-1", 120), web.printed
            yield f"http://127.0.0.1:{port}"
        finally:
            web.end()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("doctor")
    port, stream = free_ports()
    ports = {"PORT": str(port), "FEEDSITE_STREAM_PORT": str(stream)}
    site = Site(folder / "var", port, ports, "--demo")
    try:
        site.wait_until_up()
        (folder / "own").mkdir(mode=0o700)
        place = Place(site, folder / "own", ports)
        assert wait_for(lambda: "beat" not in place.doctor(place.embedded).wrong, 120), site.printed
        yield place
    finally:
        site.end()


def backup_of(folder: Path, age: timedelta) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"feedsite-{datetime.now(UTC) - age:{kept_backups.TIME}}Z.backup").touch()


# --- Sound ones ------------------------------------------------------------------------------------------
def test_a_demo_with_servers_of_its_own(place: Place) -> None:
    told = place.doctor(place.embedded, "--all")
    assert (told.code, told.wrong) == (0, {}), told.printed
    clocks = re.findall(r"^ +ok  clock of (\w+)@\S+: 0\.0 s apart$", told.printed, re.MULTILINE)
    assert sorted(clocks) == ["celery", "outside"]


def test_servers_by_their_addresses(place: Place) -> None:
    told = place.doctor(place.by_url)
    assert (told.code, told.wrong) == (0, {}), told.printed


def test_a_public_site(place: Place, tmp_path: Path) -> None:
    backup_of(tmp_path / "backups", timedelta(hours=2))
    own = {"FEEDSITE_BACKUP_TO": str(tmp_path / "backups"), "FEEDSITE_EMAIL_URL": f"filemail://{tmp_path}/letters"}
    given = place.by_url | PRODUCTION | own
    subprocess.run([*MANAGE, "collectstatic", "--noinput", "--verbosity", "0"], cwd=ROOT, env=given, check=True)
    with place.web(given) as address:
        told = place.doctor(given, "--web", address)
    assert (told.code, told.wrong.keys()) == (0, {"outside"}), told.printed  # nobody has this name


# --- One fault each ----------------------------------------------------------------------------------------
@contextmanager
def unapplied(place: Place) -> Iterator[None]:
    place.execute("UPDATE django_migrations SET app = 'gone' WHERE app = 'mail' AND name = '0001_tables'")
    yield
    place.execute("UPDATE django_migrations SET app = 'mail' WHERE app = 'gone'")


@contextmanager
def evicting(place: Place) -> Iterator[None]:
    with redis.Redis.from_url(place.servers.played_url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        yield
        client.config_set("maxmemory-policy", "noeviction")


@contextmanager
def no_workers(place: Place) -> Iterator[None]:
    worker = place.site.children()["worker"]
    children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    processes = [worker, *map(int, children)]
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    place.execute(DELIVERY)
    yield
    place.execute("DELETE FROM timeline_delivery")
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


FAULTS: dict[str, tuple[Callable[[Place], AbstractContextManager[None]], dict[str, str], int, set[str], str]] = {
    "another key": (
        lambda place: nullcontext(),
        {"FEEDSITE_SECRET_KEY": "another-key-" * 6},
        1,
        {"site key"},
        "site key: differs from this machine's key",
    ),
    "a missing migration": (unapplied, {}, 1, {"migrations"}, "migrations: 1 not applied: mail.0001_tables"),
    "a server of plays that evicts": (
        evicting,
        {},
        1,
        {"plays maxmemory-policy"},
        "plays maxmemory-policy: allkeys-lru",
    ),
    "workers that stand still": (no_workers, {}, 1, {"workers"}, "workers: none answers"),
    "an old backup": (
        lambda place: nullcontext(backup_of(place.folder / "old", timedelta(days=5))),
        {"FEEDSITE_BACKUP_TO": "{folder}/old"},
        1,
        {"backups"},
        "backups: the newest is 120 hours old",
    ),
}
"""What is done, variables, exit code, errors, and the line that reports the fault."""


@pytest.mark.parametrize("name", FAULTS)
def test_one_fault(place: Place, name: str) -> None:
    done, variables, code, errors, line = FAULTS[name]
    with done(place):
        given = {key: value.replace("{folder}", str(place.folder)) for key, value in variables.items()}
        told = place.doctor(place.by_url | given)
    assert (told.code, told.errors) == (code, errors), told.printed
    assert line in told.printed
    assert told.wrong.keys() - errors <= {"deliveries", "lane outside"}, "nothing that is well is complained of"
    assert told.printed.count("→") == len(told.wrong), "each line says what to do"


def test_static_files_that_were_not_collected(place: Place, tmp_path: Path) -> None:
    (tmp_path / "media").symlink_to(place.media)
    given = place.by_url | {"FEEDSITE_DATA_DIR": str(tmp_path)}
    with place.web(given) as address:
        told = place.doctor(given, "--web", address)
    assert (told.code, told.errors) == (1, {"web readiness", "web page"}), told.printed
    assert "static files were not collected" in told.wrong["web readiness"]


def test_a_disk_that_is_nearly_full(place: Place, tmp_path: Path) -> None:
    code = f"os.symlink({str(place.media)!r}, FOLDER + '/media')\n"
    code += f"import subprocess\nraise SystemExit(subprocess.run({[*MANAGE, 'doctor']!r}).returncode)"
    told = place.told(on_small_disk(tmp_path, code, place.by_url | {"FEEDSITE_DATA_DIR": str(tmp_path)}, "64m"))
    assert (told.code, told.errors) == (1, {"disk"}), told.printed
    assert told.wrong["disk"].startswith("error: 0.1 GB free")
