"""Live sessions for moderation (accounts.review)."""

from collections.abc import Iterable, Sequence

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.review import ReviewStatus, Subject
from live import actions
from live.hydrate import find_session
from live.models import LiveSession
from media import attaching
from media.models import MediaFile


def find(session_ids: Iterable[int]) -> dict[int, Subject]:
    """The sessions by id."""
    rows = list(LiveSession.objects.select_related("host").filter(pk__in=list(session_ids)))
    media = attaching.covers_of(session.pk for session in rows)
    return {session.pk: _subject(session, media.get(session.pk, ())) for session in rows}


def find_visible(session_id: int, reader: User) -> Subject | None:
    """The session, or None if `reader` may not see it."""
    return find([session_id]).get(session_id) if find_session(session_id, reader) else None


def lock(session_id: int) -> Subject | None:
    """The session, locked until the transaction ends."""
    session = actions.locked(session_id)
    return _subject(session) if session else None


def judge(session_id: int, status: str) -> bool:
    """Apply a decision. True if anything changed."""
    session, now = LiveSession(pk=session_id), timezone.now()
    if status == ReviewStatus.PUBLISHED:
        return actions.approve(session=session, now=now)
    if status == ReviewStatus.REJECTED:
        return actions.reject(session=session, now=now)
    return actions.hide_for_review(session=session, now=now)


def uncover(session_id: int, medium_id: int) -> bool:
    """Remove this cover for good. False if it is not shown."""
    return actions.uncover(session=LiveSession(pk=session_id), medium_id=medium_id, now=timezone.now())


def end(session_id: int) -> bool:
    """End or cancel a session, for an admin. False if nothing changed."""
    return actions.force_end(session=LiveSession(pk=session_id), now=timezone.now())


def _subject(session: LiveSession, media: Sequence[MediaFile] = ()) -> Subject:
    return Subject(
        id=session.pk,
        author=session.host,
        kind=_("Live session, %(state)s") % {"state": session.get_state_display()},
        title=session.title,
        text=session.cover_url,
        url=session.url,
        status=session.review or (ReviewStatus.DELETED if session.hidden_at else ReviewStatus.PUBLISHED),
        created_at=session.created_at,
        modified_at=session.worded_at,
        address=reverse("live-session", args=[session.pk]),
        media=media,
    )
