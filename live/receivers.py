from typing import Any

from django.dispatch import receiver
from django.utils import timezone

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested
from live import actions, export, purge
from live.models import LiveSession
from media.models import MediaFile, Use
from media.signals import medium_described, owner_hidden, sizes_made


@receiver(medium_described)
def renew_cover(sender: type[MediaFile], medium: MediaFile, **kwargs: Any) -> None:
    """Show a medium's new description in its session."""
    if medium.use == Use.COVER and (session := LiveSession.objects.filter(pk=medium.session_id or 0).first()):
        actions.renew_cover(session=session, now=timezone.now())


@receiver(owner_hidden)
def rename_covers(sender: type[MediaFile], media: list[MediaFile], **kwargs: Any) -> None:
    """Give the covers of a hidden account's sessions new addresses."""
    for session in LiveSession.objects.filter(pk__in=[row.session_id for row in media if row.use == Use.COVER]):
        actions.rename_cover(session=session)


@receiver(sizes_made)
def show_sizes_of_covers(sender: type[MediaFile], media: list[MediaFile], **kwargs: Any) -> None:
    """Offer the sizes of covers."""
    for session in LiveSession.objects.filter(pk__in=[row.session_id for row in media if row.use == Use.COVER]):
        actions.refresh_cover(session=session)


@receiver(account_purged)
def purge_sessions(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Delete at most `limit` sessions of a deleted account."""
    return purge.purge(user_id=user.pk, limit=limit)


@receiver(export_requested)
def export_sessions(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The user's sessions, for their export."""
    return export.files(reader)
