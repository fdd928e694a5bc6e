from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, no_translations

from accounts.models import User
from timeline.explain import explain_home
from web.rest import parse_id


class Command(BaseCommand):
    """Prints the explanation of a home."""

    help = "Explain a reader's home: windows, outboxes, pending deliveries, what serves the next page. Read-only."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add USER and --item."""
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--item", metavar="ID", help="explain why the reader sees this item, or not")

    @no_translations
    def handle(self, *args: Any, username: str, item: str | None, **options: Any) -> None:
        """Print the explanation. Raises CommandError for an unknown user or an invalid id."""
        reader = User.objects.named(username.removeprefix("@")).first()
        if reader is None:
            raise CommandError(f"There is no user {username}.")
        item_id = parse_id(item or "")
        if item is not None and item_id is None:
            raise CommandError(f"{item!r} is not an item's id.")
        for part in explain_home(reader, item_id=item_id).values():
            self.stdout.write(f"{part.title}: {' '.join(map(str, part.sentences))}".removesuffix(": "))
            for name, value in part.facts.items():
                self.stdout.write(f"  {name}: {value}")
