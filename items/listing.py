"""Lists of items in the order of ids, with bounded work: candidates from an index, then the visibility rule.

See docs/decisions.md: A page looks through a bounded number of rows.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import COLUMNS, ORIGINALS, ItemRow, bodies, id_of
from items.visibility import VISIBLE
from storage.connections import fetch
from storage.paging import Part, as_text, below, part_of

SCAN = 500
"""Candidates that one page checks."""


class ItemPage(msgspec.Struct):
    """A page of items. `last_id` is the last id checked. `has_more`: there may be more."""

    items: list[ItemBody]
    last_id: str | None
    has_more: bool


class ListedRow(NamedTuple):
    """A row of a `listing_sql`. `item` is None if the page is empty."""

    bound: int | None
    item: ItemRow | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> "ListedRow":
        """Convert a row."""
        bound, *columns = row
        return cls(bound, None if id_of(columns) is None else ItemRow.of(columns))


def listing_sql(candidates: Sequence[str], order: str, *, given: str = "", keep: str = "true") -> str:
    """A statement for `page_of`: the first `count` candidates that the reader may see.

    Each of `candidates` selects ids as `id`, unordered, by an index. `given` are CTEs for them. `keep` is a condition
    on the item `i`, applied after the bound, so a rare kind does not extend the search.
    """
    # Each has its own LIMIT: a plan for an average sender would sort everything that a busy one wrote. OFFSET 0: one
    # probe per candidate, not a scan of all items in order.
    scans = " UNION ALL ".join(f"({ids} ORDER BY id {order} LIMIT %(scan)s)" for ids in candidates)
    first = f"SELECT candidate.id FROM ({scans}) candidate ORDER BY candidate.id {order}"
    return f"""
    WITH {given} page AS MATERIALIZED (
        SELECT listed.id FROM ({first} LIMIT %(scan)s) listed CROSS JOIN LATERAL (
            SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
            WHERE i.id = listed.id AND {VISIBLE} AND {keep} OFFSET 0
        ) seen
        ORDER BY listed.id {order} LIMIT %(count)s
    ),
    bound AS MATERIALIZED (
        SELECT CASE WHEN (SELECT count(*) FROM page) < %(count)s THEN ({first} OFFSET %(scan)s - 1 LIMIT 1) END AS id
    )
    SELECT bound.id, {COLUMNS} FROM bound LEFT JOIN page ON true LEFT JOIN items_item i ON i.id = page.id
        LEFT JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY page.id {order}
    """


def page_of(rows: Sequence[ListedRow], reader: User | AnonymousUser, limit: int, context: str = "") -> ItemPage:
    """The page of a `listing_sql` of `limit` + 1 rows."""
    part = _part(rows, limit)
    return ItemPage(bodies(part.shown, reader, context), as_text(part.last_id), part.has_more)


def _part(rows: Sequence[ListedRow], limit: int) -> Part[ItemRow]:
    found = [row.item for row in rows if row.item]
    return part_of(found, limit, attrgetter("id"), bound=rows[0].bound)


def upward_page(
    query: str,
    reader: User | AnonymousUser,
    *,
    min_id: int,
    last_id: int | None = None,
    limit: int = 20,
    context: str = "",
    **params: object,
) -> ItemPage:
    """The items directly above `min_id`, newest first. `last_id` is the highest id checked."""
    asked = params | listing_params(reader, above=min_id, last_id=last_id, limit=limit)
    rows = fetch(query, asked, into=ListedRow.of)
    part = _part(rows, limit)
    return ItemPage(bodies(part.shown[::-1], reader, context), as_text(part.last_id), part.has_more)


class BothListings(NamedTuple):
    """The `listing_sql`s downward and upward."""

    down: str
    up: str

    def page(
        self,
        reader: User | AnonymousUser,
        *,
        last_id: int | None = None,
        min_id: int | None = None,
        limit: int = 20,
        context: str = "",
        **params: object,
    ) -> ItemPage:
        """The page below `last_id`, newest first; with `min_id` as in `upward_page`."""
        if min_id is not None:
            return upward_page(self.up, reader, min_id=min_id, last_id=last_id, limit=limit, context=context, **params)
        asked = params | listing_params(reader, above=0, last_id=last_id, limit=limit)
        return page_of(fetch(self.down, asked, into=ListedRow.of), reader, limit, context)


def listing_params(
    reader: User | AnonymousUser, *, above: int = 0, last_id: int | None = None, limit: int = 20
) -> dict[str, object]:
    """The parameters of every listing."""
    return {"reader": reader.pk or 0, "above": above, "below": below(last_id), "scan": SCAN, "count": limit + 1}
