"""Sessions as the API and pages show them."""

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from msgspec import UNSET, UnsetType

from accounts.cards import UserCard
from accounts.models import User
from items.links import is_link
from live.models import SHORT, LiveSession, State
from live.visibility import VISIBLE, concerns_others, hidden, visible
from media.objects import MediaObject, decode_medium
from notifications.sessions import SessionCard
from storage.connections import fetch, id_array
from storage.ids import MAX_ID
from storage.paging import as_text, below, part_of
from web.refusals import NotOwnError
from web.times import Time

SESSIONS = "live_livesession l JOIN accounts_user h ON h.id = l.host_id"
"""FROM clause for `live.visibility.VISIBLE` and `COLUMNS`. Parameter `reader` (0: not signed in)."""
# The address is shown only from the start on, and never for a session that will not start.
COLUMNS = f"""
    l.id, l.title, h.id, h.username, h.display_name, h.is_big_v, h.avatar,
    CASE WHEN l.state IN ('live', 'replay') OR l.host_id = %(reader)s THEN l.url ELSE '' END, l.cover_url,
    l.cover::text, l.state, l.starts_at, l.started_at, l.ended_at,
    EXISTS (SELECT FROM live_reminder r WHERE r.session_id = l.id AND r.user_id = %(reader)s),
    l.automatic, l.version, CASE WHEN l.host_id = %(reader)s THEN {hidden("l")} END,
    CASE WHEN l.host_id = %(reader)s THEN l.minutes END, CASE WHEN l.host_id = %(reader)s THEN l.review END
"""
"""Columns of a `SessionRow`."""
ONE = f"SELECT {COLUMNS} FROM {SESSIONS} WHERE l.id = %(session)s AND {VISIBLE}"
CARDS = f"""
    SELECT l.id, l.title, l.state FROM {SESSIONS} WHERE l.id = ANY(%(ids)s::bigint[]) AND {VISIBLE}
"""
OF_HOST = f"""
    SELECT {COLUMNS} FROM {SESSIONS}
    WHERE l.host_id = %(host)s AND l.id < %(below)s AND {VISIBLE}
        AND (l.host_id = %(reader)s OR {concerns_others("l")})
    ORDER BY l.id DESC LIMIT %(count)s
"""


class SessionRow(NamedTuple):
    """A row of `COLUMNS`."""

    id: int
    title: str
    host_id: int
    username: str
    display_name: str
    is_big_v: bool
    avatar: dict[str, Any] | None
    url: str
    cover_url: str
    cover: str | None
    state: str
    starts_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    has_reminder: bool
    automatic: bool
    version: int
    hidden: bool | None
    """`hidden`, `minutes` and `review` are only for the host, else None."""
    minutes: int | None
    review: str | None


class HostCard(UserCard):
    """The host of a session."""


class SessionBody(msgspec.Struct):
    """A session. `shown_as` is the state in which the list was frozen. `duration` is in seconds. `url` is empty while
    there is nothing to watch.
    """

    id: str
    title: str
    host: HostCard
    url: str
    cover_url: str
    cover: MediaObject | None
    state: str
    shown_as: str
    starts_at: Time
    started_at: Time | None
    ended_at: Time | None
    duration: int | None
    reminder: bool
    automatic: bool
    version: int
    hidden: bool | UnsetType = UNSET
    """Whether the session is hidden. Only for the host."""
    minutes: int | UnsetType = UNSET
    """Length of an automatic session. Only for the host."""
    review: str | UnsetType = UNSET
    """`in_review` or `rejected` if moderators have hidden it, else empty. Only for the host."""

    @property
    def has_changed(self) -> bool:
        """Whether `state` differs from `shown_as`."""
        return self.state != self.shown_as

    @property
    def short_until(self) -> Time | None:
        """When it would no longer be shorter than `SHORT`."""
        return self.started_at + SHORT if self.started_at else None

    @property
    def is_short(self) -> bool:
        """Whether it would now be shorter than `SHORT`."""
        return self.short_until is not None and timezone.now() < self.short_until


class SessionPage(msgspec.Struct):
    """A page of sessions. `last_id` is the last one's."""

    items: list[SessionBody]
    last_id: str | None
    has_more: bool


def body(row: SessionRow, shown_as: str | None = None) -> SessionBody:
    """The session of a row, as it was shown."""
    return SessionBody(
        id=str(row.id),
        title=row.title,
        host=HostCard.from_row(row.host_id, row.username, row.display_name, row.is_big_v, row.avatar),
        url=_valid_link(row.url),
        cover_url=_valid_link(row.cover_url),
        cover=decode_medium(row.cover),
        state=row.state,
        shown_as=shown_as or row.state,
        starts_at=row.starts_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        duration=_duration_seconds(row.started_at, row.ended_at) if row.state == State.REPLAY else None,
        reminder=row.has_reminder,
        automatic=row.automatic,
        version=row.version,
        hidden=UNSET if row.hidden is None else row.hidden,
        minutes=UNSET if row.minutes is None else row.minutes,
        review=UNSET if row.review is None else row.review,
    )


def bodies(rows: Iterable[SessionRow]) -> list[SessionBody]:
    """The sessions of rows, in their order."""
    return [body(row) for row in rows]


def find_session(session_id: int, reader: User | AnonymousUser, shown_as: str | None = None) -> SessionBody | None:
    """The session, or None if invisible. Takes any number."""
    if not 0 < session_id <= MAX_ID:
        return None
    rows = fetch(ONE, {"session": session_id, "reader": reader.pk or 0}, into=SessionRow._make)
    return body(rows[0], shown_as) if rows else None


def visible_session(session_id: int, reader: User | AnonymousUser, shown_as: str | None = None) -> SessionBody:
    """Like `find_session`. Raises LiveSession.DoesNotExist."""
    session = find_session(session_id, reader, shown_as)
    if session is None:
        raise LiveSession.DoesNotExist
    return session


def own_session(session_id: int, reader: User) -> LiveSession:
    """The reader's session. Raises LiveSession.DoesNotExist and NotOwnError."""
    session = LiveSession.objects.select_related("host").get(pk=int(visible_session(session_id, reader).id))
    if session.host_id != reader.pk:
        raise NotOwnError
    return session


def sessions_of(
    host: User, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20
) -> SessionPage:
    """Visible sessions, newest first."""
    params = {"host": host.pk, "reader": reader.pk or 0, "below": below(last_id), "count": limit + 1}
    part = part_of(fetch(OF_HOST, params, into=SessionRow._make), limit, attrgetter("id"))
    return SessionPage(bodies(part.shown), as_text(part.last_id), part.has_more)


def shown_in_notifications(reader: str) -> str:
    """SQL: whether `reader` may see the session of notification `n`."""
    return f"EXISTS (SELECT FROM {SESSIONS} WHERE l.id = n.session_id AND {visible('l', 'h', reader)} OFFSET 0)"


def cards(session_ids: Iterable[int], reader: User) -> dict[int, SessionCard]:
    """Cards of the visible sessions, by id."""
    rows = fetch(CARDS, {"ids": id_array(session_ids), "reader": reader.pk})
    return {session_id: SessionCard(str(session_id), title, state) for session_id, title, state in rows}


def _valid_link(address: str) -> str:
    return address if address and is_link(address) else ""  # most have no address


def _duration_seconds(started_at: datetime | None, ended_at: datetime | None) -> int:
    return int((ended_at - started_at).total_seconds()) if started_at and ended_at else 0
