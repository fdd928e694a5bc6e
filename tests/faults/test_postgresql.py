import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from statistics import median
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
import pytest
from django.conf import settings

from operation.doctor import examination
from runtime.embedded import Home, Postgres, Servers, postgres_binaries, wait_for
from runtime.management.commands.migrate import LOCK_SECONDS
from tests.support.api import API
from tests.support.servers import frozen_postgres
from tests.support.sites import Worker, until
from tests.support.streams import PATH, Client, StreamServer, database_url
from tests.support.web import Answer, WebServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(600)]

BACK = 5
"""No request may get an outage error after this."""
RATE = 50
SLACK = 6
"""How late a busy machine may give up."""
GIVEN_UP = 5
"""A request's wait for PostgreSQL."""
AT_ONCE = 1
"""The same when the process already knows."""
WAITING = """
    SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)::float8 FROM pg_locks
    WHERE NOT granted AND locktype IN ('relation', 'tuple', 'transactionid')
"""
COMING = """
from django.db import migrations

class Migration(migrations.Migration):
    atomic = {atomic}
    dependencies = [("items", "0001_squashed"), {after}]
    operations = [migrations.RunSQL({statements!r})]
"""
MIGRATIONS = {
    "0001_columns": (
        True,
        [
            "ALTER TABLE items_item ADD COLUMN coming integer NULL",
            "ALTER TABLE accounts_user ADD COLUMN coming boolean NOT NULL DEFAULT false",
            "CREATE TABLE coming (item_id bigint REFERENCES items_item, user_id bigint REFERENCES accounts_user)",
        ],
    ),
    "0002_index": (
        False,
        [
            "DROP INDEX CONCURRENTLY IF EXISTS coming_index",
            "CREATE INDEX CONCURRENTLY coming_index ON items_item (coming)",
        ],
    ),
}
"""Like ours: columns empty or constant, foreign keys, concurrent indexes."""


