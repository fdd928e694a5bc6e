"""`manage.py demo`: makes a small made-up community."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from community import demo

FILE = "demo.txt"


class Command(BaseCommand):
    """`demo`: makes a small community."""

    help = "Make a small demo community. Prints its logins and writes them to the data folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--users", type=int, default=60, help="How many users (default 60).")
        parser.add_argument("--if-empty", action="store_true", help="Do nothing if the site has users.")
        parser.add_argument(
            "--no-pictures", action="store_true", help="Make no avatars and pictures. This takes only a second."
        )

        parser.add_argument("--yes", action="store_true", help="Do not ask, also on a public site.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the demo, and store its logins in the data folder. Raises CommandError."""
        if not demo.SMALLEST <= options["users"] <= demo.LARGEST:
            raise CommandError(f"--users must be from {demo.SMALLEST} to {demo.LARGEST}.")
        if settings.HTTPS and not options["yes"]:
            self.confirm()
        path = Path(settings.DATA_DIR) / FILE
        try:
            with transaction.atomic():
                made = demo.make(
                    size=options["users"], has_pictures=not options["no_pictures"], told=self.show_progress
                )
                # Before the commit, so that passwords are never lost.
                write_logins(path, made.logins)
        except demo.NotEmptyError:
            if options["if_empty"]:
                return
            raise CommandError("This site already has users. The demo community needs an empty site.") from None
        except OSError as error:
            raise CommandError(f"The logins cannot be written to {path}: {error.strerror}") from None
        self.stdout.write(
            f"Made a demo community: {made.users} users, {made.follows} follows, "
            f"{made.items} posts, replies and reposts, {made.likes} likes."
        )
        self.stdout.write(path.read_text(), ending="")
        self.stdout.write(f"These logins are in {path}")

    def confirm(self) -> None:
        """Ask before made-up people and an administrator come to a public site. Raises CommandError."""
        if not sys.stdin.isatty():
            raise CommandError(f"{settings.SITE_URL} is public. Add --yes to make its people and an administrator.")
        asked = f"This makes {demo.ADMIN}, an administrator, and made-up people on {settings.SITE_URL}. Type yes: "
        if input(asked) != "yes":
            raise CommandError("Nothing was made.")

    def show_progress(self, line: str) -> None:
        """Show the progress."""
        self.stdout.write(f"{line} ...")
        self.stdout.flush()


def write_logins(path: Path, logins: tuple[demo.Login, ...]) -> None:
    """Write the logins, readable only by the owner."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        for login in logins:
            file.write(f"demo login: {login.username}  password: {login.password}  ({login.role})\n")
    draft.replace(path)
