"""Covers of sessions. Call these functions under the lock on the host, and save the session afterwards."""

import msgspec
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from live.models import LiveSession
from media import attaching
from media.actions import UnusableMediaError
from media.models import MediaFile, MediaKind
from media.objects import facts_of_row
from media.offering import BlockedMediaError, check_allowed

FIELD = "cover"


def claim_picture(host_id: int, medium_id: int) -> MediaFile:
    """The host's unused picture, locked. Raises ValidationError."""
    try:
        [medium] = attaching.claim(owner_id=host_id, ids=[medium_id])
        if medium.kind != MediaKind.IMAGE:
            raise UnusableMediaError(_("A cover must be a picture, not a video."))
        check_allowed([medium], owner_id=host_id, is_face=True)
    except (UnusableMediaError, BlockedMediaError) as error:
        raise ValidationError({FIELD: str(error)}) from error
    return medium


def set_cover(session: LiveSession, medium: MediaFile) -> None:
    """Make a claimed picture the cover."""
    attaching.use_as_cover(medium, session_id=session.pk)
    copy_facts(session, medium)


def remove(session: LiveSession) -> None:
    """Remove the session's cover. Its address is invalid after the commit."""
    if session.cover_id is not None:
        attaching.retire_cover(session.cover_id)
    session.cover = None


def detach_cover(session: LiveSession) -> None:
    """Give a hidden session's cover a new address."""
    if session.cover_id is not None:
        copy_facts(session, attaching.renamed_cover(session.cover_id))


def refresh_facts(session: LiveSession) -> None:
    """Copy the cover's current description and focus into the session."""
    if session.cover_id is not None:
        copy_facts(session, attaching.lock_cover(session.cover_id))


def copy_facts(session: LiveSession, medium: MediaFile | None) -> None:
    """Copy a picture's facts into a session."""
    session.cover = msgspec.to_builtins(facts_of_row(medium)) if medium else None
