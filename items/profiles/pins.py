"""Pins: public posts that their sender shows first, until they are withdrawn or narrowed."""

from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import COLUMNS, ITEMS, ItemRow, bodies
from items.models import Context, Item, Pin, Status, Visibility
from items.visibility import VISIBLE, public_post
from storage.connections import fetch
from web.refusals import ConflictError, RefusalError

PINS = 5
"""Most pins of a user."""
PINNED = f"""
    SELECT {COLUMNS} FROM {ITEMS} JOIN items_pin pin ON pin.item_id = i.id
    WHERE pin.sender_id = %(owner)s AND {public_post("i")} AND {VISIBLE} ORDER BY pin.id DESC
"""


class PinCapError(ConflictError):
    """The user would pin more than `PINS` posts."""


class NotPinnableError(RefusalError, ValueError):
    """The item is no public post."""

    sentence = "You can only pin public posts, not replies or reposts."


@transaction.atomic
def pin(*, item: Item) -> bool:
    """Pin a post. True if it was not pinned. Raises NotPinnableError and PinCapError.

    The lock on the item orders it with a deletion. The lock on the sender keeps the cap.
    """
    item = Item.objects.select_for_update(no_key=True).get(pk=item.pk)
    if not is_pinnable(item):
        raise NotPinnableError
    User.objects.locked().values_list("pk").get(pk=item.sender_id)
    pins = Pin.objects.filter(sender=item.sender_id)
    if pins.filter(item=item).exists():
        return False
    if pins.count() >= PINS:
        raise PinCapError(f"You can pin up to {PINS} posts.")
    Pin.objects.create(item=item, sender_id=item.sender_id)
    return True


def unpin(*, item_id: int) -> bool:
    """Unpin an item. True if it was pinned."""
    gone, _ = Pin.objects.filter(item=item_id).delete()
    return bool(gone)


def pinned_items(owner: User, reader: User | AnonymousUser) -> list[ItemBody]:
    """The visible posts that `owner` pinned."""
    return bodies(
        fetch(PINNED, {"owner": owner.pk, "reader": reader.pk or 0}, into=ItemRow.of), reader, Context.ACCOUNT
    )


def pinned_ids(owner: User | AnonymousUser) -> frozenset[str]:
    """The ids of the posts that `owner` pinned."""
    return frozenset(map(str, Pin.objects.filter(sender=owner.pk or 0).values_list("item_id", flat=True)))


def is_pinnable(item: Item | ItemBody) -> bool:
    """Whether its sender may pin the item."""
    is_public = item.status == Status.PUBLISHED and item.visibility == Visibility.PUBLIC
    is_answer = item.reply_to_id if isinstance(item, Item) else item.reply_to
    is_repost = item.repost_of_id if isinstance(item, Item) else item.repost_of
    return is_public and not is_answer and not is_repost
