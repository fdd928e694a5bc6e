"""Users from prepared statements: cheaper than the ORM."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db import connection

from accounts.models import User


@cache
def user_columns(alias: str) -> str:
    """Columns for `user_of`."""
    return ", ".join(f"{alias}.{field.column}" for field in User._meta.concrete_fields)


@cache
def _user_column_names() -> list[str]:
    return [field.attname for field in User._meta.concrete_fields]


def user_of(row: Sequence[Any]) -> User:
    """The user of a row of `user_columns`."""
    return User.from_db(connection.alias, _user_column_names(), row)


def user_or_none(row: Sequence[Any]) -> User | None:
    """The user of an outer join's row, or None."""
    user = user_of(row)
    return None if user.pk is None else user
