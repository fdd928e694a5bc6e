"""Django's backend of the replica: connections as to the primary, which only read and whose reads have a deadline.

See docs/decisions.md: The connection to the replica has a deadline in the client.
"""

from typing import Any

from django.db.backends.postgresql import base

from storage.postgresql.base import Connection, as_ours


class DatabaseWrapper(base.DatabaseWrapper):
    """The backend of the replica: its connections take no writes."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection:
        """A new connection to the replica, marked as one that takes no writes."""
        connection = as_ours(super().get_new_connection(conn_params))
        connection.takes_writes = False
        return connection
