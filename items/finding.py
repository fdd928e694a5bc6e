"""What an address names, for whoever asks, or Http404."""

from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from accounts.models import User
from accounts.owned import own_or_404
from items import actions
from items.bodies import ItemBody
from items.filters.filters import OwnedFilter, filter_of
from items.models import Item
from items.profiles.profile import visible_item


def body_or_404(item_id: int, reader: User | AnonymousUser) -> ItemBody:
    """An item that `reader` may see. Raises Http404."""
    found = visible_item(item_id, reader)
    if found is None:
        raise Http404
    return found


def item_or_404(item_id: int, reader: User | AnonymousUser) -> Item:
    """Like `body_or_404`, to act on."""
    return Item.objects.visible_to(reader).select_related("repost_of").get(pk=item_id)


def undo_or_404(item_id: int, user: User, undo: Callable[[Item], bool]) -> Item:
    """Call items.actions.undo_act. Raises Http404 for None."""
    item = actions.undo_act(user=user, item_id=item_id, undo=undo)
    if item is None:
        raise Http404
    return item


def quote_or_404(quote_id: int, user: User, quoted_id: int | None = None) -> Item:
    """A quote of the user's own item, visible or not."""
    quote = Item.objects.filter(pk=quote_id, quote_of__sender=user).first()
    if quote is None or quoted_id not in (None, quote.quote_of_id):
        raise Http404
    return quote


def own_item(item_id: int, reader: User) -> Item:
    """The reader's own item. Raises Http404 and PermissionDenied."""
    item = item_or_404(item_id, reader)
    if item.sender_id != reader.pk:
        raise PermissionDenied
    return item


def filter_or_404(filter_id: int, owner: User) -> OwnedFilter:
    """The owner's filter. Raises Http404."""
    return own_or_404(filter_of, owner, filter_id)
