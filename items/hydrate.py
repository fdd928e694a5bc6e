"""Turns item ids into item bodies.

Rows are plain and bodies are msgspec structs: a page of 20 costs a twentieth of model serializers.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
from django.contrib.auth.models import AnonymousUser
from msgspec import UNSET

from accounts.models import RepliableBy, User
from items.bodies import Counts, ItemBody, Quote, Sender, link_card
from items.filters.filters import apply_filters
from items.models import Item, ItemType, Status, Visibility
from items.polls import attach_polls
from items.signals import held_shown
from items.visibility import VISIBLE, may_reply, quoted_visible
from media.objects import media_objects
from relations.rules import READER
from storage.connections import fetch, id_array


def columns(item: str, sender: str) -> str:
    """The columns of an `ItemRow` without an original."""
    return f"{_content_columns(item, sender)}, {_reader_columns(f'{item}.id', f'{item}.visibility')}"


def _content_columns(item: str, sender: str) -> str:
    return f"""
    {item}.id, {item}.type, {item}.title, {item}.content::text, {item}.extra_info::text, {item}.media::text,
    {item}.visibility, {item}.status, {item}.created_at, {item}.modified_at, {item}.reply_to_id, {item}.repost_of_id,
    {item}.quote_of_id, {item}.quotable_by,
    CASE WHEN {item}.root_id IS NULL THEN {item}.repliable_by
        ELSE (SELECT t.repliable_by FROM items_item t WHERE t.id = {item}.root_id) END,
    {item}.is_continued,
    (SELECT c.facts::text FROM items_linkcard c WHERE c.id = {item}.link_card_id),
    {sender}.id, {sender}.username, {sender}.display_name, {sender}.is_big_v, {sender}.avatar::text
    """


def _reader_columns(item_id: str, visibility: str) -> str:
    return f"""
    {_counts(item_id, visibility)}, {marks(item_id, READER)}
    """


def marks(item_id: str, reader: str) -> str:
    """Whether a reader liked, reposted and bookmarked an item. OFFSET 0: a probe per item, not a hash of all likes."""
    return f"""
    EXISTS (SELECT FROM items_like l WHERE l.user_id = {reader} AND l.item_id = {item_id} OFFSET 0),
    EXISTS (SELECT FROM items_item r
        WHERE r.repost_of_id = {item_id} AND r.sender_id = {reader} AND r.status = 'published' OFFSET 0),
    EXISTS (SELECT FROM items_bookmark m WHERE m.user_id = {reader} AND m.item_id = {item_id} OFFSET 0)
    """


def counts(item: str) -> str:
    """Likes, replies, reposts and quotes, folded plus staged, in one snapshot."""
    return _counts(f"{item}.id", f"{item}.visibility")


def _counts(item_id: str, visibility: str) -> str:
    return f"""(
        SELECT ARRAY[
            coalesce(sum(n.likes), 0),
            coalesce(sum(n.replies) + CASE WHEN {visibility} = 'public' THEN 0 ELSE sum(n.circle_replies) END, 0),
            coalesce(sum(n.reposts), 0), coalesce(sum(n.quotes), 0)
        ]::int[] FROM (
            SELECT likes, replies, circle_replies, reposts, quotes FROM items_itemcounts WHERE item_id = {item_id}
            UNION ALL
            SELECT likes, replies, circle_replies, reposts, quotes FROM items_countchange WHERE item_id = {item_id}
        ) n)
    """


COLUMNS = f"""
    {_content_columns("i", "s")},
    {_reader_columns("coalesce(o.id, i.id)", "coalesce(o.visibility, i.visibility)")},
    {_content_columns("o", "os")}
"""
"""The columns of an `ItemRow`: an item, and the original if it is a repost. Counts and the reader's likes are read
once, for the original if there is one.
"""
ORIGINALS = "LEFT JOIN items_item o ON o.id = i.repost_of_id LEFT JOIN accounts_user os ON os.id = o.sender_id"
"""The joins for the original's columns."""
ITEMS = f"items_item i JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}"
"""The FROM clause of `COLUMNS`, with the parameter `reader`."""
BY_ID = f"""
    SELECT {COLUMNS} FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS wanted (id, place)
    JOIN items_item i ON i.id = wanted.id JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY wanted.place
"""

# OFFSET 0: probes an item, not a walk over all users.
VERIFIED = f"""
    SELECT item.* FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS wanted (id, place) CROSS JOIN LATERAL (
        SELECT {COLUMNS} FROM {ITEMS} WHERE i.id = wanted.id AND {VISIBLE} OFFSET 0
    ) item ORDER BY wanted.place
"""


