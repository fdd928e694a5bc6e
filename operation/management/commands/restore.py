import contextlib
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from accounts.levels import policy
from operation.backup import check, progress_on, restore
from operation.dumps import BackupError
from operation.kept_backups import NAME, backup_folder
from runtime.up import UpError, site_lock
from storage import site_key
from storage.queue import FullBrokerError, check_room


class Command(BaseCommand):
    """Fills an empty site from a backup."""

    help = (
        "Restore a backup into an empty site, and update the database to this version. With --check: only test the "
        "backup. The site can keep running."
    )
    requires_system_checks: list[str] = []  # there is no database yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="a file, or the name of a backup in FEEDSITE_BACKUP_TO")
        parser.add_argument(
            "--check",
            action="store_true",
            help="test: restore into a temporary database, count its rows, and read all files",
        )

    def handle(self, *args: Any, file: str, check: bool, **options: Any) -> None:
        """Restore or try the backup. Raises CommandError if the site runs, or on failure."""
        try:
            with contextlib.ExitStack() as stack:
                path = Path(file)
                if NAME.fullmatch(str(file)) and not path.exists():
                    path = stack.enter_context(backup_folder().file(file))
                if check:
                    self.try_out(path)
                    return
                stack.enter_context(site_lock(settings.SERVERS.home))
                self.restore(path)
        except (UpError, BackupError, FullBrokerError) as error:
            raise CommandError(str(error)) from error

    def try_out(self, file: Path) -> None:
        """Try the backup and print its counts."""
        with tqdm(unit="B", unit_scale=True, disable=None) as bar:
            found = check(file, progress=progress_on(bar))
        self.stdout.write(
            f"{file} is good. Made at {found.made_at}: {found.users:,} users, {found.items:,} items, "
            f"{found.follows:,} follows, {found.media:,} pictures and videos in {found.files:,} files."
        )

    def restore(self, file: Path) -> None:
        """Fill the site from the backup. `up` cannot start meanwhile."""
        with tqdm(unit="B", unit_scale=True, disable=None) as bar:
            with current_app.connection_for_write() as connection:  # a pooled connection may be to an earlier server
                check_room(connection)
                answers = current_app.control.ping(timeout=0.5, connection=connection)
            if answers:
                raise CommandError("Workers of this site run. Stop all programs of the site first.")

            manifest = restore(file, progress=progress_on(bar))
            call_command("migrate", interactive=False, verbosity=0)
            site_key.delete_fingerprint()  # the next start records its own key, whichever of the two it is
            policy.renew_generation()  # a feeds server may reload windows of another history from its disk
        for sentence in manifest.left_out:
            self.stderr.write(self.style.WARNING(sentence))
        self.stdout.write(
            f"Restored {manifest.users:,} users from the backup of {manifest.made_at}. Start the site now."
        )
