"""A reader's conversations, newest first: private mentions grouped by people. Each shows its newest visible message
from an unmuted sender. `Participant.last` is the order.
"""

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from accounts.cards import UserCard
from accounts.models import User
from items.bodies import ItemBody
from items.conversations.rules import NEWEST, is_unmuted
from items.hydrate import COLUMNS, ORIGINALS, WIDTH, ItemRow, bodies
from items.listing import SCAN
from items.models import Participant
from items.visibility import VISIBLE
from relations.rules import READER, may_be_named
from storage.connections import fetch, id_array
from storage.ids import NO_BOUND
from storage.paging import as_text, part_of
from web.refusals import MissingError

UNMUTED = is_unmuted()
PEOPLE = f"""
    (SELECT coalesce(json_agg(json_build_array(u.id::text, u.username, u.display_name, u.is_big_v, u.avatar)
        ORDER BY u.id), '[]') FROM items_participant other JOIN accounts_user u ON u.id = other.user_id
    WHERE other.conversation_id = {{conversation}} AND u.id <> {READER} AND {may_be_named("u", READER)})
"""


# What came last may be hidden, and one's own messages are read.
IS_UNREAD = "({seen}.last > {seen}.read AND newest.id > {seen}.read)"


def _newest_sql(conversation: str, wanted: str) -> str:
    return f"""
        SELECT i.id FROM (
            (SELECT id FROM items_item WHERE conversation_id = {conversation} ORDER BY id DESC LIMIT {NEWEST})
            UNION ALL SELECT {conversation}
        ) message JOIN items_item i ON i.id = message.id JOIN accounts_user s ON s.id = i.sender_id
        WHERE {VISIBLE} AND {wanted} ORDER BY i.id DESC LIMIT 1
    """


def _page_sql(order: str) -> str:
    first = f"""
        SELECT p.conversation_id, p.last, p.read FROM items_participant p
        WHERE p.user_id = {READER} AND p.is_request = %(requests)s AND p.last > %(above)s AND p.last < %(below)s
        ORDER BY p.last {order}
    """
    return f"""
    WITH page AS MATERIALIZED (
        SELECT listed.conversation_id, listed.last, listed.read, newest.id AS item_id,
            {IS_UNREAD.format(seen="listed")} AS is_unread
        FROM ({first} LIMIT %(scan)s) listed
        CROSS JOIN LATERAL ({_newest_sql("listed.conversation_id", UNMUTED)}) newest
        ORDER BY listed.last {order} LIMIT %(count)s
    ),
    bound AS MATERIALIZED (
        SELECT CASE WHEN (SELECT count(*) FROM page) < %(count)s
            THEN (SELECT last.last FROM ({first}) last OFFSET %(scan)s - 1 LIMIT 1) END AS last
    )
    SELECT bound.last, {COLUMNS}, page.conversation_id, page.last, page.is_unread,
        {PEOPLE.format(conversation="page.conversation_id")}, page.read, %(requests)s
    FROM bound LEFT JOIN page ON true LEFT JOIN items_item i ON i.id = page.item_id
        LEFT JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY page.last {order}
    """


def _conversations_sql(which: str, wanted: str, participants: str = "items_participant p") -> str:
    return f"""
    SELECT NULL, {COLUMNS}, p.conversation_id, coalesce(p.last, 0), {IS_UNREAD.format(seen="p")},
        {PEOPLE.format(conversation="p.conversation_id")}, p.read, p.is_request
    FROM {participants} CROSS JOIN LATERAL ({_newest_sql("p.conversation_id", wanted)}) newest
    JOIN items_item i ON i.id = newest.id JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    WHERE p.user_id = {READER} AND {which}
    """


