import io
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, SystemCheckError
from django.db import DatabaseError, connection
from django.utils import timezone

from media.files import StoreError
from operation.upgrade import (
    UnfitUpgradeError,
    check_client,
    check_disk_space,
    check_postgresql,
    unapplied,
)
from runtime.embedded import ServerError
from runtime.management.commands.migrate import LOCK_SECONDS, PATIENCE_SECONDS
from runtime.older_database import refuse_older
from runtime.programs import programs_run
from runtime.restart import RestartError, restart_by_turns
from runtime.up import running_site
from runtime.version import VERSION

OTHERWISE = "`up` does not run here. Restart the programs: `feedsite restart` as root (docs/runbook.md, Upgrade)."


GO_BACK = (
    "The running programs keep their version. So that they can also start again, bring the tree and its packages back: "
    "`git checkout` the version before, then `python3 -c 'import manage; manage.install(manage.SERVER_LOCK)'` "
    "(docs/runbook.md, Downgrade)."
)


class UpgradeStep(NamedTuple):
    """A step of the upgrade. `remedy` says what helps if it fails."""

    name: str
    does: str
    remedy: str
    run: Callable[[], None]


class Command(BaseCommand):
    """Upgrades the running site in repeatable steps.

    Fails if programs keep running that only another supervisor can restart.
    """

    help = "Upgrade the running site to the version on the disk."
    requires_system_checks: list[str] = []  # the first step
    is_restarted = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Print what each step would do, and change nothing.")
        parser.add_argument("--backup", type=Path, metavar="FILE", help="the file of the backup (default: in backups/)")
        parser.add_argument("--no-backup", action="store_true", help="Make no backup.")
        parser.add_argument("--no-restart", action="store_true", help="Restart nothing.")
        parser.add_argument("--to", metavar="VERSION", help="Fetch, install and verify this version: a tag or commit.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the steps. Raises CommandError with a remedy at the first failure."""
        for step in self.steps(options):
            self.stdout.write(self.style.MIGRATE_HEADING(f"{step.name}: {step.does}"))
            try:
                if step.name == "check" or not options["dry_run"]:
                    step.run()
            except (
                UnfitUpgradeError,
                RestartError,
                ServerError,
                StoreError,
                CommandError,
                SystemCheckError,
                DatabaseError,
                OSError,
            ) as error:
                said = str(error).strip()
                raise CommandError(
                    f"{said}\nThe step `{step.name}` failed. {step.remedy} Then run `upgrade` again."
                ) from error
        if options["dry_run"]:
            self.stdout.write("Nothing was changed.")
        elif options["no_restart"]:
            self.stdout.write(f"Database and static files are upgraded to {VERSION}.")
        elif self.is_restarted:
            self.stdout.write(f"The site runs version {VERSION}.")
        else:
            said = f"Database and static files are upgraded to {VERSION}."
            if programs_run(settings.SERVERS.home):
                raise CommandError(f"{said} The programs still run the old version. {OTHERWISE}")
            self.stdout.write(f"{said} {OTHERWISE}")

    def steps(self, options: dict[str, Any]) -> list[UpgradeStep]:
        """The steps in order. Foreseeable problems fail first."""
        name = f"before-{VERSION}-{timezone.now():%Y%m%dT%H%M%S}.backup"
        file: Path = options["backup"] or settings.DATA_DIR / "backups" / name

        def back_up() -> None:
            if not options["backup"]:
                file.parent.mkdir(mode=0o700, exist_ok=True)
            call_command("backup", file, stdout=self.stdout, stderr=self.stderr)

        def migrate() -> None:
            call_command("migrate", interactive=False, verbosity=1, stdout=self.stdout, stderr=self.stderr)

        def collect() -> None:
            call_command("collectstatic", interactive=False, verbosity=0)

        backup = UpgradeStep(
            "backup",
            f"write {file}, while the site runs",
            "Nothing has changed. Check the file's folder and its disk.",
            back_up,
        )
        restart = UpgradeStep(
            "restart",
            "restart the programs, one after another",
            "The other programs keep running the old version.",
            self.restart,
        )
        return [
            UpgradeStep(
                "check",
                "check settings and disk, list the missing migrations",
                "Nothing has changed. Fix what is named above.",
                lambda: self.check_all(None if options["no_backup"] else file),
            ),
            *([] if options["no_backup"] else [backup]),
            UpgradeStep(
                "migrate",
                f"update the database, wait {LOCK_SECONDS:g} s for each lock, try for {PATIENCE_SECONDS:g} s",
                "The old version keeps running. If a session blocks a table, end it, or wait for a quiet hour. Any "
                "other error is the new version's: report it.",
                migrate,
            ),
            UpgradeStep(
                "collectstatic",
                f"write static files to {settings.STATIC_ROOT}, beside the old ones",
                "The old version keeps running. Make the folder writable.",
                collect,
            ),
            *([] if options["no_restart"] else [restart]),
        ]

    def check_all(self, file: Path | None) -> None:
        """Check everything that could stop the upgrade. Raises CommandError, SystemCheckError, UnfitUpgradeError or
        StoreError.
        """
        check_postgresql()
        try:
            refuse_older(connection)
        except CommandError as error:
            raise CommandError(f"{error}\n{GO_BACK}") from error
        if file is not None and not file.parent.is_dir() and file.parent != settings.DATA_DIR / "backups":
            raise UnfitUpgradeError(f"The folder {file.parent} does not exist. Create it, or mount its disk.")
        if file is not None:
            check_client()
        said = io.StringIO()
        call_command("check", deploy=True, stdout=said, stderr=said)
        warnings = said.getvalue().count("\n?: ")
        self.stdout.write(f"  settings: {warnings} warnings (`manage.py check --deploy` lists them)")
        for said_of in check_disk_space(file):
            self.stdout.write(f"  {said_of}")
        self.stdout.write(f"  missing migrations: {', '.join(unapplied()) or 'none'}")

    def restart(self) -> None:
        """Let a running `up` restart its programs. Raises RestartError."""
        pid = running_site(settings.SERVERS.home)
        if pid is not None:
            restart_by_turns(settings.SERVERS.home, pid, lambda line: self.stdout.write(f"  {line}"))
            self.is_restarted = True
