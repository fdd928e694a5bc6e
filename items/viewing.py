"""Views of items: the rooms above are told of each once the answer has been sent.

A GET of one item counts as opening it, so clients need no call of their own. HEAD, prefetching and renewing a card do
not count.
"""

from collections.abc import Sequence

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse

from accounts.models import User
from items.bodies import ItemBody
from items.models import Item, Visibility
from items.signals import item_viewed
from web.pages import fetches_ahead


def tell_viewed(
    request: HttpRequest,
    response: HttpResponse,
    item: ItemBody,
    reader: User | AnonymousUser,
    *,
    replies: Sequence[ItemBody] = (),
) -> None:
    """Tell that `reader` opened `item`, of a repost its original, when `response` has been sent, so that no reader
    waits for the servers that remember it. Only if the reader looks at it: not where only the head of the answer is
    asked for, nor where a browser fetches ahead. Opening an item is recorded only for signed-in readers, and not for
    their own items, nor for private mentions.
    """
    seen = item.shown
    if (
        request.method != "GET"
        or fetches_ahead(request)
        or not isinstance(reader, User)
        or seen.sender.id == str(reader.pk)
        or seen.visibility == Visibility.MENTIONED
    ):
        return
    shown = list(replies)
    response._resource_closers.append(  # type: ignore[attr-defined]  # called when the server closes it
        lambda: item_viewed.send_robust(sender=Item, reader=reader, item=seen, replies=shown)
    )
