"""`restore FILE`: an empty site becomes the one that was backed up."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from accounts.levels import policy
from operation.backup import BackupError, restore
from runtime.up import UpError, only_one_site
from storage import site_key


class Command(BaseCommand):
    """`restore FILE`: fills an empty site from a backup."""

    help = "Fill an empty site from a file that `backup` wrote, and bring the database up to this version."
    requires_system_checks: list[str] = []  # there is no database yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file to read."""
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        """Restore the backup, then migrate the database. Raises CommandError while the site runs, or if it fails."""
        try:
            with only_one_site(settings.SERVERS.home):
                self.restore(file)
        except UpError as error:
            raise CommandError(str(error)) from error

    def restore(self, file: Path) -> None:
        """Restore the backup while no `up` can begin."""
        with tqdm(unit="B", unit_scale=True, disable=None) as bar:
            with current_app.connection_for_write() as connection:  # a pooled one may be of an earlier server
                answers = current_app.control.ping(timeout=0.5, connection=connection)
            if answers:
                raise CommandError("Workers of this site run; stop them, and the web processes, first.")

            def progress(member: str, size: int) -> None:
                bar.set_description(member, refresh=False)
                bar.update(size)

            try:
                manifest = restore(file, progress=progress)
            except BackupError as error:
                raise CommandError(str(error)) from error
            call_command("migrate", interactive=False, verbosity=0)
            site_key.forget()  # the next start notes its own, whichever of the two that is
            policy.renew()  # windows that a feeds server brings back from its own disk are of another past
        for sentence in manifest.get("left_out", []):
            self.stderr.write(self.style.WARNING(sentence))
        self.stdout.write(
            f"Restored {manifest['users']:,} users, as of {manifest['made_at']}. "
            "Windows are built as they are read; start the site."
        )
