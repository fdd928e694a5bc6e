import json
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from runtime.programs import NAMES, default_address, mark_program, programs, programs_of_up


class Command(BaseCommand):
    """Runs one program of the site. It replaces this process: signals and exit code are its own."""

    help = "Run one program of the site (web, stream, grpc or worker) with the settings of this environment."
    requires_system_checks: list[str] = []  # the program has its own

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the name."""
        parser.add_argument("name", choices=NAMES, nargs="?", help="without a name: print the programs of `up` as JSON")

    def handle(self, *args: Any, name: str | None, **options: Any) -> None:
        """Run the program. Without a name, print the programs of `up` as JSON."""
        family = settings.OPTIONS
        if name is None:
            self.stdout.write(json.dumps(programs_of_up(family, default_address(family))))
            return
        found = {each.name: each for each in programs(family, default_address(family))}
        if name not in found:
            self.stdout.write("gRPC is off: FEEDSITE_GRPC_PORT is not set.")
            return
        call_command("check_key")
        settings.SERVERS.home.make()
        mark_program(settings.SERVERS.home)
        os.chdir(settings.BASE_DIR)
        os.execve(sys.executable, [sys.executable, "-m", *found[name].command], found[name].environ)  # noqa: S606 (ours)
