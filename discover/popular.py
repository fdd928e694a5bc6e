from typing import Any

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from discover.decay import log_decay, params
from items.bodies import ItemBody
from items.hydrate import visible_bodies
from items.models import Context
from storage.connections import fetch

SPARE = 4
"""Proposals for each item: one per sender is shown, and some were withdrawn."""

POPULAR = f"""
    SELECT item_id FROM discover_popularitem
    ORDER BY ln(popularity) + {log_decay("item_id", "(SELECT max(item_id) FROM discover_popularitem)")} DESC,
        item_id DESC LIMIT %(count)s
"""


def popular_items(reader: User | AnonymousUser, *, count: int) -> list[ItemBody]:
    """Popular posts that `reader` may see, one per sender."""
    asked: dict[str, Any] = params() | {"count": SPARE * count}
    found: dict[str, ItemBody] = {}
    for item in visible_bodies([row[0] for row in fetch(POPULAR, asked)], reader, Context.PUBLIC):
        found.setdefault(item.sender.id, item)
    return list(found.values())[:count]
