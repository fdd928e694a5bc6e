"""Chains: threads that were published at once. Each item is the sender's reply to the one before.

All but the last are marked as continued. Timelines have no replies, so they show a chain once, as its first item.

See docs/decisions.md: A thread is a chain of replies to oneself.
"""

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import COLUMNS, ITEMS, ItemRow, bodies
from items.models import Context
from items.visibility import VISIBLE, is_hidden_reply
from storage.connections import fetch

LONGEST = 25
"""Items of a chain on one page, and posts of a new thread."""
# The next item is the first reply: both came into the table at once. What was deleted does not end a chain. A hidden
# reply does.
CHAIN = f"""
    WITH RECURSIVE chain AS (
        SELECT i.id, i.sender_id, i.is_continued, 1 AS place FROM items_item i WHERE i.id = %(item)s
        UNION ALL
        SELECT own.id, chain.sender_id, own.is_continued, chain.place + 1 FROM chain CROSS JOIN LATERAL (
            SELECT r.id, r.sender_id, r.is_continued FROM items_item r WHERE r.reply_to_id = chain.id
            ORDER BY r.id LIMIT 1
        ) own WHERE chain.is_continued AND own.sender_id = chain.sender_id AND chain.place < {LONGEST}
            AND NOT {is_hidden_reply("own")}
    )
    SELECT {COLUMNS} FROM chain JOIN ({ITEMS}) ON i.id = chain.id
    WHERE chain.place > 1 AND {VISIBLE} ORDER BY chain.place
"""


def chain_below(item: ItemBody, reader: User | AnonymousUser) -> list[ItemBody]:
    """The items of a chain after this one that the reader may see. No query if it is not continued."""
    if item.shown.continued is not True:
        return []
    params = {"item": int(item.shown.id), "reader": reader.pk or 0}
    return bodies(fetch(CHAIN, params, into=ItemRow.of), reader, Context.THREAD)
