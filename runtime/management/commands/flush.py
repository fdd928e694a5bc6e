from typing import Any

from django.core.management.commands.flush import Command as FlushCommand
from django.db import connections

from runtime.members import refuse_with_members


class Command(FlushCommand):
    """`flush`, which refuses on a site with members."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Empty the database. Raises CommandError if there are members."""
        refuse_with_members(connections[options["database"]], "flush")
        super().handle(*args, **options)
