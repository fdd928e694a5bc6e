"""Who hears that a live session changed: one query for a batch of changes and all connections.

Followers hear it on every page, others on the session's page. Those who saw a hidden session hear `gone` once.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from live.visibility import hidden, is_change_announced
from relations.rules import followees, is_wanted, unblocked
from storage.connections import fetch, id_array
from storage.events import Listener, SessionChanged

GONE = "gone"
"""The state sent for a hidden session to those who saw it before."""


# Only for readers with the batch's hosts whom they follow, as in stream.news.
AUDIENCE = f"""
    WITH e AS MATERIALIZED (
        SELECT event.place, l.id, l.host_id, l.state, l.version, {hidden("l")} AS is_hidden,
            {is_change_announced("l", "h", "event.was_hidden")} AS is_told
        FROM unnest(%(places)s::int[], %(sessions)s::bigint[], %(hidden)s::bool[]) AS event (place, session, was_hidden)
        JOIN live_livesession l ON l.id = event.session JOIN accounts_user h ON h.id = l.host_id
    )
    SELECT e.place, e.host_id, 0::bigint, e.id, e.host_id, e.state, e.version, e.is_hidden
    FROM e WHERE e.host_id = ANY(%(readers)s::bigint[])
    UNION ALL
    SELECT e.place, connected.reader, 0::bigint, e.id, e.host_id, e.state, e.version, e.is_hidden
    FROM e JOIN (
        SELECT one.reader, followed.host_id FROM unnest(%(readers)s::bigint[]) AS one (reader)
        CROSS JOIN LATERAL (
            {followees("one.reader", "followee_id AS host_id")}
            AND (followee_id IN (SELECT host_id FROM e)) IS TRUE OFFSET 0
        ) followed
    ) connected USING (host_id)
    WHERE e.is_told AND {is_wanted("connected.reader", "e.host_id")}
    UNION ALL
    SELECT e.place, watch.reader, e.id, e.id, e.host_id, e.state, e.version, e.is_hidden
    FROM unnest(%(watchers)s::bigint[], %(watched)s::bigint[]) AS watch (reader, session)
    JOIN e ON e.id = watch.session
    WHERE e.is_told AND {unblocked("watch.reader", "e.host_id")}
"""


class _SessionReader(NamedTuple):
    place: int
    reader: int
    watched: int
    """The session whose page the reader has open. 0: sent to every page."""
    session: int
    host: int
    state: str
    version: int
    is_hidden: bool


class SessionNews(msgspec.Struct):
    """What a page is told of a changed session. A page with an older version loads the session."""

    id: str
    state: str
    version: int


def audience(
    listeners: Iterable[Listener], changes: Sequence[tuple[int, SessionChanged]]
) -> list[tuple[int, Listener, Any]]:
    """Who hears of which change: its place, the listener and the news. Raises Django's database errors."""
    by_reader: dict[int, list[Listener]] = {}
    for listener in listeners:
        by_reader.setdefault(listener.reader, []).append(listener)
    watching = [one for several in by_reader.values() for one in several if one.session]
    rows = fetch(
        AUDIENCE,
        {
            "places": id_array(place for place, _ in changes),
            "sessions": id_array(change.session for _, change in changes),
            "hidden": [change.was_hidden for _, change in changes],
            "readers": id_array(by_reader),
            "watchers": id_array(one.reader for one in watching),
            "watched": id_array(one.session for one in watching),
        },
        into=_SessionReader._make,
    )
    told: dict[tuple[int, Listener], SessionNews] = {}
    for row in rows:
        state = GONE if row.is_hidden and row.reader != row.host else row.state
        news = SessionNews(str(row.session), state, row.version)
        for listener in by_reader[row.reader]:
            if not row.watched or listener.session == row.watched:
                told[row.place, listener] = news
    return [(place, listener, news) for (place, listener), news in told.items()]
