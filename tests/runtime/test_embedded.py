import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import redis

from runtime import embedded
from runtime.embedded import Home, Postgres, ServerError, Servers, command_contains, wait_for


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    servers = Servers(tmp_path / "var", {})
    yield servers
    servers.stop()
    assert wait_for(lambda: not processes_of(servers), 60), processes_of(servers)


def processes_of(servers: Servers) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        if pid != os.getpid() and embedded.command_contains(pid, str(servers.home.data_dir)):
            found.append(pid)
    return found


def pid_of(servers: Servers, name: str) -> int:
    return int((servers.home.run / f"{name}.pid").read_text())


def count_users(servers: Servers) -> int:
    with psycopg.connect(servers.database_url) as session:
        row = session.execute("SELECT count(*) FROM pg_user").fetchone()
    assert row is not None
    return int(row[0])


def queue_url(servers: Servers) -> str:
    return servers.broker_url.replace("redis+socket", "unix").replace("virtual_host", "db")


HOLDER = """
import sys, time
from pathlib import Path
from runtime.embedded import Servers
with Servers(Path(sys.argv[1]), {}).ensure():
    print("held", flush=True)
    time.sleep(600)
"""


def hold_elsewhere(servers: Servers) -> subprocess.Popen[str]:
    folder = str(servers.home.data_dir)
    process = subprocess.Popen([sys.executable, "-c", HOLDER, folder], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_servers_start_answer_and_stop(servers: Servers) -> None:
    with servers.ensure():
        assert wait_for(servers.running, 60)
        assert count_users(servers) == 1
        with psycopg.connect(servers.database_url) as session:
            row = session.execute("SELECT lower('ÄÖ'), 'Z' < 'a', current_setting('server_encoding')").fetchone()
        assert row == ("äö", True, "UTF8")
        with redis.Redis.from_url(servers.redis_url) as feeds:
            assert feeds.config_get("maxmemory-policy")["maxmemory-policy"] == "allkeys-lru"
            assert feeds.config_get("zset-max-listpack-entries")["zset-max-listpack-entries"] == "512"
            assert feeds.config_get("save")["save"] == ""
    assert not servers.running()


@pytest.mark.long
def test_database_and_queue_last_and_feeds_do_not(servers: Servers) -> None:
    queue = queue_url(servers)
    with servers.ensure():
        with psycopg.connect(servers.database_url) as session:
            session.execute("CREATE TABLE kept AS SELECT 7 AS seven")
        with redis.Redis.from_url(servers.redis_url) as feeds, redis.Redis.from_url(queue) as broker:
            feeds.set("hint", 1)
            broker.lpush("celery", "task")
    with servers.ensure():
        with psycopg.connect(servers.database_url) as session:
            assert session.execute("SELECT seven FROM kept").fetchone() == (7,)
        with redis.Redis.from_url(servers.redis_url) as feeds, redis.Redis.from_url(queue) as broker:
            assert feeds.get("hint") is None
            assert broker.lrange("celery", 0, -1) == [b"task"]


@pytest.mark.long
def test_plays_are_synced_before_they_are_acknowledged_and_tasks_are_not(servers: Servers) -> None:
    with servers.ensure():
        for url, fsync in ((servers.played_url, "always"), (queue_url(servers), "everysec")):
            with redis.Redis.from_url(url) as client:
                assert client.config_get("appendfsync")["appendfsync"] == fsync
                assert client.config_get("appendonly")["appendonly"] == "yes"
                assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"


@pytest.mark.long
@pytest.mark.slow
def test_commands_share_the_servers_and_the_last_one_stops_them(servers: Servers) -> None:
    other = hold_elsewhere(servers)
    with servers.ensure():
        keeper = servers.keeper()
    assert wait_for(servers.running, 60), "the other still needs them"
    with servers.ensure():
        assert servers.keeper() == keeper
        end(other)
        assert wait_for(servers.running, 60)
    assert servers.keeper() is None


@pytest.mark.long
def test_a_keeper_takes_signals_at_any_moment(servers: Servers) -> None:
    """Signals may arrive while the keeper holds a lock."""
    with servers.ensure():
        keeper = servers.keeper()
        assert keeper is not None
        for number in range(8_000):
            os.kill(keeper["pid"], signal.SIGCHLD)
            time.sleep(1e-6 * (number % 100))
        os.kill(pid_of(servers, "feeds"), signal.SIGKILL)
        feeds = redis.Redis.from_url(servers.redis_url)
        assert wait_for(lambda: answers(feeds), 30)
        assert servers.keeper() == keeper


def answers(server: redis.Redis) -> bool:
    with suppress(redis.RedisError):
        return bool(server.ping())
    return False


@pytest.mark.long
def test_many_at_the_same_moment_start_one_keeper(servers: Servers) -> None:
    others = [Servers(servers.home.data_dir, {}) for _ in range(4)]
    with ThreadPoolExecutor(len(others)) as pool:
        list(pool.map(Servers.start, others))
    assert len({str(other.keeper()) for other in others}) == 1
    for other in others:
        other.stop()
    assert servers.keeper() is None


@pytest.mark.long
def test_servers_go_when_their_only_user_is_killed(servers: Servers) -> None:
    end(hold_elsewhere(servers))
    assert wait_for(lambda: servers.keeper() is None, 60)
    assert wait_for(lambda: not processes_of(servers), 60)


@pytest.mark.slow
def test_killed_server_is_restarted(servers: Servers) -> None:
    with servers.ensure():
        for name in servers.names:
            before = pid_of(servers, name)
            os.kill(before, signal.SIGKILL)
            assert wait_for(lambda name=name, before=before: pid_of(servers, name) != before, 60)
        assert wait_for(servers.running, 60)
        assert count_users(servers) == 1


@pytest.mark.long
def test_killed_keeper_takes_its_servers_along_and_is_replaced(servers: Servers) -> None:
    with servers.ensure():
        keeper = servers.keeper()
        assert keeper is not None
        os.kill(keeper["pid"], signal.SIGKILL)
        assert wait_for(lambda: not servers.running(), 60)
        servers.tend()
        assert wait_for(servers.running, 60)
        assert servers.keeper() != keeper


@pytest.mark.long
def test_leftovers_of_a_crash_are_replaced(servers: Servers) -> None:
    """After a reboot their pid belongs to another program, here this one."""
    with servers.ensure():
        pass
    (servers.home.data_dir / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n/nowhere\n")
    (servers.home.sockets).mkdir(exist_ok=True)
    (servers.home.sockets / ".s.PGSQL.5432.lock").write_text(f"{os.getpid()}\n")
    (servers.home.run / "feeds.pid").write_text(str(os.getpid()))
    with servers.ensure():
        assert count_users(servers) == 1


@pytest.mark.long
def test_long_folder_names_have_their_sockets_elsewhere(tmp_path: Path) -> None:
    servers = Servers(tmp_path / ("long name, " * 10) / "ünter", {})
    with servers.ensure():
        assert not servers.home.sockets.is_relative_to(tmp_path)
        assert servers.home.sockets.stat().st_mode & 0o777 == 0o700
        assert count_users(servers) == 1
    assert not servers.home.sockets.exists()


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a user to give up for another")
def test_root_without_namespaces_runs_postgres_as_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reachable = Path(tempfile.mkdtemp(prefix="feedsite-nobody-"))
    reachable.chmod(0o755)
    monkeypatch.setattr(embedded, "NOBODY_HOME", reachable / "lib")
    monkeypatch.setattr(embedded, "can_make_namespace", lambda: False)
    servers = Servers(tmp_path / "var", {"FEEDSITE_REDIS_URL": "x"})
    servers.home.make()
    try:
        for _ in "once", "again":
            postgres = embedded.Postgres(servers.home, durable=False)
            postgres.start()
            assert postgres.process is not None
            assert Path(f"/proc/{postgres.process.pid}").stat().st_uid == pwd.getpwnam("nobody").pw_uid
            assert wait_for(postgres.answers, 60), postgres.last_words()
            assert count_users(servers) == 1
            postgres.stop()
        shutil.rmtree(reachable / "lib" / servers.home.mark)
        with pytest.raises(ServerError, match="which does not exist"):
            embedded.Postgres(servers.home).prepare()
    finally:
        shutil.rmtree(reachable)


def test_given_servers_are_not_embedded(tmp_path: Path) -> None:
    names = lambda environ: Servers(tmp_path, environ).names  # noqa: E731
    assert names({}) == ("postgres", "feeds", "plays", "broker")
    assert names({"FEEDSITE_DATABASE_URL": "postgresql://db/x"}) == ("feeds", "plays", "broker")
    assert names({"FEEDSITE_REDIS_URL": "redis://r"}) == ("postgres",)
    assert names({"FEEDSITE_PLAYED_URL": "redis://p"}) == ("postgres", "feeds", "broker")
    assert names({"FEEDSITE_BROKER_URL": "redis://q"}) == ("postgres", "feeds"), "its plays stay where they were"
    assert names({"FEEDSITE_BROKER_URL": "amqp://q"}) == ("postgres", "feeds", "plays")
    with Servers(tmp_path / "var", dict.fromkeys(("FEEDSITE_DATABASE_URL", "FEEDSITE_REDIS_URL"), "x")).ensure():
        assert not (tmp_path / "var").exists()


@pytest.mark.parametrize(
    ("breakage", "message"),
    [
        (lambda data: data.write_text("a file"), "cannot be used: File exists"),
        (lambda data: (data / "postgres").mkdir(parents=True), "not a PostgreSQL data folder"),
        (lambda data: old_cluster(data), r"is of PostgreSQL 12\. .* Make a backup with the earlier version"),
        (lambda data: foreign_run_folder(data), "belongs to another user"),
    ],
)
def test_broken_data_folder_is_one_line(tmp_path: Path, breakage, message: str) -> None:
    breakage(tmp_path / "var")
    with pytest.raises(ServerError, match=message) as caught, Servers(tmp_path / "var", {}).ensure():
        pass
    assert "\n" not in str(caught.value)
    assert Servers(tmp_path / "var", {}).home.data_dir.is_file() or Servers(tmp_path / "var", {}).keeper() is None


def old_cluster(data: Path) -> None:
    (data / "postgres").mkdir(parents=True)
    (data / "postgres" / "PG_VERSION").write_text("12\n")


def foreign_run_folder(data: Path) -> None:
    (data / "run").mkdir(parents=True)
    (data / "run").chmod(0o777)


def test_secret_key_is_made_once_and_private(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: embedded.secret_key(folder), range(16)))
    assert len(keys) == 1
    assert len(keys.pop()) > 50
    assert [path.name for path in folder.iterdir()] == ["secret_key"]
    assert (folder / "secret_key").stat().st_mode & 0o777 == 0o600


def test_secret_key_of_a_broken_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerError, match="cannot be used"):
        embedded.secret_key(tmp_path / "file")
    (tmp_path / "secret_key").write_text("")
    with pytest.raises(ServerError, match="is empty"):
        embedded.secret_key(tmp_path)


