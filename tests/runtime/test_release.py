"""A release, in a repository of its own."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError

from runtime.management.commands import release

FILES = ("pyproject.toml", "runtime/version.py", "requirements-server.lock")
CHANGELOG = "# Changelog\n\n## Unreleased (0.2.0)\n- Something new.\n- More.\n\n## 0.1.0\n- The first.\n"


def git(tree: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=tree, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    tree = tmp_path / "tree"
    (tree / "runtime").mkdir(parents=True)
    for name in FILES:
        shutil.copy(settings.BASE_DIR / name, tree / name)
    (tree / "CHANGELOG.md").write_text(CHANGELOG)
    (tree / ".gitignore").write_text("*.cdx.json\n")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.com")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "all")
    git(tree, "tag", "v0.1.0")
    settings.BASE_DIR = tree
    monkeypatch.setattr(release.shutil, "which", lambda name: None)
    return tree


@pytest.mark.long
@pytest.mark.slow
def test_a_release_is_written_committed_and_tagged(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("release", "0.3.0", "--dry-run")
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "tag", "--list") == "v0.1.0"
    assert capsys.readouterr().out.endswith("Nothing was done.\n")

    call_command("release", "0.3.0")
    assert git(tree, "log", "-1", "--format=%s") == "release: version 0.3.0"
    assert git(tree, "status", "--porcelain") == ""
    assert 'version = "0.3.0"' in (tree / "pyproject.toml").read_text()
    assert 'VERSION = "0.3.0"' in (tree / "runtime/version.py").read_text()
    said = (tree / "CHANGELOG.md").read_text()
    assert re.search(r"^## Unreleased\n\n## 0\.3\.0 \(\d{4}-\d\d-\d\d\)\n- Something new\.", said, re.MULTILINE)
    assert "- Something new.\n- More." in git(tree, "tag", "--list", "--format=%(contents)", "v0.3.0")
    assert "no docker answers here" in capsys.readouterr().out
    bill = json.loads((tree / "feedsite-0.3.0.cdx.json").read_text())
    pinned = (tree / "requirements-server.lock").read_text().count("==")
    assert bill["bomFormat"] == "CycloneDX"
    assert len({each["name"] for each in bill["components"]}) > pinned * 0.9
    assert all(each["version"] for each in bill["components"])

    with pytest.raises(CommandError, match=r"v0\.3\.0 is a tag already"):
        call_command("release", "0.3.0")
    with pytest.raises(CommandError, match="nothing unreleased"):
        call_command("release", "0.4.0")


@pytest.mark.parametrize(
    ("version", "line"),
    [("0.0.9", r"0\.0\.9 is older than v0\.1\.0"), ("next", "next is no version"), ("0.1.0", "is a tag already")],
)
def test_a_version_that_cannot_follow_is_refused(tree: Path, version: str, line: str) -> None:
    with pytest.raises(CommandError, match=line):
        call_command("release", version, "--dry-run")


def test_a_tree_with_changes_is_refused(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text(f"{CHANGELOG}\n")
    with pytest.raises(CommandError, match="not committed"):
        call_command("release", "0.3.0")
    assert git(tree, "tag", "--list") == "v0.1.0"


def test_the_changelog_of_the_project_can_be_released() -> None:
    assert release.section((settings.BASE_DIR / "CHANGELOG.md").read_text())