def quote_state(reader: str = READER) -> str:
    """The state of the quote `i` for a reader (bodies.Quote)."""
    return f"""
    CASE WHEN i.is_quote_revoked THEN 'revoked' WHEN o.status = 'deleted' THEN 'deleted'
        WHEN {quoted_visible("i", "o", "os", reader)} THEN 'accepted' ELSE 'unauthorized' END
    """


QUOTING = "items_item i JOIN items_item o ON o.id = i.quote_of_id JOIN accounts_user os ON os.id = o.sender_id"
"""Items that quote, and the items they quote."""
# Only if an item of the page quotes another.
QUOTED = f"""
    SELECT {columns("o", "os")}, i.id, {quote_state()}, o.is_quote_revoked
    FROM unnest(%(ids)s::bigint[]) AS quoting (id) JOIN ({QUOTING}) ON i.id = quoting.id
"""


# Only if not everyone may reply to an item of the page.
REPLIABLE = f"""
    SELECT i.id FROM unnest(%(ids)s::bigint[]) AS asked (id) JOIN items_item i ON i.id = asked.id
    JOIN items_item root ON root.id = coalesce(i.root_id, i.id) WHERE {may_reply("root")}
"""


class OwnColumns(NamedTuple):
    """The columns of an item itself, as `_content_columns` selects them."""

    id: int
    type: str
    title: str
    content: str
    extra_info: str
    media: str
    visibility: str
    status: str
    created_at: datetime
    modified_at: datetime
    reply_to_id: int | None
    repost_of_id: int | None
    quote_of_id: int | None
    quotable_by: str
    repliable_by: str
    """As the root of its thread says."""
    is_continued: bool | None
    link_card: str | None
    sender_id: int
    username: str
    display_name: str
    is_big_v: bool
    avatar: str | None


class ItemRow(NamedTuple):
    """A row of `COLUMNS`. A repost has its original's counts and acts."""

    said: OwnColumns
    counts: list[int]
    """Likes, replies, reposts, quotes."""
    is_liked: bool
    is_reposted: bool
    is_bookmarked: bool
    original: OwnColumns | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> "ItemRow":
        """A row that begins with `COLUMNS`, or with `columns`."""
        said = OwnColumns._make(row[:SAID])
        counts, is_liked, is_reposted, is_bookmarked = row[SAID:MET]
        original = OwnColumns._make(row[MET:WIDTH]) if said.repost_of_id else None
        return cls(said, counts, is_liked, is_reposted, is_bookmarked, original)

    @classmethod
    def without_original(cls, row: Sequence[Any]) -> "ItemRow":
        """A row that begins with `columns`. A repost lacks its original."""
        return cls._make([OwnColumns._make(row[:SAID]), *row[SAID:MET], None])

    @property
    def id(self) -> int:
        """The item's id."""
        return self.said.id


SAID = len(OwnColumns._fields)
MET = SAID + 4
WIDTH = MET + SAID
"""Number of `COLUMNS`."""
id_of = itemgetter(OwnColumns._fields.index("id"))
"""The item id of a row that begins with `COLUMNS` or `columns`. None if a join found no item."""


def body(row: ItemRow, reader_id: int | None, reason: str | None = None) -> ItemBody:
    """The body of an item, before filters."""
    item = _body_of_columns(row, row.said, reader_id, reason)
    if row.original:
        item.repost_of = _body_of_columns(row, row.original, reader_id, None)
        item.repliable_by, item.can_reply = item.repost_of.repliable_by, item.repost_of.can_reply
    return item


def _body_of_columns(row: ItemRow, said: OwnColumns, reader_id: int | None, reason: str | None) -> ItemBody:
    return ItemBody(
        id=str(said.id),
        type=said.type,
        title=said.title,
        content=msgspec.Raw(said.content.encode()),
        extra_info=msgspec.Raw(said.extra_info.encode()),
        media=media_objects(said.media),
        visibility=said.visibility,
        status=said.status if said.sender_id == reader_id else UNSET,
        created_at=said.created_at,
        modified_at=said.modified_at,
        reply_to=str(said.reply_to_id) if said.reply_to_id else None,
        repost_of=None,
        quote=Quote(str(said.quote_of_id), None, "unauthorized") if said.quote_of_id else None,
        quotable_by=said.quotable_by,
        repliable_by=said.repliable_by,
        can_reply=bool(reader_id)
        and (said.repliable_by == RepliableBy.EVERYONE or said.visibility == Visibility.MENTIONED),
        poll=None,
        sender=Sender.from_row(said.sender_id, said.username, said.display_name, said.is_big_v, said.avatar),
        counts=Counts(*row.counts),
        liked=row.is_liked,
        reposted=row.is_reposted,
        bookmarked=row.is_bookmarked,
        reason=reason,
        continued=True if said.is_continued else UNSET,
        link_card=link_card(said.link_card) if said.link_card else None,
    )


