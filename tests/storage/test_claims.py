"""The claims of long work, with imports as rows."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from relations.importing import run
from relations.models import CsvImport
from storage import claims
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

LONG_AGO = timedelta(minutes=5)


def row(**fields: Any) -> CsvImport:
    return CsvImport.objects.create(user=UserFactory(), kind="follows", total=1, **fields)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sent: list[int] = []
    monkeypatch.setattr(run, "delay", lambda pk, turn: sent.append(pk) is None)
    return sent


def test_a_row_is_of_one_worker_until_that_is_taken_for_dead() -> None:
    one = row()
    assert one.claim() is True
    assert one.claim() is False
    CsvImport.objects.update(tried_at=Now() - 2 * claims.CLAIM_LIFE)
    assert one.claim() is True
    one.release()
    assert one.claim() is True
    one.refresh_from_db()
    assert one.attempts == 3


def test_a_row_that_is_released_was_at_work_of_late() -> None:
    one = row(created_at=Now() - LONG_AGO)
    assert one.claim()
    one.release()
    assert CsvImport.objects.filter(tried_at__gt=Now() - 2 * claims.CLAIM_LIFE).exists()


def test_tasks_for_one_turn_take_the_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep repeats a task that still waits. Each copy went on by one more task, for ever."""
    queue: list[str] = []
    monkeypatch.setattr(run, "delay", lambda pk, turn: queue.append(turn) is None)
    one = row(created_at=Now() - LONG_AGO)
    claims.enqueue_turn(run, CsvImport, one.pk)
    taken = []
    for _ in range(3):
        for _ in range(2):
            claims.sweep(CsvImport, run)
        turns, queue[:] = queue.copy(), []
        assert len(turns) == 3
        for turn in turns:
            taken.append(one.claim(turn))
            if taken[-1]:
                one.release()
                claims.enqueue_turn(run, CsvImport, one.pk)
    assert taken == [True, False, False] * 3


def test_a_finished_row_is_never_claimed() -> None:
    assert row(finished_at=Now()).claim() is False


def test_rows_without_a_worker_are_sent_again(sent: list[int]) -> None:
    lost, dead, living, new, done = row(), row(), row(), row(), row(finished_at=Now())
    CsvImport.objects.exclude(pk=new.pk).update(created_at=Now() - LONG_AGO)
    CsvImport.objects.filter(pk=dead.pk).update(tried_at=Now() - 2 * claims.CLAIM_LIFE)
    assert living.claim()
    assert claims.sweep(CsvImport, run) == 2
    assert sent == [lost.pk, dead.pk]
    assert CsvImport.objects.filter(pk=done.pk).exists()


def test_a_sweep_ends_where_the_broker_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(run, "delay", lambda pk, turn: bool(asked.append(pk)))
    for _ in range(2):
        row()
    CsvImport.objects.update(created_at=Now() - LONG_AGO)
    claims.sweep(CsvImport, run)
    assert len(asked) == 1


def test_old_rows_are_forgotten(sent: list[int]) -> None:
    kept = row(finished_at=Now())
    row(finished_at=Now() - 2 * claims.KEPT)
    claims.sweep(CsvImport, run)
    assert list(CsvImport.objects.values_list("pk", flat=True)) == [kept.pk]
    assert sent == []
