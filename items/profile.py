"""Reads of single items, of one sender's items and of the replies to one item: what is not a feed of many senders.

Each is one prepared statement, and one or two more where reposts are shown: building the same query by the ORM costs
more than the rest of the page. `VISIBLE` says in SQL what `ItemQuerySet.visible_to` says; a test holds them together.
"""

from typing import Any

import msgspec
from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from feedsite.connections import fetch
from feedsite.ids import MAX_ID
from items.hydrate import COLUMNS, ItemBody, body, embed

# For readers who are not signed in `reader` is 0, whom nobody follows or blocks.
VISIBLE = """
    ((i.sender_id = %(reader)s AND i.status <> 'deleted') OR (
        i.status = 'published' AND s.is_active
        AND (i.visibility = 'public' OR (i.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = %(reader)s AND f.followee_id = s.id)
            AND (i.visibility = 'followers' OR EXISTS (
                SELECT FROM relations_follow f WHERE f.follower_id = s.id AND f.followee_id = %(reader)s))))
        AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = %(reader)s AND b.blocked_id = s.id)
        AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = s.id AND b.blocked_id = %(reader)s)))
"""
ITEMS = "items_item i JOIN accounts_user s ON s.id = i.sender_id"
ONE = f"SELECT {COLUMNS} FROM {ITEMS} WHERE i.id = %(item)s AND {VISIBLE}"  # noqa: S608 (constants)
PROFILE = f"""
    SELECT {COLUMNS} FROM {ITEMS}
    WHERE i.sender_id = %(owner)s AND i.reply_to_id IS NULL AND i.id < %(below)s AND {VISIBLE}
    ORDER BY i.id DESC LIMIT %(count)s
"""  # noqa: S608
REPLIES = f"""
    SELECT {COLUMNS} FROM {ITEMS}
    WHERE i.reply_to_id = %(item)s AND i.id > %(above)s AND {VISIBLE}
    ORDER BY i.id LIMIT %(count)s
"""  # noqa: S608
# The rule is asked once for each visibility, not for each item, so that the count is an index-only scan.
COUNT = f"""
    SELECT count(*) FROM items_item WHERE sender_id = %(owner)s AND status = 'published' AND reply_to_id IS NULL
    AND visibility = ANY(ARRAY(
        SELECT i.visibility FROM (
            SELECT %(owner)s::bigint AS sender_id, 'published' AS status,
                unnest(ARRAY['public', 'followers', 'mutuals', 'self']) AS visibility
        ) i JOIN accounts_user s ON s.id = i.sender_id WHERE {VISIBLE}))
"""  # noqa: S608


class ItemPage(msgspec.Struct):
    """A page of items. `last_id` is the last id scanned; `has_more` is true only if another item exists."""

    items: list[ItemBody]
    last_id: str | None
    has_more: bool


def visible_item(item_id: int, reader: User | AnonymousUser) -> ItemBody | None:
    """The item, if `reader` may see it."""
    found = _bodies(fetch(ONE, {"item": item_id, "reader": reader.pk or 0}), reader)
    return found[0] if found else None


def profile_page(owner: User, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20) -> ItemPage:
    """What `owner` published and reposted below `last_id` (exclusive) as far as `reader` may see it, newest first."""
    below = MAX_ID + 1 if last_id is None else last_id
    params = {"owner": owner.pk, "below": below, "reader": reader.pk or 0, "count": limit + 1}
    return _page(fetch(PROFILE, params), reader, limit)


def replies_page(
    item_id: int, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20
) -> ItemPage:
    """The replies to an item after `last_id` (exclusive) as far as `reader` may see them, oldest first."""
    params = {"item": item_id, "above": last_id or 0, "reader": reader.pk or 0, "count": limit + 1}
    return _page(fetch(REPLIES, params), reader, limit)


def item_count(owner: User, reader: User | AnonymousUser) -> int:
    """How many published items the whole profile shows `reader`."""
    return int(fetch(COUNT, {"owner": owner.pk, "reader": reader.pk or 0})[0][0])


def _page(rows: list[tuple[Any, ...]], reader: User | AnonymousUser, limit: int) -> ItemPage:
    shown = rows[:limit]
    return ItemPage(_bodies(shown, reader), str(shown[-1][0]) if shown else None, len(rows) > limit)


def _bodies(rows: list[tuple[Any, ...]], reader: User | AnonymousUser) -> list[ItemBody]:
    bodies = [body(row, reader.pk) for row in rows]
    embed(bodies, {str(row[0]): row[10] for row in rows if row[10]}, reader)
    return bodies
