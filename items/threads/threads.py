"""The replies to an item as its page shows them: a tree of two levels, with bounded work.

Replies by the reader, the authors of item and root, and followees come first, if among the first `SCAN`. If the reader
may not see what a reply answers, it is listed as a reply to the post.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import COLUMNS, ITEMS, ORIGINALS, ItemRow, bodies, id_of
from items.listing import SCAN
from items.models import Context
from items.visibility import VISIBLE, is_hidden_reply, post_visible
from relations.rules import READER, follows
from storage.connections import fetch, id_array
from storage.paging import as_text, part_of

BRANCHES = 15
"""Replies on a page."""
NEAR = 10
"""Most replies by near people that come first."""
ANSWERS = 2
"""Replies shown below each reply."""
LOOKED_AT = 20
"""Replies to one reply that are checked."""
ANCESTORS = 8
"""Items shown above a reply, besides the thread's root."""


def _is_near(reply: str) -> str:
    near = f"{reply}.sender_id IN (SELECT sender_id FROM authors) OR {follows(READER, f'{reply}.sender_id')}"
    return f"({reply}.sender_id = {READER} OR {near})"


SEEN = f"""
    CROSS JOIN LATERAL (
        SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id WHERE i.id = reply.id AND {VISIBLE}
            AND NOT {is_hidden_reply("i")} AND i.id <> ALL(%(chain)s::bigint[]) OFFSET 0
    ) seen
"""


def _replies_sql(item: str) -> str:
    return f"""
        (SELECT r.id, r.sender_id FROM items_item r WHERE r.reply_to_id = {item} ORDER BY r.id LIMIT {LOOKED_AT}) reply
        {SEEN}
    """


IS_ANSWER = f"""
    (reply.reply_to_id = %(item)s OR reply.reply_to_id = ANY(%(chain)s::bigint[]) OR NOT EXISTS (
        SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
        WHERE i.id = reply.reply_to_id AND {post_visible("i", "s")} OFFSET 0))
"""


def _branches_sql(replies_of: str) -> str:
    """The statement for a page of replies. `replies_of`: the column that finds them, `root` or `reply_to`."""

    def replies(above: str) -> str:
        return f"""
            SELECT r.id, r.sender_id, r.reply_to_id FROM items_item r
            WHERE r.{replies_of}_id = %(item)s AND r.id > {above} ORDER BY r.id
        """

    return f"""
    WITH authors AS MATERIALIZED (
        SELECT a.sender_id FROM items_item asked JOIN items_item a ON a.id IN (asked.id, asked.root_id)
        WHERE asked.id = %(item)s
    ),
    near AS MATERIALIZED (
        SELECT reply.id FROM ({replies("0")} LIMIT %(scan)s) reply {SEEN}
        WHERE {_is_near("reply")} AND {IS_ANSWER}
        ORDER BY reply.id LIMIT {NEAR}
    ),
    wanted AS MATERIALIZED (
        SELECT %(count)s - CASE WHEN %(above)s = 0 THEN (SELECT count(*) FROM near) ELSE 0 END AS count
    ),
    other AS MATERIALIZED (
        SELECT reply.id FROM ({replies("%(above)s")} LIMIT %(scan)s) reply {SEEN}
        WHERE reply.id NOT IN (SELECT id FROM near) AND {IS_ANSWER}
        ORDER BY reply.id LIMIT (SELECT count FROM wanted)
    ),
    bound AS MATERIALIZED (
        SELECT CASE WHEN (SELECT count(*) FROM other) < (SELECT count FROM wanted)
            THEN (SELECT last.id FROM ({replies("%(above)s")} OFFSET %(scan)s - 1 LIMIT 1) last) END AS id
    ),
    branch AS MATERIALIZED (
        SELECT id, true AS is_near FROM near WHERE %(above)s = 0 UNION ALL SELECT id, false FROM other
    ),
    shown AS MATERIALIZED (
        SELECT id, NULL::bigint AS parent_id, is_near FROM branch
        UNION ALL
        SELECT answer.id, branch.id, answer.is_near FROM branch CROSS JOIN LATERAL (
            SELECT reply.id, {_is_near("reply")} AS is_near FROM {_replies_sql("branch.id")}
            ORDER BY is_near DESC, reply.id LIMIT {ANSWERS + 1}
        ) answer
    )
    SELECT bound.id, shown.parent_id, shown.is_near,
        shown.parent_id IS NOT NULL AND EXISTS (SELECT FROM {_replies_sql("shown.id")} OFFSET 0), {COLUMNS}
        FROM bound LEFT JOIN shown ON true
        LEFT JOIN items_item i ON i.id = shown.id LEFT JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY shown.is_near DESC, shown.id
    """


