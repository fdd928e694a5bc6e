"""Stops destructive commands on a site with members."""

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.db.backends.base.base import BaseDatabaseWrapper


def refuse_with_members(connection: BaseDatabaseWrapper, command: str) -> None:
    """Raise CommandError if there are users."""
    users = get_user_model()
    if (
        users._meta.db_table in connection.introspection.table_names()
        and users.objects.using(connection.alias).exists()
    ):
        raise CommandError(
            f"This site has members. `{command}` would delete their data. If you want an empty site, create a new "
            "database."
        )
