import json
import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from unittest.mock import patch

import pytest
from django.conf import settings

from benchmarks import processes
from runtime import preloaded, programs
from runtime.environment import read
from runtime.management.commands.check_all import clean_environ
from runtime.options import SMALL_VALUES, Options
from tests.support.clusters import free_ports
from tests.support.effort import some
from tests.support.environments import given
from tests.support.whole_sites import Site

MODULES = "import sys; sys.argv = ['manage.py', 'up']; {}; print(*sys.modules)"
WORKER = "import os; os.environ['CELERY_SKIP_CHECKS'] = '1'; from feedsite.celery import app"
UNUSED = ("grpc", "boto3", "botocore", "PIL", "fido2", "confusable_homoglyphs", "opensearchpy", "tqdm.contrib", "moto")
"""Modules that no program needs at rest."""
OF_PAGES = {"PIL", "fido2"}


def loaded(statement: str, folder: Path) -> set[str]:
    environ = clean_environ(folder) | {"DJANGO_SETTINGS_MODULE": "feedsite.settings"}
    command = [sys.executable, "-c", MODULES.format(statement)]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environ, check=True, stdout=subprocess.PIPE, text=True)
    return set(done.stdout.split())


def test_the_supervisor_has_no_django(tmp_path: Path) -> None:
    found = loaded(
        "import runtime.up; from pathlib import Path; up = runtime.up.Up(runtime.up.options_from_child(Path.cwd()))",
        tmp_path,
    )
    assert "runtime.supervisor" in found
    assert not {name for name in found if name.partition(".")[0] in {"django", "celery", "redis", "psycopg"}}
    assert not {name for name in found if name.startswith(("pydantic", "asyncio", "runtime.options"))}


def test_manage_up_reaches_the_supervisor_without_django(tmp_path: Path) -> None:
    found = loaded(
        "import contextlib, os, manage; os.environ['PORT'] = '1'; stop = contextlib.suppress(BaseException); "
        "stop.__enter__(); __import__('runtime.up'); sys.modules['runtime.up'].Up.run = lambda *a, **k: None; "
        "manage.run_command(['manage.py', 'up'])",
        tmp_path,
    )
    assert not {name for name in found if name.partition(".")[0] == "django"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    some(
        2,
        [
            f"{WORKER}; app.loader.init_worker(); __import__('feedsite.celery').celery.share_memory()",
            "from runtime import preloaded; preloaded.load('feedsite.wsgi:application')",
            "import feedsite.asgi",
        ],
    ),
)
def test_a_program_loads_what_it_needs(statement: str, tmp_path: Path) -> None:
    found = loaded(statement, tmp_path)
    assert "django.apps" in found
    assert found.intersection(UNUSED) == (OF_PAGES if "wsgi" in statement else set())


TASK = re.compile(r'^@task\("([\w.]+)"', re.MULTILINE)


