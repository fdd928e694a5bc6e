"""Lists `restart`. `manage.py restart` runs runtime/restart.py without Django."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runtime import restart


class Command(BaseCommand):
    """Restarts the programs."""

    help = restart.ABOUT
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError: it needs no Django."""
        raise CommandError("Run `manage.py restart`.")
