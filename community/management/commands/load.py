"""`manage.py load DIR`: imports a data set."""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from community.dataset import FILES, Dataset
from community.importing import LoadResult, load, one_line
from community.problems import DatasetError, DatasetRefusedError
from timeline.models import ImportedUser


class Command(BaseCommand):
    """`load DIR`: imports a data set."""

    help = (
        f"Import {', '.join(FILES)} from a folder. If a line is wrong, it imports nothing and lists every wrong line."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dir", type=Path, help="The folder with the files.")
        parser.add_argument(
            "--password", help="Set this password for every imported user. Without it they cannot sign in."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Load the folder. Raises CommandError."""
        begin = time.monotonic()
        if options["password"] == "":
            raise CommandError("The password is empty.")
        loaded = self.load(options)
        record = loaded.record
        counts = f"{record.users:,} users, {record.follows:,} follows, {record.posts:,} posts"
        if loaded.media:
            counts += f", {loaded.media:,} pictures and videos"
        if loaded.is_new:
            self.stdout.write(f"Loaded {counts} in {time.monotonic() - begin:.1f} s.")
        else:
            self.stdout.write(f"Already loaded on {record.created_at:%Y-%m-%d %H:%M} UTC: {counts}.")
        self.print_example_user(record.pk, options["password"])

    def load(self, options: dict[str, Any]) -> LoadResult:
        """Load the data set. Raises CommandError."""
        try:
            dataset = Dataset(options["dir"], quiet=options["verbosity"] == 0)
            return load(dataset, password=options["password"], say=self.say)
        except DatasetRefusedError as error:
            count = len(error.report)
            total = "1 line" if count == 1 else f"{count:,} lines"
            raise CommandError(f"{error}\n{total} cannot be loaded. Nothing was loaded.") from None
        except DatasetError as error:
            raise CommandError(f"{error}. Nothing was loaded.") from None
        except DatabaseError as error:
            raise CommandError(f"PostgreSQL refused: {one_line(error)}. Nothing was loaded.") from error
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}. Nothing was loaded.") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped. Nothing was loaded. Run it again.", returncode=130) from None

    def say(self, message: str) -> None:
        """Print a line and flush."""
        self.stdout.write(message)
        self.stdout.flush()

    def print_example_user(self, record_id: int, password: str | None) -> None:
        """Name the user with the most followees."""
        busiest = (
            ImportedUser.objects.filter(source=record_id)
            .select_related("user")
            .order_by("-user__following_count", "user_id")
            .first()
        )
        if busiest:
            user = busiest.user
            how = "log in as" if user.has_usable_password() else "set a password (--password) and log in as"
            self.stdout.write(f"Most followees: {how} {user.username} ({user.following_count:,}).")
