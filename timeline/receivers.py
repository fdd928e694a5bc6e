from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import (
    account_purged,
    big_v_demotion_requested,
    big_v_made,
    export_requested,
    levels_lowered,
    levels_raised,
)
from items.models import Item, Visibility
from items.signals import item_edited, item_imported, item_published, item_tagged, item_withdrawn
from storage import events
from timeline import backfill, export, fanout, inbox, outbox, shortening
from timeline.models import ReadingPosition


@receiver(item_published)
def start_delivery(sender: type[Item], item: Item, again: bool, **kwargs: Any) -> None:
    """Begin a published item's fan-out. No timeline has replies or private mentions."""
    if item.reply_to_id is not None or item.is_private:
        return
    if again:
        fanout.deliver_again(item)
    else:  # the item's INSERT also wrote its delivery row
        fanout.fan_out.delay_on_commit(item.pk)


@receiver(item_imported)
def start_past_delivery(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Begin an imported item's fan-out. The item's INSERT also wrote its delivery row."""
    if item.reply_to_id is None:
        fanout.fan_out.delay_on_commit(item.pk)


@receiver(item_tagged)
def write_tag_delivery(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Queue a newly tagged item's fan-out in the editing transaction. The outbox may have forgotten the item."""
    if item.reply_to_id is None and item.visibility == Visibility.PUBLIC:
        fanout.deliver_again(item)


@receiver(item_published)
def announce_publication(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Announce a published item after the commit. Replies too, for open pages of one item."""
    transaction.on_commit(partial(events.announce, events.Published(item.pk)))


@receiver(item_edited)
def announce_edit(sender: type[Item], item: Item, visibility_before: str, **kwargs: Any) -> None:
    """Announce an edited item after the commit."""
    transaction.on_commit(partial(events.announce, events.Edited(item.pk, visibility_before)))


@receiver(item_withdrawn)
def announce_withdrawal(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Announce a withdrawn item after the commit."""
    transaction.on_commit(partial(events.announce, events.Withdrawn(item.pk, item.visibility)))


@receiver(big_v_demotion_requested)
def start_backfill(sender: type[User], user: User, **kwargs: Any) -> bool:
    """Begin a big-V's demotion. True if none was running."""
    return backfill.start(sender=user)


@receiver(big_v_made)
def cancel_backfill(sender: type[User], user: User, **kwargs: Any) -> bool:
    """Cancel the demotion of a user who becomes a big-V again. True if one was running."""
    return backfill.cancel(sender=user)


@receiver(big_v_made)
def begin_outbox(sender: type[User], user: User, **kwargs: Any) -> None:
    """Begin a new big-V's outbox after the commit."""
    transaction.on_commit(partial(outbox.begin, user.pk))


@receiver(levels_raised)
def deepen_inboxes(sender: type[User], user_ids: list[int], **kwargs: Any) -> None:
    """Enqueue a deepening for each raised user. If the broker is down, the next page deepens the inbox."""
    for user_id in user_ids:
        if not inbox.deepen_or_build.delay(user_id):
            break


@receiver(levels_lowered)
def shorten_inboxes(sender: type[User], user_ids_by_level: dict[int, list[int]], **kwargs: Any) -> None:
    """Shorten the inboxes of users whose level was lowered. Runs after that commit."""
    shortening.shorten(user_ids_by_level)


@receiver(account_purged)
def forget_position(sender: type[User], user: User, **kwargs: Any) -> int:
    """Delete where a deleted account was in home."""
    return ReadingPosition.objects.filter(reader=user).delete()[0]


@receiver(export_requested)
def export_position(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The timeline's part of the data export."""
    return export.files(reader)
