"""`backup FILE`: all that cannot be made anew, in one file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from tqdm import tqdm

from operation.backup import BackupError, backup, left_out


class Command(BaseCommand):
    """`backup FILE`: writes a backup of the site."""

    help = "Write database, plays and secret key to one file; the site may run meanwhile."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file to write."""
        parser.add_argument("file", type=Path, help="which must not exist; it appears when it is whole")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        """Write the backup, and show its progress. Raises CommandError if it fails; no file is left then."""
        with tqdm(unit="B", unit_scale=True, disable=None) as bar:

            def progress(member: str, size: int) -> None:
                bar.set_description(member, refresh=False)
                bar.update(size)

            try:
                backup(file, now=timezone.now(), progress=progress)
            except BackupError as error:
                raise CommandError(str(error)) from error
        for sentence in left_out():
            self.stderr.write(self.style.WARNING(sentence))
        self.stdout.write(
            f"{file}: {file.stat().st_size:,} bytes. It holds secrets and whatever users wrote: keep it safe."
        )