class Site:
    """Feeds and broker are the tests'."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        home = Home(folder / "own")
        home.make()
        self.postgres = Postgres(home, durable=False)
        self.url = Servers(home.data_dir, {}).database_url
        self.web = WebServer(folder, FEEDSITE_DATABASE_URL=self.url)
        self.worker = Worker(folder, FEEDSITE_DATABASE_URL=self.url)

    def start(self) -> None:
        self.start_postgres()
        there = urlsplit(database_url())
        socket = parse_qs(there.query)["host"][0]
        binaries = postgres_binaries()
        made = subprocess.run(
            [binaries / "pg_dump", "-h", socket, "-U", str(there.username), "-Fc", unquote(there.path[1:])],
            check=True,
            capture_output=True,
        )
        restore = [binaries / "pg_restore", "-h", str(self.postgres.socket.parent), "-U", "feedsite", "-d", "feedsite"]
        subprocess.run([*restore, "--no-owner"], input=made.stdout, check=True)
        self.web.start()

    def start_postgres(self) -> None:
        self.postgres.start()
        assert wait_for(self.postgres.answers, 60), self.postgres.last_words()

    def stop(self) -> None:
        self.worker.kill()
        self.web.kill()
        self.postgres.stop()

    def session(self) -> "psycopg.Connection[tuple[int, ...]]":
        return psycopg.connect(self.url, autocommit=True)

    def is_delivered(self) -> bool:
        with self.session() as session:
            return session.execute("SELECT count(*) FROM timeline_delivery").fetchone() == (0,)

    def sign_up(self, name: str) -> str:
        person = {"username": name, "password": "correct horse battery"}
        assert self.web.ask(f"{API}/users", method="POST", body=person).status == 201
        return str(self.web.ask(f"{API}/auth/token", method="POST", body=person).json()["token"])


class WithSmallDisk(Postgres):
    """It has a disk of 64 MB, which nobody else sees."""

    @property
    def disk(self) -> Path:
        return self.home.data_dir / "disk"

    def command(self) -> Sequence[str]:
        self.disk.mkdir(exist_ok=True)
        mount = 'mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@"'
        return ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(self.disk), *super().command()]

    @property
    def filler(self) -> Path:
        assert self.process is not None
        return Path(f"/proc/{self.process.pid}/root{self.disk}/filler")

    def fill(self) -> None:
        with suppress(OSError), self.filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    try:
        site.start()
        yield site
    finally:
        site.stop()
        print(site.web.said()[-10_000:])


class Load:
    """Sends requests at a fixed rate, without waiting for answers. One in ten publishes."""

    def __init__(self, web: WebServer, tokens: tuple[str, str], rate: float) -> None:
        self.web = web
        self.tokens = tokens
        self.rate = rate
        self.ending = threading.Event()
        self.answers: list[tuple[float, float, Answer]] = []
        """(start time, seconds, answer)"""

    @contextmanager
    def running(self, clients: int = 64) -> Iterator[None]:
        begin, numbers = time.monotonic(), count()

        def ask() -> None:
            while not self.ending.wait(max(0, begin + (number := next(numbers)) / self.rate - time.monotonic())):
                asked = time.monotonic()
                if number % 10 == 0:
                    answer = self.web.publish(self.tokens[0])
                else:
                    answer = self.web.ask(f"{API}/timeline/home", self.tokens[number % 2])
                self.answers.append((asked, time.monotonic() - asked, answer))

        with ThreadPoolExecutor(clients) as pool:
            asking = [pool.submit(ask) for _ in range(clients)]
            try:
                yield
            finally:
                self.ending.set()
            for one in asking:
                one.result()

    def statuses(self) -> Counter[int]:
        return Counter(answer.status for *_, answer in self.answers)


def is_honest(answer: Answer) -> bool:
    """Served, or an outage with Retry-After."""
    if answer.status == 503:
        return answer.headers["Retry-After"] == "2"
    return answer.status in (200, 201)


def has_ended(session: "psycopg.Connection[tuple[int, ...]]") -> bool:
    try:
        session.execute("SELECT 1")
    except psycopg.OperationalError:
        return True
    return False


@pytest.mark.long
def test_an_outage_is_told_once_at_its_start_and_once_at_its_end(site: Site) -> None:
    """Each process logs it once, whatever else fails meanwhile."""
    ann = site.sign_up("ann")
    site.worker.start()
    assert site.web.publish(ann).status == 201
    until(site.is_delivered, 150)
    log = site.folder / "worker.log"
    assert "feedsite.starts: worker is at work, with 2 processes" in log.read_text()
    assert "feedsite.starts: beat is active" in log.read_text()
    for _ in range(2):
        before, begun = log.read_text(), len(site.web.said())
        site.postgres.stop()
        ended = time.monotonic() + 8  # beat keeps sending four tasks a second
        while time.monotonic() < ended:
            assert site.web.ask(f"{API}/timeline/home", ann).status == 503
            assert site.web.ask(f"{API}/nowhere").status == 404
            time.sleep(0.1)
        site.start_postgres()
        until(lambda: site.web.publish(ann).status == 201, 60)
        until(site.is_delivered, 150)
        for said in (log.read_text()[len(before) :], site.web.said()[begun:]):
            assert "Traceback" not in said
            starts, ends = said.count("PostgreSQL does not answer"), said.count("PostgreSQL answers again")
            assert 1 <= starts <= 4, said
            assert 1 <= ends <= starts, said
            assert len(said.splitlines()) <= starts + ends + 2, said


@pytest.mark.long
def test_fault_4_postgresql_restarted(site: Site) -> None:
    """503 with Retry-After, and normal 5 s after. Neither web nor worker restarts."""
    ann, bob = site.sign_up("ann"), site.sign_up("bob")
    assert site.web.ask(f"{API}/users/ann/follow", bob, method="PUT").status in (200, 201, 204)
    site.worker.start()
    first = int(site.web.publish(ann).json()["id"])
    until(site.is_delivered, 150)
    tokens = [ann, bob] * 20

    # A restart between two requests goes unnoticed.
    assert {page.status for page in site.web.homes(tokens, at_once=8)} == {200}
    site.postgres.stop()
    site.start_postgres()
    assert Counter(page.status for page in site.web.homes(tokens, at_once=8)) == {200: len(tokens)}

    load = Load(site.web, (ann, bob), rate=40)
    with load.running(clients=8):
        until(lambda: len(load.answers) > 20, 60)
        site.postgres.stop()
        down = time.monotonic()
        home, page = site.web.ask(f"{API}/timeline/home", bob), site.web.ask("/", cookie=f"sessionid={'a' * 32}")
        assert (home.status, home.headers["Retry-After"], list(home.json())) == (503, "2", ["detail"])
        assert (page.status, page.headers["Retry-After"]) == (503, "2")
        assert page.headers["Content-Type"].startswith("text/html")
        assert b"Back in a moment" in page.body
        assert site.web.ask("/readyz").status == 503
        until(lambda: sum(asked > down for asked, *_ in load.answers) > 20, 60)
        starting = time.monotonic()  # it answers before the site notices
        site.start_postgres()
        up = time.monotonic()
        until(lambda: site.web.ask(f"{API}/timeline/home", bob).status == 200, 60)
        print(f"served again {time.monotonic() - up:.2f} s after PostgreSQL answers")
        until(lambda: any(asked > up + BACK for asked, *_ in load.answers), 60)
        # Killing one session ends all others.
        with site.session() as session, site.session() as witness:
            killed = session.info.backend_pid
            assert "postgres" in Path(f"/proc/{killed}/cmdline").read_text()
            crashed = time.monotonic()
            os.kill(killed, signal.SIGKILL)
            until(lambda: has_ended(witness), 60)
        until(site.postgres.answers, 60)
        recovered = time.monotonic()
        until(lambda: any(asked > recovered + BACK for asked, *_ in load.answers), 60)

    statuses = load.statuses()
    print(statuses)
    assert all(is_honest(answer) for *_, answer in load.answers), statuses
    away = [answer.status for asked, took, answer in load.answers if down < asked and asked + took < starting]
    assert away
    assert set(away) == {503}
    late = [
        answer.status
        for asked, took, answer in load.answers
        if (up + BACK < asked and asked + took < crashed) or asked > recovered + BACK
    ]
    assert late
    assert set(late) <= {200, 201}, "back after 5 s"
    said = site.web.publish(ann)
    assert said.status == 201
    with site.session() as session:
        published = [row[0] for row in session.execute("SELECT id FROM items_item ORDER BY id DESC LIMIT 20")]
    assert site.web.ask(f"{API}/timeline/home", bob).ids == published
    assert first < published[-1]
    until(lambda: site.worker.keep() and site.is_delivered(), 150)


def timed(ask: Callable[[], Answer]) -> tuple[float, Answer]:
    start = time.monotonic()
    answer = ask()
    return time.monotonic() - start, answer


@pytest.mark.long
def test_the_doctor_tells_of_a_frozen_postgresql(site: Site, tmp_path: Path) -> None:
    environ = os.environ | {"FEEDSITE_DATABASE_URL": site.url, "FEEDSITE_DATA_DIR": str(tmp_path / "doctor")}
    command = [sys.executable, "manage.py", "doctor", "--json"]
    began = time.monotonic()
    with frozen_postgres(site.postgres):
        done = subprocess.run(
            command, cwd=settings.BASE_DIR, env=environ, capture_output=True, text=True, check=False, timeout=300
        )
    assert done.returncode == 1, done.stderr
    assert time.monotonic() - began < 6 * examination.STATEMENT_SECONDS
    (finding,) = (each for each in json.loads(done.stdout)["findings"] if each["name"] == "postgresql")
    assert finding["state"] == "error"


@pytest.mark.long
def test_postgresql_frozen(site: Site, tmp_path: Path) -> None:
    """Each path gives 503 with Retry-After within `GIVEN_UP` seconds, at once when known."""
    token = site.sign_up("ann")
    (tmp_path / "streams").mkdir()
    streams = StreamServer(tmp_path / "streams", FEEDSITE_DATABASE_URL=site.url)
    streams.start()
    web = site.web
    asks: list[Callable[[], Answer]] = [
        lambda: web.ask(f"{API}/timeline/home", token),
        lambda: web.ask("/", cookie=f"sessionid={'a' * 32}"),
        lambda: web.publish(token),
        lambda: web.ask(f"{API}/users/me/export", token),
        lambda: web.ask(f"/{settings.ADMIN_PATH}", cookie=f"sessionid={'a' * 32}"),
        lambda: web.ask(f"{API}/search?q=words", token),
    ]
    stream = {"Authorization": f"Token {token}"}
    listener = Client(streams.port, "", stream)
    listener.waits_for(lambda one: one.resets == 1)
    try:
        assert {page.status for page in web.homes([token] * 20, at_once=8)} == {200}
        with frozen_postgres(site.postgres), ThreadPoolExecutor(20) as pool:
            for expected in (GIVEN_UP, AT_ONCE):
                stream_answer = pool.submit(timed, lambda: streams.get(PATH, **stream))  # type: ignore[arg-type, return-value]
                for took, answer in pool.map(timed, asks * 3):
                    assert is_honest(answer), (answer.status, answer.body)
                    assert answer.status == 503
                    assert took < expected + SLACK
                took, refused = stream_answer.result()
                assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
                assert took < expected + SLACK
                for server in (web, streams):
                    assert server.get("/healthz").status == 200
                assert web.ask("/readyz").status == 503
                print(f"frozen: {took:.2f} s")
        thawed = time.monotonic()
        until(lambda: web.ask(f"{API}/timeline/home", token).status == 200, 60)
        until(lambda: web.ask("/readyz").status == 200, 60)
        print(f"served again after {time.monotonic() - thawed:.2f} s")
        item = int(web.publish(token).json()["id"])
        listener.waits_for(lambda one: ("item", item) in one.news)
        assert Counter(page.status for page in web.homes([token] * 40, at_once=8)) == {200: 40}
    finally:
        listener.close()
        streams.kill()
    assert "Traceback" not in streams.said()


@pytest.mark.long
def test_postgresql_that_takes_no_writes(site: Site) -> None:
    """This happens in a switchover: writes get 503 and their sessions close. Reads go on."""
    token = site.sign_up("ann")
    first = site.web.publish(token)
    assert first.status == 201
    with site.session() as session:

        def read_only(value: str) -> None:
            session.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
            session.execute("SELECT pg_reload_conf()")

        def sessions() -> set[int]:
            asked = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            return {pid for (pid,) in session.execute(asked)}

        read_only("on")
        until(lambda: session.execute("SHOW default_transaction_read_only").fetchone() == ("on",), 60)  # type: ignore[comparison-overlap]
        before = sessions()
        answers = [site.web.publish(token) for _ in range(20)]
        assert Counter(answer.status for answer in answers) == {503: 20}
        assert all(is_honest(answer) for answer in answers)
        assert not before & sessions(), "they are closed"
        assert site.web.ask("/healthz").status == 200
        assert site.web.ask("/readyz").status == 503
        assert site.web.ask(f"{API}/items/{first.json()['id']}", token).status == 200, "reading goes on"
        session.execute("SET default_transaction_read_only = off")
        read_only("off")
        until(lambda: site.web.publish(token).status == 201, 60)
        until(lambda: site.web.ask("/readyz").status == 200, 60)


@pytest.mark.long
def test_a_full_disk_of_postgresql(tmp_path: Path) -> None:
    """Pages are read, changes get 503, doctor says why, and all goes on once there is room."""
    site = Site(tmp_path)
    site.postgres = small = WithSmallDisk(Home(tmp_path / "own"), durable=False)
    environ = os.environ | {"FEEDSITE_DATABASE_URL": site.url, "FEEDSITE_DATA_DIR": str(tmp_path / "doctor")}

    def told() -> dict[str, str]:
        command = [sys.executable, "manage.py", "doctor", "--json"]
        done = subprocess.run(command, cwd=settings.BASE_DIR, env=environ, capture_output=True, text=True, timeout=300)
        return {each["name"]: each["text"] for each in json.loads(done.stdout)["findings"]}

    try:
        site.start()
        token = site.sign_up("ann")
        site.worker.start()
        with psycopg.connect(site.url.replace("/feedsite?", "/postgres?"), autocommit=True) as session:
            session.execute(f"CREATE TABLESPACE small LOCATION '{small.disk}'")
            session.execute("ALTER SYSTEM SET temp_tablespaces = 'small'")
            session.execute("SELECT pg_reload_conf()")
        with site.session() as session:
            session.execute("ALTER TABLE items_item SET TABLESPACE small")
        assert told()["postgresql disk"] == "takes writes"
        answers = [site.web.publish(token)]
        small.fill()
        until(lambda: bool(answers.append(site.web.publish(token, "words " * 500))) or answers[-1].status == 503, 60)
        assert all(is_honest(answer) for answer in answers)
        home = site.web.ask(f"{API}/timeline/home", token)
        assert (home.status, home.ids[0]) == (200, next(int(a.json()["id"]) for a in answers[::-1] if a.status == 201))
        said = told()["postgresql disk"]
        assert said.startswith("is full: could not ")
        assert said.endswith("No space left on device")
        small.filler.unlink()
        until(lambda: site.web.publish(token).status == 201, 60)
        until(site.is_delivered, 60)
    finally:
        site.stop()
        print(site.web.said()[-10_000:])


@pytest.mark.long
def test_neither_a_page_nor_an_export_waits_long_for_a_lock(site: Site) -> None:
    token = site.sign_up("ann")
    addresses = (f"{API}/timeline/home", f"{API}/users/me/export")
    with site.session() as session:
        session.execute("BEGIN; LOCK TABLE items_item IN ACCESS EXCLUSIVE MODE")
        for address in addresses:
            took, refused = timed(lambda address=address: site.web.ask(address, token))
            assert refused.status == 503
            assert is_honest(refused)
            assert took < GIVEN_UP + SLACK
        session.execute("COMMIT")
    assert [site.web.ask(address, token).status for address in addresses] == [200, 200]


@pytest.mark.long
def test_fault_9_a_migration_under_50_requests_a_second(site: Site) -> None:
    """While a backup's long transaction blocks. Every request waits little longer than the migration's lock timeout."""
    package = site.folder / "coming"
    (package / "migrations").mkdir(parents=True)
    (package / "migrations" / "__init__.py").touch()
    (package / "__init__.py").touch()
    before = ""
    for name, (atomic, statements) in MIGRATIONS.items():
        text = COMING.format(atomic=atomic, statements=statements, after=before)
        (package / "migrations" / f"{name}.py").write_text(text)
        before = f'("coming", "{name}")'
    (site.folder / "upgraded.py").write_text("from feedsite.settings import *\nINSTALLED_APPS.append('coming')\n")
    environ = os.environ | {
        "DJANGO_SETTINGS_MODULE": "upgraded",
        "FEEDSITE_DATABASE_URL": site.url,
        "PYTHONPATH": f"{site.folder}:{settings.BASE_DIR}",
    }
    tokens = site.sign_up("ann"), site.sign_up("bob")
    assert site.web.ask(f"{API}/users/ann/follow", tokens[1], method="PUT").status in (200, 201, 204)

    load = Load(site.web, tokens, rate=RATE)
    longest = 0.0

    def waited() -> float:
        """Request times depend on the machine."""
        nonlocal longest
        with site.session() as session:
            longest = max(longest, (session.execute(WAITING).fetchone() or (0,))[0])
        return longest

    command = [sys.executable, "-m", "django", "migrate"]
    log = site.folder / "migrate.log"
    with load.running(), site.session() as reader, log.open("w") as output:
        begin = time.monotonic()
        reader.execute("BEGIN; SELECT count(*) FROM items_item, accounts_user")
        holder = reader.info.backend_pid
        migrating = subprocess.Popen(command, env=environ, cwd=settings.BASE_DIR, stdout=output, stderr=output)
        try:
            until(lambda: waited() >= 0 and log.read_text().count("Trying again") >= 2, 120)
            reader.execute("COMMIT")
            until(lambda: waited() >= 0 and migrating.poll() is not None, 120)
            assert migrating.returncode == 0, log.read_text()
        finally:
            migrating.kill()
            migrating.wait()
        until(lambda: len(load.answers) > 5 * RATE, 120)
        seconds = time.monotonic() - begin
    assert "coming.0002_index... OK" in log.read_text()
    assert re.search(rf": session {holder} \(.+, idle in transaction, since 0:00:", log.read_text()), "by which program"
    with site.session() as session:
        assert session.execute("SELECT count(*) FROM coming").fetchone() == (0,)
        assert session.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = 'coming_index'::regclass").fetchone()
    waits = sorted(took for _, took, _ in load.answers)
    print(f"{len(waits) / seconds:.0f} requests/s, {median(waits) * 1000:.0f} ms, at most {waits[-1]:.2f} s")
    print(f"waited for a lock at most {longest:.2f} s")
    assert {*load.statuses()} == {200, 201}
    assert 0 < longest < LOCK_SECONDS + SLACK, "the long transaction stood in the way for longer"
