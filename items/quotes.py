"""Who may quote an item, and its quotes.

See docs/decisions.md: A quote is asked for at every reading.
"""

from http import HTTPStatus
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext as _
from msgspec import UNSET

from accounts.models import QuotableBy, User
from items.bodies import ItemBody
from items.listing import BothListings, ItemPage, listing_sql
from items.models import Context, Item, Status, Visibility, is_within
from items.visibility import is_listed
from relations.visibility import is_following
from web.refusals import RefusalError

QUOTES = """
    SELECT i.id FROM items_item i WHERE i.quote_of_id = %(item)s AND i.status = 'published' AND NOT i.is_quote_revoked
        AND i.id > %(above)s AND i.id < %(below)s
"""
QUOTING = BothListings(*(listing_sql([QUOTES], order, keep=is_listed("i")) for order in ("DESC", "ASC")))


class NotQuotableError(RefusalError):
    """The quoted item's sender does not allow it, or the quote is for people who may not know of that item. The
    message is for people.
    """

    status = HTTPStatus.FORBIDDEN
    code = "not_quotable"
    sentence = "You can't quote that item for this audience."


def quote_policy(item: Item | ItemBody) -> str:
    """Who may quote an item, besides its sender (`QuotableBy`)."""
    return item.quotable_by if item.visibility == Visibility.PUBLIC else QuotableBy.NOBODY


def is_own_quotable(item: ItemBody, reader_id: int | None) -> bool:
    """Whether an item is the reader's, and no private mention: they may quote it for some audience."""
    return item.sender.id == str(reader_id) and item.visibility != Visibility.MENTIONED


def may_quote(item: Item | ItemBody, user: User) -> bool:
    """Whether a user who sees an item that is no repost may quote it, for some audience."""
    if item.status not in (UNSET, Status.PUBLISHED) or not audience_fits(item, user, Visibility.SELF):
        return False
    sender_id = _sender_id(item)
    if sender_id == user.pk or quote_policy(item) == QuotableBy.EVERYONE:
        return True
    return quote_policy(item) == QuotableBy.FOLLOWERS and is_following(user.pk, sender_id)


def audience_fits(item: Item | ItemBody, user: User, visibility: str) -> bool:
    """Whether all readers of a quote for this audience may know of the item.

    A quote shows the item's id and time to whoever sees the quote. So what is not public is quoted by its sender
    alone, for no more people. A reply is seen by those who see its root, too.
    """
    seen_by = [(_sender_id(item), str(item.visibility))]
    if (item.root_id if isinstance(item, Item) else item.reply_to) is not None:
        seen_by += Item.objects.filter(thread=int(item.id)).values_list("sender_id", "visibility")
    return all(
        audience == Visibility.PUBLIC or (sender_id == user.pk and is_within(visibility, audience))
        for sender_id, audience in seen_by
    )


def check_quote(item: Item, user: User, visibility: str) -> None:
    """Raise NotQuotableError if the user may not quote an item for this audience."""
    if not may_quote(item, user):
        raise NotQuotableError(not_allowed_text())
    if not audience_fits(item, user, visibility):
        raise NotQuotableError(too_wide_text())


def not_allowed_text() -> str:
    """Why somebody may not quote a post at all."""
    return _("The author doesn't allow you to quote this post.")


def too_wide_text() -> str:
    """Why a quote may not have an audience."""
    return _("Some people you chose can't see the post you quote. Choose fewer people.")


def _sender_id(item: Item | ItemBody) -> int:
    return item.sender_id if isinstance(item, Item) else int(item.sender.id)


def quotes_page(item: ItemBody, reader: User | AnonymousUser, **at: Any) -> ItemPage:
    """The quotes of an item, as in `BothListings.page`."""
    return QUOTING.page(reader, item=int(item.shown.id), context=Context.THREAD, **at)
