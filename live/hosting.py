"""Sessions beside the feed: of one host, whom to follow for some, and what changed since a page was made."""

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
"""Live or upcoming sessions among which those are found that a reader may see, whomever they follow."""
PROPOSED_OF = 2_000
"""The most followed users, among whom hosts are found that a reader may follow: new accounts, however many of them plan
something, keep no host off the page.
"""

# In the order of the feed: live ones, the newest start first, then upcoming ones, the soonest first.
SCHEDULED = f"""
    SELECT {COLUMNS} FROM {SESSIONS}
    WHERE l.host_id = %(host)s AND l.state IN ('upcoming', 'live') AND {VISIBLE}
    ORDER BY l.state = 'upcoming', CASE WHEN l.state = 'live' THEN l.started_at END DESC, l.starts_at, l.id
    LIMIT %(count)s
"""  # noqa: S608 (constants)
PAST = f"""
    SELECT {COLUMNS} FROM {SESSIONS}
    WHERE l.host_id = %(host)s AND l.state NOT IN ('upcoming', 'live') AND l.id < %(below)s AND {VISIBLE}
    ORDER BY l.id DESC LIMIT %(count)s
"""  # noqa: S608
# Of the newest live ones of all hosts so many are looked at, those that the reader may not see among them.
NOW = f"""
    SELECT {COLUMNS} FROM (
        SELECT * FROM live_livesession WHERE state = 'live' ORDER BY started_at DESC LIMIT {LOOKED_AT}
    ) l JOIN accounts_user h ON h.id = l.host_id
    WHERE {VISIBLE} AND NOT {mutes(READER, "l.host_id")} ORDER BY l.started_at DESC LIMIT %(count)s
"""  # noqa: S608
COMING = f"""
    SELECT {COLUMNS} FROM (
        SELECT * FROM live_livesession WHERE state = 'upcoming' ORDER BY starts_at LIMIT {LOOKED_AT}
    ) l JOIN accounts_user h ON h.id = l.host_id
    WHERE {VISIBLE} AND l.host_id <> {READER}
        AND NOT {follows(READER, "l.host_id")} AND NOT {mutes(READER, "l.host_id")}
    ORDER BY l.starts_at LIMIT %(count)s
"""  # noqa: S608
WAITING_CAP = 1_000
WAITING = f"""
    SELECT count(*) FROM (SELECT FROM live_reminder WHERE session_id = %(session)s LIMIT {WAITING_CAP}) waiting
"""  # noqa: S608 (a constant)
VERSIONS = f"SELECT l.id, l.version FROM {SESSIONS} WHERE l.id = ANY(%(ids)s::bigint[]) AND {VISIBLE}"  # noqa: S608
# Only hosts with something scheduled are looked at, by the index that has no others.
STARTED = f"""
    SELECT count(*) FROM (
        SELECT FROM ({followees(READER)}) f JOIN live_host host ON host.user_id = f.followee_id AND host.scheduled > 0
            JOIN accounts_user h ON h.id = f.followee_id
            JOIN live_livesession l ON l.host_id = f.followee_id AND l.state = 'live' AND {shown("l", "h")}
        WHERE l.started_at > %(since)s AND l.id <> ALL(%(known)s::bigint[])
            AND {is_wanted(READER, "f.followee_id")}
        LIMIT %(count)s
    ) started
"""  # noqa: S608 (constants)


class HostPage(NamedTuple):
    """A part of the sessions of a host that are over, by their ids, newest first."""

    items: list[SessionBody]
    last_id: str | None
    has_more: bool


def scheduled_of(host: User, reader: User | AnonymousUser, *, limit: int) -> list[SessionBody]:
    """The live and upcoming sessions of `host`, as far as `reader` may see them."""
    params = {"host": host.pk, "reader": reader.pk or 0, "count": limit}
    return bodies(fetch(SCHEDULED, params, into=SessionRow._make))


def live_now(reader: User | AnonymousUser, *, limit: int) -> list[SessionBody]:
    """The sessions of all hosts that are live, as far as `reader` may see them, the newest start first; not those of
    hosts whom the reader mutes.
    """
    return bodies(fetch(NOW, {"reader": reader.pk or 0, "count": limit}, into=SessionRow._make))


def coming(reader: User | AnonymousUser, *, limit: int) -> list[SessionBody]:
    """The next upcoming sessions of hosts whom the reader does not follow, so that the feed has none of them."""
    return bodies(fetch(COMING, {"reader": reader.pk or 0, "count": limit}, into=SessionRow._make))


def waiting_for(session: SessionBody) -> int:
    """How many want to be told when an upcoming session starts, at most `WAITING_CAP`; 0 of any other."""
    if session.state != State.UPCOMING:
        return 0
    return int(fetch(WAITING, {"session": int(session.id)})[0][0])


def past_of(host: User, reader: User | AnonymousUser, *, last_id: int | None, limit: int) -> HostPage:
    """Replays, and what came to nothing, below `last_id`."""
    params = {"host": host.pk, "reader": reader.pk or 0, "below": below(last_id), "count": limit + 1}
    part = part_of(fetch(PAST, params, into=SessionRow._make), limit, attrgetter("id"))
    return HostPage(bodies(part.shown), as_text(part.last_id), part.has_more)


def hosts_to_follow(reader: User, *, count: int = 6) -> list[User]:
    """The most followed hosts with something scheduled whom the reader neither follows nor has turned away from, among
    the `PROPOSED_OF` most followed users.

    For readers to whom the feed has nothing to show.
    """
    params = {"reader": reader.pk, "count": count, "of": PROPOSED_OF}
    return [user_of(row) for row in fetch(_to_follow(), params)]


@cache
def _to_follow() -> str:
    # OFFSET 0: a probe a user, in the order of the index user_most_followed, as far down as the page needs.
    return f"""
        SELECT {user_columns("u")} FROM (
            SELECT * FROM accounts_user WHERE is_active ORDER BY follower_count DESC, id LIMIT %(of)s
        ) u
        WHERE EXISTS (SELECT FROM live_host host WHERE host.user_id = u.id AND host.scheduled > 0 OFFSET 0)
            AND {may_be_proposed("u", READER)}
        ORDER BY u.follower_count DESC, u.id LIMIT %(count)s
    """  # noqa: S608 (columns of our own model)


# --- Changes since a page was made -----------------------------------------------------------------------
def started_since(reader: User, since: datetime, *, known: list[int]) -> tuple[int, bool]:
    """How many sessions in the reader's feed went live and still are, but for the `known`; and whether it is more."""
    params = {"reader": reader.pk, "since": since, "known": id_array(known), "count": STARTED_CAP + 1}
    count = fetch(STARTED, params)[0][0]
    return min(count, STARTED_CAP), count > STARTED_CAP


def changed_among(shown: Mapping[int, int], reader: User | AnonymousUser) -> dict[int, int]:
    """Sessions whose version is no longer the one that a page shows, with the version now; 0 where there is nothing to
    see.
    """
    if not shown:
        return {}
    now = dict(fetch(VERSIONS, {"ids": id_array(shown), "reader": reader.pk or 0}))
    return {pk: now.get(pk, 0) for pk, version in shown.items() if now.get(pk, 0) != version}
