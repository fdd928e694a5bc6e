"""Hashtag pages: what carries a tag, newest first.

See docs/decisions.md: A search looks at a thousand candidates.
"""

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.listing import SCAN, ItemPage, ListedRow, listing, page_above
from items.query import Query
from items.search import search_items
from storage.connections import fetch
from storage.ids import MAX_ID

TAGGED = """
    SELECT t.item_id AS id FROM items_itemtag t
    WHERE t.tag = %(tag)s AND t.item_id > %(above)s AND t.item_id < %(below)s
"""
ABOVE = listing([TAGGED], "ASC")


def carries(item_id: str, tag: str) -> str:
    """Whether an item has a hashtag, as SQL."""
    return f"EXISTS (SELECT FROM items_itemtag t WHERE t.tag = {tag} AND t.item_id = {item_id} OFFSET 0)"


def tag_page(
    tag: str,
    reader: User | AnonymousUser,
    *,
    last_id: int | None = None,
    min_id: int | None = None,
    limit: int = 20,
) -> ItemPage:
    """Posts and replies with `tag`, in its canonical form, below `last_id` (exclusive) as far as `reader` may see
    them, newest first; with `min_id` those directly above it (items.listing.page_above).
    """
    if min_id is not None:
        below = MAX_ID + 1 if last_id is None else last_id
        params = {"tag": tag, "above": min_id, "below": below, "reader": reader.pk or 0}
        rows = fetch(ABOVE, params | {"scan": SCAN, "count": limit + 1}, into=ListedRow.of)
        return page_above(rows, reader, limit)
    query = Query(phrases=(), is_open=False, senders=(), tags=(tag,), names=())
    return search_items(query, reader, last_id=last_id, limit=limit)
