"""`flush`, which refuses on a site with members."""

from typing import Any

from django.core.management.commands.flush import Command as FlushCommand
from django.db import connections

from runtime.members import refuse_with_members


class Command(FlushCommand):
    """Django's `flush` deletes every row of the database."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Flush. Raises CommandError if there are members."""
        refuse_with_members(connections[options["database"]], "flush")
        super().handle(*args, **options)
