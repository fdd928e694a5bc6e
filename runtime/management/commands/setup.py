"""Lists `setup`. `manage.py setup` runs runtime/setup.py without Django."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runtime import setup


class Command(BaseCommand):
    """Writes the file of variables, and creates role and database."""

    help = setup.ABOUT
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        setup.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError: this process already has settings."""
        raise CommandError("Run `manage.py setup`.")
