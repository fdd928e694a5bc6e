import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.mail.models import Letter
from items.models import CountChange, IdempotencyKey
from items.tasks import forget_idempotency_keys
from media.models import NEVER, MediaFile
from notifications.models import Kind, Notification
from operation.doctor import growth
from operation.doctor.findings import OK, WARNING, Finding
from storage import ids
from tests.support.factories import ItemFactory, UserFactory

pytestmark = pytest.mark.django_db


def found(findings: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_rows_beyond_their_time_are_told_until_their_sweep_runs() -> None:
    assert {name: each.state for name, each in found(growth.old_rows()).items()} == {"old rows": OK}
    item = ItemFactory()
    key = IdempotencyKey.objects.create(sender=item.sender, key="k", fingerprint="0", item=item)
    for days, states in ((2, {"old rows": OK}), (4, {"rows of items_idempotencykey": WARNING})):
        IdempotencyKey.objects.filter(pk=key.pk).update(created_at=timezone.now() - timedelta(days=days))
        assert {name: each.state for name, each in found(growth.old_rows()).items()} == states
    told = found(growth.old_rows())["rows of items_idempotencykey"]
    assert told.text.startswith("1 rows are at least 2 days overdue")
    assert "items.forget_idempotency_keys" in told.todo
    forget_idempotency_keys()
    assert set(found(growth.old_rows())) == {"old rows"}


def test_tables_are_judged_by_their_own_time(settings: Any) -> None:
    """Tables have a time in an id, a state, or a date of "never"."""
    now = timezone.now()
    ann = UserFactory()
    age = settings.NOTIFICATION_LIFE + timedelta(days=3)
    Notification.objects.create(recipient=ann, kind=Kind.WARNING, text="x", position=ids.compose(now - age, 0))
    Letter.objects.create(kind="x", address="x", created_at=now - timedelta(days=10), expires_at=now)
    facts: dict[str, Any] = {"owner_id": ann.pk, "kind": "image", "ext": "jpg", "width": 1, "height": 1, "size": 1}
    MediaFile.objects.create(name="1", use="item", withdrawn_at=NEVER, created_at=now - timedelta(days=99), **facts)
    assert set(found(growth.old_rows())) == {
        "rows of notifications_notification",
        "rows of mail_letter",
    }
    MediaFile.objects.create(name="2", created_at=now - timedelta(days=4), **facts)
    assert "rows of media_mediafile" in found(growth.old_rows())


def test_changes_that_nothing_folds_are_told() -> None:
    item = ItemFactory()
    CountChange.objects.bulk_create(CountChange(item=item, likes=1) for _ in range(3))
    assert set(found(growth.old_rows(staged=4))) == {"old rows"}
    told = found(growth.old_rows(staged=3))["rows of items_countchange"]
    assert (told.state, told.text, "items.fold_counts" in told.todo) == (WARNING, "3 or more are waiting", True)


def test_every_kept_row_has_a_periodic_task() -> None:
    tasks = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} | {"discover.index"}
    assert {each.task for each in growth.retentions()} | set(growth.STAGES.values()) <= tasks


@pytest.mark.django_db(transaction=True)
def test_tables_that_autovacuum_leaves_behind(request: pytest.FixtureRequest) -> None:

    def look(name: str, **thresholds: int) -> Finding:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        return found(growth.tables(**thresholds))[name]

    with connection.cursor() as cursor:
        request.addfinalizer(lambda: connection.cursor().execute("DROP TABLE growing"))
        cursor.execute("CREATE TABLE growing (id int) WITH (autovacuum_enabled = off)")
        cursor.execute("INSERT INTO growing SELECT generate_series(1, 100000)")
        assert look("dead rows", notable_dead=30_000).state == OK
        cursor.execute("ANALYZE growing")
        cursor.execute("DELETE FROM growing WHERE id <= 40000")
        dead = look("dead rows", notable_dead=30_000)
        assert (dead.state, dead.text) == (WARNING, "growing: 40,000 dead, 60,000 live")
        assert "VACUUM (ANALYZE) growing;" in dead.todo
        assert look("dead rows").state == OK, "so few harm nothing"
        cursor.execute("VACUUM growing")
        assert look("dead rows", notable_dead=30_000).state == OK

        assert look("large tables").state == OK
        large = look("large tables", large=50_000)
        assert (large.state, large.text) == (WARNING, "growing: 60,000 rows, autovacuum waits for 12,000 dead ones")
        cursor.execute(large.todo.partition(";")[0])
        assert look("large tables", large=50_000).state == OK
        assert look("transaction ids").state == OK


def test_files_that_nothing_removes(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    assert {each.state for each in growth.old_files()} == {OK}, "no folder yet"
    for name in ("backups", "log"):
        (tmp_path / name).mkdir()
    for number in range(growth.BACKUPS + 1):
        assert found(growth.old_files())["old backups"].state == OK
        (tmp_path / "backups" / f"{number}.zip").write_bytes(b"x")
    assert found(growth.old_files())["old backups"].state == WARNING
    (tmp_path / "log" / "web.log").touch()
    os.truncate(tmp_path / "log" / "web.log", growth.LOG_BYTES + 1)
    assert found(growth.old_files())["log files"].state == WARNING
