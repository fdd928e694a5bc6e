"""`up` in the list of commands. `manage.py up` runs runtime/up.py without Django."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from runtime import up


class Command(BaseCommand):
    """Start the servers, bring the database up to date, and run the programs until Ctrl-C."""

    help = up.ABOUT
    requires_system_checks: list[str] = []  # `prepare` has them

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The option of `up`."""
        up.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the site, in a process that has Django in its memory."""
        up.Up(settings.OPTIONS).run(demo=options["demo"])
