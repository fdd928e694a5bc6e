"""PgBouncer lends sessions per transaction (FEEDSITE_PREPARE=0)."""

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import Error, OperationalError, connection, connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from accounts.models import User
from items import actions as items
from relations import actions as relations
from runtime.embedded import Home, wait_for
from storage import postgresql
from storage.connections import fetch, stream
from storage.postgresql.base import breaker_of
from tests.support.pooler import PROGRAM, Pooler
from tests.support.replica import sockets_of_primary
from tests.support.sites import until
from tests.support.timelines import read, seen
from timeline.oracle import home_ids

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sessions,  # it replaces the tests' own
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed"),
]
SESSIONS, CLIENTS = 3, 16


@pytest.fixture(scope="module")
def pooler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooler]:
    home = Home(tmp_path_factory.mktemp("pooler"))
    home.make()
    server = Pooler(home, Path(sockets_of_primary()), SESSIONS)
    server.start()
    assert wait_for(server.answers, 30), server.last_words()
    yield server
    server.stop()


@pytest.fixture
def pooled(pooler: Pooler, settings: Any) -> Iterator[Pooler]:
    places = connection.settings_dict
    before = dict(places)
    connection.close()
    settings.POOLED = True
    places |= {"HOST": str(pooler.home.sockets), "PORT": "6432", "DISABLE_SERVER_SIDE_CURSORS": True}
    yield pooler
    connections.close_all()
    places |= before
    pooler.stop()
    pooler.start()
    assert wait_for(pooler.answers, 30), pooler.last_words()


def in_threads(*asked: Any) -> list[Any]:
    def closing(one: Any) -> Any:
        try:
            return one()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(asked)) as threads:
        return [each.result(60) for each in [threads.submit(closing, one) for one in asked]]


def backends() -> list[tuple[Any, ...]]:
    with direct() as session:
        return session.execute(
            "SELECT pid, state, query FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
            [connection.settings_dict["NAME"]],
        ).fetchall()


def direct() -> "psycopg.Connection[Any]":
    name = connection.settings_dict["NAME"]
    return psycopg.connect(host=sockets_of_primary(), user="feedsite", dbname=name, autocommit=True)


@pytest.mark.long
def test_many_clients_read_and_write_in_few_sessions(pooled: Pooler, settings: Any) -> None:
    senders, readers = [seen() for _ in range(4)], [seen() for _ in range(CLIENTS)]
    for reader in readers:
        for sender in senders:
            relations.follow(follower=reader, followee=sender)

    def use(reader: User) -> None:
        for number in range(5):
            items.publish(sender=senders[number % len(senders)], content={"text": "words"})
            assert len(read(reader)) > number

    in_threads(*[lambda reader=reader: use(reader) for reader in readers])
    until(lambda: 1 <= len(backends()) <= SESSIONS, 10)  # a closed one takes a moment to end
    for reader in readers:
        assert read(reader) == list(home_ids(reader.pk))[:20]

    settings.POOLED = False
    with pytest.raises(Error, match="unsupported startup parameter"):
        in_threads(*[lambda reader=reader: [read(reader) for _ in range(20)] for reader in readers])


@pytest.mark.long
def test_a_statement_ends_soon_after_its_client_gave_up(pooled: Pooler) -> None:
    with direct() as session:
        session.execute("ALTER ROLE feedsite SET client_connection_check_interval = '1s'")
    postgresql.set_process_timeout(0.5)
    try:
        connection.close()
        began = time.monotonic()
        with pytest.raises(OperationalError):
            fetch("SELECT pg_sleep(60)")
        assert time.monotonic() - began < 10
        assert wait_for(lambda: not any("pg_sleep" in query for _, _, query in backends()), 10)
        connection.close()
        assert wait_for(lambda: not breaker_of("default").is_open, 10)
        assert fetch("SELECT 1") == [(1,)]
    finally:
        postgresql.set_process_timeout(math.inf)
        with direct() as session:
            session.execute("ALTER ROLE feedsite RESET client_connection_check_interval")


@pytest.mark.long
def test_a_long_statement_leaves_its_bound_to_no_one(pooled: Pooler) -> None:
    postgresql.set_process_timeout(0.5)
    try:
        connection.close()
        with postgresql.long_statements():
            fetch("SELECT pg_sleep(2)")
        bound = "SELECT current_setting('statement_timeout')"
        assert set(in_threads(*[lambda: fetch(bound)[0] for _ in range(9)])) == {("0",)}
    finally:
        connection.close()
        postgresql.set_process_timeout(math.inf)


def test_rows_are_read_bit_by_bit(pooled: Pooler) -> None:
    """Outside a transaction the cursor would be in another session."""
    people = {seen().pk for _ in range(300)}
    with transaction.atomic():
        assert {pk for (pk,) in stream("SELECT id FROM accounts_user", size=50)} >= people
    assert set(User.objects.values_list("pk", flat=True).iterator(chunk_size=50)) >= people


def test_migrations_go_past_it(pooled: Pooler) -> None:
    call_command("migrate", interactive=False, verbosity=0)
    recorder = MigrationRecorder(connection)
    (newest,) = MigrationLoader(connection).graph.leaf_nodes("timeline")
    recorder.record_unapplied(*newest)
    try:
        with pytest.raises(CommandError, match="Migrations cannot run through a pooler"):
            call_command("migrate", interactive=False, verbosity=0)
    finally:
        recorder.record_applied(*newest)