THREAD, ANSWERED = _branches_sql("root"), _branches_sql("reply_to")
ABOVE = f"""
    WITH RECURSIVE up AS (
        SELECT r.reply_to_id AS id, r.root_id, 1 AS distance FROM items_item r WHERE r.id = %(item)s
        UNION ALL
        SELECT r.reply_to_id, up.root_id, up.distance + 1 FROM up JOIN items_item r ON r.id = up.id
        WHERE up.distance < {ANCESTORS} AND r.reply_to_id IS NOT NULL
    )
    SELECT {COLUMNS} FROM {ITEMS}
    WHERE i.id IN (SELECT id FROM up UNION SELECT root_id FROM up) AND {VISIBLE} ORDER BY i.id
"""


class ThreadReply(NamedTuple):
    """A reply below another, and the number of further ones on its page."""

    item: ItemBody
    hidden: int


class Branch(NamedTuple):
    """A reply, those shown below it, and the number of further ones on its page."""

    item: ItemBody
    answers: list[ThreadReply]
    hidden: int

    @classmethod
    def of(cls, item: ItemBody, found: Sequence[ThreadReply]) -> "Branch":
        """The branch of a reply. The count may include invisible replies; it is at least 1 if there are more."""
        rest = item.counts.replies - ANSWERS
        has_more = len(found) > ANSWERS or item.counts.replies > LOOKED_AT
        return cls(item, list(found[:ANSWERS]), max(rest, 1) if has_more else 0)


class Thread(NamedTuple):
    """A page of replies, as in items.listing."""

    branches: list[Branch]
    last_id: str | None
    has_more: bool

    @property
    def items(self) -> list[ItemBody]:
        """All items of the page, in order."""
        return [item for branch in self.branches for item in (branch.item, *(answer.item for answer in branch.answers))]


class _ThreadRow(NamedTuple):
    bound: int | None
    parent_id: int | None
    is_near: bool | None
    is_answered: bool | None
    """For a reply below another: whether the reader may see a reply to it."""
    item: ItemRow | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_ThreadRow":
        bound, parent_id, is_near, is_answered, *columns = row
        item = None if id_of(columns) is None else ItemRow.of(columns)
        return cls(bound, parent_id, is_near, is_answered, item)


def thread_page(
    item: ItemBody, reader: User | AnonymousUser, *, last_id: int | None = None, chain: Iterable[ItemBody] = ()
) -> Thread:
    """The replies after `last_id`, near ones first: also those to items of the `chain` below, not these themselves."""
    params: dict[str, Any] = {"item": int(item.shown.id), "reader": reader.pk or 0, "above": last_id or 0}
    params["chain"] = id_array(int(one.id) for one in chain)
    statement = ANSWERED if item.shown.reply_to else THREAD
    rows = fetch(statement, params | {"scan": SCAN, "count": BRANCHES + 1}, into=_ThreadRow.of)
    found = [(row, row.item) for row in rows if row.item is not None]
    body_of = {int(body.id): body for body in bodies([one for _row, one in found], reader, Context.THREAD)}
    answers: defaultdict[int, list[ThreadReply]] = defaultdict(list)
    for row, one in found:
        if row.parent_id is not None:
            body = body_of[one.id]
            answers[row.parent_id].append(ThreadReply(body, max(body.counts.replies, 1) if row.is_answered else 0))
    near = [one for row, one in found if row.parent_id is None and row.is_near]
    others = [one for row, one in found if row.parent_id is None and not row.is_near]
    part = part_of(others, BRANCHES - len(near), attrgetter("id"), bound=rows[0].bound)
    branches = [Branch.of(body_of[one.id], answers[one.id]) for one in (*near, *part.shown)]
    return Thread(branches, as_text(part.last_id), part.has_more)


def ancestors(reply: ItemBody, reader: User | AnonymousUser) -> list[ItemBody]:
    """The visible items above: the root and the nearest."""
    if not reply.shown.reply_to:
        return []
    return bodies(
        fetch(ABOVE, {"item": int(reply.shown.id), "reader": reader.pk or 0}, into=ItemRow.of), reader, Context.THREAD
    )
