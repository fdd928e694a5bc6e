"""The machines for which wheels are looked up, and a registry that does not answer, which fails no run."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

import manage
from runtime.management.commands import check_wheels
from runtime.management.commands.check_all import Amount, checks
from runtime.management.commands.check_wheels import Machine, machines, resolve

AMOUNTS: tuple[Amount, ...] = ("fast", "usual", "all")


def test_each_lock_is_resolved_for_each_machine() -> None:
    every = set(machines())
    newest = f"3.{manage.PYTHONS[1][1]}"
    for lock in ("requirements.lock", "requirements-server.lock", "requirements-traces.lock"):
        for platform in ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin"):
            assert {Machine(lock, platform, "3.11"), Machine(lock, platform, newest)} <= every
    assert Machine("requirements-dev.lock", "aarch64-manylinux_2_36", newest) in every


def test_only_the_run_before_a_release_asks_a_registry(tmp_path: Path) -> None:
    every = {amount: {each.name for each in checks(tmp_path, amount=amount, pytest=[])} for amount in AMOUNTS}
    assert {amount for amount in AMOUNTS if "Wheels for other machines (uv)" in every[amount]} == {"all"}


@pytest.mark.slow
def test_a_registry_that_does_not_answer_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    call_command("check_wheels")
    said = capsys.readouterr().out
    assert said.startswith("skipped: the package index does not answer")
    assert said.count("\n") == 1


@pytest.mark.slow
def test_a_wheel_that_is_not_built_is_named(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """blurhash-python has none for Python 3.13, by which this check began."""
    settings.BASE_DIR = tmp_path
    (tmp_path / "requirements.lock").write_text("blurhash-python==1.2.2\n")
    machine = Machine("requirements.lock", "aarch64-manylinux_2_28", "3.13")
    done: subprocess.CompletedProcess[str] = resolve(machine)
    if not any(words in done.stderr for words in check_wheels.ABSENT):
        pytest.skip("the package index does not answer")
    monkeypatch.setattr(check_wheels, "machines", lambda: [machine])
    with pytest.raises(CommandError, match=r"Python 3\.13: .*(?s:.)*blurhash-python"):
        call_command("check_wheels")
