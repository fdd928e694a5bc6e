"""The timelines' receivers of the signals from below."""

from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from accounts.models import User
from accounts.signals import big_v_demotion_requested, big_v_made, levels_lowered, levels_raised
from items.models import Item, Visibility
from items.signals import item_edited, item_imported, item_published, item_tagged, item_withdrawn
from storage import events
from storage.queue import enqueue
from timeline import backfill, fanout, outbox, shortening


@receiver(item_published)
def write_delivery(sender: type[Item], item: Item, again: bool, **kwargs: Any) -> None:
    """Inside the transaction that publishes. Replies are listed under their root and in no timeline; private mentions
    are in no timeline either.
    """
    if item.reply_to_id is None and not item.is_private:
        fanout.deliver_anew(item=item, again=again)


@receiver(item_imported)
def write_past_delivery(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Inside the transaction that brings it in: windows that reach down to its time take it."""
    if item.reply_to_id is None:
        fanout.deliver_anew(item=item, again=False)


@receiver(item_tagged)
def write_tag_delivery(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Inside the transaction that edits. Homes of those who follow the hashtag have the item from now on; the outbox of
    the hashtag may have forgotten it, as windows may an item that is published again.
    """
    if item.reply_to_id is None and item.visibility == Visibility.PUBLIC:
        fanout.deliver_anew(item=item, again=True)


@receiver(item_published)
def announce_publication(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Once it is committed, replies too: pages of one item are told of them."""
    transaction.on_commit(partial(events.announce, events.Published(item.pk)))


@receiver(item_edited)
def announce_edit(sender: type[Item], item: Item, visibility_before: str, **kwargs: Any) -> None:
    """Once it is committed."""
    transaction.on_commit(partial(events.announce, events.Edited(item.pk, visibility_before)))


@receiver(item_withdrawn)
def announce_withdrawal(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Once it is committed."""
    transaction.on_commit(partial(events.announce, events.Withdrawn(item.pk, item.visibility)))


@receiver(big_v_demotion_requested)
def start_backfill(sender: type[User], user: User, **kwargs: Any) -> bool:
    """Inside the transaction that asks for it; True if none was under way."""
    return backfill.start(sender=user)


@receiver(big_v_made)
def cancel_backfill(sender: type[User], user: User, **kwargs: Any) -> bool:
    """Inside the transaction that makes the user big-V, or leaves them so; True if a demotion was under way."""
    return backfill.cancel(sender=user)


@receiver(big_v_made)
def begin_outbox(sender: type[User], user: User, **kwargs: Any) -> None:
    """Once it is committed."""
    transaction.on_commit(partial(outbox.begin, user.pk))


@receiver(levels_raised)
def deepen_inboxes(sender: type[User], user_ids: list[int], **kwargs: Any) -> None:
    """By the workers. A deepening that is lost, for want of a broker, is asked for by the next page."""
    for user_id in user_ids:
        if not enqueue("timeline.rise", user_id):
            break


@receiver(levels_lowered)
def shorten_inboxes(sender: type[User], user_ids_by_level: dict[int, list[int]], **kwargs: Any) -> None:
    """After the commit that lowered them."""
    shortening.shorten(user_ids_by_level)