@pytest.mark.long
def test_a_postgresql_that_is_killed_leaves_no_session(tmp_path: Path) -> None:
    """A frozen session does not notice its postmaster's end."""
    server = Postgres(Home(tmp_path / "data"), durable=False)
    server.home.make()
    server.start()
    assert wait_for(server.answers, 60), server.last_words()
    assert server.process is not None
    own = server.process.pid
    with psycopg.connect(Servers(tmp_path / "data", {}).database_url) as session:
        pid = session.info.backend_pid
        children = [int(child) for child in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
        assert pid in children
        os.kill(own, signal.SIGSTOP)
        for child in children:
            os.kill(child, signal.SIGSTOP)
        server.kill()
        try:
            assert wait_for(lambda: not any(command_contains(child, "postgres") for child in children), 60)
        finally:
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("is_kept", [True, False], ids=["by its keeper", "by the next keeper"])
def test_a_killed_postgresql_is_replaced_while_a_session_computes(tmp_path: Path, is_kept: bool) -> None:
    """Such a session does not notice, holds the shared memory, and keeps the next server from starting."""
    server = Postgres(Home(tmp_path / "data"), durable=False)
    server.home.make()
    server.start()
    assert wait_for(server.answers, 60), server.last_words()
    assert server.process is not None
    bystander = subprocess.Popen(
        [sys.executable, "-c", "input()", f"feedsite {server.home.mark}"], stdin=subprocess.PIPE
    )
    url = Servers(tmp_path / "data", {}).database_url
    session = psycopg.connect(url, autocommit=True)
    pid = session.info.backend_pid
    try:
        session.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 2000000000) a WHERE sqrt(a) < 0")
        with psycopg.connect(url) as other:
            assert wait_for(
                lambda: (
                    other.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone() == ("active",)
                ),
                60,
            )
        os.kill(server.process.pid, signal.SIGKILL)
        assert wait_for(server.has_ended, 60)
        assert command_contains(pid, server.home.mark), "otherwise this tries nothing"
        if not is_kept:
            server.process.wait()
            server = Postgres(Home(tmp_path / "data"), durable=False)
        server.clear()
        server.start()
        assert wait_for(server.answers, 60), server.last_words()
        assert not command_contains(pid, server.home.mark)
        assert bystander.poll() is None
    finally:
        server.stop()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        bystander.kill()
        bystander.communicate()
        session.close()


def test_a_process_is_known_by_its_words_also_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS has none, so this uses its tools."""
    monkeypatch.setattr(embedded, "IS_LINUX", False)
    assert command_contains(os.getpid(), "python")
    assert not command_contains(os.getpid(), "no such word")
    assert b"python" in dict(embedded.command_lines())[os.getpid()]
    assert not command_contains(2**22 + 1, "python")
    assert embedded.die_with_parent(signal.SIGTERM)() is None  # type: ignore[func-returns-value]
