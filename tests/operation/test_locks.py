"""A session of PostgreSQL that has a lock for which others wait: what doctor, metrics and pages say."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from operation import gauges, locks
from operation.doctor import examination, postgresql
from operation.doctor.findings import ERROR, OK, WARNING
from runtime import metrics
from runtime.embedded import wait_for
from storage.connections import fetch
from storage.postgresql import base, statement_timeout
from tests.support.factories import UserFactory
from tests.support.streams import database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sessions]


@contextmanager
def session(name: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url(), application_name=name) as opened:
        yield opened
        with suppress(psycopg.OperationalError):  # it was ended
            opened.rollback()


@contextmanager
def waiting(pool: ThreadPoolExecutor, *statements: tuple[str, str]) -> Iterator[list[Future[Any]]]:
    """Sessions, by name, that wait with a statement. They end with those that they wait for."""

    def wait(name: str, statement: str) -> None:
        with session(name) as own:
            own.execute(statement.encode())

    yield [pool.submit(wait, *each) for each in statements]


def until_waited(count: int) -> list[locks.LockHolder]:
    query = """
        SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE datname = current_database() AND NOT granted AND waitstart < clock_timestamp() - interval '1.1 s'
    """
    assert wait_for(lambda: fetch(query) == [(count,)], 30)
    return locks.holders()


def test_doctor_names_who_has_a_lock_and_prints_the_line_that_ends_it() -> None:
    assert [finding.state for finding in postgresql.locks()] == [OK]
    user = UserFactory()
    with ThreadPoolExecutor(3) as pool, session("psql") as holder:
        holder.execute("UPDATE accounts_user SET display_name = 'Secret ''name' WHERE id = %s", [user.pk])
        rest = f"UPDATE accounts_user SET display_name = 'x' WHERE id = {user.pk}"
        with waiting(pool, ("feedsite web", rest), ("feedsite web", rest), ("feedsite worker", rest)) as waiters:
            (found,) = until_waited(3)
            (finding,) = postgresql.locks()
            assert found.pid == holder.info.backend_pid
            assert finding.state == ERROR
            for part in (
                f"session {found.pid} (psql of feedsite from this machine, idle in transaction, since 0:00:0",
                "has locks for which ",
                "2 feedsite web",
                "1 feedsite worker",
                " wait, for 0:00:0",
                "at accounts_user",
                "Its statement: UPDATE accounts_user SET display_name = '…' WHERE id = ",
            ):
                assert part in finding.text, finding.text
            assert "Secret" not in finding.text
            assert f'psql --command "SELECT pg_terminate_backend({found.pid})"' in finding.todo
            fetch(f"SELECT pg_terminate_backend({found.pid})")  # as the line says
            assert [each.result(30) for each in waiters] == [None] * 3
    assert [finding.state for finding in postgresql.locks()] == [OK]


def test_doctor_names_an_idle_session_before_anybody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a quiet site the one request that waited has its 503 when somebody runs `doctor`."""
    user = UserFactory()
    role = "feedsite_of_a_lock"
    with session("report") as reader, session("psql") as holder:
        reader.execute("SELECT count(*) FROM accounts_user")  # readers stop nobody
        holder.execute("UPDATE accounts_user SET display_name = 'Secret' WHERE id = %s", [user.pk])
        assert [finding.state for finding in postgresql.locks()] == [OK], "its next statement may come at once"
        monkeypatch.setattr(locks, "IDLE_SECONDS", 0)
        (finding,) = postgresql.locks()
        assert finding.state == WARNING
        pid = holder.info.backend_pid
        for part in (f"session {pid} (psql of ", "idle in transaction", "at accounts_user, and nobody waits now", "…"):
            assert part in finding.text, finding.text
        assert "Secret" not in finding.text
        assert f"SELECT pg_terminate_backend({pid})" in finding.todo
        holder.rollback()
        reader.rollback()
        holder.execute("LOCK TABLE accounts_user")
        with psycopg.connect(database_url(), autocommit=True) as low:
            low.execute(f"CREATE ROLE {role}".encode())
            try:
                low.execute(f"SET ROLE {role}".encode())
                rows = low.execute(locks.IDLE.replace("%%", "%").replace("%(idle)s", "0").encode()).fetchall()
            finally:
                low.execute(f"RESET ROLE; DROP ROLE {role}".encode())
        assert [(row[0], row[5]) for row in rows] == [(pid, None)], "another role's is hidden, but told"


def test_of_a_chain_the_first_session_is_named() -> None:
    """A migration that waits for a long reader blocks all later readers, and is not to be ended first."""
    with ThreadPoolExecutor(2) as pool, session("report") as reader:
        reader.execute("SELECT count(*) FROM accounts_user")
        with waiting(pool, ("feedsite migrate", "LOCK TABLE accounts_user")) as migration:
            until_waited(1)
            with waiting(pool, ("feedsite web", "SELECT count(*) FROM accounts_user")) as web:
                (found,) = until_waited(2)
                reader.rollback()
                assert [each.result(30) for each in (*migration, *web)] == [None] * 2
    assert (found.application, found.waiters, found.tables) == (
        "report",
        ["feedsite migrate", "feedsite web"],
        ["accounts_user"],
    )


