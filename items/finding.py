"""Rows that an address names, to act on."""

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.models import Item
from web.refusals import NotOwnError


def item_row(item_id: int, reader: User | AnonymousUser) -> Item:
    """An item that `reader` may see. Raises Item.DoesNotExist."""
    return Item.objects.visible_to(reader).select_related("repost_of").get(pk=item_id)


def own_item(item_id: int, reader: User) -> Item:
    """The reader's own item. Raises Item.DoesNotExist and NotOwnError."""
    item = item_row(item_id, reader)
    if item.sender_id != reader.pk:
        raise NotOwnError
    return item


def quote_of_own(quote_id: int, user: User, **of: int) -> Item:
    """A quote of the user's own item, visible or not. Raises Item.DoesNotExist."""
    return Item.objects.get(pk=quote_id, quote_of__sender=user, **of)
