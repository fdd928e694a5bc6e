"""Hidden replies: the sender of a thread takes replies out of it. They stand on a page of their own, and for their
own senders where they were.
"""

from functools import partial
from http import HTTPStatus
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from accounts.models import User
from items.bodies import ItemBody
from items.listing import BothListings, ItemPage, listing_sql
from items.models import Context, HiddenReply, Item, Visibility
from items.visibility import is_below_hidden_reply, is_hidden_reply
from storage import events
from storage.connections import fetch
from web.refusals import NotOwnError, RefusalError

HIDE = """
    INSERT INTO items_hiddenreply (reply_id, root_id, user_id) VALUES (%(reply)s, %(root)s, %(user)s)
    ON CONFLICT DO NOTHING RETURNING reply_id
"""
SHOW = "DELETE FROM items_hiddenreply WHERE reply_id = %(reply)s AND root_id = %(root)s RETURNING reply_id"
HIDDEN = """
    SELECT h.reply_id AS id FROM items_hiddenreply h
    WHERE h.root_id = %(item)s AND h.reply_id > %(above)s AND h.reply_id < %(below)s
"""
HIDING = BothListings(*(listing_sql([HIDDEN], order, keep=is_hidden_reply("i")) for order in ("DESC", "ASC")))
HAS_HIDDEN = f"""
    SELECT EXISTS (SELECT FROM items_hiddenreply h JOIN items_item i ON i.id = h.reply_id
        WHERE h.root_id = %(root)s AND {is_hidden_reply("i")})
"""
TAKEN_OUT = f"""
    SELECT EXISTS (SELECT FROM items_item i WHERE i.id = %(item)s
        AND ({is_hidden_reply("i")} OR {is_below_hidden_reply("i")}))
"""


class PrivateReplyError(RefusalError):
    """A private mention stays with its people."""

    status = HTTPStatus.FORBIDDEN
    sentence = "Private mentions can't be hidden."


def hide_reply(*, user: User, root_id: int, reply_id: int) -> bool:
    """Hide a reply in the user's own thread. False if it was hidden. Raises Item.DoesNotExist, NotOwnError and
    PrivateReplyError.
    """
    _check_own(user, root_id)
    reply = Item.objects.visible_to(user).get(pk=reply_id, root=root_id)
    if reply.is_private:
        raise PrivateReplyError
    is_new = bool(fetch(HIDE, {"reply": reply.pk, "root": root_id, "user": user.pk}))
    if is_new:
        transaction.on_commit(partial(events.announce, events.Edited(reply.pk, reply.visibility)))
    return is_new


def show_reply(*, user: User, root_id: int, reply_id: int) -> bool:
    """Show a hidden reply again, even one that the user no longer sees. False if it was not hidden. Raises
    Item.DoesNotExist and NotOwnError.
    """
    _check_own(user, root_id)
    is_shown = bool(fetch(SHOW, {"reply": reply_id, "root": root_id}))
    if is_shown:
        transaction.on_commit(partial(events.announce, events.Published(reply_id)))
    else:
        Item.objects.visible_to(user).only("pk").get(pk=reply_id, root=root_id)
    return is_shown


def _check_own(user: User, root_id: int) -> None:
    if Item.objects.visible_to(user).only("sender").get(pk=root_id).sender_id != user.pk:
        raise NotOwnError


def own_root_id(reply: ItemBody, user: User) -> int | None:
    """The root of another's reply, if the thread is the user's and they may hide it."""
    shown = reply.shown
    if shown.reply_to is None or shown.sender.id == str(user.pk) or shown.visibility == Visibility.MENTIONED:
        return None
    return Item.objects.filter(thread=int(reply.shown.id), sender=user).values_list("pk", flat=True).first()


def is_taken_out(reply: ItemBody, reader: User | AnonymousUser) -> bool:
    """Whether a reply does not stand in its thread for this reader: it is hidden, or below a hidden one."""
    return bool(fetch(TAKEN_OUT, {"item": int(reply.shown.id), "reader": reader.pk or 0})[0][0])


def is_reply_hidden(reply: ItemBody) -> bool:
    """Whether the sender of its thread hid a reply."""
    return HiddenReply.objects.filter(reply=int(reply.shown.id)).exists()


def has_hidden_replies(item: ItemBody, reader: User | AnonymousUser) -> bool:
    """Whether replies by others in a root's thread were hidden. The reader may not see all of them."""
    if item.shown.reply_to is not None or not item.shown.counts.replies:
        return False
    return bool(fetch(HAS_HIDDEN, {"root": int(item.shown.id), "reader": reader.pk or 0})[0][0])


def hidden_page(item: ItemBody, reader: User | AnonymousUser, **at: Any) -> ItemPage:
    """The hidden replies in a root's thread, as in `BothListings.page`."""
    return HIDING.page(reader, item=int(item.shown.id), context=Context.THREAD, **at)
