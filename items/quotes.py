"""Who may quote an item, and its quotes.

See docs/decisions.md: A quote is asked for at every reading.
"""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from msgspec import UNSET

from accounts.models import QuotableBy, User
from items.bodies import ItemBody
from items.listing import ItemPage, Walk, listing
from items.models import Context, Item, Status, Visibility
from items.visibility import is_listed
from relations.visibility import is_following

QUOTES = """
    SELECT i.id FROM items_item i WHERE i.quote_of_id = %(item)s AND i.status = 'published' AND NOT i.is_quote_revoked
        AND i.id > %(above)s AND i.id < %(below)s
"""
QUOTING = Walk(*(listing([QUOTES], order, keep=is_listed("i")) for order in ("DESC", "ASC")))


def quoters(item: Item | ItemBody) -> str:
    """Who may quote an item, besides its sender (`QuotableBy`)."""
    return item.quotable_by if item.visibility == Visibility.PUBLIC else QuotableBy.NOBODY


def may_quote(item: Item | ItemBody, user: User) -> bool:
    """Whether a user who sees an item that is no repost may quote it."""
    if item.status not in (UNSET, Status.PUBLISHED):
        return False
    sender_id = item.sender_id if isinstance(item, Item) else int(item.sender.id)
    if sender_id == user.pk or quoters(item) == QuotableBy.EVERYONE:
        return True
    return quoters(item) == QuotableBy.FOLLOWERS and is_following(user.pk, sender_id)


def quotes_page(item: ItemBody, reader: User | AnonymousUser, **at: Any) -> ItemPage:
    """The quotes of an item, as in `Walk.page`."""
    return QUOTING.page(reader, item=int(item.shown.id), context=Context.THREAD, **at)
