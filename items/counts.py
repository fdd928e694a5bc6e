"""The counts of items. Verbs insert a `CountChange`, and `fold` adds the changes up.

See docs/decisions.md: Counts are staged in PostgreSQL.
"""

from django.db import transaction

from items.models import LISTED, CountChange, Item, Visibility
from items.signals import counts_folded
from storage.connections import fetch

COUNTED = [one for one in LISTED if one != Visibility.SELF]
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
    """The changes for `stage`. Private mentions and items for oneself count nowhere."""
    changes = []
    if item.repost_of_id:
        changes.append(CountChange(item_id=item.repost_of_id, reposts=sign))
    elif item.reply_to_id and item.visibility in COUNTED:
        kind = "replies" if item.visibility == Visibility.PUBLIC else "circle_replies"
        above = {item.reply_to_id, item.root_id or item.reply_to_id}
        changes += [CountChange(item_id=item_id, **{kind: sign}) for item_id in above]
    if item.quote_of_id and not item.is_quote_revoked and item.visibility == Visibility.PUBLIC:
        changes.append(CountChange(item_id=item.quote_of_id, quotes=sign))
    return changes


@transaction.atomic
def fold() -> int:
    """Add the staged changes to the counts."""
    item_ids = [row[0] for row in fetch(FOLD)]
    if item_ids:
        counts_folded.send(sender=Item, item_ids=item_ids)
    return len(item_ids)
