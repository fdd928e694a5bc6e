from collections import defaultdict

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import visible_bodies
from items.models import Context
from items.visibility import is_hidden_reply
from storage.connections import fetch

ABOVE, BELOW = 40, 200
"""Maximum items checked above and below."""
# A recursion returns rows level by level, and stops at the limit.
THREAD = f"""
    WITH RECURSIVE up AS (
        SELECT i.reply_to_id AS id, 1 AS distance FROM items_item i WHERE i.id = %(item)s
        UNION ALL
        SELECT i.reply_to_id, up.distance + 1 FROM up JOIN items_item i ON i.id = up.id WHERE up.distance < {ABOVE}
    ),
    down AS (
        SELECT i.id, i.reply_to_id FROM items_item i WHERE i.reply_to_id = %(item)s AND NOT {is_hidden_reply("i")}
        UNION ALL
        SELECT i.id, i.reply_to_id FROM down JOIN items_item i ON i.reply_to_id = down.id AND NOT {is_hidden_reply("i")}
    )
    (SELECT id, NULL::bigint FROM up WHERE id IS NOT NULL)
    UNION ALL
    (SELECT id, reply_to_id FROM down LIMIT {BELOW})
"""


def thread_of(item: ItemBody, reader: User | AnonymousUser) -> tuple[list[ItemBody], list[ItemBody]]:
    """Items above, root first, and below, each reply after its parent."""
    item_id = int(item.shown.id)
    rows = fetch(THREAD, {"item": item_id, "reader": reader.pk or 0})
    below: defaultdict[int, list[int]] = defaultdict(list)
    for one, answered in rows:
        if answered is not None:
            below[answered].append(one)
    order: list[int] = []
    waiting = sorted(below[item_id], reverse=True)
    while waiting:
        one = waiting.pop()
        order.append(one)
        waiting += sorted(below[one], reverse=True)
    found = {int(one.id): one for one in visible_bodies([one for one, _ in rows], reader, Context.THREAD)}
    above = sorted(one for one, answered in rows if answered is None)
    return [found[one] for one in above if one in found], [found[one] for one in order if one in found]
