from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.listing import BothListings, ItemPage, listing_sql, upward_page
from items.models import Context
from items.search.query import Query
from items.search.search import search_items

TAGGED = """
    SELECT t.item_id AS id FROM items_itemtag t
    WHERE t.tag = %(tag)s AND t.item_id > %(above)s AND t.item_id < %(below)s
"""
ABOVE = listing_sql([TAGGED], "ASC")


class ExtraTags(NamedTuple):
    """More canonical hashtags that a page asks for."""

    any: tuple[str, ...] = ()
    """Items with one of these are included too."""
    all: tuple[str, ...] = ()
    """Items must have all of these."""
    none: tuple[str, ...] = ()
    """Items must have none of these."""


# Each tag's first `scan` items contain the first `scan` of all tags together.
_EACH = """
    SELECT DISTINCT tagged.item_id AS id FROM unnest(%(tags)s::text[]) AS asked (tag) CROSS JOIN LATERAL (
        SELECT t.item_id FROM items_itemtag t
        WHERE t.tag = asked.tag AND t.item_id > %(above)s AND t.item_id < %(below)s
        ORDER BY t.item_id {order} LIMIT %(scan)s
    ) tagged
"""
_KEEP = """
    (SELECT count(*) FROM items_itemtag t WHERE t.tag = ANY(%(all)s::text[]) AND t.item_id = i.id) = %(needed)s
    AND NOT EXISTS (SELECT FROM items_itemtag t WHERE t.tag = ANY(%(none)s::text[]) AND t.item_id = i.id OFFSET 0)
"""
BESIDES = BothListings(
    *(listing_sql([_EACH.replace("{order}", order)], order, keep=_KEEP) for order in ("DESC", "ASC"))
)


def has_tag(item_id: str, tag: str) -> str:
    """SQL: whether an item has a hashtag."""
    return f"EXISTS (SELECT FROM items_itemtag t WHERE t.tag = {tag} AND t.item_id = {item_id} OFFSET 0)"


def tag_page(
    tag: str,
    reader: User | AnonymousUser,
    *,
    last_id: int | None = None,
    min_id: int | None = None,
    limit: int = 20,
) -> ItemPage:
    """Visible items with the canonical `tag`, newest first; with `min_id` as in `listing.upward_page`."""
    if min_id is not None:
        return upward_page(ABOVE, reader, min_id=min_id, last_id=last_id, limit=limit, context=Context.PUBLIC, tag=tag)
    query = Query(phrases=(), is_open=False, senders=(), tags=(tag,), names=())
    return search_items(query, reader, last_id=last_id, limit=limit)


def tags_page(
    tag: str,
    besides: ExtraTags,
    reader: User | AnonymousUser,
    *,
    last_id: int | None = None,
    min_id: int | None = None,
    limit: int = 20,
) -> ItemPage:
    """Visible items with `tag` or one of `besides.any`, all of `besides.all` and none of `besides.none`."""
    if not any(besides):
        return tag_page(tag, reader, last_id=last_id, min_id=min_id, limit=limit)
    params = {
        "tags": sorted({tag, *besides.any}),
        "all": list(besides.all),
        "needed": len(set(besides.all)),
        "none": list(besides.none),
    }
    return BESIDES.page(reader, last_id=last_id, min_id=min_id, limit=limit, context=Context.PUBLIC, **params)
