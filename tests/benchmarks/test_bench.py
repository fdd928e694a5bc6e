"""That every benchmark runs. What it measures at these sizes means nothing, and is not looked at."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from benchmarks.__main__ import NAMES
from feedsite.management.commands.check_all import clean_environ

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("embedded")]


def test_every_benchmark_runs_and_prints_its_ratios(tmp_path: Path) -> None:
    results, page = tmp_path / "results.json", tmp_path / "benchmarks.md"
    page.write_text((settings.BASE_DIR / "docs" / "benchmarks.md").read_text())
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", str(results), "--page", str(page)]
    run = subprocess.run(
        command,
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path),
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(results.read_text())["results"]
    assert list(found) == list(NAMES)
    for name in NAMES:
        assert f"### {name}: " in run.stdout
        assert found[name]["rows"]
        assert f"### {name}: " in page.read_text()
        for ratio in found[name]["ratios"]:
            assert ratio["value"] > 0
            assert ratio["name"] in run.stdout


def test_an_unknown_name_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "everything"]
    run = subprocess.run(command, cwd=settings.BASE_DIR, check=False, capture_output=True, text=True)
    assert run.returncode == 2
    assert "There is no benchmark everything" in run.stderr