DOWN, UP = _page_sql("DESC"), _page_sql("ASC")
# One conversation, even if removed from the list.
ONE = _conversations_sql("p.conversation_id = %(conversation)s", "true")
# OFFSET 0 forces a probe per conversation instead of a scan of all that the reader has.
AMONG = _conversations_sql(
    "p.last IS NOT NULL AND NOT p.is_request",
    UNMUTED,
    f"""unnest(%(conversations)s::bigint[]) AS asked (id) CROSS JOIN LATERAL (
        SELECT * FROM items_participant WHERE conversation_id = asked.id AND user_id = {READER} OFFSET 0) p""",
)
# Only the reader's own row, so nobody else learns of it.
MARK_READ = """
    UPDATE items_participant SET read = last
    WHERE conversation_id = (SELECT coalesce(conversation_id, id) FROM items_item WHERE id = %(item)s)
        AND user_id = %(reader)s AND last > read
    RETURNING 1
"""
# Makes the others known, as an answer does.
ACCEPT = """
    WITH accepted AS (
        UPDATE items_participant SET is_request = false
        WHERE conversation_id = %(conversation)s AND user_id = %(reader)s AND is_request
        RETURNING conversation_id, user_id
    ), known AS (
        INSERT INTO items_correspondent (writer_id, reader_id)
        SELECT accepted.user_id, other.user_id FROM accepted JOIN items_participant other USING (conversation_id)
        WHERE other.user_id <> accepted.user_id ORDER BY other.user_id ON CONFLICT DO NOTHING
    )
    SELECT 1 FROM accepted
"""
# OFFSET 0 forces a probe instead of a scan of all that the reader has.
PLACE = """
    SELECT p.conversation_id, p.is_request AND p.last IS NOT NULL FROM items_item i CROSS JOIN LATERAL (
        SELECT * FROM items_participant
        WHERE conversation_id = coalesce(i.conversation_id, i.id) AND user_id = %(reader)s OFFSET 0
    ) p WHERE i.id = %(item)s
"""
# The first message has no conversation of its own.
COUNTS = f"""
    SELECT asked.id, (
        SELECT count(*) FROM (
            SELECT asked.id UNION ALL (
                SELECT id FROM items_item WHERE conversation_id = asked.id ORDER BY id DESC LIMIT {NEWEST})
        ) message JOIN items_item i ON i.id = message.id JOIN accounts_user s ON s.id = i.sender_id
        WHERE i.sender_id <> {READER} AND {VISIBLE}
    ) FROM unnest(%(conversations)s::bigint[]) AS asked (id)
"""
OF_ITEMS = f"""
    SELECT i.id, {PEOPLE.format(conversation="coalesce(i.conversation_id, i.id)")}
    FROM items_item i WHERE i.id = ANY(%(items)s::bigint[])
"""


class Conversation(msgspec.Struct):
    """A conversation as its reader gets it. `users` are the others, `last_item` is the newest message."""

    id: str
    users: list[UserCard]
    last_item: ItemBody
    unread: bool


class ConversationPage(msgspec.Struct):
    """A page of conversations. `last_id` is the place of the last one checked (`Participant.last`)."""

    items: list[Conversation]
    last_id: str | None
    has_more: bool


class PageBounds(NamedTuple):
    """The place of a page in the list. Message ids: both ends of the page, and the last one checked."""

    newest_id: int | None
    oldest_id: int | None
    last_id: int | None


class _ConversationRow(NamedTuple):
    bound: int | None
    item: ItemRow | None
    conversation_id: int
    last: int
    is_unread: bool
    people: list[list[Any]]
    read: int
    is_request: bool

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_ConversationRow":
        bound, columns, (conversation_id, *rest) = row[0], row[1 : WIDTH + 1], row[WIDTH + 1 :]
        return cls(bound, None if conversation_id is None else ItemRow.of(columns), conversation_id, *rest)


def conversations_page(
    reader: User, *, requests: bool = False, last_id: int | None = None, limit: int = 20
) -> ConversationPage:
    """The reader's conversations, or `requests`, below `last_id`."""
    page, place, has_more = page_between(reader, requests=requests, below=last_id or NO_BOUND, limit=limit)
    return ConversationPage(page, as_text(place.last_id), has_more)


