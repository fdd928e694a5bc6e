"""Reads of single items, of one sender's items and of the replies to one item: what is not a feed of many senders.

Each is one prepared statement: building the same query by the ORM costs more than the rest of the page.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from feedsite.connections import fetch
from feedsite.ids import MAX_ID
from items.hydrate import COLUMNS, ITEMS, ItemBody, bodies
from items.visibility import VISIBLE, original_visible, visible_alone

ONE = f"SELECT {COLUMNS} FROM {ITEMS} WHERE i.id = %(item)s AND {VISIBLE}"  # noqa: S608 (constants)
PROFILE = f"""
    SELECT {COLUMNS} FROM {ITEMS}
    WHERE i.sender_id = %(owner)s AND i.reply_to_id IS NULL AND i.id < %(below)s AND {VISIBLE}
    ORDER BY i.id DESC LIMIT %(count)s
"""  # noqa: S608
THREAD = f"""
    SELECT {COLUMNS} FROM {ITEMS}
    WHERE i.root_id = %(item)s AND i.id > %(above)s AND {VISIBLE}
    ORDER BY i.id LIMIT %(count)s
"""  # noqa: S608
REPLIES = f"""
    SELECT {COLUMNS} FROM {ITEMS}
    WHERE i.reply_to_id = %(item)s AND i.id > %(above)s AND {VISIBLE}
    ORDER BY i.id LIMIT %(count)s
"""  # noqa: S608
# The rule is asked once for each visibility, not for each item, so that posts are counted by an index-only scan; of
# reposts the originals have to be looked at.
COUNT = f"""
    WITH shown AS MATERIALIZED (
        SELECT i.visibility FROM (
            SELECT %(owner)s::bigint AS sender_id, 'published' AS status,
                unnest(ARRAY['public', 'followers', 'mutuals', 'self']) AS visibility
        ) i JOIN accounts_user s ON s.id = i.sender_id WHERE {visible_alone("i", "s")}
    )
    SELECT (
        SELECT count(*) FROM items_item WHERE sender_id = %(owner)s AND status = 'published' AND reply_to_id IS NULL
            AND repost_of_id IS NULL AND visibility = ANY(ARRAY(SELECT visibility FROM shown))
    ) + (
        SELECT count(*) FROM items_item i WHERE sender_id = %(owner)s AND status = 'published' AND reply_to_id IS NULL
            AND repost_of_id IS NOT NULL AND visibility = ANY(ARRAY(SELECT visibility FROM shown))
            AND {original_visible("i")}
    )
"""  # noqa: S608


class ItemPage(msgspec.Struct):
    """A page of items. `last_id` is the last id scanned; `has_more` is true only if another item exists."""

    items: list[ItemBody]
    last_id: str | None
    has_more: bool


def visible_item(item_id: int, reader: User | AnonymousUser) -> ItemBody | None:
    """The item, if `reader` may see it."""
    found = bodies(fetch(ONE, {"item": item_id, "reader": reader.pk or 0}), reader)
    return found[0] if found else None


def profile_page(owner: User, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20) -> ItemPage:
    """What `owner` published and reposted below `last_id` (exclusive) as far as `reader` may see it, newest first."""
    below = MAX_ID + 1 if last_id is None else last_id
    params = {"owner": owner.pk, "below": below, "reader": reader.pk or 0, "count": limit + 1}
    return page_of(fetch(PROFILE, params), reader, limit)


def replies_page(
    item: ItemBody, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20
) -> ItemPage:
    """The replies after `last_id` (exclusive) as far as `reader` may see them, oldest first: of a reply those that
    answer it, of any other item its whole thread. A repost has the thread of its original.
    """
    params = {"item": int(item.shown.id), "above": last_id or 0, "reader": reader.pk or 0, "count": limit + 1}
    return page_of(fetch(REPLIES if item.reply_to else THREAD, params), reader, limit)


def item_count(owner: User, reader: User | AnonymousUser) -> int:
    """How many published items the whole profile shows `reader`."""
    return int(fetch(COUNT, {"owner": owner.pk, "reader": reader.pk or 0})[0][0])


def page_of(rows: Sequence[Sequence[Any]], reader: User | AnonymousUser, limit: int) -> ItemPage:
    """The page of rows of `COLUMNS`: `limit` are shown, one more proves that there is more."""
    shown = rows[:limit]
    return ItemPage(bodies(shown, reader), str(shown[-1][0]) if shown else None, len(rows) > limit)
