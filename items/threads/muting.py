"""Muted threads: a user wants no notifications of them. Nobody else learns of it."""

from collections.abc import Iterable

from accounts.models import User
from items.models import Item
from storage.connections import fetch, id_array

MUTE = """
    INSERT INTO items_mutedthread (user_id, root_id) VALUES (%(user)s, %(root)s)
    ON CONFLICT DO NOTHING RETURNING root_id
"""
UNMUTE = "DELETE FROM items_mutedthread WHERE user_id = %(user)s AND root_id = %(root)s RETURNING root_id"


def in_muted_thread(reader: str, item: str) -> str:
    """SQL: whether the reader muted an item's thread."""
    return f"""EXISTS (
        SELECT FROM items_mutedthread muted
        WHERE muted.user_id = {reader} AND muted.root_id = coalesce({item}.root_id, {item}.id) OFFSET 0)"""


AMONG = f"""
    SELECT i.id FROM items_item i WHERE i.id = ANY(%(items)s::bigint[]) AND {in_muted_thread("%(reader)s::bigint", "i")}
"""


def mute_thread(*, user: User, item: Item) -> bool:
    """Mute the thread of an item, or of a repost's original. False if it was muted."""
    return bool(fetch(MUTE, {"user": user.pk, "root": _root_of(item)}))


def unmute_thread(*, user: User, item: Item) -> bool:
    """Unmute the thread of an item. False if it was not muted."""
    return bool(fetch(UNMUTE, {"user": user.pk, "root": _root_of(item)}))


def _root_of(item: Item) -> int:
    item = item.repost_of or item
    return item.root_id or item.pk


def muted_among(item_ids: Iterable[str], reader: User) -> frozenset[str]:
    """Items whose threads the reader muted."""
    rows = fetch(AMONG, {"items": id_array(map(int, item_ids)), "reader": reader.pk})
    return frozenset(str(item_id) for (item_id,) in rows)
