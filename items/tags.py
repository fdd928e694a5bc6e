"""Hashtag pages: what carries a tag, newest first."""

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from feedsite.connections import fetch
from feedsite.ids import MAX_ID
from items.hydrate import COLUMNS, ITEMS
from items.profile import ItemPage, page_of
from items.visibility import VISIBLE

# The primary key of tags, read backwards, is the order of the page.
TAGGED = f"""
    SELECT {COLUMNS} FROM {ITEMS} JOIN items_itemtag t ON t.item_id = i.id
    WHERE t.tag = %(tag)s AND t.item_id < %(below)s AND {VISIBLE}
    ORDER BY t.item_id DESC LIMIT %(count)s
"""  # noqa: S608 (constants)


def tag_page(tag: str, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20) -> ItemPage:
    """Posts and replies with `tag`, in its canonical form, below `last_id` (exclusive) as far as `reader` may see
    them, newest first.
    """
    below = MAX_ID + 1 if last_id is None else last_id
    return page_of(
        fetch(TAGGED, {"tag": tag, "below": below, "reader": reader.pk or 0, "count": limit + 1}), reader, limit
    )
