"""What an address names, for whoever asks, or Http404."""

from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from accounts.models import User
from accounts.owned import own_or_404
from items import actions
from items.bodies import ItemBody
from items.filters.filters import Listed, filter_of
from items.models import Item
from items.profiles.profile import visible_item
from web.rest import parse_id


def body_or_404(item_id: str | int, reader: User | AnonymousUser) -> ItemBody:
    """An item that `reader` may see. Raises Http404."""
    number = parse_id(str(item_id))
    found = visible_item(number, reader) if number else None
    if found is None:
        raise Http404
    return found


def item_or_404(item_id: str | int, reader: User | AnonymousUser) -> Item:
    """Like `body_or_404`, to act on."""
    number = parse_id(str(item_id))
    item = Item.objects.visible_to(reader).select_related("repost_of").filter(pk=number).first() if number else None
    if item is None:
        raise Http404
    return item


def take_back_or_404(item_id: str | int, user: User, undo: Callable[[Item], bool]) -> Item:
    """Call items.actions.take_back. Raises Http404 for None."""
    item = actions.take_back(user=user, item_id=parse_id(str(item_id)), undo=undo)
    if item is None:
        raise Http404
    return item


def quote_or_404(quote_id: str | int, user: User, quoted_id: str | int | None = None) -> Item:
    """A quote of the user's own item, visible or not."""
    number = parse_id(str(quote_id))
    quote = Item.objects.filter(pk=number, quote_of__sender=user).first() if number else None
    if quote is None or (quoted_id is not None and quote.quote_of_id != parse_id(str(quoted_id))):
        raise Http404
    return quote


def own_item(item_id: int, reader: User) -> Item:
    """The reader's own item. Raises Http404 and PermissionDenied."""
    item = item_or_404(item_id, reader)
    if item.sender_id != reader.pk:
        raise PermissionDenied
    return item


def filter_or_404(filter_id: str | int, owner: User) -> Listed:
    """The owner's filter. Raises Http404."""
    return own_or_404(filter_of, owner, filter_id)
