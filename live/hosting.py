"""Sessions outside the feed, suggested hosts, and changes of an open page."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from accounts.rows import user_columns, user_of
from live.hydrate import COLUMNS, SESSIONS, SessionBody, SessionRow, bodies
from live.models import State
from live.visibility import VISIBLE, shown
from relations.rules import READER, followees, follows, is_wanted, may_be_proposed, mutes
from storage.connections import fetch, id_array
from storage.paging import as_text, below, part_of

STARTED_CAP = 99
LOOKED_AT = 100
"""Live or upcoming sessions searched for visible ones."""
PROPOSED_OF = 1_000
"""Most followed users searched for hosts to propose. So new accounts with sessions cannot crowd out others."""

# In the feed's order: live (newest start first), then upcoming (soonest first).
SCHEDULED = f"""
    SELECT {COLUMNS} FROM {SESSIONS}
    WHERE l.host_id = %(host)s AND l.state IN ('upcoming', 'live') AND {VISIBLE}
    ORDER BY l.state = 'upcoming', CASE WHEN l.state = 'live' THEN l.started_at END DESC, l.starts_at, l.id
    LIMIT %(count)s
"""
PAST = f"""
    SELECT {COLUMNS} FROM {SESSIONS}
    WHERE l.host_id = %(host)s AND l.state NOT IN ('upcoming', 'live') AND l.id < %(below)s AND {VISIBLE}
    ORDER BY l.id DESC LIMIT %(count)s
"""
# Looks at the newest live sessions of all hosts, including invisible ones.
NOW = f"""
    SELECT {COLUMNS} FROM (
        SELECT * FROM live_livesession WHERE state = 'live' ORDER BY started_at DESC LIMIT {LOOKED_AT}
    ) l JOIN accounts_user h ON h.id = l.host_id
    WHERE {VISIBLE} AND NOT {mutes(READER, "l.host_id")} ORDER BY l.started_at DESC LIMIT %(count)s
"""
COMING = f"""
    SELECT {COLUMNS} FROM (
        SELECT * FROM live_livesession WHERE state = 'upcoming' ORDER BY starts_at LIMIT {LOOKED_AT}
    ) l JOIN accounts_user h ON h.id = l.host_id
    WHERE {VISIBLE} AND l.host_id <> {READER}
        AND NOT {follows(READER, "l.host_id")} AND NOT {mutes(READER, "l.host_id")}
    ORDER BY l.starts_at LIMIT %(count)s
"""
WAITING_CAP = 1_000
WAITING = f"""
    SELECT count(*) FROM (SELECT FROM live_reminder WHERE session_id = %(session)s LIMIT {WAITING_CAP}) waiting
"""
VERSIONS = f"SELECT l.id, l.version FROM {SESSIONS} WHERE l.id = ANY(%(ids)s::bigint[]) AND {VISIBLE}"
# Only hosts with something scheduled, by their partial index.
STARTED = f"""
    SELECT count(*) FROM (
        SELECT FROM ({followees(READER)}) f JOIN live_host host ON host.user_id = f.followee_id AND host.scheduled > 0
            JOIN accounts_user h ON h.id = f.followee_id
            JOIN live_livesession l ON l.host_id = f.followee_id AND l.state = 'live' AND {shown("l", "h")}
        WHERE l.started_at > %(since)s AND l.id <> ALL(%(known)s::bigint[])
            AND {is_wanted(READER, "f.followee_id")}
        LIMIT %(count)s
    ) started
"""


class HostPage(NamedTuple):
    """A page of past sessions, newest first."""

    items: list[SessionBody]
    last_id: str | None
    has_more: bool


def scheduled_of(host: User, reader: User | AnonymousUser, *, limit: int) -> list[SessionBody]:
    """The host's visible live and upcoming sessions."""
    params = {"host": host.pk, "reader": reader.pk or 0, "count": limit}
    return bodies(fetch(SCHEDULED, params, into=SessionRow._make))


def live_now(reader: User | AnonymousUser, *, limit: int) -> list[SessionBody]:
    """Visible live sessions, without muted hosts."""
    return bodies(fetch(NOW, {"reader": reader.pk or 0, "count": limit}, into=SessionRow._make))


def upcoming_unfollowed(reader: User | AnonymousUser, *, limit: int) -> list[SessionBody]:
    """Upcoming sessions of hosts not followed."""
    return bodies(fetch(COMING, {"reader": reader.pk or 0, "count": limit}, into=SessionRow._make))


def reminder_count(session: SessionBody) -> int:
    """Reminders of an upcoming session, at most `WAITING_CAP`; else 0."""
    if session.state != State.UPCOMING:
        return 0
    return int(fetch(WAITING, {"session": int(session.id)})[0][0])


def past_of(host: User, reader: User | AnonymousUser, *, last_id: int | None, limit: int) -> HostPage:
    """Replays, cancelled and missed sessions below `last_id`."""
    params = {"host": host.pk, "reader": reader.pk or 0, "below": below(last_id), "count": limit + 1}
    part = part_of(fetch(PAST, params, into=SessionRow._make), limit, attrgetter("id"))
    return HostPage(bodies(part.shown), as_text(part.last_id), part.has_more)


def hosts_to_follow(reader: User, *, count: int = 6) -> list[User]:
    """Hosts with something scheduled, among the `PROPOSED_OF` most followed."""
    return [user_of(row) for row in fetch(_hosts_to_follow_query(count, PROPOSED_OF), {"reader": reader.pk})]


@cache
def _hosts_to_follow_query(count: int, of: int) -> str:
    # OFFSET 0 forces a probe per user, in the order of the index user_most_followed, only until the page is full. The
    # row and the standing of a user are read only for those with something scheduled. The first EXISTS is asked once.
    # Limits are literals: with parameters PostgreSQL would plan anew at each call.
    return f"""
        SELECT {user_columns("u")} FROM (
            SELECT known.id, known.follower_count FROM (
                SELECT id, follower_count FROM accounts_user
                WHERE is_active AND EXISTS (SELECT FROM live_host WHERE scheduled > 0)
                ORDER BY follower_count DESC, id LIMIT {of:d}
            ) known
            WHERE EXISTS (SELECT FROM live_host host WHERE host.user_id = known.id AND host.scheduled > 0 OFFSET 0)
            ORDER BY known.follower_count DESC, known.id OFFSET 0
        ) hosting CROSS JOIN LATERAL (SELECT * FROM accounts_user u WHERE u.id = hosting.id OFFSET 0) u
        WHERE {may_be_proposed("u", READER)}
        ORDER BY hosting.follower_count DESC, hosting.id LIMIT {count:d}
    """


# --- Changes since a page was made -----------------------------------------------------------------------
def started_since(reader: User, since: datetime, *, known: list[int]) -> tuple[int, bool]:
    """How many unknown sessions have gone live; and whether there are more."""
    params = {"reader": reader.pk, "since": since, "known": id_array(known), "count": STARTED_CAP + 1}
    count = fetch(STARTED, params)[0][0]
    return min(count, STARTED_CAP), count > STARTED_CAP


def changed_among(shown: Mapping[int, int], reader: User | AnonymousUser) -> dict[int, int]:
    """Current versions of changed sessions; 0 if no longer visible."""
    if not shown:
        return {}
    now = dict(fetch(VERSIONS, {"ids": id_array(shown), "reader": reader.pk or 0}))
    return {pk: now.get(pk, 0) for pk, version in shown.items() if now.get(pk, 0) != version}
