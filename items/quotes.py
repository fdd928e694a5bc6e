"""Quotes: who may quote an item, and the items that quote it.

See docs/decisions.md: A quote is asked for at every reading.
"""

from django.contrib.auth.models import AnonymousUser
from msgspec import UNSET

from accounts.models import QuotableBy, User
from items.bodies import ItemBody
from items.listing import ItemPage, Walk, listing
from items.models import Item, Status, Visibility
from relations.visibility import is_following

QUOTES = """
    SELECT i.id FROM items_item i WHERE i.quote_of_id = %(item)s AND i.status = 'published' AND NOT i.is_quote_revoked
        AND i.id > %(above)s AND i.id < %(below)s
"""
QUOTING = Walk(listing([QUOTES], "DESC"), listing([QUOTES], "ASC"))


def may_quote(item: Item | ItemBody, user: User) -> bool:
    """Whether a user who sees an item, no repost, may quote it. What is not for all is quoted by its sender alone."""
    sender_id = item.sender_id if isinstance(item, Item) else int(item.sender.id)
    if item.status not in (UNSET, Status.PUBLISHED):
        return False
    if sender_id == user.pk:
        return True
    if item.visibility != Visibility.PUBLIC or item.quotable_by == QuotableBy.NOBODY:
        return False
    return item.quotable_by == QuotableBy.EVERYONE or is_following(user.pk, sender_id)


def quotes_page(item: ItemBody, reader: User | AnonymousUser, **at: int | None) -> ItemPage:
    """The quotes of an item, of a repost those of its original, as `Walk.page` has them."""
    return QUOTING.page(reader, item=int(item.shown.id), **at)
