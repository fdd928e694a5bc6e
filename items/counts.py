"""The counts of items. Verbs insert a `CountChange`, and `fold` adds the changes up.

See docs/decisions.md: Counts are staged in PostgreSQL.
"""

from django.db import transaction
from django.db.models import Q

from items.models import LISTED, CountChange, Item, Status, Visibility
from items.signals import counts_folded
from storage.connections import fetch

COUNTED = [one for one in LISTED if one != Visibility.SELF]
COUNTS_ELSEWHERE = Q(repost_of__isnull=False) | Q(reply_to__isnull=False) | Q(quote_of__isnull=False)
COUNTED_BY = ("repost_of", "reply_to", "root", "quote_of", "is_quote_revoked", "visibility", "status", "uncounted")
RECOUNT_LIKES = """
    WITH part AS MATERIALIZED (
        SELECT id FROM items_like WHERE user_id = %(user)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
    ),
    changed AS (
        UPDATE items_like SET uncounted = %(mark)s
        WHERE id = ANY(ARRAY(SELECT id FROM part)) AND uncounted IS DISTINCT FROM %(mark)s RETURNING item_id
    ),
    staged AS (
        INSERT INTO items_countchange (item_id, likes, replies, circle_replies, reposts)
        SELECT item_id, %(change)s::int, 0, 0, 0 FROM changed
    )
    SELECT max(id) FROM part
"""
# A row is deleted only once, so each change counts once. The order of ids avoids deadlocks.
FOLD = """
    WITH folded AS (DELETE FROM items_countchange RETURNING item_id, likes, replies, circle_replies, reposts, quotes),
    sums AS (
        SELECT item_id, sum(likes) AS likes, sum(replies) AS replies, sum(circle_replies) AS circle_replies,
            sum(reposts) AS reposts, sum(quotes) AS quotes
        FROM folded GROUP BY item_id ORDER BY item_id
    )
    INSERT INTO items_itemcounts AS counted (item_id, likes, replies, circle_replies, reposts, quotes)
    SELECT item_id, likes, replies, circle_replies, reposts, quotes FROM sums
    ON CONFLICT (item_id) DO UPDATE SET likes = counted.likes + EXCLUDED.likes,
        replies = counted.replies + EXCLUDED.replies,
        circle_replies = counted.circle_replies + EXCLUDED.circle_replies,
        reposts = counted.reposts + EXCLUDED.reposts, quotes = counted.quotes + EXCLUDED.quotes
    RETURNING item_id
"""


def stage(item: Item, sign: int) -> None:
    """Stage what an item adds to others' counts (1) or takes away (-1)."""
    if changes := changes_of(item, sign):
        CountChange.objects.bulk_create(changes)


def changes_of(item: Item, sign: int) -> list[CountChange]:
    """The changes for `stage`. Private mentions, items for oneself and those of hidden senders count nowhere."""
    changes: list[CountChange] = []
    if item.uncounted:
        return changes
    if item.repost_of_id:
        changes.append(CountChange(item_id=item.repost_of_id, reposts=sign))
    elif item.reply_to_id and item.visibility in COUNTED:
        kind = "replies" if item.visibility == Visibility.PUBLIC else "circle_replies"
        above = {item.reply_to_id, item.root_id or item.reply_to_id}
        changes += [CountChange(item_id=item_id, **{kind: sign}) for item_id in above]
    if item.quote_of_id and not item.is_quote_revoked and item.visibility == Visibility.PUBLIC:
        changes.append(CountChange(item_id=item.quote_of_id, quotes=sign))
    return changes


def recount(user_id: int, places: dict[str, int], limit: int, *, is_hidden: bool) -> bool:
    """Take what a user likes and publishes out of others' counts, or put it back (accounts.recounting)."""
    mark = True if is_hidden else None
    params = {"user": user_id, "after": places.get("likes", 0), "limit": limit}
    liked = fetch(RECOUNT_LIKES, params | {"mark": mark, "change": -1 if is_hidden else 1})[0][0]
    items = Item.objects.filter(sender=user_id, pk__gt=places.get("items", 0)).order_by("pk")
    ids = list(items.values_list("pk", flat=True)[:limit])
    counted = Item.objects.filter(COUNTS_ELSEWHERE, pk__in=ids, uncounted__isnull=is_hidden).order_by("pk")
    changing = list(counted.select_for_update(no_key=True).only(*COUNTED_BY))
    published = [item for item in changing if item.status == Status.PUBLISHED]
    for item in changing:
        item.uncounted = None
    Item.objects.filter(pk__in=[item.pk for item in changing]).update(uncounted=mark)
    sign = -1 if is_hidden else 1
    CountChange.objects.bulk_create([change for item in published for change in changes_of(item, sign)])
    places |= {"likes": liked or params["after"], "items": ids[-1] if ids else places.get("items", 0)}
    return bool(liked or ids)


@transaction.atomic
def fold() -> int:
    """Add the staged changes to the counts."""
    item_ids = [row[0] for row in fetch(FOLD)]
    if item_ids:
        counts_folded.send(sender=Item, item_ids=item_ids)
    return len(item_ids)
