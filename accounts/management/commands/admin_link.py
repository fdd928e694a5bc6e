"""`admin_link`: a link by which the first administrator is made."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from accounts.joining import first_admin


class Command(BaseCommand):
    """`admin_link`: prints the link for the first administrator."""

    help = "Print a link by which the site's first administrator is made: once, within 24 hours."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whether a site with an administrator is no error."""
        parser.add_argument("--if-wanted", action="store_true", help="Do nothing, in silence, where there is one.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the link. Raises CommandError if there is an administrator."""
        if not first_admin.is_wanted():
            if options["if_wanted"]:
                return
            raise CommandError("There is an administrator already; `manage.py createsuperuser` makes another.")
        path = reverse("first-admin", args=[first_admin.token()])
        self.stdout.write(
            f"This site has no administrator yet. Within 24 hours, this page makes the first one: {origin()}{path}"
        )


def origin() -> str:
    """Where the site answers, as far as the settings say it."""
    name = next(iter(settings.ALLOWED_HOSTS), "*")
    name = "localhost" if name == "*" else name.removeprefix(".")
    return f"https://{name}" if settings.HTTPS else f"http://{name}:{settings.PORT}"
