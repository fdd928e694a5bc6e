"""`played_migrate FILE`: migrates old histories of plays into the month filters."""

import time
from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from seen.filter_store import StoreUnavailableError
from seen.migration import migrate
from seen.migration.old import Phase
from seen.played import PlayedUnavailableError


class Command(BaseCommand):
    """Migrates old histories of plays."""

    help = "Mark the users of a file of old histories, whom the hourly merges then migrate; goes on where it stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add FILE, or another step of the migration."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "file", nargs="?", type=Path, help="A line: a user's id, then id or id:seconds; or gzip of it."
        )
        what.add_argument("--status", action="store_true", help="Say how far it is.")
        what.add_argument("--cut-over", action="store_true", help="Leave the old data for good, if all are merged.")
        what.add_argument("--rollback", action="store_true", help="Return to the old data, before the cut-over.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError."""
        try:
            if options["status"]:
                self.tell_status()
            elif options["cut_over"]:
                users = migrate.cut_over(clock=timezone.now, say=self.say, quiet=options["verbosity"] == 0)
                self.say(f"Cut over; {users:,} users were looked up." if users else "It was cut over before.")
            elif options["rollback"]:
                migrate.rollback(clock=timezone.now, say=self.say)
                self.say("Rolled back: the old data is asked for everybody.")
            else:
                self.run(options["file"], quiet=options["verbosity"] == 0)
        except migrate.MigrationError as error:
            raise CommandError(str(error)) from None
        except (PlayedUnavailableError, StoreUnavailableError) as error:
            raise CommandError(f"No answer: {error}. Run it again; it goes on where it stopped.") from error
        except DatabaseError as error:
            raise CommandError(f"The database refused: {error}. Run it again.") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped. Run it again; it goes on there.", returncode=130) from None

    def run(self, path: Path, *, quiet: bool) -> None:
        """Mark the users of a file, and report its lines."""
        begin = time.monotonic()
        file = migrate.run(path, clock=timezone.now, say=self.say, quiet=quiet)
        self.say(f"{file.lines:,} lines are read, in {time.monotonic() - begin:.1f} s; --status says who is merged.")

    def tell_status(self) -> None:
        """Print how far the migration is."""
        status = migrate.status()
        migration = status.migration
        self.say(f"migration  {migration.phase}")
        for file in migration.files:
            self.say(f"file       {file.path}: {file.lines:,} lines" + ("" if file.is_whole else ", not to its end"))
        self.say(f"marked     {status.users:,} users")
        self.say(f"merged     {status.merged:,}")
        self.say(f"left       {status.left:,}")
        if migration.phase == Phase.RUNNING:
            seconds = max(timezone.now().timestamp() - migration.began_at, 1)
            rate = status.merged / seconds * 3600
            self.say(f"rate       {rate:,.0f} users an hour since {_shown(migration.began_at)}")
            if rate and status.left:
                self.say(f"estimate   done {_shown(migration.began_at + seconds + status.left / rate * 3600)}")
        elif migration.ended_at:
            self.say(f"since      {_shown(migration.ended_at)}")

    def say(self, message: str) -> None:
        """Print a line at once."""
        self.stdout.write(message)
        self.stdout.flush()


def _shown(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
