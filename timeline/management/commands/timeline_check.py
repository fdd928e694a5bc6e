from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from accounts.models import User
from storage.connections import FeedsUnavailableError, feeds_errors
from timeline.check import PART, differences
from timeline.check import repair as drop


class Command(BaseCommand):
    """Compares windows with PostgreSQL."""

    help = "Compare inboxes and outboxes with PostgreSQL. Exits with 1 if they differ."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add USER and --repair."""
        parser.add_argument("users", nargs="*", metavar="USER", help="usernames (default: everybody)")
        parser.add_argument(
            "--repair",
            action="store_true",
            help="drop the windows that differ; the next read rebuilds them",
        )

    def handle(self, *args: Any, users: list[str], repair: bool, **options: Any) -> None:
        """Print the differences, and repair them if asked. Exit code 1 if there are differences."""
        ids = self._ids(users)
        found = []
        try:
            with feeds_errors(), tqdm(total=len(ids), unit="user", disable=None) as bar:
                for first in range(0, len(ids), PART):
                    part = ids[first : first + PART]
                    for difference in differences(part):
                        found.append(difference)
                        bar.write(str(difference), file=self.stdout)
                    bar.update(len(part))
                if found and repair:
                    self.stdout.write(f"{drop(found)} windows dropped.")
        except FeedsUnavailableError as error:
            raise CommandError(f"The feeds server does not answer: {error}") from error
        self.stdout.write(f"{len(ids)} users checked, {len(found)} differences.")
        if found:
            raise SystemExit(1)

    def _ids(self, users: list[str]) -> list[int]:
        if not users:
            return list(User.objects.order_by("pk").values_list("pk", flat=True))
        ids = []
        for username in users:
            user_id = User.objects.named(username).values_list("pk", flat=True).first()
            if user_id is None:
                raise CommandError(f"There is no user {username}.")
            ids.append(user_id)
        return ids
