"""Pins: posts that their sender shows first on their profile. Public posts only: so a pin tells no reader of a post
that they do not see anyhow; the rule of who may see an item is asked of each all the same.

A post that is deleted, rejected, held for review or shown to fewer is pinned no more (items.actions, items.purge), and
stays so when it comes back.
"""

from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import COLUMNS, ITEMS, ItemRow, bodies
from items.models import Item, Pin, Status, Visibility
from items.visibility import VISIBLE, public_post
from storage.connections import fetch

PINS = 5
"""The posts that a user may pin."""
# A user's pins are at most PINS.
PINNED = f"""
    SELECT {COLUMNS} FROM {ITEMS} JOIN items_pin pin ON pin.item_id = i.id
    WHERE pin.sender_id = %(owner)s AND {public_post("i")} AND {VISIBLE} ORDER BY pin.id DESC
"""  # noqa: S608 (constants)


class PinCapError(Exception):
    """Raised when a user would pin more than `PINS` posts."""


class NotPinnableError(ValueError):
    """Raised for an item that is no public post: a reply, a repost, or one that not all may see."""


@transaction.atomic
def pin(*, item: Item) -> bool:
    """Pin a post on its sender's profile; True if it was not. Raises NotPinnableError and PinCapError.

    The item is locked before its sender: so it is pinned before a deletion, which takes the pin along, or not at all;
    and the bound holds under concurrent calls.
    """
    item = Item.objects.select_for_update(no_key=True).get(pk=item.pk)
    if not is_pinnable(item):
        raise NotPinnableError
    User.objects.held().values_list("pk").get(pk=item.sender_id)
    pins = Pin.objects.filter(sender=item.sender_id)
    if pins.filter(item=item).exists():
        return False
    if pins.count() >= PINS:
        raise PinCapError
    Pin.objects.create(item=item, sender_id=item.sender_id)
    return True


def unpin(*, item_id: int) -> bool:
    """Take a pin back; True if there was one."""
    gone, _ = Pin.objects.filter(item=item_id).delete()
    return bool(gone)


def pinned_items(owner: User, reader: User | AnonymousUser) -> list[ItemBody]:
    """The posts that `owner` has pinned, as far as `reader` may see them, the last pinned first."""
    return bodies(fetch(PINNED, {"owner": owner.pk, "reader": reader.pk or 0}, into=ItemRow.of), reader)


def pinned_ids(owner: User) -> set[str]:
    """The ids of the posts that `owner` has pinned."""
    return {str(item_id) for item_id in Pin.objects.filter(sender=owner).values_list("item_id", flat=True)}


def is_pinnable(item: Item | ItemBody) -> bool:
    """Whether its sender, who reads it, may pin the item."""
    is_public = item.status == Status.PUBLISHED and item.visibility == Visibility.PUBLIC
    is_answer = item.reply_to_id if isinstance(item, Item) else item.reply_to
    is_repost = item.repost_of_id if isinstance(item, Item) else item.repost_of
    return is_public and not is_answer and not is_repost
