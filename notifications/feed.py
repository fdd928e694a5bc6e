"""Reading notifications: the list, and the number of unread entries.

An **entry** is a row of Notification, such as all likes of an item, one reply, or one UTC day's followers. It is shown
if its kind is not hidden, its item or session visible and no message, its thread not muted, and one of its acts
**shown**: not undone, its actor active, unblocked and unmuted.

`last_id` is a **position**, which only new acts raise. So paging repeats no entry, and misses none except those that
moved to the top. An entry is **unread** while one of its shown acts is newer than the reader's mark, an act's id.

A page checks at most `SCAN` more entries than it shows, and the newest `ACTS_SCAN` acts of each.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from accounts.cards import UserCard
from accounts.models import User
from items.bodies import ItemBody
from items.conversations.rules import REQUEST, UNREAD, any_waiting, count_requests, count_unread
from items.hydrate import ITEMS, hydrate
from items.models import Context
from items.threads.muting import in_muted_thread
from items.visibility import for_mentioned, visible
from notifications.desk import desk
from notifications.models import GROUPS, WITHOUT_PEOPLE
from notifications.sessions import SessionCard, sessions
from relations.people import any_request, count_waiting
from relations.rules import READER, follows, gets_notifications_from, has_requested
from storage.connections import fetch, id_array
from storage.ids import SEQUENCE_BITS, moment
from storage.paging import as_text, below, part_of
from web.times import Time

ACTORS_SHOWN = 3
ACTORS_CAP = 100
"""Actors are counted up to here."""
UNREAD_CAP = 99
UNREAD_SCAN = 1000
"""Unread entries that the badge checks, in case all are hidden."""
NEW_CAP = 20
"""Most new entries counted for an open page."""
STILL = 1000 << SEQUENCE_BITS
"""An entry moves at most once in this time (a second), in units of ids."""

SCAN = 60
"""Entries that a page checks besides those it shows, in case they are hidden."""
ACTS_SCAN = 300
"""Newest acts of an entry that are checked, in case most are hidden."""


def read_mark(reader: str = READER) -> str:
    """The id of the newest act that the reader has seen, or 0."""
    return f"coalesce((SELECT r.up_to FROM notifications_readmark r WHERE r.user_id = {reader}), 0)"


# Hidden kinds are filtered on reading. So list, count and badge agree at once, and a like need not read its recipient's
# choice.
def _silenced(reader: str) -> str:
    kinds = f"(SELECT s.kinds FROM notifications_silenced s WHERE s.user_id = {reader})"
    return f"coalesce({kinds}, ARRAY[]::varchar[])"


# `n` is the entry, `a` an act and `u` its actor. A repost is shown while its original, the reader's own, is published.
# OFFSET 0 keeps the planner from hashing a whole table. CASE keeps it from checking reposts for likes.
ON_THE_DAY = "AND (f.created_at AT TIME ZONE 'UTC')::date = n.day"


OF_THE_SITE = ", ".join(f"'{kind.value}'" for kind in WITHOUT_PEOPLE)


def item_shown(reader: str = READER) -> str:
    """Whether the reader may see an entry's item, session and kind. Only after start-up, which sets `sessions`."""
    wanted = f"(n.kind IN ({OF_THE_SITE}) OR NOT {in_muted_thread(reader, 'i')})"
    return f"""
    (n.item_id IS NULL OR EXISTS (
        SELECT FROM {ITEMS} WHERE i.id = n.item_id AND {visible("i", "s", reader)} AND {wanted} OFFSET 0))
    AND CASE WHEN n.kind = 'live' THEN {sessions.shown(reader)} ELSE true END
    AND n.kind <> ALL ({_silenced(reader)})
    """


