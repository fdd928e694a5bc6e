"""manage.py before its environment exists. No package is downloaded: pip is told to look nowhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

LOCKS = ("requirements.lock", "requirements-dev.lock")
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with manage.py and empty locks, which pip installs at once."""
    tree = tmp_path / "tree"
    tree.mkdir()
    shutil.copy(settings.BASE_DIR / "manage.py", tree)
    for name in LOCKS:
        (tree / name).write_text("# nothing\n")
    return tree


def manage(tree: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FEEDSITE_", "DJANGO_"))}
    environ |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull} | more
    command = [BASE_PYTHON, str(tree / "manage.py"), *(arguments or ["version"])]
    return subprocess.run(command, env=environ, check=False, capture_output=True, text=True)


def ran_inside(result: subprocess.CompletedProcess[str]) -> bool:
    """These trees hold no Django: the environment was entered when that is what is missing."""
    return "No module named 'django'" in result.stderr


def installations(result: subprocess.CompletedProcess[str]) -> int:
    return result.stderr.count("feedsite: installing")


@pytest.mark.long
def test_environment_is_made_once_and_follows_its_locks(tree: Path) -> None:
    first = manage(tree)
    assert ran_inside(first), first.stderr
    assert installations(first) == 1
    assert installations(manage(tree)) == 0

    # A development environment serves the runtime too; a runtime one does not serve development.
    assert installations(manage(tree, "check_all")) == 1
    assert installations(manage(tree)) == 0

    # A changed lock is installed again into the same environment.
    (tree / ".venv" / "witness").touch()
    (tree / LOCKS[0]).write_text("# nothing else\n")
    assert installations(manage(tree)) == 1
    assert (tree / ".venv" / "witness").exists()

    # An interrupted or moved one is made anew.
    stamp = tree / ".venv" / "feedsite.json"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"locks": {}}))
    assert installations(manage(tree)) == 1
    assert not (tree / ".venv" / "witness").exists()
    moved = tree.rename(tree.with_name("moved tree"))
    assert ran_inside(again := manage(moved))
    assert installations(again) == 1


@pytest.mark.slow
def test_failed_installation_is_one_line_after_pips_own(tree: Path) -> None:
    (tree / LOCKS[0]).write_text("no-such-thing==1.0 --hash=sha256:" + "0" * 64 + "\n")
    result = manage(tree)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("feedsite: requirements.lock could not be installed into")
    assert "Traceback" not in result.stderr


def test_another_environment_is_left_alone(tree: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").touch()
    result = manage(tree, FEEDSITE_VENV=str(mine))
    assert result.returncode == 1
    assert "is not an environment of this site; it is left alone." in result.stderr
    assert (mine / "thesis.txt").exists()


def test_missing_venv_module_is_one_line(tree: Path, tmp_path: Path) -> None:
    """As on Debian without python3-venv, where `ensurepip` is what is missing."""
    blocker = tmp_path / "blocker"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'ensurepip' else find(name, *more)\n"
    )
    result = manage(tree, PYTHONPATH=str(blocker))
    assert result.returncode == 1
    assert result.stderr == "feedsite needs Python's venv module (Debian: apt install python3-venv).\n"


def test_development_lock_holds_the_runtime_lock() -> None:
    runtime, development = (
        {line.split()[0] for line in (settings.BASE_DIR / name).read_text().splitlines() if "==" in line}
        for name in LOCKS
    )
    assert runtime <= development


@pytest.mark.parametrize("name", LOCKS)
def test_locks_name_no_host(name: str) -> None:
    text = (settings.BASE_DIR / name).read_text()
    assert "://" not in text
    assert "--index" not in text
