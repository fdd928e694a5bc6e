"""Lists of items in the order of their ids, with a bound of work: candidates by an index, then the rule of who may see.

Items hidden from the reader are passed one by one, but never more than `SCAN` of them: there a list answers short, with
the `last_id` that it came to and `has_more`, though nothing may follow.

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
"""Candidates that one page looks through."""


class ItemPage(msgspec.Struct):
    """A page of items. `last_id` is the last id scanned. `has_more` is true if another item exists, or may exist beyond
    the bound of the page's work.
    """

    items: list[ItemBody]
    last_id: str | None
    has_more: bool


class ListedRow(NamedTuple):
    """A row of a `listing`: its bound, and an item, or none where the page is empty."""

    bound: int | None
    item: ItemRow | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> "ListedRow":
        """The entry of a row of the listing's columns."""
        bound, *columns = row
        return cls(bound, None if id_of(columns) is None else ItemRow.of(columns))


def listing(candidates: Sequence[str], order: str, *, given: str = "", keep: str = "true") -> str:
    """A statement for `page_of`: the first `count` of the candidates that the reader may see, as
    `ListedRow`s.

    Each of `candidates` is a query of ids as `id`, without an order, of which an index has one; `order` is DESC or ASC.
    `given` are CTEs that they use. `keep` is a condition on the item `i`, asked of the candidates that are looked at,
    so that a rare kind is no reason to look further. The bound is the last of `scan` candidates where not enough of
    them may be seen, else NULL.
    """
    # Bounded one by one: a plan for an average sender would sort all that a busy one ever said. OFFSET 0: a probe for
    # each of the few, not a walk of all items in their order.
    scans = " UNION ALL ".join(f"({ids} ORDER BY id {order} LIMIT %(scan)s)" for ids in candidates)
    first = f"SELECT candidate.id FROM ({scans}) candidate ORDER BY candidate.id {order}"  # noqa: S608
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
    """  # noqa: S608 (constants)


def page_of(rows: Sequence[ListedRow], reader: User | AnonymousUser, limit: int) -> ItemPage:
    """The page of the rows of a `listing` for which `count` is `limit` + 1: the one more proves that there is more."""
    part = _part(rows, limit)
    return ItemPage(bodies(part.shown, reader), as_text(part.last_id), part.has_more)


def _part(rows: Sequence[ListedRow], limit: int) -> Part[ItemRow]:
    found = [row.item for row in rows if row.item]
    return part_of(found, limit, attrgetter("id"), bound=rows[0].bound)


def upward(
    query: str,
    reader: User | AnonymousUser,
    *,
    min_id: int,
    last_id: int | None = None,
    limit: int = 20,
    **params: object,
) -> ItemPage:
    """The items of a `listing` upward directly above `min_id` and below `last_id` (both exclusive), newest first.

    The page's `last_id` is the id up to which was looked, from which the next page upward goes on, and `has_more` says
    whether it may find more. `params` are those of the listing's own candidates.
    """
    asked = params | bounds(reader, above=min_id, last_id=last_id, limit=limit)
    rows = fetch(query, asked, into=ListedRow.of)
    part = _part(rows, limit)
    return ItemPage(bodies(part.shown[::-1], reader), as_text(part.last_id), part.has_more)


class Walk(NamedTuple):
    """The `listing` of the same candidates downward and upward."""

    down: str
    up: str

    def page(
        self,
        reader: User | AnonymousUser,
        *,
        last_id: int | None = None,
        min_id: int | None = None,
        limit: int = 20,
        **params: object,
    ) -> ItemPage:
        """The page below `last_id` (exclusive), newest first; with `min_id` the items directly above it (`upward`)."""
        if min_id is not None:
            return upward(self.up, reader, min_id=min_id, last_id=last_id, limit=limit, **params)
        asked = params | bounds(reader, above=0, last_id=last_id, limit=limit)
        return page_of(fetch(self.down, asked, into=ListedRow.of), reader, limit)


def bounds(
    reader: User | AnonymousUser, *, above: int = 0, last_id: int | None = None, limit: int = 20
) -> dict[str, object]:
    """The parameters of every listing."""
    return {"reader": reader.pk or 0, "above": above, "below": below(last_id), "scan": SCAN, "count": limit + 1}