def act_shown(reader: str = READER) -> str:
    """Whether an act was not undone, and its actor is visible."""
    return f"""
    u.is_active AND {gets_notifications_from(reader, "a.actor_id")}
    AND CASE n.kind
        WHEN 'like' THEN EXISTS (
            SELECT FROM items_like l WHERE l.user_id = a.actor_id AND l.item_id = n.item_id OFFSET 0)
        WHEN 'repost' THEN EXISTS (
            SELECT FROM items_item r JOIN items_item o ON o.id = r.repost_of_id
            WHERE r.repost_of_id = n.item_id AND r.sender_id = a.actor_id AND r.status = 'published'
                AND o.status = 'published' OFFSET 0)
        WHEN 'follow' THEN {follows("a.actor_id", "n.recipient_id", ON_THE_DAY)}
        WHEN 'follow_request' THEN {has_requested("a.actor_id", "n.recipient_id", ON_THE_DAY)}
        WHEN 'follow_accepted' THEN {follows("n.recipient_id", "a.actor_id", ON_THE_DAY)}
        ELSE true
    END
    """


NEWEST_ACTS = f"""
    (SELECT * FROM notifications_act act WHERE act.notification_id = n.id ORDER BY act.id DESC LIMIT {ACTS_SCAN})
"""


def page_statement(scanned: str, shown: str, at: str, order: str = "DESC") -> str:
    """The statement of a page. `scanned` selects rows to check, `shown` those to show, `at` orders. The bound is the
    last row checked, if there may be more.
    """
    last = "min" if order == "DESC" else "max"
    return f"""
    WITH scanned AS MATERIALIZED ({scanned}),
    bound AS (SELECT CASE WHEN count(*) = %(scan)s THEN {last}({at}) END AS {at} FROM scanned)
    SELECT bound.{at}, page.* FROM bound LEFT JOIN LATERAL (
        {shown}
        ORDER BY {at} {order} LIMIT %(count)s
    ) page ON true
    """


# Messages has them, and counts them. Apps list them here, too (notifications.ungrouped).
OF_MESSAGES = f"""
    (n.kind IN ('mention', 'reply')
        AND EXISTS (SELECT FROM items_item m WHERE m.id = n.item_id AND {for_mentioned("m")} OFFSET 0))
"""
"""Whether an entry `n` is of a message."""


def _scanned_query(kinds: str) -> str:
    return f"""
        SELECT n.* FROM notifications_notification n
        WHERE n.recipient_id = %(reader)s AND n.position < %(below)s AND {kinds}
        ORDER BY n.position DESC LIMIT %(scan)s
    """


def _entries_statement(scanned: str) -> str:
    shown = f"""
        SELECT n.position, n.kind, n.item_id, n.session_id, n.text, n.detail, n.subject_id,
            shown.newest, shown.count, shown.actors,
            shown.newest > {read_mark()},
            CASE WHEN shown.count > {ACTORS_CAP} THEN true ELSE EXISTS (
                SELECT FROM notifications_act act WHERE act.notification_id = n.id
                ORDER BY act.id DESC OFFSET {ACTS_SCAN} LIMIT 1) END
        FROM scanned n CROSS JOIN LATERAL (
            SELECT max(act.id), count(*),
                json_agg(json_build_array(act.actor_id::text, act.username, act.display_name, act.is_big_v,
                    act.avatar)
                    ORDER BY act.id DESC) FILTER (WHERE act.place <= {ACTORS_SHOWN})
            FROM (
                SELECT a.id, a.actor_id, u.username, u.display_name, u.is_big_v, u.avatar,
                    row_number() OVER (ORDER BY a.id DESC) AS place
                FROM {NEWEST_ACTS} a JOIN accounts_user u ON u.id = a.actor_id WHERE {act_shown()}
                ORDER BY a.id DESC LIMIT {ACTORS_CAP + 1}
            ) act
        ) shown (newest, count, actors)
        WHERE NOT {OF_MESSAGES} AND {item_shown()} AND shown.count > 0
    """
    return page_statement(scanned, shown, "position")


