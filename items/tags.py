"""Hashtag pages: what carries a tag, newest first.

See docs/decisions.md: A search looks at a thousand candidates.
"""

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.listing import ItemPage
from items.query import Query
from items.search import search_items


def carries(item_id: str, tag: str) -> str:
    """Whether an item has a hashtag, as SQL."""
    return f"EXISTS (SELECT FROM items_itemtag t WHERE t.tag = {tag} AND t.item_id = {item_id} OFFSET 0)"  # noqa: S608


def tag_page(tag: str, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20) -> ItemPage:
    """Posts and replies with `tag`, in its canonical form, below `last_id` (exclusive) as far as `reader` may see
    them, newest first.
    """
    query = Query(phrases=(), is_open=False, senders=(), tags=(tag,), names=())
    return search_items(query, reader, last_id=last_id, limit=limit)
