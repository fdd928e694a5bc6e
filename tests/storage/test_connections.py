from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import ClassVar

import psycopg
import pytest
from django.conf import settings
from django.db import DataError, OperationalError, connection, transaction

from runtime.embedded import Home, Postgres, wait_for
from storage.connections import fetch, fetch_in_thread, number_parameters
from tests.support.at_once import HERE

pytestmark = pytest.mark.django_db


def test_parameters_are_found_by_name_and_by_place() -> None:
    assert fetch("SELECT %(b)s::int, %(a)s::int, %(b)s::int + 7 %% 4", {"a": 1, "b": 2, "more": 3}) == [(2, 1, 5)]
    assert fetch("SELECT %s::int, %s::text, 'a' LIKE '%%'", [1, "%s"]) == [(1, "%s", True)]
    assert fetch("SELECT 1") == [(1,)]


def test_a_long_statement_is_converted_once() -> None:
    long = f"SELECT %(a)s::int /* {'x' * 10_000} */"
    assert fetch(long, {"a": 1}) == [(1,)]
    before = number_parameters.cache_info()
    assert fetch(long, {"a": 2}) == [(2,)]
    after = number_parameters.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)


@pytest.mark.sessions
def test_a_statement_is_planned_once_a_session() -> None:
    """By default PostgreSQL plans again for each list of fewer than ten ids."""
    query = "SELECT u.id FROM unnest(%(ids)s::bigint[]) AS asked (id) JOIN accounts_user u ON u.id = asked.id"
    for number in range(8):
        assert fetch(query, {"ids": [number]}) == []
    plans = "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = %(statement)s"
    assert fetch(plans, {"statement": number_parameters(query)[0].decode()}) == [(8, 0)]


def test_rows_that_are_fetched_later_are_of_the_callers_transaction() -> None:
    query = "SELECT pg_backend_pid(), pg_current_xact_id()::text, %s::int"
    with fetch_in_thread() as ask:
        one, two = ask(query, [1]), ask(query, [2])
        assert [fetch(query, [0]), one(), two()] == [fetch(query, [number]) for number in range(3)]


def test_what_fails_later_is_an_error_of_django() -> None:
    with fetch_in_thread() as ask, transaction.atomic():
        rows = ask("SELECT 1 / %s::int", [0])
        with pytest.raises(DataError):
            rows()
        transaction.set_rollback(True)


@pytest.mark.sessions
@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_in_transaction", [False, True])
def test_a_statement_that_a_deadlock_ended_is_asked_once_more(is_in_transaction: bool) -> None:
    """A migration locks in the other order. Inside a transaction only the caller can repeat."""
    with session() as migration, session() as observer, ThreadPoolExecutor(1) as thread:
        migration.execute("SET deadlock_timeout = '60s'")
        migration.execute("BEGIN; LOCK TABLE auth_group")
        rows = thread.submit(read_both, is_in_transaction)
        assert wait_for(lambda: observer.execute(WAITS).fetchone() == (1,), 30)
        migration.execute("LOCK TABLE accounts_user; COMMIT")
        if is_in_transaction:
            with pytest.raises(OperationalError, match="deadlock"):
                rows.result(60)
        else:
            assert rows.result(60) == [(0,)]


def read_both(is_in_transaction: bool) -> list[tuple[object, ...]]:
    try:
        with connection.cursor() as cursor:  # the other must wait by then
            cursor.execute("SET deadlock_timeout = '5s'")
        with transaction.atomic() if is_in_transaction else nullcontext():
            return fetch("SELECT count(*) FROM accounts_user, auth_group")
    finally:
        connection.close()


WAITS = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'auth_group'::regclass AND {HERE}"


def session() -> "psycopg.Connection[tuple[object, ...]]":
    parameters = connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}
    return psycopg.connect(**parameters, autocommit=True)


class OverTcp(Postgres):
    settings: ClassVar[dict[str, str]] = Postgres.settings | {"listen_addresses": "127.7.3.1"}


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.skipif(settings.POOLED, reason="the pooler's own sessions")
def test_postgresql_looks_for_clients_whose_machine_is_gone(tmp_path: Path) -> None:
    """Each session asks for it. By default a lost transaction keeps its locks for two hours."""
    home = Home(tmp_path)
    home.make()
    server = OverTcp(home, durable=False)
    server.start()
    try:
        assert wait_for(server.answers, 60), server.last_words()
        there = {"host": "127.7.3.1", "port": 5432, "user": "feedsite", "dbname": "feedsite"}
        with psycopg.connect(**connection.get_connection_params() | there) as session:
            asked = "SELECT name, setting::int FROM pg_settings WHERE name LIKE 'tcp\\_%'"
            assert dict(session.execute(asked).fetchall()) == {
                "tcp_keepalives_idle": 10,
                "tcp_keepalives_interval": 5,
                "tcp_keepalives_count": 3,
                "tcp_user_timeout": 25_000,
            }
    finally:
        server.stop()