def page_between(
    reader: User, *, requests: bool = False, below: int = NO_BOUND, above: int = 0, upward: bool = False, limit: int
) -> tuple[list[Conversation], PageBounds, bool]:
    """Conversations between two places, with the page's places and whether there may be more. `upward`: those directly
    above.
    """
    params = {"reader": reader.pk, "requests": requests, "below": below, "above": above}
    rows = fetch(UP if upward else DOWN, params | {"scan": SCAN, "count": limit + 1}, into=_ConversationRow.of)
    part = part_of([row for row in rows if row.item], limit, attrgetter("last"), bound=rows[0].bound)
    shown = part.shown[::-1] if upward else part.shown
    places: list[int | None] = [row.last for row in shown] or [None]
    return _conversations(shown, reader), PageBounds(places[0], places[-1], part.last_id), part.has_more


def conversation_of(reader: User, conversation_id: int) -> Conversation:
    """The conversation with this id. Raises MissingError if the reader is not in it or sees nothing of it."""
    return _conversations([_row_of(reader, conversation_id)], reader)[0]


def _row_of(reader: User, conversation_id: int) -> _ConversationRow:
    found = fetch(ONE, {"reader": reader.pk, "conversation": conversation_id}, into=_ConversationRow.of)
    if not found:
        raise MissingError
    return found[0]


class OpenConversation(NamedTuple):
    """A conversation on its own page. `read`: the newest message that the reader has seen."""

    conversation: Conversation
    read: int
    is_request: bool


def open_conversation(reader: User, conversation_id: int) -> OpenConversation:
    """The conversation with this id, for its page. Raises MissingError as `conversation_of`."""
    row = _row_of(reader, conversation_id)
    return OpenConversation(_conversations([row], reader)[0], row.read, row.is_request)


def listed_among(reader: User, conversation_ids: Collection[int]) -> list[Conversation]:
    """Those of these conversations that are in the reader's list."""
    found = fetch(AMONG, {"reader": reader.pk, "conversations": id_array(conversation_ids)}, into=_ConversationRow.of)
    return _conversations(found, reader)


def _conversations(rows: Sequence[_ConversationRow], reader: User) -> list[Conversation]:
    items = bodies([row.item for row in rows if row.item], reader)
    return [
        Conversation(
            str(row.conversation_id),
            [UserCard.from_row(*one) for one in row.people],
            item,
            bool(row.is_unread),
        )
        for row, item in zip(rows, items, strict=True)
    ]


def message_counts(conversation_ids: Sequence[int], reader: User) -> dict[int, int]:
    """The number of visible messages of others in each conversation. Counts at most the first and `NEWEST` more."""
    params = {"reader": reader.pk, "conversations": id_array(conversation_ids)}
    return dict(fetch(COUNTS, params)) if conversation_ids else {}


def people_of(item_ids: Sequence[int], reader: User) -> dict[str, list[UserCard]]:
    """The other people in conversations, by item id."""
    rows = fetch(OF_ITEMS, {"items": list(item_ids), "reader": reader.pk}) if item_ids else []
    return {str(item_id): [UserCard.from_row(*one) for one in people] for item_id, people in rows}


def place_of(item_id: int, reader: User) -> tuple[int | None, bool]:
    """The reader's conversation that an item is in, and whether it is listed as a request."""
    found: list[tuple[int, bool]] = fetch(PLACE, {"item": item_id, "reader": reader.pk})
    return found[0] if found else (None, False)


def request_of(item_id: int, reader: User) -> int | None:
    """The conversation of an item, if it is a request."""
    conversation_id, is_request = place_of(item_id, reader)
    return conversation_id if is_request else None


def mark_read(*, reader: User, item_id: int) -> bool:
    """Mark a message's conversation as read. False if nothing changed."""
    return bool(fetch(MARK_READ, {"reader": reader.pk, "item": item_id}))


def accept(*, reader: User, conversation_id: int) -> bool:
    """Make a request a conversation. False if nothing changed."""
    return bool(fetch(ACCEPT, {"reader": reader.pk, "conversation": conversation_id}))


def hide_conversation(*, reader: User, conversation_id: int) -> None:
    """Remove a conversation from the list until the next message. Raises MissingError if the reader is not in it."""
    if not Participant.objects.filter(conversation=conversation_id, user=reader).update(last=None):
        raise MissingError
