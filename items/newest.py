"""The newest public posts of all senders."""

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.listing import BothListings, ItemPage, listing_sql
from items.models import Context
from items.visibility import public_post

POSTS = f"SELECT i.id FROM items_item i WHERE {public_post('i')} AND i.id < %(below)s"
NEWEST = BothListings(listing_sql([POSTS], "DESC"), listing_sql([f"{POSTS} AND i.id > %(above)s"], "ASC"))


def newest_page(
    reader: User | AnonymousUser, *, last_id: int | None = None, min_id: int | None = None, limit: int = 20
) -> ItemPage:
    """Public posts that `reader` may see, as in `BothListings.page`."""
    return NEWEST.page(reader, last_id=last_id, min_id=min_id, limit=limit, context=Context.PUBLIC)
