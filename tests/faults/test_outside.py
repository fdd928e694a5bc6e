"""Hosts that hang, drip, answer just in time or send bombs fill the lane, and archives beside them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from runtime.management.commands.check_all import clean_environ

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_fault_strangers_fill_the_lane(tmp_path: Path) -> None:
    """Nothing of the site's own is lost, the lane's memory stays bounded, and it becomes empty. Times are told by the
    benchmark alone.
    """
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "outside", "--json", str(results)]
    run = subprocess.run(
        command, cwd=settings.BASE_DIR, env=clean_environ(tmp_path), check=False, capture_output=True, text=True
    )
    assert results.exists(), run.stdout + run.stderr  # it fails if an inbox lacks a post, or the lane stays full
    report = json.loads(results.read_text())["results"]["outside"]
    kinds = {"a post to all followers", "a letter", "a scheduled post", "the end of a poll", "a live start"}
    assert {row[0] for row in report["rows"]} == kinds
    (memory,) = [ratio for ratio in report["ratios"] if ratio["name"].startswith("MB of the largest process")]
    assert memory["is_met"], memory
