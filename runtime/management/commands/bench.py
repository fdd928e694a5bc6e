import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Runs `python -m benchmarks`."""

    help = "Run the benchmarks, on their own servers."
    requires_system_checks: list[str] = []  # the benchmarks run in other processes

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name",
            nargs="*",
            metavar="NAME",
            help="Benchmarks to run. Default: all that take less than half an hour.",
        )
        parser.add_argument("--data", metavar="DIR", help="A data set in the format of `load`.")
        parser.add_argument("--quick", action="store_true", help="Tiny sizes: test that the benchmarks run.")
        parser.add_argument("--json", metavar="FILE", help="Write the results as JSON.")
        parser.add_argument("--page", metavar="FILE", help="Update the figures in this Markdown page.")
        parser.add_argument("--items", metavar="N", help="growth_items: the largest number of items.")
        parser.add_argument("--soak", metavar="SECONDS", help="soak: how long it runs.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the benchmarks in place of this process."""
        command = [sys.executable, "-m", "benchmarks", *options["name"]]
        command += ["--quick"] if options["quick"] else []
        for name in ("data", "json", "page"):
            command += [f"--{name}", str(Path(options[name]).resolve())] if options[name] else []
        for name in ("items", "soak"):
            command += [f"--{name}", options[name]] if options[name] else []
        os.chdir(settings.BASE_DIR)
        os.execv(sys.executable, command)  # noqa: S606 (ourselves)
