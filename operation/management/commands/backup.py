from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from operation.backup import backup, missing_parts, progress_on
from operation.dumps import BackupError
from operation.kept_backups import make_stored_backup
from storage.connections import site_now


class Command(BaseCommand):
    """Writes a backup of the site."""

    help = "Write database, pictures, plays and secret key to one file. The site can keep running."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the file."""
        parser.add_argument(
            "file",
            type=Path,
            nargs="?",
            help="a new file, which appears when it is complete. Default: a new one in FEEDSITE_BACKUP_TO",
        )

    def handle(self, *args: Any, file: Path | None, **options: Any) -> None:
        """Make the backup. On failure raises CommandError, and leaves no file."""
        with tqdm(unit="B", unit_scale=True, disable=None) as bar:
            progress = progress_on(bar)
            try:
                if file is not None:
                    backup(file, now=site_now(), progress=progress)
                    said = f"{file}: {file.stat().st_size:,} bytes"
                else:
                    said = make_stored_backup(now=site_now(), progress=progress)
            except BackupError as error:
                raise CommandError(str(error)) from error
        for sentence in missing_parts():
            self.stderr.write(self.style.WARNING(sentence))
        self.stdout.write(f"{said}. It holds secrets and private posts: keep it safe.")