@pytest.mark.slow
def test_a_worker_knows_every_task(tmp_path: Path) -> None:
    """Also those beside their work, which no other module of the worker may import."""
    sources = subprocess.run(["git", "grep", "-l", "@task("], cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True)
    files = [settings.BASE_DIR / name for name in sources.stdout.split() if not name.startswith("tests/")]
    tasks = {name for file in files for name in TASK.findall(file.read_text())}
    assert len(tasks) > 50
    printed = f"{WORKER}; app.loader.init_worker(); print(*app.tasks); import sys; sys.stdout.flush()"
    assert tasks <= loaded(printed, tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("statement", ["import feedsite.asgi", f"{WORKER}; app.loader.init_worker()"])
def test_the_stream_and_a_worker_have_no_admin(statement: str, tmp_path: Path) -> None:
    found = loaded(statement, tmp_path)
    assert "items.actions" in found
    assert not found.intersection({"accounts.admin", "moderation.case_admin", "feedsite.urls"})


# --- A small machine -------------------------------------------------------------------------------------
def test_a_small_machine_sets_what_is_not_set(tmp_path: Path) -> None:
    environ = {"FEEDSITE_SMALL": "yes", "FEEDSITE_WEB_PROCESSES": "3", "FEEDSITE_MEDIA_MEGAPIXELS": " "}
    with patch.dict(os.environ, environ, clear=True):
        found = read(tmp_path)
        assert os.environ["FEEDSITE_SMALL"] == "1", "the keeper of the servers reads it"
        assert os.environ["FEEDSITE_FEEDS_MEMORY"] == "64mb"
    assert (found.web_processes, found.worker_processes, found.media_megapixels) == (3, 1, 12)
    with patch.dict(os.environ, {"FEEDSITE_SMALL": "0"}, clear=True):
        assert read(tmp_path).feeds_memory == "512mb"
        assert "FEEDSITE_FEEDS_MEMORY" not in os.environ


def test_what_a_small_machine_sets_is_allowed() -> None:
    found = given({f"FEEDSITE_{name.upper()}": str(value) for name, value in SMALL_VALUES.items()})
    assert {name: getattr(found, name) for name in SMALL_VALUES} == SMALL_VALUES
    assert SMALL_VALUES.keys() <= Options.model_fields.keys()


# --- Processes -------------------------------------------------------------------------------------------
def test_this_process_has_memory_and_has_used_time() -> None:
    own = processes._look(os.getpid(), "web")
    assert own is not None
    assert own.pss > 2**20
    assert own.seconds > 0
    assert processes._look(2**22 + 1, "web") is None


def test_usage_is_summed_by_kind() -> None:
    found = processes.usage(
        [processes.Process(1, "web", 10, 1.0), processes.Process(2, "web", 5, 0.5), processes.Process(3, "redis", 1, 2)]
    )
    assert list(found.items()) == [
        ("web", processes.ProcessUsage(2, 15, 1.5)),
        ("redis", processes.ProcessUsage(1, 1, 2)),
    ]


def seconds_of_additions() -> float:
    """The processor time of additions that take 15 ms where nothing else runs."""
    begin, total = time.process_time(), 0
    for number in range(400_000):
        total += number
    return time.process_time() - begin


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("more", "most_mb"), [({}, 480), ({"FEEDSITE_SMALL": "1"}, 440)])
def test_an_idle_site_is_small_and_quiet(tmp_path: Path, more: dict[str, str], most_mb: int) -> None:
    """Two web and two worker processes, or a small machine's, without coverage. The processor's speed is measured in
    the same minute, as other users of a machine change it.
    """
    folder = tmp_path / "var"
    two = {"FEEDSITE_WEB_PROCESSES": "2", "FEEDSITE_WORKER_PROCESSES": "2"}
    alone = {"COVERAGE_PROCESS_START": ""}
    site = Site(folder, free_ports()[0], {**(dict.fromkeys(two, "") if more else two), **more, **alone})
    try:
        site.wait_until_up()
        time.sleep(45)
        before = processes.usage(processes.of_site(folder))
        begin, allowed = time.monotonic(), []
        while (passed := time.monotonic() - begin) < 60:
            time.sleep(3)
            allowed.append(seconds_of_additions())
        after = processes.usage(processes.of_site(folder))
    finally:
        site.end(15)
    print(json.dumps(after, indent=1))
    assert {
        "supervisor",
        "loader",
        "keeper",
        "web",
        "stream",
        "worker",
        "outside",
        "beat",
        "postgresql",
        "redis",
    } == after.keys()
    assert sum(each.pss for each in after.values()) < most_mb * 2**20
    spent = {kind: after[kind].seconds - before[kind].seconds for kind in after}
    assert sum(spent.values()) / passed < median(allowed), spent
    if more:
        assert "FEEDSITE_SMALL=1: one process each" in site.printed
        assert after["web"].processes == 2, "granian and one process"


@pytest.mark.parametrize(
    ("words", "is_written"),
    [
        ("Configuration allows spawning up to 33", False),
        ("Workers respawn is configured, but the net.ipv4.tcp_migrate_req sysctl is not", False),
        ("Other", True),
    ],
)
def test_granian_does_not_count_the_doors(words: str, is_written: bool) -> None:
    record = logging.LogRecord("_granian", logging.WARNING, "", 0, f"{words} Python threads", None, None)
    assert preloaded.is_worth_logging(record) == is_written


LARGE_AND_SMALL = """
large = b"x" * (20 << 20)  # glibc would keep freed blocks up to this size from now on
del large
pairs = [(b"x" * (1 << 20), b"x" * (1 << 10)) for _ in range(32)]
small = [few for _many, few in pairs]
del pairs
print(next(line.split()[1] for line in open("/proc/self/smaps_rollup") if line.startswith("Anonymous:")))
"""


def test_a_program_gives_large_freed_blocks_back() -> None:
    """Small blocks between them stay in use."""
    environ = programs.program_environ(given({}))
    command = [sys.executable, "-c", LARGE_AND_SMALL]
    assert int(subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE).stdout) < 24 << 10


def test_an_operator_sets_the_limits_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1048576")
    assert programs.program_environ(given({}))["MALLOC_TRIM_THRESHOLD_"] == "1048576"
