"""`policy`: shows which readers take pushes from big-Vs, or changes it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts import policy


class Command(BaseCommand):
    help = "Show the policy (which followers are pushed a big-V's items), or change it; windows are built anew then."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--push-level",
            type=int,
            choices=policy.LEVELS,
            help="push big-Vs' items to followers of at least this level; 4: to none",
        )
        parser.add_argument(
            "--new-generation",
            action="store_true",
            help="have all windows built anew, as after going back to an older copy of the database",
        )

    def handle(self, *args: Any, push_level: int | None, new_generation: bool, **options: Any) -> None:
        if push_level is not None:
            policy.change(push_level=push_level)
        if new_generation:
            policy.renew()
        found = policy.current()
        self.stdout.write(f"push level {found.push_level}, generation {found.generation or 'to be drawn'}")
