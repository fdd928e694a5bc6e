"""Servers fail under connected apps. Revoked apps are always cut off."""

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
import websocket
from django.conf import settings
from django.db import connection
from oauth2_provider.models import AccessToken

from accounts import actions as accounts
from accounts.models import User
from items import actions as items
from items.models import Item, ItemType
from relations import lists
from runtime.embedded import wait_for
from runtime.stream_server import GONE_SECONDS
from storage import events
from storage.connections import feeds_breaker
from stream.connections import AGAIN, BACKLOG, REFUSED
from stream.credentials import ASK_SECONDS
from stream.hub import LOOK_SECONDS
from tests.support.at_once import until_one_waits
from tests.support.changed_settings import changed
from tests.support.clients import Caller, token_of
from tests.support.servers import Valkey, frozen, restart
from tests.support.sites import until
from tests.support.streams import Client, StreamServer, database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(180)]

UNBOUND = 100.0
"""The process's wait for PostgreSQL. What ends sooner was ended by the hub."""
SOON = 15.0
"""Far less than `UNBOUND`, but enough for a busy machine."""


class App:
    """A socket that a thread reads."""

    def __init__(self, port: int, token: str, *options: tuple[int, int, int]) -> None:
        self.socket = websocket.WebSocket(sockopt=list(options))
        self.socket.settimeout(90)
        try:
            self.socket.connect(f"ws://127.0.0.1:{port}/api/v1/streaming?stream=user&access_token={token}")
        except websocket.WebSocketException:
            self.socket.shutdown()
            raise
        self.told: list[tuple[str, str]] = []
        """(event, status id)"""
        self.received = 0
        self.code: int | None = None
        self.thread = threading.Thread(target=self.read, daemon=True)

    def start(self) -> "App":
        self.thread.start()
        return self

    def read(self) -> None:
        code = 0
        with suppress(websocket.WebSocketException, OSError):
            while True:
                kind, data = self.socket.recv_data()
                if kind == websocket.ABNF.OPCODE_CLOSE:
                    code = int.from_bytes(data[:2])
                    break
                self.received += len(data)
                self.note(json.loads(data))
        self.code = code

    def note(self, message: dict[str, Any]) -> None:
        if message["event"] == "delete":
            self.told.append(("delete", message["payload"]))
        elif message["event"] != "heartbeat":
            self.told.append((message["event"], json.loads(message["payload"])["id"]))

    def edits(self) -> int:
        """An earlier post may also arrive late."""
        return sum(event == "status.update" for event, _ in self.told)

    @property
    def has_ended(self) -> bool:
        return self.code is not None

    def waits_for(self, done: Callable[["App"], bool], seconds: float = 60) -> None:
        assert wait_for(lambda: done(self), seconds), (self.told, self.code)

    def close(self) -> None:
        self.socket.shutdown()
        if self.thread.ident:
            self.thread.join(5)


class Apps:
    """A socket and a stream, each with its own token."""

    def __init__(self, streams: StreamServer, user: User) -> None:
        tokens = [token_of(user, "read") for _ in range(2)]
        headers = {"Authorization": f"Bearer {tokens[1]}"}
        self.socket = App(streams.port, tokens[0]).start()
        self.stream = Client(streams.port, "", headers, "/api/v1/streaming/user")

    def wait_for(self, *told: tuple[str, Item]) -> None:
        """Wait until both heard exactly this."""
        wanted = [(name, str(item.pk)) for name, item in told]
        self.socket.waits_for(lambda one: one.told == wanted)
        self.stream.waits_for(lambda one: [(each.name, _id(each.data)) for each in one.heard] == wanted)

    def wait_for_last(self, name: str, item: Item) -> None:
        """Wait until both heard this last."""
        wanted = (name, str(item.pk))
        self.socket.waits_for(lambda one: one.told[-1:] == [wanted])
        self.stream.waits_for(lambda one: [(each.name, _id(each.data)) for each in one.heard[-1:]] == [wanted])

    def wait_for_the_end(self, seconds: float = 60) -> None:
        self.socket.waits_for(lambda one: one.has_ended, seconds)
        self.stream.waits_for(lambda one: one.has_ended, seconds)

    @property
    def have_ended(self) -> bool:
        return self.socket.has_ended or self.stream.has_ended

    def close(self) -> None:
        self.socket.close()
        self.stream.close()


