"""`check_wheels`: whether every wheel of the locks is built for the machines that the site runs on.

See docs/decisions.md: Three locks, resolved for every machine.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

import manage

PYTHONS = [f"3.{minor}" for minor in range(manage.PYTHONS[0][1], manage.PYTHONS[1][1] + 1)]
OLDEST = "manylinux_{}_{}".format(*manage.GLIBC)
TESTED = "manylinux_2_36"
"""The platform of Debian 12, on which the tests run: their Redis wants a newer one than the site does."""
ABSENT = ("No solution found", "no wheels", "no usable wheels")
"""Words of uv where a wheel is not built; all else is a registry that does not answer."""


TRACES_LOCK = "requirements-traces.lock"
"""The packages that `FEEDSITE_TRACES` needs besides either."""


class Machine(NamedTuple):
    """A lock, and a machine and a Python for which its wheels are looked for."""

    lock: str
    platform: str
    python: str


def machines() -> Iterator[Machine]:
    """All that are looked at."""
    site = (manage.RUNTIME_LOCK.name, manage.SERVER_LOCK.name, TRACES_LOCK)
    platforms = (f"x86_64-{OLDEST}", f"aarch64-{OLDEST}", "aarch64-apple-darwin")
    yield from (Machine(*each) for each in product(site, platforms, PYTHONS))
    yield from (
        Machine(manage.DEV_LOCK.name, f"{each}-{TESTED}", python)
        for each in ("x86_64", "aarch64")
        for python in PYTHONS
    )


class Command(BaseCommand):
    """Resolve the locks for other machines without installing anything; asks the package index for names of files."""

    help = "Whether every wheel of the lock files is built for ARM64, macOS and each Python; installs nothing."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError where a wheel is missing. A registry that does not answer is told in one line."""
        missing = []
        for machine in machines():
            done = resolve(machine)
            if done.returncode == 0:
                continue
            if not any(words in done.stderr for words in ABSENT):
                self.stdout.write(f"skipped: the package index does not answer ({done.stderr.strip().splitlines()[0]})")
                return
            missing.append(f"{machine.lock}, {machine.platform}, Python {machine.python}: {done.stderr.strip()}")
        if missing:
            raise CommandError("\n".join(missing))
        self.stdout.write("Every wheel is there.")


def resolve(machine: Machine) -> "subprocess.CompletedProcess[str]":
    """The outcome of uv, which would install the lock for the machine."""
    with tempfile.TemporaryDirectory() as target:
        command = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--no-config"]
        command += ["--only-binary", ":all:", "--python-platform", machine.platform, "--target", target]
        command += ["--python-version", machine.python, "--requirement", str(settings.BASE_DIR / machine.lock)]
        return subprocess.run(command, capture_output=True, text=True, check=False)
