"""Every benchmark runs. The figures of these sizes mean nothing."""

import json
import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings

from benchmarks.__main__ import KNOWN, REAL
from runtime.management.commands.check_all import clean_environ
from tests.support.datasets import as_json, packed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """40 people in a ring, each following the next five."""
    folder = tmp_path / "data"
    folder.mkdir()
    now = datetime.now(UTC)
    people = range(1, 41)
    packed(folder / "users.csv.gz", ["id,name", *(f"{one},author-{one}" for one in people)])
    pairs = [(one, (one + ahead - 1) % 40 + 1) for one in people for ahead in range(1, 6)]
    follows = [
        f"{one},{other},{(now - timedelta(days=5 * place)).isoformat()}" for place, (one, other) in enumerate(pairs)
    ]
    packed(folder / "follows.csv.gz", ["follower_id,followee_id,created_at", *follows])
    posts = [
        {"id": number, "author_id": number % 40 + 1, "text": f"words of topic {number % 7} #topic{number % 7}"}
        | {"created_at": (now - timedelta(hours=1200 - number)).isoformat()}
        for number in range(1, 1201)
    ]
    packed(folder / "posts.jsonl.gz", as_json(posts))
    began = round((now - timedelta(days=2400)).timestamp())
    plays = [f"{number % 40 + 1},{number // 4 + 1},{began + number * 4 * 86_400}" for number in range(600)]
    packed(folder / "interactions.csv.gz", ["user_id,item_id,created_at_unix", *plays])
    return folder


@pytest.mark.long
def test_benchmarks_run_and_print_their_ratios(tmp_path: Path, data: Path) -> None:
    results, page = tmp_path / "results.json", tmp_path / "benchmarks.md"
    page.write_text((settings.BASE_DIR / "docs" / "benchmarks.md").read_text())
    command = [sys.executable, "-m", "benchmarks", *KNOWN, "--quick", "--json", str(results), "--page", str(page)]
    command += ["--data", str(data)]
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
            assert math.isfinite(ratio["value"]), ratio
            assert ratio["name"] in run.stdout


def test_a_benchmark_on_real_data_asks_for_it() -> None:
    command = [sys.executable, "-m", "benchmarks", REAL[0]]
    run = subprocess.run(command, cwd=settings.BASE_DIR, check=False, capture_output=True, text=True)
    assert run.returncode == 2
    assert "--data" in run.stderr


def test_an_unknown_name_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "everything"]
    run = subprocess.run(command, cwd=settings.BASE_DIR, check=False, capture_output=True, text=True)
    assert run.returncode == 2
    assert "There is no benchmark everything" in run.stderr
