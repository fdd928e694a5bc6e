"""Chains: the replies in which an author goes on. `POST /threads` publishes one at once.

A chain leads from an item to the first reply of the same sender, and so on. Timelines have no replies, so they show a
chain once, as its first item.
"""

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import COLUMNS, ITEMS, ItemRow, bodies
from items.models import LISTED, Context, Item
from items.visibility import VISIBLE, is_published
from storage.connections import fetch

LONGEST = 25
"""Items of a chain on one page, and posts of a new thread."""
LOOKED_AT = 20
"""Replies to an item among which its sender's is sought. One that is published at once is among the first."""
# What was deleted does not end a chain.
CHAIN = f"""
    WITH RECURSIVE chain AS (
        SELECT i.id, i.sender_id, 1 AS place FROM items_item i WHERE i.id = %(item)s
        UNION ALL
        SELECT own.id, chain.sender_id, chain.place + 1 FROM chain CROSS JOIN LATERAL (
            SELECT reply.id FROM (
                SELECT r.id, r.sender_id, r.status FROM items_item r WHERE r.reply_to_id = chain.id
                ORDER BY r.id LIMIT {LOOKED_AT}
            ) reply WHERE reply.sender_id = chain.sender_id ORDER BY {is_published("reply")} DESC, reply.id LIMIT 1
        ) own WHERE chain.place < {LONGEST}
    )
    SELECT {COLUMNS} FROM chain JOIN ({ITEMS}) ON i.id = chain.id
    WHERE chain.place > 1 AND {VISIBLE} ORDER BY chain.place
"""
# Sets the mark of the item that `reply` answers. Only a change writes. SKIP LOCKED: whoever deletes has locked the
# reply first, and others lock the answered item first. Then the mark stays as it is: it only leads to the thread.
RENEW = f"""
    WITH found AS (
        SELECT p.id, EXISTS (
            SELECT FROM items_item r WHERE r.root_id = %(root)s AND r.sender_id = p.sender_id AND r.reply_to_id = p.id
                AND ({is_published("r")} OR r.is_continued)
                AND array_position(%(audiences)s, r.visibility) <= array_position(%(audiences)s, p.visibility)
        ) AS is_continued
        FROM items_item p WHERE p.id = %(answered)s AND p.sender_id = %(sender)s FOR NO KEY UPDATE OF p SKIP LOCKED
    )
    UPDATE items_item p SET is_continued = CASE WHEN found.is_continued THEN true END
    FROM found WHERE p.id = found.id AND (p.is_continued IS TRUE) <> found.is_continued RETURNING p.id
"""


def renew_continuation(reply: Item) -> None:
    """Note whether the answered item goes on in a reply of its own sender, after a change of `reply`."""
    if reply.reply_to_id is not None and not reply.is_private:
        params = {"answered": reply.reply_to_id, "sender": reply.sender_id, "root": reply.root_id}
        fetch(RENEW, params | {"audiences": LISTED})


def chain_below(item: ItemBody, reader: User | AnonymousUser) -> list[ItemBody]:
    """How the item's sender goes on, as far as the reader may see it. No query if it is not continued."""
    if item.shown.continued is not True:
        return []
    params = {"item": int(item.shown.id), "reader": reader.pk or 0}
    return bodies(fetch(CHAIN, params, into=ItemRow.of), reader, Context.THREAD)
