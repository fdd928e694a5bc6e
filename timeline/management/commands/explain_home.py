"""`explain_home USER`: explains a reader's home, and optionally why an item is in it or not."""

from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import override

from accounts.models import User
from timeline.explain import explain_home
from web.rest import parse_id


class Command(BaseCommand):
    """Prints the explanation of a home."""

    help = "Explain a reader's home: windows, outboxes, pending deliveries, what serves the next page. Read-only."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add USER, --item and --json."""
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--item", metavar="ID", help="explain why the reader sees this item, or not")
        parser.add_argument("--json", action="store_true", help="print one line of JSON")

    def handle(self, *args: Any, username: str, item: str | None, json: bool, **options: Any) -> None:
        """Raises CommandError for an unknown user or an invalid id."""
        reader = User.objects.named(username.removeprefix("@")).first()
        if reader is None:
            raise CommandError(f"There is no user {username}.")
        item_id = None if item is None else parse_id(item)
        if item is not None and item_id is None:
            raise CommandError(f"{item!r} is not an item's id.")
        with override("en"):
            found = explain_home(reader, item_id=item_id)
            if json:
                self.stdout.write(msgspec.json.encode(found).decode())
                return
            for part in found.values():
                self.stdout.write(f"{part.title}: {' '.join(map(str, part.sentences))}".removesuffix(": "))
                facts = [f"{name}: {'unknown' if value is None else value}" for name, value in part.facts.items()]
                self.stdout.write("".join(f"  {line}\n" for line in (*facts, *part.items)), ending="")
