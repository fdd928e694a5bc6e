"""The messages for each connected reader from a batch of events: one query for the batch and all readers.

The query reads items as they are now, with the rules of pages. A reader who may no longer see an item gets `delete`.

See docs/decisions.md: One event stream, one question for all connections.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from items.visibility import public_post, visible
from relations.rules import followees, is_wanted_at_home, known_tags, not_in_exclusive_list, tag_follows
from storage.connections import fetch, id_array
from storage.events import (
    Edited,
    Entry,
    Gap,
    ItemEvent,
    Listener,
    ManyNotified,
    Notified,
    Position,
    Published,
    SessionChanged,
    Withdrawn,
)
from stream import sessions
from stream.dialects import Dialect, Message
from timeline.rules import shown
from timeline.senders import LIST

# `i` has each item as it is now, and again as it was before a change, so that the same rules say who sees and who saw
# it. The rules run only for `connected`, the readers with the batch's senders whom they follow: each reader's follows
# (at most FOLLOW_CAP) and hashtags (at most relations.tags.TAGS) are read once a batch. `IS TRUE` makes PostgreSQL look
# ids up in a hash. Items of members of exclusive lists are sent too, marked, for the pages of lists.
EVENTS = """
    i AS MATERIALIZED (
        SELECT event.place, event.before IS NOT NULL AS before, stated.*
        FROM unnest(%(places)s::int[], %(items)s::bigint[], %(before)s::text[]) AS event (place, item, before)
        JOIN items_item stored ON stored.id = event.item
        CROSS JOIN LATERAL jsonb_populate_record(stored, CASE WHEN event.before IS NULL THEN '{}'
            ELSE jsonb_build_object('status', 'published', 'visibility', event.before) END) AS stated
    )
"""
AUDIENCE = f"""
    WITH {EVENTS}, connected AS MATERIALIZED (
        SELECT reader, reader AS sender_id FROM unnest(%(readers)s::bigint[]) AS one (reader)
        UNION ALL SELECT one.reader, followed.sender_id FROM unnest(%(readers)s::bigint[]) AS one (reader)
        CROSS JOIN LATERAL (
            {followees("one.reader", "followee_id AS sender_id")}
            AND (followee_id IN (SELECT sender_id FROM i)) IS TRUE OFFSET 0
        ) followed
    ), tagged AS MATERIALIZED (
        SELECT i.place, i.before, i.sender_id, tag.id AS tag_id
        FROM i JOIN accounts_user s ON s.id = i.sender_id AND s.is_active JOIN items_itemtag t ON t.item_id = i.id
        CROSS JOIN LATERAL ({known_tags("g.id", "g.name = t.tag")}) tag WHERE {public_post("i")}
    ), followed AS MATERIALIZED (
        SELECT one.reader, tag.id FROM unnest(%(readers)s::bigint[]) AS one (reader)
        CROSS JOIN LATERAL (
            {tag_follows("one.reader", "h.tag_id AS id")} AND (h.tag_id IN (SELECT tag_id FROM tagged)) IS TRUE OFFSET 0
        ) tag WHERE EXISTS (SELECT FROM tagged)
    ), about AS MATERIALIZED (
        SELECT id AS item FROM i UNION SELECT reply_to_id FROM i UNION SELECT root_id FROM i
        UNION SELECT conversation_id FROM i
    )
    SELECT i.place, i.before, connected.reader, 0::bigint, i.reply_to_id,
        {not_in_exclusive_list("connected.reader", "i.sender_id")}
    FROM i JOIN accounts_user s ON s.id = i.sender_id JOIN connected ON connected.sender_id = i.sender_id
    WHERE {shown("connected.reader", LIST.wanted)}
    UNION ALL
    SELECT DISTINCT tagged.place, tagged.before, followed.reader, 0::bigint, NULL::bigint, true
    FROM followed JOIN tagged ON tagged.tag_id = followed.id
    WHERE {is_wanted_at_home("followed.reader", "tagged.sender_id")}
    UNION ALL
    SELECT i.place, i.before, watch.reader, watch.item, i.reply_to_id, true
    FROM (
        SELECT * FROM unnest(%(watchers)s::bigint[], %(watched)s::bigint[]) AS one (reader, item)
        WHERE (one.item IN (SELECT item FROM about)) IS TRUE
    ) watch
    JOIN i ON watch.item IN (i.id, i.reply_to_id, i.root_id, i.conversation_id)
    JOIN accounts_user s ON s.id = i.sender_id
    WHERE {visible("i", "s", "watch.reader")}
"""


class _ItemReader(NamedTuple):
    """A reader who sees the item of an event, or saw it before. `place`: the event's in the batch."""

    place: int
    before: bool
    reader: int
    watched: int
    """The item whose page the reader has open. 0: sent to every page."""
    reply_to: int | None
    is_at_home: bool


class ItemNews(msgspec.Struct, omit_defaults=True):
    """What a page is told of an item. `reply_to`: only for a new reply. `exclusive`: for a new item that only lists
    show.
    """

    id: str
    reply_to: str | None = None
    exclusive: bool = False


RESET = "reset"

_encode = msgspec.json.Encoder().encode


def message(name: str, position: Position | None, data: Any) -> bytes:
    """One event in the format of server-sent events."""
    place = b"" if position is None else b"id: %s\n" % str(position).encode()
    return b"event: %s\n%sdata: %s\n\n" % (name.encode(), place, _encode(data))


