"""The live sessions' receivers."""

from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested
from live import actions, export, purge, replays
from live.models import LiveSession
from live.signals import replay_made, session_changed
from media.models import MediaFile, Use
from media.signals import medium_described
from storage import events


@receiver(session_changed)
def announce_change(sender: type[LiveSession], session: LiveSession, was_hidden: bool, **kwargs: Any) -> None:
    """Once it is committed, to open pages."""
    transaction.on_commit(partial(events.announce, events.SessionChanged(session.pk, was_hidden)))


@receiver(replay_made)
def write_delivery(sender: type[LiveSession], session: LiveSession, **kwargs: Any) -> None:
    """Inside the transaction that ends the session, or shows it again."""
    replays.deliver_anew(session=session)


@receiver(medium_described)
def renew_cover(sender: type[MediaFile], medium: MediaFile, **kwargs: Any) -> None:
    """Show the new words of a medium in the session whose cover it is."""
    if medium.use == Use.COVER and (session := LiveSession.objects.filter(pk=medium.session_id or 0).first()):
        actions.renew_cover(session=session, now=timezone.now())


@receiver(account_purged)
def purge_sessions(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Remove a deleted account's sessions, at most `limit`; returns their number."""
    return purge.purge(user_id=user.pk, limit=limit)


@receiver(export_requested)
def export_sessions(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The files of the reader's sessions, for their own data."""
    return export.files(reader)
