"""`check_all`: every check and every test, as CI runs them."""

import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    """Run all checks, also after one has failed, and say at the end which did.

    They run with a data folder and an environment of their own: nothing of the site at hand, neither its
    servers nor its settings, takes part.
    """

    help = "Run every check and test. What follows -- goes to pytest."
    requires_system_checks: list[str] = []  # one of the checks below

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The option of a short run, and arguments for pytest."""
        parser.add_argument("--fast", action="store_true", help="Leave out the tests marked slow.")
        parser.add_argument("pytest_arguments", nargs="*", metavar="-- PYTEST ARGUMENTS")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run every check, print a table of results, and exit with 1 if one failed."""
        results: list[tuple[str, bool, float]] = []
        with tempfile.TemporaryDirectory(prefix="feedsite-check-") as folder:
            environ = clean_environ(Path(folder))
            for name, command, more in checks(fast=options["fast"], pytest=options["pytest_arguments"]):
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


def checks(*, fast: bool, pytest: list[str]) -> list[tuple[str, list[str], dict[str, str]]]:
    """Name, command, and what its environment has besides."""
    scripts = Path(sys.executable).parent
    module = [sys.executable, "-m"]
    manage = [sys.executable, "manage.py"]
    # One more than processors: some tests wait for a time that passes, or for servers.
    workers = ["-n", str(min(4, len(os.sched_getaffinity(0)) + 1)), "--dist", "loadgroup"]
    slow = ["-m", "not slow"] if fast else []
    https = {"FEEDSITE_HTTPS": "1"}
    return [
        ("Format (ruff)", [*module, "ruff", "format", "--check", "."], {}),
        ("Lint (ruff)", [*module, "ruff", "check", "."], {}),
        ("Types (mypy)", [*module, "mypy"], {}),
        ("Floors (import-linter)", [str(scripts / "lint-imports")], {}),
        ("Migrations", [*manage, "makemigrations", "--check", "--dry-run"], {}),
        ("Deployment (check --deploy)", [*manage, "check", "--deploy", "--fail-level", "WARNING"], https),
        ("Tests (pytest)", [*module, "pytest", *workers, *slow, *pytest], {}),
    ]


def clean_environ(folder: Path) -> dict[str, str]:
    """The environment without this site's settings; the place of the virtual environment stays."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FEEDSITE_") and name != "PORT"}
    own = {"FEEDSITE_DATA_DIR": str(folder), "FEEDSITE_ENV_FILE": os.devnull}
    venv = {"FEEDSITE_VENV": os.environ["FEEDSITE_VENV"]} if "FEEDSITE_VENV" in os.environ else {}
    return kept | own | venv
