"""`top` tells what is, of a site and of servers that do not answer, and draws within its terminal."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import translation

from operation import top
from runtime.management.commands.check_all import clean_environ
from storage.connections import feeds_for_tasks
from tests.support.factories import ItemFactory
from timeline.models import Delivery


def rates(before: top.Look, now: top.Look) -> top.Rates:
    return top.Rates(before, now)


@pytest.mark.django_db
def test_a_look_at_a_site(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    item = ItemFactory()
    Delivery.objects.get_or_create(item=item, sender=item.sender)
    found = top.look()
    assert found.silent == {}
    assert found.backlog["pending"] == 1
    assert found.database["sessions"] >= 1
    assert found.redis.keys() == {"feeds", "broker", "plays", "cache"}
    assert found.redis["feeds"].memory > 0
    assert found.queues["celery"] >= 0
    page = top.lines(rates(found, found), 200)
    assert any("1 pending" in line for line in page)


@pytest.mark.django_db
def test_it_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    keys = set(feeds_for_tasks().keys("*"))
    top.look()
    assert set(feeds_for_tasks().keys("*")) == keys
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_servers_that_are_dead_are_told(tmp_path: Path) -> None:
    environ = clean_environ(tmp_path / "var")
    command = [sys.executable, "manage.py", "top", "--interval", "0.2"]
    done = subprocess.run([*command, "--json"], cwd=settings.BASE_DIR, env=environ, check=True, stdout=subprocess.PIPE)
    now = json.loads(done.stdout)["now"]
    assert now["silent"].keys() == {"counts", "postgresql", "broker", "feeds", "plays", "cache", "processes"} - {
        "processes"
    }
    assert not (tmp_path / "var" / "postgres").exists(), "it starts none"
    text = subprocess.run(
        [*command, "--once"], cwd=settings.BASE_DIR, env=environ | {"LANG": "zh_CN.UTF-8"}, check=True, stdout=-1
    ).stdout.decode()
    assert "postgresql" in text
    assert "does not answer" not in text, "in the language of the terminal"


def test_rates_are_of_the_time_between_and_a_restart_is_no_negative_rate() -> None:
    before = top.Look(at=0.0, counts={"requests": 10, "request_seconds": 1.0}, sources={"inbox": 5, "sql": 9})
    now = top.Look(at=2.0, counts={"requests": 30, "request_seconds": 2.0}, sources={"inbox": 25, "sql": 1})
    told = rates(before, now)
    assert told.as_json()["rates"]["requests"] == 10
    assert told.mean("request_seconds", "requests") == 50
    assert told.fastest(before.sources, now.sources) == [("inbox", 10.0)]


@pytest.mark.parametrize("width", [20, 40, 80])
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_no_line_is_wider_than_the_terminal(width: int, language: str) -> None:
    statement = top.Statement("SELECT 关注 " * 40, 3, 1.0, 3.0)
    now = top.Look(at=1.0, statements=[statement], redis={"feeds": top.Redis(1, 1, 1, 1, 1, 1)}, silent={"x": "y" * 99})
    with translation.override(language):
        page = top.lines(rates(now, now), width)
    for line in page:
        assert sum(1 + (letter > "\u2e80") for letter in line) <= width


def test_what_people_wrote_neither_shows_nor_draws() -> None:
    said = top.without_values("INSERT INTO t VALUES ('it''s \x1b[2J secret',\n  7)")
    assert said == "INSERT INTO t VALUES (?, 7)"
    assert top.clean("a\x1b[31mb\u202ec") == "a?[31mb?c"


@pytest.mark.long
def test_q_ends_it_and_the_terminal_is_as_before(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "top", "--interval", "0.3"],
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path / "var"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    drawn = b""
    while b"\x1b[2J" not in drawn:
        drawn += os.read(ours, 65536)
    os.write(ours, b"q")
    while True:
        try:
            drawn += os.read(ours, 65536)
        except OSError:  # its end is closed
            break
    assert process.wait(30) == 0
    assert drawn.rstrip().endswith(b"\x1b[?1049l")
    os.close(ours)


@pytest.mark.slow
def test_a_file_gets_one_page_also_from_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "manage.py", "top", "--interval", "0.3"]
    environ = clean_environ(tmp_path / "var")
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environ, stdin=theirs, capture_output=True, check=True, timeout=120
    )
    os.close(theirs)
    os.close(ours)
    assert b"\x1b" not in done.stdout
    assert done.stdout.count(b"\n") > 5


def test_it_is_a_command() -> None:
    with pytest.raises(SystemExit) as end:
        call_command("top", "--help")
    assert end.value.code == 0
