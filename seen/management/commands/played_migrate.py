from argparse import ArgumentParser
from datetime import UTC, datetime
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

    help = (
        "Import old play histories: mark the users of the old Redis. The hourly merges then migrate them. "
        "If it was stopped, run it again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the other steps."""
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--status", action="store_true", help="Show the progress.")
        what.add_argument(
            "--cut-over", action="store_true", help="Stop using the old data, for good. All users must be merged."
        )
        what.add_argument("--rollback", action="store_true", help="Return to the old data. Only before the cut-over.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do the step that the options name. Raises CommandError."""
        try:
            if options["status"]:
                self.tell_status()
            elif options["cut_over"]:
                users = migrate.cut_over(clock=timezone.now, say=self.say)
                self.say(f"Cut over. {users:,} users were checked." if users else "It was already cut over.")
            elif options["rollback"]:
                migrate.rollback(clock=timezone.now, say=self.say)
                self.say("Rolled back. All answers come from the old data again.")
            else:
                users = migrate.run(clock=timezone.now)
                self.say(f"Marked {users:,} users. --status shows the progress.")
        except migrate.MigrationError as error:
            raise CommandError(str(error)) from None
        except (PlayedUnavailableError, StoreUnavailableError) as error:
            raise CommandError(f"No answer: {error}. Run it again to continue.") from error
        except DatabaseError as error:
            raise CommandError(f"PostgreSQL refused: {error}. Run it again.") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped. Run it again to continue.", returncode=130) from None

    def tell_status(self) -> None:
        """Print how far the migration is."""
        status = migrate.status()
        migration = status.migration
        self.say(f"migration  {migration.phase}")
        self.say(f"users      {migration.users:,}")
        self.say(f"merged     {status.merged:,}")
        self.say(f"left       {status.left:,}")
        if migration.phase == Phase.RUNNING:
            seconds = max(timezone.now().timestamp() - migration.began_at, 1)
            rate = status.merged / seconds * 3600
            self.say(f"rate       {rate:,.0f} users an hour since {_format_moment(migration.began_at)}")
            if rate and status.left:
                self.say(f"estimate   done {_format_moment(migration.began_at + seconds + status.left / rate * 3600)}")
        elif migration.ended_at:
            self.say(f"since      {_format_moment(migration.ended_at)}")

    def say(self, message: str) -> None:
        """Print a line at once."""
        self.stdout.write(message)
        self.stdout.flush()


def _format_moment(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
