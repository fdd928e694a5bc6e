"""The items that a reader bookmarked or likes, newest first."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import COLUMNS, ORIGINALS, ItemRow, bodies
from items.listing import SCAN, ItemPage
from items.visibility import VISIBLE
from storage.connections import fetch
from storage.paging import as_text, below, part_of

SavedKind = Literal["bookmark", "like"]


def _page_sql(table: SavedKind, order: str) -> str:
    first = f"""
        SELECT k.id, k.item_id FROM items_{table} k
        WHERE k.user_id = %(reader)s AND k.id > %(above)s AND k.id < %(below)s ORDER BY k.id {order}
    """
    return f"""
    WITH page AS MATERIALIZED (
        SELECT listed.id, listed.item_id FROM ({first} LIMIT %(scan)s) listed CROSS JOIN LATERAL (
            SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
            WHERE i.id = listed.item_id AND {VISIBLE} OFFSET 0
        ) seen
        ORDER BY listed.id {order} LIMIT %(count)s
    ),
    bound AS MATERIALIZED (
        SELECT CASE WHEN (SELECT count(*) FROM page) < %(count)s
            THEN (SELECT last.id FROM ({first}) last OFFSET %(scan)s - 1 LIMIT 1) END AS id
    )
    SELECT bound.id, page.id, {COLUMNS} FROM bound LEFT JOIN page ON true LEFT JOIN items_item i ON i.id = page.item_id
        LEFT JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY page.id {order}
    """


KINDS: tuple[SavedKind, ...] = ("bookmark", "like")
STATEMENTS = {kind: _page_sql(kind, "DESC") for kind in KINDS}
ABOVE = {kind: _page_sql(kind, "ASC") for kind in KINDS}


class SavedPage(NamedTuple):
    """A page of bookmarked or liked items. Ids are of bookmarks or likes: both ends of the page, and the last one
    checked.
    """

    items: list[ItemBody]
    newest_id: int | None
    oldest_id: int | None
    last_id: int | None
    has_more: bool


class _SavedRow(NamedTuple):
    bound: int | None
    relation_id: int | None
    item: ItemRow | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_SavedRow":
        bound, relation_id, *columns = row
        return cls(bound, relation_id, None if relation_id is None else ItemRow.of(columns))


def saved_page(reader: User, kept: SavedKind, *, last_id: int | None = None, limit: int = 20) -> ItemPage:
    """The items that a reader bookmarked or likes, newest first. `last_id` is a bookmark's or like's."""
    page = page_with_bounds(reader, kept, last_id=last_id, limit=limit)
    return ItemPage(page.items, as_text(page.last_id), page.has_more)


def page_with_bounds(
    reader: User,
    kept: SavedKind,
    *,
    last_id: int | None = None,
    since_id: int = 0,
    min_id: int | None = None,
    limit: int = 20,
) -> SavedPage:
    """Bookmarked or liked items with the page's places. With `min_id`, those directly above it."""
    statement, above = (STATEMENTS, since_id) if min_id is None else (ABOVE, max(since_id, min_id))
    params = {"reader": reader.pk, "above": above, "below": below(last_id), "scan": SCAN, "count": limit + 1}
    rows = fetch(statement[kept], params, into=_SavedRow.of)
    found = [(row.relation_id, row.item) for row in rows if row.relation_id is not None and row.item]
    part = part_of(found, limit, itemgetter(0), bound=rows[0].bound)
    shown = part.shown if min_id is None else part.shown[::-1]
    places: list[int | None] = [place for place, _item in shown] or [None]
    items = bodies([item for _place, item in shown], reader)
    return SavedPage(items, places[0], places[-1], part.last_id, part.has_more)
