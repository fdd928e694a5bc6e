"""`upgrade --to VERSION`: brings the site to another version, and back if that does not work. Without Django.

The tree changes under this process, so it loads nothing later. Each step is a program of its own.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from runtime.options import Options
from runtime.restart import NOBODY, RestartError, restart, systemctl, under_systemd
from runtime.setup import USER
from runtime.up import running_site

ABOUT = "Bring the running site to a version of its repository: VERSION is a tag or commit."
UNITS = Path("/etc/systemd/system")
VERIFY_SECONDS = 90.0
"""For how long the new version may show problems after its start."""
PAGE = "web page"
"""A finding that does not pass: if a page fails twice, the new version is at fault."""
PROGRAMS = ("web", "stream", "grpc")
"""Findings of `doctor` that count whatever their state."""


class UpgradeError(Exception):
    """A step failed. The message says why."""


def main(options: Options, arguments: Sequence[str]) -> None:
    """Run `upgrade --to`. Raises UpgradeError."""
    parser = argparse.ArgumentParser(prog="manage.py upgrade", description=ABOUT)
    parser.add_argument("--to", metavar="VERSION", required=True, help="a tag, for example v0.3.0, or a commit")
    parser.add_argument("--no-backup", action="store_true", help="Make no backup.")
    asked = parser.parse_args(arguments)
    Upgrade(options, lambda line: print(line, flush=True)).run(asked.to, backs_up=not asked.no_backup)


class Upgrade:
    """One upgrade of the site on this machine."""

    def __init__(self, options: Options, told: Callable[[str], None]) -> None:
        self.options = options
        self.told = told
        self.root = options.base_dir
        self.has_units = running_site(options.servers.home) is None and under_systemd()

    def run(self, version: str, *, backs_up: bool) -> None:
        """Upgrade, or go back. Raises UpgradeError."""
        if not self.has_units and running_site(self.options.servers.home) is None:
            raise UpgradeError(NOBODY)
        if self.has_units and os.geteuid():
            raise UpgradeError("Run this as root: systemd runs the programs.")
        self.told("fetch: ask the repository for versions")
        self.git("fetch", "--quiet", "--tags")
        before, wanted = self.git("rev-parse", "HEAD"), self.find(version)
        if changed := self.git("status", "--porcelain", "--untracked-files=no"):
            raise UpgradeError(f"Files of the site were changed. Undo this first (git stash):\n{changed}")
        known = self.problems()
        is_restarted = False
        try:
            self.install(wanted)
            self.manage("upgrade", "--no-restart", *(() if backs_up else ("--no-backup",)))
            is_restarted = True
            self.restart()
            self.verify(known)
        except (UpgradeError, RestartError) as error:
            self.told(f"{error}\nback: install {before[:12]} again")
            self.install(before)
            if is_restarted:
                self.restart()
            raise UpgradeError(
                f"The upgrade to {version} failed: the reason is above. The version before runs. It works with the new "
                "tables too. docs/runbook.md, Downgrade"
            ) from error
        self.told(f"The site runs {version}.")

    def find(self, version: str) -> str:
        """The commit of a version. Raises UpgradeError."""
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{version}^{{commit}}")
        except UpgradeError:
            newest = self.git("tag", "--sort=-version:refname").split()[:5]
            raise UpgradeError(f"There is no version {version}. The newest are: {', '.join(newest)}") from None

    def install(self, commit: str) -> None:
        """Put a version's files in their place: the tree, the packages, the units."""
        self.told(f"install: {commit[:12]} and its packages")
        self.git("checkout", "--quiet", "--detach", commit)
        self.call([*self.python(), "version"], stdout=subprocess.DEVNULL)  # manage.py installs what its lock names
        if self.has_units:
            for unit in (self.root / "deploy/systemd").iterdir():
                shutil.copy(unit, UNITS)
            systemctl("daemon-reload")

    def restart(self) -> None:
        """Restart the programs. Raises RestartError."""
        self.told("restart: one program after another")
        restart(self.options, lambda line: self.told(f"  {line}"))

    def verify(self, known: dict[str, str]) -> None:
        """Wait until `doctor` finds nothing that it did not find before. Raises UpgradeError."""
        self.told("verify: doctor")
        deadline = time.monotonic() + VERIFY_SECONDS
        before: dict[str, str] = {}
        while found := {name: text for name, text in self.problems().items() if name not in known}:
            if time.monotonic() > deadline or PAGE in found.keys() & before.keys():
                raise UpgradeError("\n".join(f"{name}: {text}" for name, text in found.items()))
            before = found
            time.sleep(2)

    def problems(self) -> dict[str, str]:
        """What `doctor` finds. Raises UpgradeError."""
        command = [*self.as_user(), *self.python(), "doctor", "--json"]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
        try:
            found = json.loads(done.stdout)["findings"]
        except ValueError:
            raise UpgradeError(f"doctor failed: {done.stderr.strip()}") from None
        bad = [
            each for each in found if each["state"] == "error" or (each["name"] in PROGRAMS and each["state"] != "ok")
        ]
        return {each["name"]: each["text"] for each in bad}

    # --- Programs
    def manage(self, *words: str) -> None:
        """Run a command of the version on the disk, as the site's user. Raises UpgradeError."""
        self.call([*self.as_user(), *self.python(), *words])

    def python(self) -> list[str]:
        """The start of such a command. Not by the environment's Python, so that manage.py brings that up to date."""
        return [getattr(sys, "_base_executable", sys.executable), str(self.root / "manage.py")]

    def as_user(self) -> list[str]:
        return ["runuser", "-u", USER, "--"] if self.has_units and os.geteuid() == 0 else []

    def call(self, command: list[str], stdout: int | None = None) -> None:
        sys.stdout.flush()
        if subprocess.run(command, cwd=self.root, stdout=stdout, check=False).returncode:  # noqa: S603 (ours)
            raise UpgradeError(f"{' '.join(command)} failed: the reason is above")

    def git(self, *words: str) -> str:
        """Run git in the tree. Raises UpgradeError."""
        command = ["git", *words]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
        if done.returncode:
            raise UpgradeError(f"git {' '.join(words)} failed: {done.stderr.strip()}")
        return done.stdout.strip()
