"""`prepare`: database and static files of this version, before the programs start."""

import io
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    """All that `up` needs Django for; it ends before the programs begin."""

    help = "Bring database and static files up to this version, as `up` does before it starts the programs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The option to fill an empty database."""
        parser.add_argument("--demo", action="store_true", help="Fill an empty database with demo users.")

    def handle(self, *args: Any, demo: bool, **options: Any) -> None:
        """Migrate, collect the static files, and write the lines that tell how to come in: the logins that were made
        now, or a link for the first administrator.
        """
        call_command("await_servers")
        self.stdout.write("migrating the database ...")
        self.stdout.flush()
        call_command("migrate", interactive=False, verbosity=0)
        try:
            call_command("collectstatic", interactive=False, verbosity=0)
        except OSError as error:
            raise CommandError(
                f"Static files cannot be written to {settings.STATIC_ROOT}: {error.strerror}."
            ) from error
        words = io.StringIO()
        if demo:
            if not get_user_model().objects.exists():
                self.stdout.write("making the demo community ...")
                self.stdout.flush()
            call_command("demo", "--if-empty", stdout=words)
        call_command("admin_link", "--if-wanted", stdout=words)
        logins = settings.DATA_DIR / "demo.txt"
        if demo and logins.exists() and not words.getvalue():
            words.write(f"The demo logins are in {logins}\n")
        self.stdout.write(f"\n{words.getvalue()}", ending="")