def _id(data: Any) -> str:
    return str(data["id"] if isinstance(data, dict) else data)


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[StreamServer]:
    """It waits long for PostgreSQL and rechecks only at revocations."""
    seldom = changed(STREAM_RECHECK_SECONDS=3600)
    server = StreamServer(tmp_path, FEEDSITE_DATABASE_TIMEOUT_SECONDS=str(UNBOUND), **seldom)
    server.start()
    yield server
    server.end()


def publish(author: User, text: str = "words") -> Item:
    return items.publish(sender=author, content={"text": text})


@contextmanager
def locked(table: str) -> Iterator[None]:
    with psycopg.connect(database_url()) as session:
        session.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def frozen_sessions() -> Iterator[None]:
    """Freeze all other processes' sessions with the test's database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        pids = [pid for (pid,) in cursor.fetchall()]
    assert pids
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def is_waiting_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1"
        )
        return cursor.fetchone() is not None


# --- Servers that go, and come back --------------------------------------------------------------------
@pytest.mark.long
def test_the_stream_process_killed(streams: StreamServer, author: User, fan: User) -> None:
    """Apps get each status once, from the stream or from home."""
    apps = Apps(streams, fan)
    first = publish(author)
    apps.wait_for(("update", first))
    streams.kill()
    missed = publish(author)
    apps.wait_for_the_end()
    streams.start()
    again = Apps(streams, fan)
    home = Caller(fan).get("v1/timelines/home", {"min_id": str(first.pk)})
    assert [status["id"] for status in home] == [str(missed.pk)]
    third = publish(author)
    again.wait_for(("update", third))
    for each in (apps, again):
        each.close()


@pytest.mark.long
def test_the_feeds_server_frozen(streams: StreamServer, author: User, fan: User, feeds_server: Valkey) -> None:
    """Events may be lost, so connections close with "reconnect"."""
    apps = Apps(streams, fan)
    first = publish(author)
    apps.wait_for(("update", first))
    with frozen(feeds_server):
        assert wait_for(lambda: "The feeds server does not answer" in streams.said(), 60)
        assert not apps.have_ended, "nothing is known to be lost"
    apps.wait_for_the_end()
    assert apps.socket.code == AGAIN
    assert apps.stream.is_whole
    feeds_breaker.reset()
    again = Apps(streams, fan)
    item = publish(author)
    again.wait_for(("update", item))
    for each in (apps, again):
        each.close()


@pytest.mark.long
def test_the_feeds_server_killed(streams: StreamServer, author: User, fan: User, feeds_server: Valkey) -> None:
    apps = Apps(streams, fan)
    first = publish(author)
    apps.wait_for(("update", first))
    restart(feeds_server)
    apps.wait_for_the_end()
    assert apps.socket.code == AGAIN
    feeds_breaker.reset()
    again = Apps(streams, fan)
    item = publish(author)
    again.wait_for(("update", item))
    for each in (apps, again):
        each.close()


@pytest.mark.long
def test_the_feeds_server_flushed(streams: StreamServer, author: User, fan: User, feeds: redis.Redis) -> None:
    """Connections stay open and get new events."""
    apps = Apps(streams, fan)
    first = publish(author)
    apps.wait_for(("update", first))
    feeds.flushall()
    second = publish(author)
    apps.wait_for(("update", first), ("update", second))
    assert not apps.have_ended
    apps.close()


@pytest.mark.long
@pytest.mark.sessions
def test_postgresql_ends_all_sessions(streams: StreamServer, author: User, fan: User) -> None:
    """This happens when it restarts."""
    apps = Apps(streams, fan)
    first = publish(author)
    apps.wait_for(("update", first))
    name = connection.settings_dict["NAME"]
    connection.close()
    with psycopg.connect(database_url().replace(f"/{name}?", "/postgres?"), autocommit=True) as session:
        session.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            events.announce(events.Edited(first.pk, "public"))
            until(lambda: "PostgreSQL does not answer" in streams.said(), 60)
        finally:
            session.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    second = publish(author)
    apps.wait_for(("update", first), ("status.update", first), ("update", second))
    assert not apps.have_ended
    apps.close()


@pytest.mark.long
def test_a_socket_that_cannot_be_opened_now_is_told_so(streams: StreamServer, fan: User) -> None:
    """A 403 would tell the app that its token is invalid."""
    token = token_of(fan, "read")
    with locked("oauth2_provider_accesstoken"), pytest.raises(websocket.WebSocketBadStatusException) as outage:
        App(streams.port, token)
    assert outage.value.status_code == 503
    assert outage.value.resp_headers["retry-after"]
    answers = [503]  # behind a pooler the client first asks whether the server is up

    def is_answered() -> bool:
        with pytest.raises(websocket.WebSocketBadStatusException) as refused:
            App(streams.port, "wrong")
        answers.append(refused.value.status_code)
        return answers[-1] != 503

    until(is_answered, 30)
    assert answers[-1] == 401


@pytest.mark.long
def test_apps_that_come_while_the_process_ends_are_told_to_come_back(streams: StreamServer, fan: User) -> None:
    """Apps already served hear nothing. Others get 503, nobody 500."""
    path = f"/api/v1/streaming/user?access_token={token_of(fan, 'read')}"
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    apps = [socket.create_connection(("127.0.0.1", streams.port), 30) for _ in range(4 * settings.STREAM_THREADS)]
    with locked("oauth2_provider_accesstoken"):
        for app in apps:
            app.sendall(request.encode())
        until_one_waits()
        assert streams.process is not None
        streams.process.terminate()
        answers = [app.recv(1000)[9:12] for app in apps]
    for app in apps:
        app.close()
    assert streams.process.wait(10) == 0
    assert set(answers) <= {b"503", b""}
    assert answers.count(b"") <= settings.STREAM_THREADS
    assert "Traceback" not in streams.said()


# --- Revocations while PostgreSQL is slow --------------------------------------------------------------
def test_a_revoked_connection_has_a_second() -> None:
    assert LOOK_SECONDS + ASK_SECONDS < 1


@pytest.mark.long
def test_a_revocation_that_waits_ends_the_connections(patient: StreamServer, author: User, fan: User) -> None:
    """PostgreSQL is slow to say which are valid."""
    apps, others = Apps(patient, fan), Apps(patient, author)
    with locked("oauth2_provider_accesstoken"):
        events.announce(events.Revoked(fan.pk))
        apps.wait_for_the_end(SOON)
        assert apps.socket.code == REFUSED
        assert apps.stream.is_whole
        assert not others.have_ended
    item = publish(author)
    others.wait_for(("update", item))
    for each in (apps, others):
        each.close()


@pytest.mark.long
def test_a_revocation_is_met_while_a_batch_waits(patient: StreamServer, author: User, fan: User) -> None:
    first = publish(author)
    apps, others = Apps(patient, fan), Apps(patient, author)
    with locked("relations_follow"):
        events.announce(events.Edited(first.pk, "public"))
        until(is_waiting_for_a_lock, SOON)
        socket_token, stream_token = AccessToken.objects.filter(user=fan).order_by("pk")
        accounts.revoke_token(token_id=socket_token.pk)
        apps.socket.waits_for(lambda one: one.code == REFUSED, SOON)
        assert not apps.stream.has_ended, "its token stands"
        accounts.revoke_token(token_id=stream_token.pk)
        apps.stream.waits_for(lambda one: one.has_ended, SOON)
        assert "status.update" not in dict(apps.socket.told), "at most the post itself, which it missed narrowly before"
        assert not [event for event in apps.stream.heard if "status.update" in str(event)]
    others.wait_for_last("status.update", first)
    for each in (apps, others):
        each.close()


@pytest.mark.long
@pytest.mark.sessions
def test_a_revocation_ends_connections_while_postgresql_is_frozen(
    patient: StreamServer, author: User, fan: User
) -> None:
    apps, others = Apps(patient, fan), Apps(patient, author)
    with frozen_sessions():
        events.announce(events.Revoked(fan.pk))
        apps.wait_for_the_end(SOON)
        assert apps.socket.code == REFUSED
    item = publish(author)
    others.wait_for(("update", item))
    for each in (apps, others):
        each.close()


@pytest.mark.long
def test_a_revocation_meets_a_connection_that_is_being_opened(patient: StreamServer, author: User, fan: User) -> None:
    """Refused now, not at the next recheck."""
    made, others = lists.create(owner=fan, title="a list"), Apps(patient, author)
    bearer = f"Bearer {token_of(fan, 'read')}"
    with ThreadPoolExecutor(1) as pool:
        with locked("relations_list"):
            path = f"/api/v1/streaming/list?list={made.pk}"
            answer = pool.submit(patient.get, path, Authorization=bearer)
            until(is_waiting_for_a_lock, SOON)
            accounts.revoke_token(token_id=AccessToken.objects.get(user=fan).pk)
            for token in AccessToken.objects.filter(user=author):
                accounts.revoke_token(token_id=token.pk)
            others.wait_for_the_end(SOON)  # so the hub handled the first revocation too
        assert answer.result().status == 503
    others.close()


# --- Clients that do not read --------------------------------------------------------------------------
def worker_memory(streams: StreamServer) -> int:
    """The memory in KB."""
    assert streams.process is not None
    lines = Path(f"/proc/{streams.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])


def connections_of(streams: StreamServer) -> int:
    """The connections on the process's side."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[1].rpartition(":")[2], 16) == streams.port and row[3] == "01" for row in rows)