def decorate(items: list[ItemBody], reader: User | AnonymousUser, context: str = "") -> list[ItemBody]:
    """Add what a page shows beside its items: quoted items, polls, and the reader's filters."""
    shown = [item.repost_of or item for item in items]
    if quoting := [item for item in shown if item.quote]:
        quoted = quoted_in(quoting, reader)
        for item in quoting:
            body, state = quoted[item.id]
            item.quote = Quote(body.id, body if state == "accepted" else None, state)
        shown += [item.quote.item for item in quoting if item.quote and item.quote.item]
    if polls := [item for item in shown if item.type == ItemType.POLL]:
        attach_polls(polls, reader.pk)
    if reader.pk:
        _ask_for_replies([*items, *shown], reader.pk)
    return apply_filters(items, reader, context)


def _ask_for_replies(items: Iterable[ItemBody], reader_id: int) -> None:
    """Set `can_reply` of items under which not everyone may reply."""
    limited = [item for item in items if item.repliable_by != RepliableBy.EVERYONE and not item.can_reply]
    if not limited:
        return
    rows = fetch(REPLIABLE, {"ids": id_array({int(item.shown.id) for item in limited}), "reader": reader_id})
    found = {str(item_id) for (item_id,) in rows}
    for item in limited:
        item.can_reply = item.shown.id in found


def quoted_in(quoting: Iterable[ItemBody], reader: User | AnonymousUser) -> dict[str, tuple[ItemBody, Any]]:
    """The quoted item and the quote's state, by the quoting item's id. Only `accepted` ones may be shown."""
    ids = {int(item.id) for item in quoting}
    found = {}
    for *columns, quoting_id, state, is_revoked in (
        fetch(QUOTED, {"ids": id_array(ids), "reader": reader.pk or 0}) if ids else ()
    ):
        quoted = body(ItemRow.of(columns), reader.pk)
        if quoted.quote:
            quoted.quote.state = "revoked" if is_revoked else "accepted"
        found[str(quoting_id)] = quoted, state
    return found


def bodies(rows: Iterable[ItemRow], reader: User | AnonymousUser, context: str = "") -> list[ItemBody]:
    """The bodies of visible items. Held own items say why."""
    found = decorate([body(row, reader.pk) for row in rows], reader, context)
    if held := [item for item in found if item.status == Status.IN_REVIEW]:
        for _, answer in held_shown.send(sender=ItemBody, item_ids=[int(item.id) for item in held]):
            told: Any = answer
            for item in held:
                item.review = told.get(int(item.id), UNSET)
    return found


def hydrate(ids: Sequence[int], reader: User | AnonymousUser, context: str = "") -> list[ItemBody]:
    """Items in order. The caller has checked that they are visible."""
    if not ids:
        return []
    return bodies(fetch(BY_ID, {"ids": id_array(ids), "reader": reader.pk or 0}, into=ItemRow.of), reader, context)


def hydrate_new(item: Item, sender: User) -> ItemBody:
    """The body of an item for the sender who has just published it: nobody has met it yet, so no statement reads it.

    A reply's, one with media, and one that an earlier call published are read.
    """
    if item.stored is None or item.reply_to_id or item.media:
        return hydrate([item.pk], sender)[0]
    content, extra_info = item.stored
    said = OwnColumns(
        id=item.pk,
        type=item.type,
        title=item.title,
        content=content,
        extra_info=extra_info,
        media="[]",
        visibility=item.visibility,
        status=item.status,
        created_at=item.created_at,
        modified_at=item.modified_at,
        reply_to_id=None,
        repost_of_id=None,
        quote_of_id=item.quote_of_id,
        quotable_by=item.quotable_by,
        repliable_by=item.repliable_by,
        is_continued=None,
        link_card=None,
        sender_id=sender.pk,
        username=sender.username,
        display_name=sender.display_name,
        is_big_v=sender.is_big_v,
        avatar=json.dumps(sender.avatar) if sender.avatar else None,
    )
    row = ItemRow(said, [0, 0, 0, 0], is_liked=False, is_reposted=False, is_bookmarked=False, original=None)
    return bodies([row], sender)[0]


def visible_bodies(ids: Sequence[int], reader: User | AnonymousUser, context: str = "") -> list[ItemBody]:
    """Those of these items that `reader` may see, in order."""
    if not ids:
        return []
    return bodies(fetch(VERIFIED, {"ids": id_array(ids), "reader": reader.pk or 0}, into=ItemRow.of), reader, context)
