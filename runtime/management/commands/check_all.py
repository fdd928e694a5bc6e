"""`check_all`: every check and every test, as CI runs them."""

import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

Amount = Literal["fast", "usual", "all"]


class Command(BaseCommand):
    """Run all checks, also after one has failed, and say at the end which did.

    They run with a data folder and an environment of their own: nothing of the site at hand, neither its
    servers nor its settings, takes part.
    """

    help = "Run every check and test. What follows -- goes to pytest."
    requires_system_checks: list[str] = []  # one of the checks below

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options of a short and of a long run, and arguments for pytest."""
        amount = parser.add_mutually_exclusive_group()
        amount.add_argument("--fast", action="store_true", help="Leave out the tests marked slow.")
        amount.add_argument(
            "--all",
            action="store_true",
            help="Before a release: the tests marked long too, every test at its full size, and branch coverage.",
        )
        parser.add_argument("pytest_arguments", nargs="*", metavar="-- PYTEST ARGUMENTS")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run every check, print a table of results, and exit with 1 if one failed."""
        results: list[tuple[str, bool, float]] = []
        with tempfile.TemporaryDirectory(prefix="feedsite-check-") as folder:
            environ = clean_environ(Path(folder))
            amount: Amount = "fast" if options["fast"] else "all" if options["all"] else "usual"
            for name, command, more in checks(Path(folder), amount=amount, pytest=options["pytest_arguments"]):
                print(f"\n=== {name} ===", flush=True)
                began = time.monotonic()
                code = subprocess.run(command, cwd=settings.BASE_DIR, env=environ | more, check=False).returncode
                results.append((name, code == 0, time.monotonic() - began))
        print("\n=== Summary ===", flush=True)
        for name, passed, seconds in results:
            print(f"{'ok' if passed else 'FAILED':>6}  {seconds:6.1f} s  {name}", flush=True)
        failed = [name for name, passed, _ in results if not passed]
        if failed:
            raise CommandError(f"Failed: {', '.join(failed)}.")


MARKS = {"fast": "not slow and not long", "usual": "not long", "all": ""}
"""Which tests a run has; all of them run at their full size only in the last (tests/support/effort.py)."""


def checks(folder: Path, *, amount: Amount, pytest: list[str]) -> list[tuple[str, list[str], dict[str, str]]]:
    """Name, command, and what its environment has besides. `folder` is where the checks may leave files."""
    scripts = Path(sys.executable).parent
    module = [sys.executable, "-m"]
    manage = [sys.executable, "manage.py"]
    # Two more than processors: one worker mostly waits for servers that it starts, and the others now and then.
    workers = ["-n", str(min(6, len(os.sched_getaffinity(0)) + 2))]
    tests = [*module, "pytest", *workers, "-m", MARKS[amount], *pytest]
    https = {"FEEDSITE_HTTPS": "1"}
    more = {"TEST_EVERYTHING": "1"} if amount == "all" else {}
    coverage: list[tuple[str, list[str], dict[str, str]]] = []
    if amount == "all":
        more["COVERAGE_FILE"] = str(folder / "coverage")
        tests += ["-p", "tests.support.measuring"]
        coverage = [
            ("Coverage, put together (coverage)", [*module, "coverage", "combine", "--quiet"], more),
            ("Coverage of branches (coverage)", [*module, "coverage", "report"], more),
        ]
    return [
        ("Format (ruff)", [*module, "ruff", "format", "--check", "."], {}),
        ("Lint (ruff)", [*module, "ruff", "check", "."], {}),
        ("Types (mypy)", [*module, "mypy"], {}),
        ("Floors (import-linter)", [str(scripts / "lint-imports")], {}),
        ("Migrations", [*manage, "makemigrations", "--check", "--dry-run"], {}),
        ("Deployment (check --deploy)", [*manage, "check", "--deploy", "--fail-level", "WARNING"], https),
        ("Tests (pytest)", tests, more),
        *coverage,
    ]


COMPILING = {"PYTHONDONTWRITEBYTECODE"}
"""Without it each of the hundreds of processes that tests start compiles the sources anew."""


def clean_environ(folder: Path) -> dict[str, str]:
    """The environment without this site's settings; the place of the virtual environment stays."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FEEDSITE_") and name not in {"PORT", *COMPILING}
    }
    own = {"FEEDSITE_DATA_DIR": str(folder), "FEEDSITE_ENV_FILE": os.devnull}
    venv = {"FEEDSITE_VENV": os.environ["FEEDSITE_VENV"]} if "FEEDSITE_VENV" in os.environ else {}
    return kept | own | venv
