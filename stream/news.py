"""The messages that a batch of events becomes for each connected reader: one query for the batch and all readers.

Events come past every window, so their items are asked of PostgreSQL as they are now, by the rules that serve pages. A
reader who could see an item before, and no longer may, is told to take it away. No reader is told of an item that they
never could see.

See docs/decisions.md: One event stream, one question for all connections.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from items.visibility import public_post, visible
from relations.rules import followees, is_wanted_at_home, known_tags, tag_follows, unlisted
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

# `i` holds every item of the batch as it is now, and once more as it was before it was changed or withdrawn, so that
# the same rules say who sees it and who saw it. The rules are asked only of `connected`, the readers
# with the senders of the batch whom they follow: each reader's follows, at most FOLLOW_CAP, are read once a batch,
# however many items it has and of however many senders. `IS TRUE` has ids looked up in a hash, not compared one by one.
# Items of members of exclusive lists are told too, for the pages of lists, and marked. Of hashtags that somebody has
# followed (`tagged`) each reader's follows are read likewise, at most relations.tags.TAGS, if an item has any.
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
    )
    SELECT i.place, i.before, connected.reader, 0::bigint, i.reply_to_id,
        {unlisted("connected.reader", "i.sender_id")}
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
    JOIN i ON watch.item IN (i.id, i.reply_to_id, i.root_id) JOIN accounts_user s ON s.id = i.sender_id
    WHERE {visible("i", "s", "watch.reader")}
"""  # noqa: S608 (constants)


class _Told(NamedTuple):
    """A row of `AUDIENCE`: the place of an event, and a reader who sees the item as it is, or was before."""

    place: int
    before: bool
    reader: int
    watched: int
    """The item whose page the reader has open; 0: told on every page."""
    reply_to: int | None
    is_at_home: bool


class ItemNews(msgspec.Struct, omit_defaults=True):
    """The data of `item`, `edit` and `delete`; `reply_to` of a new reply only, and `exclusive` of a new item of a
    member of an exclusive list of the reader's, which is in lists and not in home.
    """

    id: str
    reply_to: str | None = None
    exclusive: bool = False


RESET = "reset"

_encode = msgspec.json.Encoder().encode


def message(name: str, position: Position | None, data: Any) -> bytes:
    """One event as server-sent events spell it."""
    place = b"" if position is None else b"id: %s\n" % str(position).encode()
    return b"event: %s\n%sdata: %s\n\n" % (name.encode(), place, _encode(data))


def reset(position: Position | None) -> bytes:
    """The event that tells a page to find out by itself what happened up to here."""
    return message(RESET, position, {})


def heartbeat(_listener: Listener, position: Position | None, _quiet: float) -> bytes:
    """A comment; its id moves a browser's place in the stream on, and is no event by itself."""
    return b":\n\n" if position is None else b":\nid: %s\n\n" % str(position).encode()


def news_for(listeners: Iterable[Listener], entries: Sequence[Entry]) -> list[Message]:
    """The messages to write and their readers, in the order of the entries; one query for items and one for live
    sessions at most. Raises Django's database errors.
    """
    everyone = set(listeners)
    items = [
        (place, event) for place, (_, event) in enumerate(entries) if isinstance(event, (Published, Edited, Withdrawn))
    ]
    hits, replies, outside = audience(everyone, items) if items and everyone else ({}, {}, {})
    session_news = _sessions(everyone, entries) if everyone else {}
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
                messages.append((None, position, reset(position)))
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


def _sessions(everyone: set[Listener], entries: Sequence[Entry]) -> dict[int, list[tuple[Listener, Any]]]:
    """By place of the event, who hears of a live session, and what."""
    changes = [(place, event) for place, (_, event) in enumerate(entries) if isinstance(event, SessionChanged)]
    told: dict[int, list[tuple[Listener, Any]]] = {}
    for place, listener, news in sessions.audience(everyone, changes) if changes else ():
        told.setdefault(place, []).append((listener, news))
    return told


def asked_of(items: Iterable[tuple[int, ItemEvent]]) -> list[tuple[int, int, str | None]]:
    """The places, items and former visibilities that `EVENTS` takes: of each item as it is now, and, where it was
    published before its event, as it was.
    """
    asked: list[tuple[int, int, str | None]] = [(place, event.item, None) for place, event in items]
    return asked + [
        (place, event.item, event.visibility_before) for place, event in items if not isinstance(event, Published)
    ]


def audience(
    listeners: set[Listener], items: Sequence[tuple[int, ItemEvent]]
) -> tuple[dict[tuple[int, bool], set[Listener]], dict[int, int], dict[int, set[Listener]]]:
    """By (place of the event, whether before it), the listeners who see the item; by place, what replies reply to, and
    the listeners whose home does not have what they see.
    """
    asked = asked_of(items)
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
        into=_Told._make,
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
            heard.update(by_reader[row.reader])  # an item of the home is news on every page
            if not row.is_at_home:
                outside.setdefault(row.place, set()).update(by_reader[row.reader])
    return hits, replies, outside


PAGES = Dialect("pages", news_for, reset, heartbeat)
"""Server-sent events for the site's pages, and for programs that use its API."""