@cache
def _page(group: str) -> str:
    if not group:
        return _entries_statement(_scanned_query("true"))
    if group == "conversations":  # has an index of its own
        return _entries_statement(_scanned_query("n.kind IN ('mention', 'reply')"))
    each = " UNION ALL ".join("(" + _scanned_query(f"n.kind = '{kind.value}'") + ")" for kind in GROUPS[group])
    return _entries_statement(f"SELECT n.* FROM ({each}) n ORDER BY n.position DESC LIMIT %(scan)s")


def _unread(reader: str) -> str:
    return f"""
    SELECT count(*) FROM (
        SELECT FROM (
            SELECT n.id, n.kind, n.item_id, n.session_id, n.day, n.recipient_id FROM notifications_notification n
            WHERE n.recipient_id = {reader} AND n.position > {read_mark(reader)} - %(still)s
            ORDER BY n.position DESC LIMIT {UNREAD_SCAN}
        ) n
        CROSS JOIN LATERAL (
            SELECT FROM {NEWEST_ACTS} a JOIN accounts_user u ON u.id = a.actor_id
            WHERE a.id > {read_mark(reader)} AND {act_shown(reader)} LIMIT 1
        ) act
        WHERE NOT {OF_MESSAGES} AND {item_shown(reader)} LIMIT {UNREAD_CAP + 1}
    ) entry
    """


@cache
def _counts_of_many() -> str:
    reader = "reader.id"
    counts = f"({_unread(reader)}), ({count_unread(reader)}), ({count_requests(reader)})"
    return f"SELECT {reader}, {counts} FROM unnest(%(readers)s::bigint[]) AS reader (id)"


@cache
def _anything(*, is_staff: bool) -> str:
    """Sent first: usually nothing waits, and it costs a tenth of planning the full counts."""
    return f"""
    SELECT ({desk.waiting(READER) if is_staff else "NULL::bigint"}),
        EXISTS (SELECT FROM notifications_notification n
            WHERE n.recipient_id = {READER} AND n.position > {read_mark()} - %(still)s),
        {any_waiting(READER, UNREAD)}, {any_waiting(READER, REQUEST)}, %(is_locked)s AND {any_request(READER)}
    """


@cache
def _counts(parts: tuple[bool, ...]) -> str:
    queries = (_unread(READER), count_unread(READER), count_requests(READER), count_waiting(READER))
    return f"SELECT {', '.join(f'({query})' if part else '0' for query, part in zip(queries, parts, strict=True))}"


KindName = Annotated[
    Literal[
        "like",
        "reply",
        "repost",
        "follow",
        "follow_request",
        "follow_accepted",
        "mention",
        "quote",
        "poll",
        "live",
        "post",
        "warning",
        "picture",
        "scheduled",
        "report",
        "case",
    ],
    msgspec.Meta(extra_json_schema={"type": "string"}),
]


class _EntryRow(NamedTuple):
    bound: int | None
    position: int
    kind: Any
    item_id: int | None
    session_id: int | None
    text: str
    detail: str
    subject_id: int | None
    newest: int
    actor_count: int
    actors: list[list[Any]]
    is_unread: bool
    is_capped: bool


class Unread(msgspec.Struct):
    """The number of unread entries. `capped`: or more. Unread conversations, and requests of strangers to write, which
    are not in them; of each at most 99.
    """

    unread: int
    capped: bool
    conversations: int = 0
    requests: int = 0


class Waiting(NamedTuple):
    """What waits for a reader."""

    unread: Unread
    follow_requests: int
    cases: int | None
    """And appeals. None: the reader is no moderator."""


NOTHING = Waiting(Unread(0, False), 0, None)


class Entry(msgspec.Struct):
    """One event, once for all users who took part.

    `actors` are the newest, `count` is their number, `capped`: or more. A `warning` is a decision of moderators, with
    what they did (`detail`) and their `text` instead, and so is a `picture`, for removed pictures of `item`.
    `subject_id` is the decision's id. A `report` says in `detail` what came of the reader's report. A `case` tells
    moderators of a case or appeal. A `scheduled` says that a post was not published, or is held as `item`.
    """

    id: str
    kind: KindName
    actors: list[UserCard]
    count: int
    capped: bool
    item: ItemBody | None
    session: SessionCard | None
    text: str
    detail: str
    subject_id: str | None
    created_at: Time
    unread: bool

    @property
    def others(self) -> int:
        """Number of actors besides the first."""
        return self.count - 1


