"""`migrate`, which waits for a lock at most `--lock-timeout` seconds."""

from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands.migrate import Command as MigrateCommand
from django.db import connections


class Command(MigrateCommand):
    """DDL that waits behind a long query makes every reader behind it wait too: give up instead, and run it again
    later.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--lock-timeout", type=int, default=5, help="Seconds to wait for a lock (default 5).")

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{options['lock_timeout']}s"])
        super().handle(*args, **options)
