"""`release VERSION`: the version, the changelog, the tag, the bill of materials and the image, from a clean tree.

See docs/decisions.md: Code written by hand, and why it stays.
"""

import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from packaging.version import InvalidVersion, Version

import manage

UNRELEASED = re.compile(r"^## Unreleased(?: \([^)]*\))?$", re.MULTILINE)
VERSION = re.compile(r'^(version|VERSION) = "[^"]*"$', re.MULTILINE)


class Command(BaseCommand):
    """Make a release. Nothing is pushed: look at the commit and the tag, then push both."""

    help = "Write the version and the changelog, commit, tag, and make the bill of materials and the image."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The version, and whether anything is done."""
        parser.add_argument("version", help="as 0.2.0")
        parser.add_argument("--dry-run", action="store_true", help="Say what would be done, and do nothing.")

    def handle(self, *args: Any, version: str, **options: Any) -> None:
        """Do each step in order. Raises CommandError, before anything is written, where the tree is not ready."""
        root = settings.BASE_DIR
        check(root, version)
        changelog = root / "CHANGELOG.md"
        bill = f"feedsite-{version}.cdx.json"
        steps: list[tuple[str, Callable[[], Any]]] = [
            (f"write {version} into pyproject.toml and runtime/version.py", lambda: write_version(root, version)),
            (f"write {heading(version)!r} over what is unreleased in CHANGELOG.md", lambda: part(changelog, version)),
            (f"commit, and tag v{version}", lambda: commit(root, version)),
            (f"write the bill of materials to {bill}", lambda: bill_of_materials(root, root / bill)),
            (f"build the image feedsite:{version}", lambda: self.build(root, version)),
        ]
        for words, do in steps:
            self.stdout.write(words)
            if not options["dry_run"]:
                do()
        self.stdout.write(
            "Nothing was done." if options["dry_run"] else f"Look at it, then: git push origin HEAD v{version}"
        )

    def build(self, root: Path, version: str) -> None:
        """Build the image where there is a docker that answers; say so otherwise."""
        command = ["docker", "build", "--tag", f"feedsite:{version}", "."]
        if (
            shutil.which("docker")
            and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
        ):
            run(root, *command)
        else:
            self.stdout.write(f"no docker answers here; where one does: {' '.join(command)}")


def run(root: Path, *command: str) -> str:
    """The output of a command. Raises CommandError where it fails."""
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def check(root: Path, version: str) -> None:
    """Raises CommandError unless the tree is committed, and the version is one that follows what is tagged."""
    try:
        asked = Version(version)
    except InvalidVersion as error:
        raise CommandError(f"{version} is no version; one is 0.2.0.") from error
    if changed := run(root, "git", "status", "--porcelain"):
        raise CommandError(f"The tree has changes that are not committed:\n{changed}")
    tags = [tag.removeprefix("v") for tag in run(root, "git", "tag", "--list", "v*").split()]
    if version in tags:
        raise CommandError(f"v{version} is a tag already.")
    if later := [tag for tag in tags if Version(tag) > asked]:
        raise CommandError(f"{version} is older than v{max(later, key=Version)}.")
    if not section((root / "CHANGELOG.md").read_text()):
        raise CommandError("CHANGELOG.md has nothing unreleased.")


def heading(version: str) -> str:
    """The heading of the version's section."""
    return f"## {version} ({datetime.now(UTC):%Y-%m-%d})"


def section(changelog: str) -> str:
    """The unreleased section, without its heading."""
    found = UNRELEASED.search(changelog)
    return changelog[found.end() :].partition("\n## ")[0].strip() if found else ""


def part(changelog: Path, version: str) -> None:
    """Give what is unreleased the version's heading; an empty section of what comes next stands above."""
    text = UNRELEASED.sub(f"## Unreleased\n\n{heading(version)}", changelog.read_text(), count=1)
    changelog.write_text(text)


def write_version(root: Path, version: str) -> None:
    """In both places that a test compares."""
    for path in (root / "pyproject.toml", root / "runtime" / "version.py"):
        path.write_text(VERSION.sub(rf'\1 = "{version}"', path.read_text(), count=1))


def commit(root: Path, version: str) -> None:
    """Commit the version, and tag it with its section of the changelog."""
    said = (root / "CHANGELOG.md").read_text().partition(heading(version))[2].partition("\n## ")[0].strip()
    run(root, "git", "commit", "--all", "--message", f"release: version {version}")
    run(
        root,
        "git",
        "tag",
        "--annotate",
        f"v{version}",
        "--cleanup=verbatim",
        "--message",
        f"Version {version}\n\n{said}\n",
    )


def bill_of_materials(root: Path, path: Path) -> None:
    """Write the packages of an image, as CycloneDX in JSON, from the lock with its hashes."""
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", str(root / manage.SERVER_LOCK.name)]
    run(
        root,
        *command,
        "--pyproject",
        str(root / "pyproject.toml"),
        "--output-format",
        "JSON",
        "--output-file",
        str(path),
    )