def reset_message(position: Position | None) -> bytes:
    """The message that tells a page to ask the site what happened."""
    return message(RESET, position, {})


def heartbeat(_listener: Listener, position: Position | None, _quiet: float) -> bytes:
    """A comment line that keeps the connection open. Its id moves the browser's position."""
    return b":\n\n" if position is None else b":\nid: %s\n\n" % str(position).encode()


def news_for(listeners: Iterable[Listener], entries: Sequence[Entry]) -> list[Message]:
    """The messages and their listeners, in order. At most one query for items and one for sessions.

    Raises Django's database errors.
    """
    everyone = set(listeners)
    items = [
        (place, event) for place, (_, event) in enumerate(entries) if isinstance(event, (Published, Edited, Withdrawn))
    ]
    hits, replies, outside = audience(everyone, items) if items and everyone else ({}, {}, {})
    session_news = _session_news(everyone, entries) if everyone else {}
    by_reader: dict[int, list[Listener]] = {}
    for listener in everyone:
        by_reader.setdefault(listener.reader, []).append(listener)
    messages: list[Message] = []
    for place, (position, event) in enumerate(entries):
        match event:
            case Published() | Edited() | Withdrawn():
                now, before = hits.get((place, False), set()), hits.get((place, True), set())
                messages += _item_news(event, position, now, before, replies.get(place), outside.get(place, set()))
            case SessionChanged():
                told_of = session_news.get(place, [])
                messages += [(listener, position, message("live", position, news)) for listener, news in told_of]
            case Notified(user, payload):
                told = message("notification", position, payload)
                messages += [(listener, position, told) for listener in by_reader.get(user, [])]
            case ManyNotified(payloads):
                for user in payloads.keys() & by_reader.keys():
                    told = message("notification", position, payloads[user])
                    messages += [(listener, position, told) for listener in by_reader[user]]
            case Gap():
                messages.append((None, position, reset_message(position)))
    return messages


def _item_news(
    event: ItemEvent,
    position: Position,
    now: set[Listener],
    before: set[Listener],
    reply_to: int | None,
    outside: set[Listener],
) -> list[Message]:
    news = ItemNews(str(event.item))
    messages: list[Message] = []
    if isinstance(event, Published):
        seen = message("item", position, ItemNews(news.id, str(reply_to)) if reply_to else news)
        listed = message("item", position, ItemNews(news.id, exclusive=True)) if outside else seen
        messages += [(listener, position, listed if listener in outside else seen) for listener in now]
    else:
        seen = message("edit", position, news)
        messages += [(listener, position, seen) for listener in now]
    gone = message("delete", position, news)
    messages += [(listener, position, gone) for listener in before - now]
    return messages


def _session_news(everyone: set[Listener], entries: Sequence[Entry]) -> dict[int, list[tuple[Listener, Any]]]:
    changes = [(place, event) for place, (_, event) in enumerate(entries) if isinstance(event, SessionChanged)]
    told: dict[int, list[tuple[Listener, Any]]] = {}
    for place, listener, news in sessions.audience(everyone, changes) if changes else ():
        told.setdefault(place, []).append((listener, news))
    return told


def event_params(items: Iterable[tuple[int, ItemEvent]]) -> list[tuple[int, int, str | None]]:
    """The parameters of `EVENTS`: each item as it is now and, if it is not new, as it was before."""
    asked: list[tuple[int, int, str | None]] = [(place, event.item, None) for place, event in items]
    return asked + [
        (place, event.item, event.visibility_before) for place, event in items if not isinstance(event, Published)
    ]


def audience(
    listeners: set[Listener], items: Sequence[tuple[int, ItemEvent]]
) -> tuple[dict[tuple[int, bool], set[Listener]], dict[int, int], dict[int, set[Listener]]]:
    """Who sees each item, by (place of the event, whether before it).

    Also returns by place the item that a reply answers, and the listeners whose home lacks the item.
    """
    asked = event_params(items)
    watching = [listener for listener in listeners if listener.item]
    rows = fetch(
        AUDIENCE,
        {
            "places": id_array(place for place, _, _ in asked),
            "items": id_array(item for _, item, _ in asked),
            "before": [before for _, _, before in asked],
            "readers": id_array({listener.reader for listener in listeners}),
            "watchers": id_array(listener.reader for listener in watching),
            "watched": id_array(listener.item for listener in watching),
        },
        into=_ItemReader._make,
    )
    by_reader: dict[int, list[Listener]] = {}
    for listener in listeners:
        by_reader.setdefault(listener.reader, []).append(listener)
    hits: dict[tuple[int, bool], set[Listener]] = {}
    replies = {}
    outside: dict[int, set[Listener]] = {}
    for row in rows:
        if row.reply_to:
            replies[row.place] = row.reply_to
        heard = hits.setdefault((row.place, row.before), set())
        if row.watched:
            heard.update(one for one in by_reader[row.reader] if one.item == row.watched)
        else:
            heard.update(by_reader[row.reader])  # all pages show news of home
            if not row.is_at_home:
                outside.setdefault(row.place, set()).update(by_reader[row.reader])
    return hits, replies, outside


PAGES = Dialect("pages", news_for, reset_message, heartbeat)
"""Server-sent events for the site's pages and for programs that use its API."""
