from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, ProgrammingError

from storage import site_key
from storage.connections import is_schema_mismatch


class Command(BaseCommand):
    """Compares this machine's secret key with the site's. Every program runs it at its start."""

    help = "Exit with 2 if this machine's secret key differs from the site's."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Check the key. Without PostgreSQL or migrations, `/readyz` checks it later."""
        try:
            site_key.check()
        except site_key.WrongKeyError as error:
            raise CommandError(f"The secret key of this machine {error}. {site_key.ADVICE}", returncode=2) from error
        except ProgrammingError as error:
            if not is_schema_mismatch(error):
                raise
        except (OperationalError, InterfaceError) as error:
            self.stderr.write(f"The secret key could not be compared with the site's: {error}")
