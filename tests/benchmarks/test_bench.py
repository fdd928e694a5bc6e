"""Every benchmark runs. The figures of these sizes mean nothing."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from benchmarks.__main__ import KNOWN
from runtime.management.commands.check_all import clean_environ

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.long
def test_benchmarks_run_and_print_their_ratios(tmp_path: Path) -> None:
    results, page = tmp_path / "results.json", tmp_path / "benchmarks.md"
    page.write_text((settings.BASE_DIR / "docs" / "benchmarks.md").read_text())
    command = [sys.executable, "-m", "benchmarks", *KNOWN, "--quick", "--json", str(results), "--page", str(page)]
    run = subprocess.run(
        command,
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path),
        check=False,
        capture_output=True,
        text=True,
        timeout=870,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(results.read_text())["results"]
    assert list(found) == list(KNOWN)
    for name in found:
        assert f"### {name}: " in run.stdout
        assert found[name]["rows"]
        assert page.read_text().count(f"\n### {name}\n") == 1
        assert found[name]["seconds"] >= 0
        assert found[name]["machine"]["postgresql"]
        for ratio in found[name]["ratios"]:
            assert math.isfinite(ratio["value"])
            assert ratio["value"] >= 0 or ratio["name"].startswith("exponent"), ratio
            assert ratio["name"] in run.stdout


def test_an_unknown_name_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "everything"]
    run = subprocess.run(command, cwd=settings.BASE_DIR, check=False, capture_output=True, text=True)
    assert run.returncode == 2
    assert "There is no benchmark everything" in run.stderr
