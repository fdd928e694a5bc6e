import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from runtime.embedded import die_with_parent

Amount = Literal["fast", "usual", "all"]


class Command(BaseCommand):
    """Runs all checks, without this site's servers or settings."""

    help = "Run all checks and tests. Arguments after -- go to pytest."
    requires_system_checks: list[str] = []  # one of the checks below

    def add_arguments(self, parser: ArgumentParser) -> None:
        amount = parser.add_mutually_exclusive_group()
        amount.add_argument("--fast", action="store_true", help="Leave out the tests marked slow.")
        amount.add_argument(
            "--all",
            action="store_true",
            help="Before a release: the tests marked long too, and every test at its full size.",
        )
        parser.add_argument("pytest_arguments", nargs="*", metavar="-- PYTEST ARGUMENTS")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the results. Exit with 1 if one failed."""
        with tempfile.TemporaryDirectory(prefix="feedsite-check-") as folder:
            amount: Amount = "fast" if options["fast"] else "all" if options["all"] else "usual"
            every = checks(amount=amount, pytest=options["pytest_arguments"])
            environ = clean_environ(Path(folder))
            results = run_all(every, environ)
        print("\n=== Summary ===", flush=True)
        for result in results:
            print(f"{'ok' if result.passed else 'FAILED':>6}  {result.seconds:6.1f} s  {result.name}", flush=True)
        failed = [result.name for result in results if not result.passed]
        if failed:
            raise CommandError(f"Failed: {', '.join(failed)}.")


class Check(NamedTuple):
    """A check: a program that reports by its exit code."""

    name: str
    command: list[str]
    more: Mapping[str, str] = MappingProxyType({})
    """Additional environment variables."""
    is_loud: bool = False
    """True to print its output while it runs. Other output is printed at the end."""


class Result(NamedTuple):
    """The outcome of a check."""

    name: str
    passed: bool
    seconds: float


def run_all(every: list[Check], environ: dict[str, str]) -> list[Result]:
    """Run all checks. Quiet ones run beside the tests, which often wait."""
    with ThreadPoolExecutor(1) as beside:
        quiet = [beside.submit(run, check, environ) for check in every if not check.is_loud]
        try:
            loud = [run(check, environ) for check in every if check.is_loud]
        except BaseException:
            beside.shutdown(cancel_futures=True)
            raise
        return [each.result() for each in quiet] + loud


def run(check: Check, environ: dict[str, str]) -> Result:
    """Run a check and print its output."""
    began = time.monotonic()
    heading = f"\n=== {check.name} ==="
    if check.is_loud:
        print(heading, flush=True)
    done = subprocess.run(
        check.command,
        cwd=settings.BASE_DIR,
        env={**environ, **check.more},
        check=False,
        stdout=None if check.is_loud else subprocess.PIPE,
        stderr=None if check.is_loud else subprocess.STDOUT,
        text=True,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    if not check.is_loud:
        print(f"{heading}\n{done.stdout}", end="", flush=True)
    return Result(check.name, done.returncode == 0, time.monotonic() - began)


MARKS = {"fast": "not slow and not long", "usual": "not long", "all": ""}
"""The tests of each amount. Only "all" runs them at full size (tests/support/effort.py)."""


def checks(*, amount: Amount, pytest: list[str]) -> list[Check]:
    """The quick ones, and the tests at the end. `pytest`: more arguments for them."""
    scripts = Path(sys.executable).parent
    module = [sys.executable, "-m"]
    manage = [sys.executable, "manage.py"]
    # One more than processors, because workers often wait for servers. With five on two processors, browser tests take
    # a third more CPU time than with two, and a fifth longer.
    workers = ["-n", str(min(6, len(os.sched_getaffinity(0)) + 1))]
    tests = [*module, "pytest", *workers, "-m", MARKS[amount], *pytest]
    https = {"FEEDSITE_HTTPS": "1"}
    more = {"TEST_EVERYTHING": "1"} if amount == "all" else {}
    return [
        Check("Format (ruff)", [*module, "ruff", "format", "--check", "."]),
        Check("Lint (ruff)", [*module, "ruff", "check", "."]),
        Check("Floors (import-linter)", [str(scripts / "lint-imports")]),
        Check("Migrations", [*manage, "makemigrations", "--check", "--dry-run"]),
        Check("Deployment (check --deploy)", [*manage, "check", "--deploy", "--fail-level", "WARNING"], https),
        Check("Types (mypy)", [*module, "mypy"]),
        Check("Tests (pytest)", tests, more, is_loud=True),
    ]


COMPILING = {"PYTHONDONTWRITEBYTECODE"}
"""Would make each of the hundreds of processes in tests compile the sources again."""
ALLOWING = {"DJANGO_ALLOW_ASYNC_UNSAFE"}
"""Browser tests need it for their own process, and `check --deploy` refuses it."""


def clean_environ(folder: Path) -> dict[str, str]:
    """The environment without this site's settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FEEDSITE_") and name not in {"PORT", *COMPILING, *ALLOWING}
    }
    own = {"FEEDSITE_DATA_DIR": str(folder), "FEEDSITE_ENV_FILE": os.devnull}
    venv = {"FEEDSITE_VENV": os.environ["FEEDSITE_VENV"]} if "FEEDSITE_VENV" in os.environ else {}
    return kept | own | venv
