"""`manage.py load DIR`: imports a data set."""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from community.dataset import FILES, Dataset
from community.importing import Loaded, load, one_line
from community.naming import Naming
from community.problems import DatasetError, RefusedError, reporting
from timeline.models import ImportedUser


class Command(BaseCommand):
    """`load DIR`: imports a data set."""

    help = (
        f"Import {', '.join(FILES)} of a folder: everything, or nothing where lines are wrong, all of which are told."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("dir", type=Path, help="The folder that holds the files.")
        parser.add_argument(
            "--password", help="Set this password for every imported user; without it none can sign in."
        )
        parser.add_argument(
            "--names",
            choices=["keep", "map"],
            default="keep",
            help="keep: names that this site does not permit are refused. map: permitted names are made of them.",
        )
        parser.add_argument(
            "--names-file", type=Path, help="With --names map: the CSV file that says which name was made of which."
        )
        parser.add_argument("--report", type=Path, help="Write every line that cannot be loaded to this CSV file.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Load the folder. Raises CommandError if a line is wrong, and loads nothing."""
        begin = time.monotonic()
        if options["password"] == "":
            raise CommandError("The password is empty.")
        if options["names_file"] and options["names"] != "map":
            raise CommandError("--names-file goes with --names map.")
        if options["names_file"] and not options["names_file"].absolute().parent.is_dir():
            raise CommandError(f"{options['names_file']}: its folder is not there.")
        loaded = self.load(options)
        record = loaded.record
        counts = f"{record.users:,} users, {record.follows:,} follows, {record.posts:,} posts"
        if loaded.media:
            counts += f", {loaded.media:,} pictures and videos"
        if loaded.is_new:
            self.stdout.write(f"Loaded {counts} in {time.monotonic() - begin:.1f} s.")
        else:
            self.stdout.write(f"All of it was loaded on {record.created_at:%Y-%m-%d %H:%M} UTC: {counts}.")
        self.suggest(record.pk, options["password"])

    def load(self, options: dict[str, Any]) -> Loaded:
        """Load the data set. Raises CommandError for every failure."""
        naming = Naming(options["names"] == "map", options["names_file"])
        try:
            with reporting(options["report"]) as report:
                dataset = Dataset(options["dir"], quiet=options["verbosity"] == 0)
                return load(dataset, password=options["password"], say=self.say, naming=naming, report=report)
        except RefusedError as error:
            count = len(error.report)
            total = "1 line" if count == 1 else f"{count:,} lines"
            raise CommandError(f"{error}\n{total} cannot be loaded; nothing was loaded.") from None
        except DatasetError as error:
            raise CommandError(f"{error}; nothing was loaded.") from None
        except DatabaseError as error:
            raise CommandError(f"The database refused: {one_line(error)}; nothing was loaded.") from error
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}; nothing was loaded.") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped; nothing is half-loaded. Run it again.", returncode=130) from None

    def say(self, message: str) -> None:
        """Print a line and flush."""
        self.stdout.write(message)
        self.stdout.flush()

    def suggest(self, record_id: int, password: str | None) -> None:
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