class NotificationPage(msgspec.Struct):
    """Entries, newest first. `last_id` is the position of the last one checked. `has_more`: more may follow."""

    items: list[Entry]
    last_id: str | None
    has_more: bool

    @property
    def newest(self) -> int:
        """The newest act on the page, or 0."""
        return max((int(entry.id) for entry in self.items), default=0)


def notifications_page(
    reader: User, *, last_id: int | None = None, limit: int = 20, group: str = ""
) -> NotificationPage:
    """The entries below `last_id`. `group`: only those of a key of `GROUPS`."""
    params = {"reader": reader.pk, "below": below(last_id), "count": limit + 1, "scan": limit + 1 + SCAN}
    found = fetch(_page(group), params, into=_EntryRow._make)
    rows = sorted((row for row in found if row.position is not None), key=lambda row: -row.position)
    page = part_of(rows, limit, attrgetter("position"), bound=found[0].bound)
    ids = list(dict.fromkeys(row.item_id for row in page.shown if row.item_id))
    items = {int(item.id): item for item in hydrate(ids, reader, Context.NOTIFICATIONS)}
    started = [row.session_id for row in page.shown if row.session_id]
    cards = sessions.cards(started, reader) if started else {}
    entries = [_entry(row, items, cards) for row in page.shown]
    return NotificationPage(entries, as_text(page.last_id), page.has_more)


def new_count(reader: User, *, since_id: int, group: str = "") -> tuple[int, bool]:
    """The number of entries with a newer act, at most `NEW_CAP`, and whether more may follow."""
    page = notifications_page(reader, limit=NEW_CAP, group=group)
    count = sum(int(entry.id) > since_id for entry in page.items)
    return count, count == NEW_CAP and page.has_more


def _entry(row: _EntryRow, items: Mapping[int, ItemBody], cards: Mapping[int, SessionCard]) -> Entry:
    is_of_people = row.kind not in WITHOUT_PEOPLE
    return Entry(
        id=str(row.newest),
        kind=row.kind,
        actors=[UserCard.from_row(*actor) for actor in row.actors] if is_of_people else [],
        count=min(row.actor_count, ACTORS_CAP) if is_of_people else 0,
        capped=row.is_capped,
        item=items[row.item_id] if row.item_id else None,
        session=cards.get(row.session_id) if row.session_id else None,
        text=row.text,
        detail=row.detail,
        subject_id=str(row.subject_id) if row.subject_id else None,
        created_at=moment(row.newest),
        unread=row.is_unread,
    )


def unread_counts(user_ids: Sequence[int]) -> dict[int, Unread]:
    """The unread counts of these users."""
    rows = fetch(_counts_of_many(), {"readers": id_array(user_ids), "still": STILL})
    return {user_id: _capped(*counts) for user_id, *counts in rows}


def unread_count(reader: User) -> Unread:
    """The unread counts, usually by one small query."""
    return waiting(reader).unread


def waiting(reader: User) -> Waiting:
    """All that waits for a reader, by one small query, and one more if there may be any."""
    params = {"reader": reader.pk, "still": STILL}
    ((cases, *parts),) = fetch(_anything(is_staff=reader.is_staff), params | {"is_locked": reader.is_locked})
    if not any(parts):
        return NOTHING._replace(cases=cases)
    ((*counts, follow_requests),) = fetch(_counts(tuple(parts)), params)
    return Waiting(_capped(*counts), follow_requests, cases)


def _capped(entries: int, conversations: int, requests: int) -> Unread:
    return Unread(min(entries, UNREAD_CAP), entries > UNREAD_CAP, conversations, requests)
