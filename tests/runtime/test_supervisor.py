"""`up` in a data folder of its own."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from runtime import supervisor
from runtime.embedded import Servers, command_line, wait_for
from runtime.management.commands.check_all import clean_environ
from runtime.ports import PortError, reserved_port
from runtime.programs import PROGRAM, ProgramAddress, programs, running_programs
from runtime.supervised import ForkedProgram, Loader, Program
from runtime.supervisor import TAG, ProgramError, Supervisor, Terminal, tagged
from runtime.up import accepted_host
from tests.support import migrated
from tests.support.clusters import free_ports
from tests.support.disks import on_small_disk
from tests.support.servers import Valkey, frozen
from tests.support.whole_sites import PROGRAMS, Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def _environment() -> None:
    """A fresh checkout's first command prints that it installs."""
    subprocess.run([sys.executable, "manage.py", "version"], cwd=settings.BASE_DIR, check=True, capture_output=True)


@pytest.fixture
def port() -> int:
    return free_ports()[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "var"


RESTORE = """
import subprocess
from django.db import connection
from runtime.embedded import postgres_binaries
info = (connection.ensure_connection(), connection.connection.info)[1]
server = ["--host", info.host, "--port", str(info.port), "--username", info.user, "--dbname", info.dbname]
subprocess.run([postgres_binaries() / "pg_restore", *server, "--exit-on-error", {dump!r}], check=True)
"""


@pytest.fixture
def site(folder: Path, port: int, django_db_setup: None) -> Iterator[Site]:
    """It starts from the tests' dump: first migrations take half a minute of CPU."""
    manage(folder, "shell", "-v", "0", "-c", RESTORE.format(dump=str(migrated.dump)))
    site = Site(folder, port, {"FEEDSITE_GRPC_PORT": str(free_ports()[0])})
    site.wait_until_up()
    yield site
    if site.process.poll() is None:
        site.end(signal.SIGTERM)
    assert wait_for(lambda: not site.leftovers(), 60), site.leftovers()


COUNT = "from accounts.models import User; print(User.objects.count(), 'users')"


@pytest.mark.django_db
def test_a_site_lives_and_goes(site: Site, folder: Path, port: int) -> None:
    assert site.get("/healthz") == (200, b"ok\n")
    assert site.becomes_ready(), site.get("/readyz")
    assert wait_for(lambda: takes_calls(rpc_port(site)), 60)

    assert site.get("/metrics")[0] == 200
    assert (folder / "run" / "metrics" / "0.lock").exists()

    assert sorted(site.children()) == sorted(PROGRAMS)
    programs = json.loads(manage(folder, "status", "--json"))["programs"]
    assert {each["pid"] for each in programs} == set(site.children().values())

    # A second `up` is refused. Other commands share the servers.
    line = refused(folder, port, {})
    assert re.fullmatch(r"feedsite: The site of .* already runs \(process \d+\)\.\n", line)
    assert re.search(r"\d+ users", manage(folder, "shell", "-v", "0", "-c", COUNT))


@pytest.mark.long
@pytest.mark.django_db
def test_a_site_survives_what_is_killed(site: Site, folder: Path, port: int) -> None:
    assert site.becomes_ready(), site.get("/readyz")
    before = site.children()
    keeper = json.loads((folder / "run" / "keeper.lock").read_text())["pid"]
    for pid in [*before.values(), keeper]:
        os.kill(pid, signal.SIGKILL)
    assert wait_for(
        lambda: before.items().isdisjoint(site.children().items()) and len(site.children()) == len(before), 60
    )
    # The worker ends with its beat and its lane.
    for name in ("beat", "outside"):
        assert wait_for(lambda name=name: site.children().get("worker") and site.child_of_worker(name), 60)
        worker = site.children()["worker"]
        os.kill(site.child_of_worker(name), signal.SIGKILL)
        assert wait_for(lambda old=worker: site.children().get("worker", old) != old, 60), site.printed
    assert site.becomes_ready(), site.get("/readyz")
    assert wait_for(lambda: takes_calls(rpc_port(site)), 60)
    assert site.get("/metrics")[0] == 200
    pid_file = folder / "run" / "postgres.pid"
    postgres = int(pid_file.read_text())
    os.kill(postgres, signal.SIGKILL)
    assert wait_for(lambda: int(pid_file.read_text()) != postgres, 60), site.printed
    assert site.becomes_ready(), site.get("/readyz")

    # A killed supervisor leaves nothing behind.
    users = manage(folder, "shell", "-v", "0", "-c", COUNT)
    site.end(signal.SIGKILL)
    again = Site(folder, port)
    again.wait_until_up()
    assert again.becomes_ready()
    assert manage(folder, "shell", "-v", "0", "-c", COUNT) == users
    assert again.end(signal.SIGINT) == 0
    assert not again.leftovers()
    assert manage(folder, "shell", "-v", "0", "-c", COUNT) == users, "also without the site"


@pytest.mark.long
@pytest.mark.django_db
def test_the_next_start_loads_the_site_while_the_database_is_checked(site: Site, folder: Path, port: int) -> None:
    """Once more if the check changed something that was loaded, as static files."""
    site.end()
    for has_work in (False, True):
        if has_work:
            (folder / "run" / "prepared").write_text("another version")
        again = Site(folder, port)
        try:
            assert wait_for(lambda site=again: child_with(site, b"runtime.loader"), 60), again.printed
            early = child_with(again, b"runtime.loader")
            assert child_with(again, b"prepare")
            again.wait_until_up()
            assert ("updating the database" in again.printed) == has_work
            assert (child_with(again, b"runtime.loader") == early) != has_work
        finally:
            again.end()
        assert not again.leftovers()


def child_with(site: Site, words: bytes) -> int:
    """The child with these words in its command line, or 0."""
    children = Path(f"/proc/{site.process.pid}/task/{site.process.pid}/children").read_text().split()
    return next((int(pid) for pid in children if words in Path(f"/proc/{pid}/cmdline").read_bytes()), 0)


def rpc_port(site: Site) -> int:
    return int(re.search(r"gRPC is at 127.0.0.1, port (\d+)", site.printed)[1])  # type: ignore[index]


@pytest.mark.long
def test_programs_are_started_anew_by_turns_and_no_connection_is_refused(folder: Path, port: int) -> None:
    patient = {"FEEDSITE_WEB_WAIT_SECONDS": "30"}  # a busy machine sheds requests
    site = Site(folder, port, {"FEEDSITE_RATE_SCALE": "100000", **patient})
    answers, is_over, slowest = Counter[int | str](), threading.Event(), [0.0]

    def load() -> None:
        while not is_over.wait(0.005):
            began = time.monotonic()
            answers[ask("/login", port)] += 1
            slowest.append(time.monotonic() - began)

    threads = [threading.Thread(target=load) for _ in range(3)]
    try:
        site.wait_until_up()
        assert site.becomes_ready(), site.get("/readyz")
        before = site.children()
        for thread in threads:
            thread.start()
        said = manage(folder, "upgrade", "--no-backup")
        after = site.children()
        again = manage(folder, "restart")
        assert before.items().isdisjoint(site.children().items())
        assert after.items().isdisjoint(site.children().items())
    finally:
        is_over.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        code = site.end(signal.SIGTERM)
    assert re.findall(r"(\w+) restarted in", said) == ["worker", "web", "stream"]
    assert re.findall(r"(\w+) restarted in", again) == ["worker", "web", "stream"]
    assert "The site runs version" in said
    assert after.keys() == before.keys()
    assert before.items().isdisjoint(after.items())
    print(answers, max(slowest))
    assert answers.keys() == {200}, answers
    assert answers[200] > 50
    assert (code, site.leftovers()) == (0, [])


def ask(path: str, port: int) -> int | str:
    """The status of an answer, or its error."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        client.request("GET", path)
        return client.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        client.close()


LISTENER = """
import socket, sys, time
with socket.socket() as listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", int(sys.argv[1])))
    listener.listen()
    time.sleep(600)
"""


@pytest.fixture
def listener(tmp_path: Path, port: int) -> Iterator[Supervisor]:
    command = [sys.executable, "-c", LISTENER, str(port)]
    program = Program("web", command, folder=tmp_path, environ=os.environ, port=port)
    supervisor = Supervisor([program], tend=lambda: None, say=Terminal("text"))
    supervisor._start(supervisor.children[0])
    assert wait_for(lambda: supervisor.children[0].listens(), 60)
    yield supervisor
    supervisor._stop_all()


def test_a_program_is_followed_by_one_that_listens(listener: Supervisor) -> None:
    (before,) = listener.children
    listener.anew = lambda: [following(before, list(before.command))]
    told: list[str] = []
    listener.told = told.append
    assert listener.restart_by_turns() == "done"
    (after,) = listener.children
    assert after is not before
    assert before.process is None
    assert after.listens()
    assert [line.partition(" in ")[0] for line in told] == ["web restarted"]


def following(program: Program, command: list[str]) -> Program:
    return Program(program.name, command, folder=program.folder, environ=program.environ, port=program.port)


def test_a_program_that_does_not_come_anew_goes_on(listener: Supervisor) -> None:
    (program,) = listener.children
    listener.anew = lambda: [following(program, ["false"])]
    assert listener.restart_by_turns() == "failed: web does not start. The old one keeps running"
    assert listener.children == [program]
    assert program.listens()


def test_a_program_that_does_not_listen_any_more_goes_on(listener: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "TURN_SECONDS", 1.0)
    (program,) = listener.children
    listener.anew = lambda: [following(program, ["sleep", "60"])]
    assert listener.restart_by_turns().startswith("failed: web does not start")
    assert program.listens()


def test_no_program_is_replaced_when_the_site_does_not_load(listener: Supervisor, tmp_path: Path) -> None:
    before = listener.children
    loader = Loader("loader", ["false"], folder=tmp_path, environ=os.environ)
    listener.anew = lambda: [ForkedProgram("web", ["this"], loader=loader, environ=os.environ), loader]
    assert listener.restart_by_turns() == "failed: the site does not load. All programs keep running"
    assert listener.children == before
    assert loader.process is None


SHOWN = """
import os, sys, time
from django.urls import get_resolver
print(os.getppid(), os.getsid(0) == os.getpid(), sys.argv[1], get_resolver()._populated, os.environ["PGAPPNAME"])
time.sleep(600)
"""


def test_a_forked_program_has_the_site_and_is_a_child_of_the_supervisor(
    tmp_path: Path, heard: list[tuple[str, str]]
) -> None:
    (tmp_path / "shown.py").write_text(SHOWN)
    environ = clean_environ(tmp_path) | {"PYTHONPATH": str(tmp_path), "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    room = {PROGRAM: " " * 500, TAG: str(tmp_path)}
    command = [sys.executable, "-m", "runtime.loader", " " * 500]
    loader = Loader("loader", command, folder=settings.BASE_DIR, environ=environ | room)
    own = environ | {PROGRAM: f"web 1.0 {tmp_path}", "PGAPPNAME": "feedsite web"}
    web = ForkedProgram("web", ["shown", "word"], loader=loader, environ=own)
    supervisor = Supervisor([web, loader], say=Noting(heard))

    def printed() -> list[str]:
        return [line for name, line in heard if name == "web"]

    try:
        supervisor.tend_until(lambda: len(printed()) == 1, 120)
        assert printed() == [f"{os.getpid()} True word True feedsite web"]
        assert web.process is not None
        pid = web.process.pid
        assert [(each.name, each.version, each.pid) for each in running_programs(tmp_path)] == [("web", "1.0", pid)]
        assert b"-m\0shown\0word\0" in command_line(pid)
        assert pid in tagged(str(tmp_path))
        loader.kill()
        assert not web.has_ended()
        os.kill(pid, signal.SIGKILL)
        supervisor.tend_until(lambda: len(printed()) == 2, 120)  # from a new loader
        assert web.process.pid != pid
    finally:
        supervisor._stop_all()


LAST_WORDS = """
import signal, sys, time
def end(*_):
    time.sleep(0.5)
    print("and", end="", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def heard() -> list[tuple[str, str]]:
    return []


class Noting(Terminal):
    def __init__(self, heard: list[tuple[str, str]]) -> None:
        super().__init__("plain")
        self.heard = heard

    def __call__(self, line: str, name: str = "up") -> None:
        self.heard.append((name, line))


@pytest.fixture
def slow_to_end(tmp_path: Path, heard: list[tuple[str, str]]) -> Iterator[Supervisor]:
    """Takes half a second to end, and leaves its last line unfinished."""
    program = Program("worker", [sys.executable, "-c", LAST_WORDS], folder=tmp_path, environ=os.environ)
    supervisor = Supervisor([program], tend=lambda: heard.append(("tend", "")), say=Noting(heard))
    supervisor._start(program)
    supervisor.tend_until(lambda: ("worker", "ready") in heard, 60)
    yield supervisor
    supervisor.signals = 2
    supervisor._stop_all()


def test_a_signal_does_not_cut_short_what_is_being_stopped(
    slow_to_end: Supervisor, heard: list[tuple[str, str]]
) -> None:
    """A second signal does."""
    slow_to_end.signals = 1
    slow_to_end._stop(slow_to_end.children[0])
    assert heard[-1] == ("worker", "and")
    slow_to_end.signals = 0
    slow_to_end._start(slow_to_end.children[0])
    slow_to_end.tend_until(lambda: heard[-1] == ("worker", "ready"), 60)
    slow_to_end.signals = 2
    slow_to_end._stop(slow_to_end.children[0])
    assert heard[-1] == ("worker", "ready")


def test_the_dead_are_started_while_something_else_is_waited_for(
    slow_to_end: Supervisor, heard: list[tuple[str, str]]
) -> None:
    (program,) = slow_to_end.children
    assert program.process is not None
    os.kill(program.process.pid, signal.SIGKILL)
    del heard[:]
    slow_to_end.tend_until(lambda: ("worker", "ready") in heard and ("tend", "") in heard, 60)
    assert ("worker", "ready") in heard
    assert ("tend", "") in heard


@pytest.mark.long
def test_every_line_is_json_where_json_is_asked_for(folder: Path, port: int) -> None:
    site = Site(folder, port, {"FEEDSITE_LOG_FORMAT": "json"})
    try:
        site.wait_until_up()
        assert site.get("/login")[0] == 200
        assert wait_for(lambda: '"feedsite.access"' in site.printed, 60), site.printed
    finally:
        site.end(signal.SIGTERM)
    lines = [json.loads(line) for line in site.output]
    assert {"up", "web"} <= {line["program"] for line in lines}
    for line in lines:
        assert line.keys() >= {"at", "level", "logger", "message", "program"}
    (visit,) = (line for line in lines if line["logger"] == "feedsite.access" and line["route"] == "login")
    assert (visit["program"], visit["status"]) == ("web", 200)


@pytest.mark.long
@pytest.mark.django_db
def test_sigterm_stops_everything_in_time(site: Site) -> None:
    os.kill(site.children()["worker"], signal.SIGSTOP)  # the worst case: it ignores signals
    site.process.send_signal(signal.SIGTERM)
    assert site.process.wait(150) == 0
    assert not site.leftovers()
    site.reader.join()
    assert site.process.stdout is not None
    site.process.stdout.close()


@pytest.mark.long
def test_a_first_start_can_be_stopped(folder: Path, port: int) -> None:
    site = Site(folder, port)
    try:
        assert wait_for(lambda: "updating the database" in site.printed or site.process.poll() is not None, 180)
    finally:
        code = site.end(signal.SIGTERM)
    assert code == 0, site.printed
    assert "the site is at" not in site.printed
    assert not site.leftovers()


@pytest.mark.long
def test_a_first_start_that_hangs_leaves_nothing(folder: Path, port: int) -> None:
    """The child that prepares the site never ends."""
    site = Site(folder, port)
    preparing = 0
    try:
        assert wait_for(lambda: "updating the database" in site.printed or site.process.poll() is not None, 180)
        (preparing,) = map(int, Path(f"/proc/{site.process.pid}/task/{site.process.pid}/children").read_text().split())
        os.kill(preparing, signal.SIGSTOP)
        site.process.send_signal(signal.SIGTERM)
        assert site.process.wait(150) == 0, site.printed
        assert not site.leftovers()
        assert not Path(f"/proc/{preparing}").exists()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(preparing or site.process.pid, signal.SIGKILL)
        site.end(signal.SIGKILL)


def takes_calls(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def manage(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    environ = clean_environ(folder)
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env=environ, check=True, capture_output=True, text=True
    ).stdout


def refused(folder: Path, port: int | str, more: Mapping[str, str], code: int = 1) -> str:
    command = [sys.executable, "manage.py", "up"]
    environ = clean_environ(folder) | {"PORT": str(port)} | more
    result = subprocess.run(command, cwd=settings.BASE_DIR, env=environ, check=False, capture_output=True, text=True)
    assert result.returncode == code
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def test_a_program_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    """It is an error only while the site starts."""
    program = Program("odd", ["sleep", "60"], folder=tmp_path / "missing", environ={})
    supervisor = Supervisor([program], tend=lambda: None, say=Terminal("plain"))
    supervisor._restart_ended(give_up=False)
    assert program.retry_at > time.monotonic()
    program.retry_at = 0
    with pytest.raises(ProgramError):
        supervisor._restart_ended(give_up=True)
    program.folder.mkdir()
    supervisor._restart_ended(give_up=False)
    assert not program.has_ended()
    supervisor._stop_all()


def test_taken_port(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"Port {port} on 127.0.0.1 is in use" in refused(folder, port, {})


def test_taken_grpc_port(folder: Path, port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert f"Port {taken} on 127.0.0.1 is in use. Set FEEDSITE_GRPC_PORT" in refused(
            folder, port, {"FEEDSITE_GRPC_PORT": str(taken)}
        )


def test_no_grpc_where_its_port_is_0() -> None:
    def names(grpc: int) -> list[str]:
        return [program.name for program in programs(settings.OPTIONS, ProgramAddress("127.0.0.1", 8000, 8001, grpc))]

    assert names(8002) == ["web", "stream", "grpc", "worker"]
    assert names(0) == ["web", "stream", "worker"]


@pytest.mark.parametrize(
    ("hosts", "name"),
    [(["a.example", "b.example"], "a.example"), ([".example"], "example"), (["*"], "localhost"), ([], "localhost")],
)
def test_it_asks_the_site_by_a_name_that_the_site_answers_to(hosts: list[str], name: str) -> None:
    assert accepted_host(hosts) == name


def test_reserved_port_is_for_this_sites_web_server_only(port: int) -> None:
    with reserved_port("127.0.0.1", port):
        with pytest.raises(PortError, match="is in use"), reserved_port("127.0.0.1", port):
            pass
        with socket.socket() as web:  # as granian binds
            web.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            web.bind(("127.0.0.1", port))
            web.listen()
            with pytest.raises(PortError, match="is in use"), reserved_port("127.0.0.1", port):
                pass
    with reserved_port("127.0.0.1", port):
        pass


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1"])
def test_impossible_port(folder: Path, port: str) -> None:
    assert "PORT is" in refused(folder, port, {}, code=2)


def test_broken_data_folder(folder: Path, port: int) -> None:
    folder.write_text("a file in its place")
    assert f"The data folder {folder} cannot be used" in refused(folder, port, {})


def test_a_disk_without_room_is_one_line(tmp_path: Path, port: int) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    code = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, 'manage.py', 'up']).returncode)"
    result = on_small_disk(disk, code, clean_environ(disk / "var") | {"PORT": str(port)}, "20m")
    assert result.returncode == 1
    assert result.stderr == (
        f"feedsite: The site needs 300 MB to start, but the disk of {disk}/var has only 20 MB free.\n"
    )


@pytest.mark.long
@pytest.mark.django_db
def test_a_server_that_is_late_is_asked_again(feeds_server: Valkey) -> None:
    with frozen(feeds_server):
        assert feeds_server.process is not None
        later = threading.Timer(1, feeds_server.process.send_signal, [signal.SIGCONT])
        later.start()
        call_command("await_servers")
        later.join()


@pytest.mark.parametrize(
    ("variable", "url", "name"),
    [
        ("FEEDSITE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none", "postgresql"),
        pytest.param("FEEDSITE_REDIS_URL", "redis://127.0.0.1:1/0", "feeds", marks=pytest.mark.long),
        pytest.param("FEEDSITE_BROKER_URL", "redis://127.0.0.1:1/0", "broker", marks=pytest.mark.long),
        pytest.param("FEEDSITE_PLAYED_URL", "redis://127.0.0.1:1/0", "plays", marks=pytest.mark.long),
        pytest.param("FEEDSITE_BROKER_URL", "amqp://127.0.0.1:1//", "broker", marks=pytest.mark.long),
    ],
)
def test_missing_server(folder: Path, port: int, variable: str, url: str, name: str) -> None:
    line = refused(folder, port, {variable: url})
    assert f"The server {name} does not answer" in line
    assert variable in line


@pytest.fixture
def database(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An empty PostgreSQL outside the site."""
    given = dict.fromkeys(("FEEDSITE_REDIS_URL", "FEEDSITE_BROKER_URL", "FEEDSITE_PLAYED_URL"), "redis://elsewhere")
    other = Servers(tmp_path / "other", given)
    with other.ensure():
        yield {"FEEDSITE_DATABASE_URL": other.database_url}


@pytest.mark.long
def test_a_database_of_others_gets_no_users_but_a_link(folder: Path, port: int, database: dict[str, str]) -> None:
    site = Site(folder, port, database)
    try:
        site.wait_until_up()
        assert wait_for(lambda: "/first-admin/" in site.printed, 60), site.printed
        found = re.search(r"to create one: http://localhost:(\d+)(/first-admin/\S+)\n", site.printed)
        assert found, site.printed
        assert int(found[1]) == port
        status, page = site.get(found[2])
        assert status == 200
        assert b'name="password"' in page
    finally:
        site.end(signal.SIGTERM)
    assert "password:" not in site.printed
    assert not (folder / "demo.txt").exists()


@pytest.mark.long
def test_a_database_of_others_gets_the_demo_where_it_is_asked_for(
    folder: Path, port: int, database: dict[str, str]
) -> None:
    again = Site(folder, port, database, "--demo")
    try:
        again.wait_until_up()
        assert wait_for(lambda: "These logins are in" in again.printed, 60), again.printed
    finally:
        again.end(signal.SIGTERM)
    assert "demo login: site-admin" in again.printed, "where it is asked for"
    assert "/first-admin/" not in again.printed

    later = Site(folder, port, database, "--demo")
    try:
        later.wait_until_up()
        assert wait_for(lambda: "The demo logins are in" in later.printed, 60), later.printed
    finally:
        later.end(signal.SIGTERM)
    assert "site-admin" not in later.printed, "passwords are printed when they are made"
