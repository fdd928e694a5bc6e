"""Views of items. HEAD, prefetching and renewing a card do not count."""

from collections.abc import Sequence

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse

from accounts.models import User
from items.bodies import ItemBody
from items.models import Item, Visibility
from items.signals import item_viewed
from web.pages import is_prefetch


def announce_view(
    request: HttpRequest,
    response: HttpResponse,
    item: ItemBody,
    reader: User | AnonymousUser,
    *,
    replies: Sequence[ItemBody] = (),
) -> None:
    """Announce, after the answer, that `reader` opened `item`, unless it is their own or a private mention."""
    seen = item.shown
    if (
        request.method != "GET"
        or is_prefetch(request)
        or not isinstance(reader, User)
        or seen.sender.id == str(reader.pk)
        or seen.visibility == Visibility.MENTIONED
    ):
        return
    shown = list(replies)
    response._resource_closers.append(  # type: ignore[attr-defined]  # called when the server closes it
        lambda: item_viewed.send_robust(sender=Item, reader=reader, item=seen, replies=shown)
    )