def test_a_session_of_another_role_hides_its_statement() -> None:
    role = "feedsite_of_another_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {role} LOGIN IN ROLE pg_read_all_data")
    try:
        with psycopg.connect(database_url()) as holder, ThreadPoolExecutor(1) as pool:
            holder.execute("LOCK TABLE accounts_user")
            with waiting(pool, ("feedsite web", "SELECT count(*) FROM accounts_user")) as waiters:
                until_waited(1)
                with psycopg.connect(database_url(), autocommit=True) as low:
                    low.execute(f"SET ROLE {role}".encode())
                    (row,) = low.execute(
                        locks.HOLDERS.replace("%(waited)s", "1").encode()  # as a role that may not see it
                    ).fetchall()
                pid = holder.info.backend_pid
                holder.rollback()
                waiters[0].result(30)
        found = locks.LockHolder._make(row)
        assert (found.pid, found.age) == (pid, None)
        assert found.seconds >= 1, "for as long as others wait"
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP ROLE {role}")


@pytest.mark.long
def test_the_other_checks_say_that_they_wait_for_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is sent to a server that answers."""
    monkeypatch.setattr(base, "LOCK_SECONDS", 0.3)
    nowhere = "http://127.0.0.1:1"
    with session("psql") as holder:
        holder.execute("LOCK TABLE accounts_policy, mail_letter, django_migrations")
        connection.close()
        with statement_timeout(examination.STATEMENT_SECONDS):
            result = examination.examine(now=timezone.now(), web=nowhere, stream=nowhere, grpc_place="")
    connection.close()
    (told,) = [finding for finding in result if "waits for a lock" in finding.text]
    assert told.name == "postgresql"
    assert "so these were not checked: " in told.text
    assert "work, mail" in told.text
    assert told.todo == "End the session that has it: docs/runbook.md, A lock in PostgreSQL."
    assert not any("does not answer (Operational" in finding.text for finding in result)


def shown(name: str) -> float:
    return next(value for found, _labels, value in metrics.samples() if found == name)


@pytest.mark.long
def test_the_gauge_is_measured_while_a_table_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise workers would count as silent, and somebody restarted them."""
    monkeypatch.setattr(gauges, "LOCK_SECONDS", 1)
    gauges.observe(now=timezone.now())
    assert shown("feedsite_lock_seconds") == 0
    with ThreadPoolExecutor(1) as pool, session("psql") as holder:
        holder.execute("LOCK TABLE mail_letter")
        with waiting(pool, ("feedsite web", "SELECT count(*) FROM mail_letter")) as waiters:
            until_waited(1)
            now = timezone.now()
            gauges.observe(now=now)
            assert shown("feedsite_lock_seconds") > 1
            assert shown("feedsite_sampled_seconds") == pytest.approx(now.timestamp())
            holder.rollback()
            waiters[0].result(30)
    gauges.observe(now=timezone.now())
    assert shown("feedsite_lock_seconds") == 0


# --- Pages that wait ---------------------------------------------------------------------------------------
@pytest.fixture
def impatient() -> Iterator[None]:
    connection.close()
    with statement_timeout(1.0):
        yield
    connection.close()


def test_pages_that_waited_for_a_lock_say_so(impatient: None, caplog: pytest.LogCaptureFixture) -> None:
    user = UserFactory()
    client = Client(raise_request_exception=False)
    client.force_login(user)
    assert client.get("/settings/devices").status_code == 200
    with session("psql") as holder:
        holder.execute("LOCK TABLE accounts_user")
        page = client.get("/settings/devices")
        call = client.get("/api/v1/timeline/home")
        app = client.get("/api/v1/accounts/verify_credentials")
    assert (page.status_code, call.status_code) == (503, 503)
    assert page["Retry-After"]
    assert "waited too long for another change" in page.content.decode()
    assert "等待另一项更改" in page.content.decode()
    assert call.json()["detail"].startswith("This waited too long for another change")
    assert app.status_code in (401, 503)
    assert "it waited for a lock in PostgreSQL. `doctor` says who has it" in caplog.text


def test_a_bounded_statement_says_that_it_waited_rather_than_that_it_took_long(impatient: None) -> None:
    with session("psql") as holder:
        holder.execute("LOCK TABLE accounts_user")
        with pytest.raises(OperationalError, match="lock timeout"):
            User.objects.first()
    with pytest.raises(OperationalError, match="statement timeout"):
        fetch("SELECT pg_sleep(3)")


def test_programs_name_their_sessions() -> None:
    from runtime.programs import ProgramAddress, programs

    for each in programs(settings.OPTIONS, ProgramAddress("127.0.0.1", 1, 2, 3)):
        assert each.environ["PGAPPNAME"] == f"feedsite {each.name}"
