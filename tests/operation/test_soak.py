import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from runtime.management.commands.check_all import clean_environ

SECONDS = float(os.environ.get("TEST_SOAK_SECONDS", "3600"))
MUST_HOLD = (
    "processes that grow",
    "processes that keep files open",
    "tables that outgrow what was written",
    "kinds of keys that grow",
    "folders that grow",
    "errors neither announced nor by a kill",
    "acknowledged writes that are lost",
    "items that were not delivered",
    "kinds of writes without one",
)

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(SECONDS + 1_200)]


def test_nothing_grows_but_what_was_written(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "soak", "--soak", str(SECONDS), "--json", str(results)]
    run = subprocess.run(
        command,
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path),
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS + 1_000,
    )
    print(run.stdout)  # shown on failure: which process, table or key
    assert run.returncode == 0, run.stdout + run.stderr
    ratios = json.loads(results.read_text())["results"]["soak"]["ratios"]
    found = {ratio["name"]: ratio["value"] for ratio in ratios}
    assert {name: found[name] for name in MUST_HOLD} == dict.fromkeys(MUST_HOLD, 0)
    assert found["answers but 2xx / calls"] < 0.05
