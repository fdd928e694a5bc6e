import hashlib
import os
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from runtime.apps import ENVIRONMENT
from runtime.embedded import START_SECONDS, wait_for
from runtime.programs import PREPARED


class Command(BaseCommand):
    """Does what `up` needs Django for. Skips what is done for the same files and database."""

    help = "Update the database and static files to this version, as `up` does before it starts the programs."
    requires_system_checks: list[str] = []  # below

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="Fill an empty database with demo users.")

    def handle(self, *args: Any, demo: bool, **options: Any) -> None:
        """Migrate, collect static files, write an empty line. Then fill an empty database, and write how to sign in."""
        settings.SERVERS.home.make()
        record, files = settings.SERVERS.home.run / PREPARED, hash_of_files()
        recorded = record.read_text() if record.exists() else ""
        self.check(tags=[ENVIRONMENT] if recorded.startswith(files) else None)
        if not wait_for(settings.SERVERS.running, START_SECONDS):  # `up` starts them meanwhile
            raise CommandError(f"The embedded servers of {settings.DATA_DIR} do not run.")
        call_command("await_servers")
        if recorded != f"{files} {hash_of_results()}":
            self.tell("updating the database ...")
            with ThreadPoolExecutor(1) as beside:
                collected = beside.submit(self.collect)
                call_command("migrate", interactive=False, verbosity=0)
            collected.result()
            record.write_text(f"{files} {hash_of_results()}")
        call_command("check_key")
        is_empty = demo and not get_user_model().objects.exists()
        if is_empty:
            self.tell("making the demo community ...")
        self.tell("")
        if is_empty:
            call_command("demo", "--if-empty", "--yes", stdout=self.stdout)
        elif demo and (logins := settings.DATA_DIR / "demo.txt").exists():
            self.tell(f"The demo logins are in {logins}")
        call_command("account", "first-admin", "--if-wanted", stdout=self.stdout)

    def tell(self, line: str) -> None:
        """Write a line for the waiting `up`."""
        self.stdout.write(line)
        self.stdout.flush()

    def collect(self) -> None:
        """Collect the static files. Raises CommandError."""
        try:
            call_command("collectstatic", interactive=False, verbosity=0)
        except OSError as error:
            raise CommandError(
                f"Static files cannot be written to {settings.STATIC_ROOT}: {error.strerror}."
            ) from error


def hash_of_files() -> str:
    """A hash of the settings and all apps' files."""
    folders = {str(settings.BASE_DIR / "feedsite"), *(config.path for config in apps.get_app_configs())}
    return digest(
        f"{path} {found.st_size} {found.st_mtime_ns}" for folder in sorted(folders) for path, found in files_in(folder)
    )


def files_in(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files in a folder, except __pycache__."""
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from files_in(entry.path)
        else:
            yield entry.path, entry.stat()


def hash_of_results() -> str:
    """A hash of applied migrations, their times, and static files."""
    applied = MigrationRecorder(connection).applied_migrations()
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    return digest(
        [
            *(f"{row} {applied[row].applied}" for row in sorted(applied)),
            manifest.read_text() if manifest.exists() else "",
        ]
    )


def digest(lines: Iterable[str]) -> str:
    """A hash of lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
