"""Reads of one sender's items and of the replies to one item: what is not a feed of many senders.

Each list costs one query for the ids, one for the bodies, and two more where it shows reposts.
"""

from collections.abc import Sequence

import msgspec
from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.hydrate import ItemBody, hydrate
from items.models import Item


class ItemPage(msgspec.Struct):
    """A page of items. `last_id` is the last id scanned; `has_more` is true only if another item exists."""

    items: list[ItemBody]
    last_id: str | None
    has_more: bool


def _page(ids: Sequence[int], reader: User | AnonymousUser, limit: int) -> ItemPage:
    shown = ids[:limit]
    return ItemPage(hydrate(shown, reader), str(shown[-1]) if shown else None, len(ids) > limit)


def profile_page(owner: User, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20) -> ItemPage:
    """What `owner` published and reposted below `last_id` (exclusive) as far as `reader` may see it, newest first."""
    items = Item.objects.visible_to(reader).by(owner).without_replies()
    if last_id is not None:
        items = items.filter(pk__lt=last_id)
    return _page(list(items.order_by("-pk").values_list("pk", flat=True)[: limit + 1]), reader, limit)


def replies_page(
    item_id: int, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20
) -> ItemPage:
    """The replies to an item after `last_id` (exclusive) as far as `reader` may see them, oldest first."""
    items = Item.objects.visible_to(reader).filter(reply_to=item_id)
    if last_id is not None:
        items = items.filter(pk__gt=last_id)
    return _page(list(items.order_by("pk").values_list("pk", flat=True)[: limit + 1]), reader, limit)


def item_count(owner: User, reader: User | AnonymousUser) -> int:
    """How many items the whole profile shows `reader`."""
    return Item.objects.visible_to(reader).by(owner).without_replies().count()
