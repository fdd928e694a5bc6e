from collections.abc import Iterator
from datetime import datetime

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from live.hydrate import SESSIONS
from live.visibility import VISIBLE, hidden
from storage.connections import stream

OWN = f"""
    SELECT l.id, l.title, l.url, l.cover_url, l.cover->>'id', l.state, l.starts_at, l.started_at, l.ended_at,
        l.automatic, l.minutes, {hidden("l")}
    FROM live_livesession l WHERE l.host_id = %(reader)s ORDER BY l.id
"""
REMINDERS = f"""
    SELECT l.id, l.title, h.username, l.starts_at, r.created_at
    FROM live_reminder r JOIN {SESSIONS} ON l.id = r.session_id
    WHERE r.user_id = %(reader)s AND {VISIBLE} ORDER BY r.id
"""


class OwnSession(msgspec.Struct):
    """A session of the user."""

    id: str
    title: str
    url: str
    cover_url: str
    cover: str | None
    state: str
    starts_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    automatic: bool
    minutes: int
    hidden: bool


class ReminderRow(msgspec.Struct):
    """A session with a reminder."""

    session_id: str
    title: str
    by: str
    starts_at: datetime
    asked_at: datetime


def _own_sessions(user: User) -> Iterator[OwnSession]:
    return (OwnSession(str(session_id), *rest) for session_id, *rest in stream(OWN, {"reader": user.pk}))


def _reminders(user: User) -> Iterator[ReminderRow]:
    return (ReminderRow(str(session_id), *rest) for session_id, *rest in stream(REMINDERS, {"reader": user.pk}))


def files(user: User) -> list[ExportFile]:
    """The files of sessions and reminders."""
    return [
        ExportFile("live_sessions.jsonl", _("The live sessions you scheduled and hosted."), _own_sessions(user)),
        ExportFile("live_reminders.jsonl", _("The live sessions you set a reminder for."), _reminders(user)),
    ]
