"""The newest public posts of all senders, without replies and reposts."""

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.listing import SCAN, ItemPage, ListedRow, listing, page_above, page_of
from items.visibility import public_post
from storage.connections import fetch
from storage.ids import MAX_ID

POSTS = f"SELECT i.id FROM items_item i WHERE {public_post('i')} AND i.id < %(below)s"  # noqa: S608
NEWEST, ABOVE = listing([POSTS], "DESC"), listing([f"{POSTS} AND i.id > %(above)s"], "ASC")


def newest_page(
    reader: User | AnonymousUser, *, last_id: int | None = None, min_id: int | None = None, limit: int = 20
) -> ItemPage:
    """Public posts below `last_id` (exclusive) as far as `reader` may see them, newest first; with `min_id` those
    directly above it (items.listing.page_above).
    """
    below = MAX_ID + 1 if last_id is None else last_id
    params = {"below": below, "reader": reader.pk or 0, "scan": SCAN, "count": limit + 1}
    if min_id is not None:
        return page_above(fetch(ABOVE, params | {"above": min_id}, into=ListedRow.of), reader, limit)
    return page_of(fetch(NEWEST, params, into=ListedRow.of), reader, limit)
