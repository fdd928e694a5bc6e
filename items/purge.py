"""Purging of items when an account is deleted. Emptied rows stay, because others reply to and repost them."""

from typing import Any

from django.db import transaction

from items import polls
from items.counts import changes_of
from items.models import (
    CountChange,
    Filter,
    IdempotencyKey,
    Item,
    ItemDocument,
    ItemTag,
    ItemVersion,
    Pin,
    ScheduledPost,
    Status,
)
from items.signals import item_withdrawn
from media import attaching
from storage.connections import fetch

BATCHES = 20
"""Transactions per call. Each call starts at the first item again and skips those already emptied."""

EMPTY: dict[str, Any] = {
    "status": Status.DELETED,
    "title": "",
    "content": {},
    "extra_info": {},
    "media": [],
    "link_card": None,
    "repliers": None,
}

UNLIKE = """
    WITH unliked AS (
        DELETE FROM items_like WHERE id IN (SELECT id FROM items_like WHERE user_id = %(user)s LIMIT %(limit)s)
        RETURNING item_id, uncounted
    ), staged AS (
        INSERT INTO items_countchange (item_id, likes, replies, circle_replies, reposts)
        SELECT item_id, -1, 0, 0, 0 FROM unliked WHERE uncounted IS NULL
    )
    SELECT count(*) FROM unliked
"""


FORGET_BOOKMARKS = """
    DELETE FROM items_bookmark WHERE id IN (SELECT id FROM items_bookmark WHERE user_id = %(user)s LIMIT %(limit)s)
    RETURNING id
"""


UNMUTE = """
    DELETE FROM items_mutedthread WHERE (user_id, root_id) IN (
        SELECT user_id, root_id FROM items_mutedthread WHERE user_id = %(user)s LIMIT %(limit)s) RETURNING 1
"""


SHOW_REPLIES = """
    DELETE FROM items_hiddenreply WHERE reply_id IN (
        SELECT reply_id FROM items_hiddenreply WHERE user_id = %(user)s LIMIT %(limit)s) RETURNING 1
"""


# The others keep their messages.
LEAVE = (
    """
    DELETE FROM items_participant WHERE (conversation_id, user_id) IN (
        SELECT conversation_id, user_id FROM items_participant WHERE user_id = %(user)s LIMIT %(limit)s) RETURNING 1
    """,
    """
    DELETE FROM items_correspondent WHERE (writer_id, reader_id) IN (
        SELECT writer_id, reader_id FROM items_correspondent WHERE writer_id = %(user)s LIMIT %(limit)s) RETURNING 1
    """,
    """
    DELETE FROM items_correspondent WHERE (writer_id, reader_id) IN (
        SELECT writer_id, reader_id FROM items_correspondent WHERE reader_id = %(user)s LIMIT %(limit)s) RETURNING 1
    """,
)


def purge(*, user_id: int, limit: int) -> int:
    """Empty items and remove likes, votes, bookmarks and the like. Counts and tallies stay exact."""
    taken, last_id = 0, 0
    for _ in range(BATCHES):
        items = _empty_items(user_id, last_id, limit)
        if items:
            last_id = items[-1].pk
        with transaction.atomic():
            likes = fetch(UNLIKE, {"user": user_id, "limit": limit})[0][0]
        votes = polls.withdraw_votes(user_id=user_id, limit=limit)
        bookmarks = len(fetch(FORGET_BOOKMARKS, {"user": user_id, "limit": limit}))
        left = sum(len(fetch(query, {"user": user_id, "limit": limit})) for query in (*LEAVE, UNMUTE, SHOW_REPLIES))
        found = len(items) + likes + votes + bookmarks + left
        taken += found
        if not found:
            break
    IdempotencyKey.objects.filter(sender=user_id).delete()
    Pin.objects.filter(sender=user_id).delete()  # bounded by pins.PINS
    ScheduledPost.objects.filter(sender=user_id).delete()  # bounded by scheduling.MOST
    Filter.objects.filter(owner=user_id).delete()  # bounded by filters.FILTERS
    return taken


@transaction.atomic
def _empty_items(user_id: int, above: int, limit: int) -> list[Item]:
    left = Item.objects.filter(sender=user_id, pk__gt=above).exclude(**EMPTY).order_by("pk")
    items = list(left.select_for_update(no_key=True, of=("self",)).select_related("sender")[:limit])
    published = [item for item in items if item.status == Status.PUBLISHED]
    emptied = [item.pk for item in items]
    Item.objects.filter(pk__in=emptied).update(**EMPTY)
    attaching.forget_items(emptied)
    ItemDocument.objects.filter(item__in=emptied).delete()
    ItemTag.objects.filter(item__in=emptied).delete()
    ItemVersion.objects.filter(item__in=emptied).delete()
    CountChange.objects.bulk_create([change for item in published for change in changes_of(item, -1)])
    for item in published:
        item.status = Status.DELETED
        item_withdrawn.send(sender=Item, item=item)
    return items
