"""`readonly on --why TEXT | off`: the read-only mode."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from accounts.about.actions import change_settings
from accounts.about.site import SECONDS, read


class Command(BaseCommand):
    """Turns the read-only mode on or off, or shows it."""

    help = "Turn read-only mode on or off: members can read but change nothing. Without on or off: show the mode."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("state", choices=["on", "off"], nargs="?")
        parser.add_argument("--why", default="", help="the reason, shown on every page")

    def handle(self, *args: Any, state: str | None, why: str, **options: Any) -> None:
        """Change or show the mode. Raises CommandError."""
        if state == "on" and not why.strip():
            raise CommandError('Give a reason for members: readonly on --why "We move to another server."')
        if state:
            try:
                change_settings(read_only_why=why.strip() if state == "on" else "")
            except ValidationError as error:
                raise CommandError(" ".join(error.messages)) from error
            self.stdout.write(f"This takes effect within {SECONDS:.0f} seconds.")
        now = read().read_only_why
        self.stdout.write(f"The site is read-only: {now}" if now else "The site is not read-only.")
