from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from accounts.models import User
from discover import reasons, recent
from discover.recent import View
from items.hydrate import COLUMNS, ITEMS, ItemRow, bodies
from items.listing import ItemPage
from items.visibility import VISIBLE
from storage.connections import fetch, id_array
from storage.paging import as_text, below, part_of

VIEWED = f"""
    SELECT {COLUMNS} FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS viewed (id, place)
    JOIN ({ITEMS}) ON i.id = viewed.id WHERE {VISIBLE} ORDER BY viewed.place LIMIT %(count)s
"""
UNWANTED = f"""
    SELECT n.id, {COLUMNS} FROM discover_notinterested n JOIN ({ITEMS}) ON i.id = n.item_id
    WHERE n.user_id = %(reader)s AND n.id < %(below)s AND {VISIBLE} ORDER BY n.id DESC LIMIT %(count)s
"""

WHY = """
    SELECT p.reasons[array_position(p.item_ids, %(item)s::bigint)] FROM discover_issuedpage p
    WHERE p.user_id = %(reader)s AND p.item_ids @> ARRAY[%(item)s::bigint] ORDER BY p.issued_at DESC LIMIT 1
"""


class ViewedPage(NamedTuple):
    """Opened items, and when each was opened, by id."""

    page: ItemPage
    at: dict[str, datetime]


def viewed_page(reader: User, *, last_id: int | None = None, limit: int = 20, now: datetime) -> ViewedPage | None:
    """The posts opened within 7 days, last opened first. None without Redis.

    `last_id` (exclusive) is a `View.moment`.
    """
    views = recent.views_of(reader.pk, now=now)
    if views is None:
        return None
    before = [view for view in views.items if last_id is None or view.moment < last_id]
    if not before:
        return ViewedPage(ItemPage([], None, has_more=False), {})
    params = {"ids": id_array(view.item_id for view in before), "reader": reader.pk, "count": limit + 1}
    rows = fetch(VIEWED, params, into=ItemRow.of)
    by_item: dict[str, View] = {str(view.item_id): view for view in before}
    items = bodies(rows[:limit], reader)
    page = ItemPage(items, str(by_item[items[-1].id].moment) if items else None, len(rows) > limit)
    return ViewedPage(page, {item.id: by_item[item.id].viewed_at for item in items})


def unwanted_page(reader: User, *, last_id: int | None = None, limit: int = 20) -> ItemPage:
    """The items that the reader does not want, last chosen first.

    `last_id` (exclusive) is the id of a NotInterested row.
    """
    rows = fetch(UNWANTED, {"reader": reader.pk, "below": below(last_id), "count": limit + 1})
    found = [(said_id, ItemRow.of(columns)) for said_id, *columns in rows]
    part = part_of(found, limit, itemgetter(0))
    return ItemPage(bodies([row for _, row in part.shown], reader), as_text(part.last_id), part.has_more)


def recommendation_reason(reader: User, item_id: int) -> str | None:
    """Why an item was recommended within the last day, in words. None if it was not."""
    rows = fetch(WHY, {"reader": reader.pk, "item": item_id})
    return reasons.words(rows[0][0]) if rows else None
