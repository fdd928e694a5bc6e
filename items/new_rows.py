"""Rows that rooms above write in the statement that inserts an item: a post takes one round trip less."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class RowOfNewItem(NamedTuple):
    """A row that a room above writes."""

    statement: str
    """An INSERT. It takes the item from `new`: id, sender_id, status, visibility, reply_to_id."""
    params: Callable[[], Mapping[str, Any]]
    """Its parameters. Their names are of this row only."""


ROWS: dict[str, RowOfNewItem] = {}
"""Name of the row → the row. Rooms add theirs when they are imported."""
