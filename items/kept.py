"""The lists of items that a reader keeps and likes, newest first by when they did so, with a bound of work.

Items that the reader may not see leave the list, and are back when they may. They are passed one by one, but never more
than `items.listing.SCAN` of them: there a page answers short, with `has_more`.

See docs/decisions.md: A page has a bound of work, and answers short at it.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from accounts.models import User
from items.hydrate import COLUMNS, ORIGINALS, ItemRow, bodies
from items.listing import SCAN, ItemPage
from items.visibility import VISIBLE
from storage.connections import fetch
from storage.ids import MAX_ID

Kept = Literal["bookmark", "like"]


def _listed(table: Kept) -> str:
    newest = f"""
        SELECT k.id, k.item_id FROM items_{table} k
        WHERE k.user_id = %(reader)s AND k.id < %(below)s ORDER BY k.id DESC
    """  # noqa: S608 (constants)
    return f"""
    WITH page AS MATERIALIZED (
        SELECT listed.id, listed.item_id FROM ({newest} LIMIT %(scan)s) listed CROSS JOIN LATERAL (
            SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
            WHERE i.id = listed.item_id AND {VISIBLE} OFFSET 0
        ) seen
        ORDER BY listed.id DESC LIMIT %(count)s
    ),
    bound AS MATERIALIZED (
        SELECT CASE WHEN (SELECT count(*) FROM page) < %(count)s
            THEN (SELECT last.id FROM ({newest}) last OFFSET %(scan)s - 1 LIMIT 1) END AS id
    )
    SELECT bound.id, page.id, {COLUMNS} FROM bound LEFT JOIN page ON true LEFT JOIN items_item i ON i.id = page.item_id
        LEFT JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY page.id DESC
    """  # noqa: S608 (constants)


STATEMENTS: dict[Kept, str] = {"bookmark": _listed("bookmark"), "like": _listed("like")}


class _Row(NamedTuple):
    """A row of `STATEMENTS`: its bound, and a relation with its item, or neither where the page is empty."""

    bound: int | None
    relation_id: int | None
    item: ItemRow | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_Row":
        bound, relation_id, *columns = row
        return cls(bound, relation_id, None if relation_id is None else ItemRow.of(columns))


def kept_page(reader: User, kept: Kept, *, last_id: int | None = None, limit: int = 20) -> ItemPage:
    """Items that the reader keeps, or likes, below `last_id`: the id of a bookmark or like, and not of an item."""
    below = MAX_ID if last_id is None else last_id
    params = {"reader": reader.pk, "below": below, "scan": SCAN, "count": limit + 1}
    rows = fetch(STATEMENTS[kept], params, into=_Row.of)
    bound = rows[0].bound
    found = [(row.relation_id, row.item) for row in rows if row.item]
    page = bodies([item for _, item in found[:limit]], reader)
    if bound is not None:
        return ItemPage(page, str(bound), has_more=True)
    return ItemPage(page, str(found[:limit][-1][0]) if found else None, len(found) > limit)