def deaf_stream(port: int, token: str) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", port))
    one.sendall(
        f"GET /api/v1/streaming/user HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    assert b" 200 " in one.recv(100)
    return one


def deaf_socket(port: int, token: str) -> socket.socket:
    app = App(port, token, (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096))
    assert app.socket.sock is not None
    return app.socket.sock


@pytest.mark.long
@pytest.mark.parametrize("deaf", [deaf_stream, deaf_socket])
def test_a_client_that_does_not_read_is_dropped(
    streams: StreamServer, author: User, fan: User, deaf: Callable[[int, str], socket.socket]
) -> None:
    """Its memory stays within the backlog. Other clients hear everything."""
    article = items.publish(sender=author, type=ItemType.ARTICLE, title="long", content={"text": "many words " * 1_800})
    sound = App(streams.port, token_of(author, "read")).start()
    slow = deaf(streams.port, token_of(fan, "read"))
    before, open_before = worker_memory(streams), connections_of(streams)
    most = before
    for batch in range(1, 41):
        events.announce(*[events.Edited(article.pk, "public")] * 25)
        sound.waits_for(lambda one, batch=batch: one.edits() == batch * 25)  # type: ignore[misc]
        most = max(most, worker_memory(streams))
    assert not sound.has_ended
    assert wait_for(lambda: connections_of(streams) < open_before, 1.5 * GONE_SECONDS), "it is still connected"
    backlog = sound.received * BACKLOG / 1_000
    assert most - before < (2 * backlog + 4_000_000) / 1_000 < sound.received / 1_000
    assert streams.get("/healthz").status == 200
    slow.close()
    sound.close()
