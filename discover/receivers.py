import logging
from typing import Any

from django.conf import settings
from django.dispatch import receiver
from django.utils import timezone

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested
from discover import export, feedback, indexing, recent
from items.bodies import ItemBody
from items.models import Item, Visibility
from items.signals import counts_folded, item_edited, item_imported, item_published, item_viewed, item_withdrawn
from seen import played
from seen.played import Play, PlayedUnavailableError, PlaysFullError
from seen.usage import RECORDED

logger = logging.getLogger(__name__)


@receiver(item_viewed)
def remember_view(sender: type[Item], reader: User, item: ItemBody, replies: list[ItemBody], **kwargs: Any) -> None:
    """Record views of an item and its replies, after the answer.

    One round trip to Redis, two if plays are kept, none if the reader keeps no history.
    """
    if not reader.keeps_history:
        return
    if settings.DISCOVER_SEEN in RECORDED:
        remember_play(reader, int(item.id))
    # The top reply is forgotten first, the opened one last.
    seen = [int(reply.id) for reply in replies if reply.sender.id != str(reader.pk)]
    opened = int(item.id)
    if item.reply_to:
        recent.record(reader.pk, replies=[*seen, opened], now=timezone.now())
    else:
        recent.record(reader.pk, items=[opened], replies=seen, now=timezone.now())


def remember_play(reader: User, item_id: int) -> None:
    """Record a play. An outage is only logged."""
    now = timezone.now()
    try:
        played.record([Play(reader.pk, item_id, now)], now=now)
    except (PlayedUnavailableError, PlaysFullError) as error:
        logger.warning("a play was not recorded: %s", error)


@receiver(account_purged)
def forget_user(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Delete a deleted account's feedback, at most `limit` rows."""
    return feedback.forget_user(user=user, limit=limit)


@receiver(export_requested)
def export_history(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """Discover's part of the data export."""
    return export.files(reader)


@receiver([item_published, item_imported, item_edited, item_withdrawn])
def index_change(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Queue an item for OpenSearch if it is or was a public post."""
    is_post = item.reply_to_id is None and item.repost_of_id is None
    if is_post and Visibility.PUBLIC in (item.visibility, kwargs.get("visibility_before")):
        indexing.enqueue_changes([item.pk])


@receiver(counts_folded)
def index_popularity(sender: type[Item], item_ids: list[int], **kwargs: Any) -> None:
    """Queue items for OpenSearch whose counts changed, inside the transaction that folds the counts."""
    indexing.enqueue_changes(item_ids, only_public=True)
