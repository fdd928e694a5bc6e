from typing import Any

from django.dispatch import receiver

from accounts.about.models import SiteSettings
from accounts.about.signals import limits_asked
from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, account_recounted, export_requested
from items import actions, counts, export, purge, scheduling, text
from items.attachments import attachments
from media.models import MediaFile, Use
from media.signals import medium_described, owner_hidden, sizes_made, video_processed


@receiver(limits_asked)
def item_limits(sender: type[SiteSettings], **kwargs: Any) -> dict[str, int]:
    """The limits of an item, in characters and media."""
    return {
        "title_characters": text.TITLE_LENGTH,
        "text_characters": text.TEXT_LENGTH,
        "article_characters": text.ARTICLE_LENGTH,
        "media_an_item": text.MEDIA_AN_ITEM,
    }


@receiver(account_purged)
def purge_items(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Empty at most `limit` items of a deleted account."""
    return purge.purge(user_id=user.pk, limit=limit)


@receiver(account_recounted)
def recount_items(
    sender: type[User], user_id: int, is_hidden: bool, places: dict[str, int], limit: int, **kwargs: Any
) -> bool:
    """Recount at most `limit` likes and items of a hidden or shown account."""
    return counts.recount(user_id, places, limit, is_hidden=is_hidden)


@receiver(export_requested)
def export_items(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The items' part of the data export."""
    return export.files(reader)


@receiver(medium_described)
def refresh_descriptions(sender: type[MediaFile], medium: MediaFile, **kwargs: Any) -> None:
    """Update the item of a described medium."""
    if medium.use == Use.ITEM and medium.item_id:
        actions.renew_media(item_id=medium.item_id)


@receiver(owner_hidden)
def rename_attachments(sender: type[MediaFile], media: list[MediaFile], **kwargs: Any) -> None:
    """Give the files of a hidden account's posts new addresses."""
    attachments.rename_files(_shown_by(media))


@receiver(sizes_made)
def show_sizes(sender: type[MediaFile], media: list[MediaFile], **kwargs: Any) -> None:
    """Offer the sizes of posts' pictures."""
    attachments.rewrite_facts(_shown_by(media))


@receiver(video_processed)
def release_waiting(sender: type[MediaFile], media_id: int, **kwargs: Any) -> None:
    """Let the post that waits for a video come out."""
    scheduling.end_waiting(media_id)


def _shown_by(media: list[MediaFile]) -> set[int]:
    return {row.item_id for row in media if row.use == Use.ITEM and row.item_id}
