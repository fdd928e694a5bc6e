import io
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from operation import gauges
from runtime.embedded import wait_for
from runtime.programs import PROGRAM, default_address, programs, running_programs
from runtime.version import VERSION
from tests.support.clusters import free_ports
from tests.support.factories import ItemFactory
from timeline.models import Delivery

pytestmark = pytest.mark.django_db


def told(*words: str) -> str:
    out = io.StringIO()
    call_command("status", *words, stdout=out)
    return out.getvalue()


@contextmanager
def program(name: str) -> Iterator[int]:
    """A process with a child, in the environment of a program."""
    family = settings.OPTIONS
    definition = next(each for each in programs(family, default_address(family)) if each.name == name)
    variables = definition.environ | {PROGRAM: definition.environ[PROGRAM].rsplit(" ", 1)[0] + f" {settings.DATA_DIR}"}
    with subprocess.Popen(["sh", "-c", "sleep 600 & wait"], env=variables, start_new_session=True) as process:
        try:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            assert wait_for(lambda: bool(children.read_text()), 30)
            yield process.pid
        finally:
            os.killpg(process.pid, 9)


def test_programs_are_named_without_their_children() -> None:
    before = timezone.now()
    with program("web") as web, program("worker") as worker:
        found = running_programs(settings.DATA_DIR)
        assert [(each.name, each.version, each.pid) for each in found] == [
            ("web", VERSION, web),
            ("worker", VERSION, worker),
        ]
        assert all(abs(each.since - before) < timedelta(seconds=60) for each in found)
        assert not running_programs(settings.DATA_DIR / "other")
        assert f"version {VERSION}, process {web}" in told()
    assert "none runs on this machine" in told()


def test_it_says_what_waits_and_the_last_backup(settings: Any, tmp_path: Path) -> None:
    now = timezone.now()
    settings.BACKUP_TO_SECRET = str(tmp_path)
    (tmp_path / "feedsite-20261127T030000Z.backup").write_text("")
    item = ItemFactory()
    Delivery.objects.create(item=item, sender=item.sender, not_before=now - timedelta(minutes=5))
    gauges.observe(now=now)
    found = json.loads(told("--json"))
    assert found["deliveries"] == 1
    assert 290 < found["lag_seconds"] < 400
    assert found["queues"].keys() == {"celery", "outside"}
    assert datetime.fromisoformat(found["beat_at"]) == now
    assert found["backup_at"] == "2026-11-27T03:00:00Z"
    assert found["unknown"] == {}
    assert "the last is of 2026-11-27 03:00:00 UTC" in told()


def test_a_server_that_does_not_answer_is_named(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from celery import current_app

    monkeypatch.setitem(current_app.conf, "broker_read_url", f"redis://127.0.0.1:{free_ports()[0]}/0")
    found = json.loads(told("--json"))
    assert found["queues"] is None
    assert "queues" in found["unknown"]
    assert found["deliveries"] == 0
