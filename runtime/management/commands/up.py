"""Lists `up`. `manage.py up` runs runtime/up.py without Django."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from runtime import up


class Command(BaseCommand):
    """Runs servers and programs until Ctrl-C."""

    help = up.ABOUT
    requires_system_checks: list[str] = []  # `prepare` runs them

    def add_arguments(self, parser: ArgumentParser) -> None:
        up.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the site in this process, with Django."""
        up.Up(settings.OPTIONS).run(demo=options["demo"])
