"""`policy`: shows or changes the push level and `inbox_from`."""

import re
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.levels import policy


class Command(BaseCommand):
    """Shows or changes the policy."""

    help = (
        "Show or change which readers have an inbox, and to which followers big-Vs' posts are pushed. A change "
        "rebuilds all windows."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the fields."""
        parser.add_argument(
            "--push-level",
            metavar="LEVEL",
            help="push big-Vs' posts to followers from this level, 1 to 4 (4: to nobody)",
        )
        parser.add_argument(
            "--inbox-from",
            metavar="FOLLOWEES",
            help="give an inbox to readers who follow at least this many (0: to every active reader)",
        )
        parser.add_argument(
            "--new-generation",
            action="store_true",
            help="rebuild all windows, for example after you put back an older copy of the database",
        )

    def handle(
        self, *args: Any, push_level: str | None, inbox_from: str | None, new_generation: bool, **options: Any
    ) -> None:
        """Change given fields and print the policy. Raises CommandError."""
        wanted = {
            "push_level": _parse_number("push-level", push_level, policy.LEVELS),
            "inbox_from": _parse_number("inbox-from", inbox_from, policy.FOLLOWEES),
        }
        policy.change(**wanted)
        if new_generation:
            policy.renew_generation()
        found = policy.current()
        generation = found.generation or "not yet chosen"
        self.stdout.write(f"push level {found.push_level}, inbox from {found.inbox_from}, generation {generation}")


def _parse_number(name: str, text: str | None, within: range) -> int | None:
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) not in within:
        raise CommandError(f"--{name}: {text!r} is not {policy.range_words(within)}.")
    return int(text)
