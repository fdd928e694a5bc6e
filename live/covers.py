"""The cover pictures of sessions. A session keeps the facts of its picture in its own row (`LiveSession.cover`), which
pages read; the row of the medium says that it is a cover, and of which session. All verbs are called under the lock on
the host, in the caller's transaction, and leave it to the caller to save the session.
"""

import msgspec
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from live.models import LiveSession
from media import attaching
from media.actions import UsedError
from media.models import Kind, MediaFile
from media.objects import entry_of
from media.offering import BlockedMediaError, offer

FIELD = "cover"


def claimed(host_id: int, medium_id: int) -> MediaFile:
    """The host's unused picture of this id, locked. Raises ValidationError, naming `FIELD`."""
    try:
        [medium] = attaching.claim(owner_id=host_id, ids=[medium_id])
        if medium.kind != Kind.IMAGE:
            raise UsedError(_("A cover is a picture, not a video."))
        offer([medium], owner_id=host_id, is_face=True)
    except (UsedError, BlockedMediaError) as error:
        raise ValidationError({FIELD: str(error)}) from error
    return medium


def give(session: LiveSession, medium: MediaFile) -> None:
    """Show a claimed picture as the cover of a session, which has an id."""
    attaching.use_as_cover(medium, session_id=session.pk)
    show(session, medium)


def remove(session: LiveSession) -> None:
    """Take the picture away for good; its address leads nowhere after the commit."""
    if session.cover_id is not None:
        attaching.retire_cover(session.cover_id)
    session.cover = None


def put_away(session: LiveSession) -> None:
    """Give the picture an address that none but the host and staff get, for the session is hidden."""
    if session.cover_id is not None:
        show(session, attaching.renamed_cover(session.cover_id))


def renew(session: LiveSession) -> None:
    """Show the words and the focus of the picture that its row has now."""
    if session.cover_id is not None:
        show(session, attaching.cover(session.cover_id))


def show(session: LiveSession, medium: MediaFile | None) -> None:
    """Put the facts of a picture into a session."""
    session.cover = msgspec.to_builtins(entry_of(medium)) if medium else None
