"""The verifying columns: candidates from Redis become a page only through them.

See docs/decisions.md: Windows keep what may come back without an event.
See docs/decisions.md: Experiments that were not worth it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from items.hydrate import COLUMNS, MET, ORIGINALS, SAID, WIDTH, ItemRow, Said
from items.hydrate import columns as columns_of
from items.visibility import is_published
from storage.connections import id_array
from timeline.pull import Candidate, any_below
from timeline.rules import HELD, belongs, belongs_among, original_shown
from timeline.senders import Feed, Statement, statement

# The kind of items that follow below an id: posts (2), only reposts, all of which may be folded or hidden (1), none
# (0). Asked once a page, where the windows end with it.
POSTS, REPOSTS, NOTHING = 2, 1, 0
NOT_ASKED = "NULL"


def older(feed: Feed) -> str:
    """The kind of items below the parameter `below`. PostgreSQL sets a plan up for all that it might read, so only
    the statements that need this column have it; the others have `NOT_ASKED`.
    """
    post, entry = any_below(feed, "stream.repost_of_id IS NULL"), any_below(feed)
    return f"CASE WHEN {post} THEN {POSTS} WHEN {entry} THEN {REPOSTS} ELSE {NOTHING} END"


def _verified(feed: Feed, older: str) -> str:
    """The columns of `Verified.of`, of an item `i`, its sender `s` and `ORIGINALS`."""
    return f"{COLUMNS}, {belongs(wanted=feed.wanted)}, {HELD}, {original_shown('i')}, {is_published('i')}, {older}"


def verified_alone(senders: str, older: str) -> str:
    """The columns of `Verified.alone`: without originals, for the first look at a page. `senders`: an array with the
    senders of all items. `older`: a column.

    See docs/decisions.md: Windows first, then one statement.
    """
    return f"{columns_of('i', 's')}, {belongs_among(senders)}, {HELD}, {is_published('i')}, {older}"


def _verify_bodies(feed: Feed, older: str) -> str:
    return f"""
    SELECT {_verified(feed, older)} FROM unnest(%(ids)s::bigint[]) AS candidate (id)
    JOIN items_item i ON i.id = candidate.id JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    """  # noqa: S608


VERIFY_BODIES = statement(lambda feed: _verify_bodies(feed, NOT_ASKED))
VERIFY_LAST_BODIES = statement(lambda feed: _verify_bodies(feed, older(feed)))


def _verify_ids(feed: Feed) -> str:
    return f"""
    SELECT i.id, i.repost_of_id, {original_shown("i")} FROM unnest(%(ids)s::bigint[]) AS candidate (id)
    JOIN items_item i ON i.id = candidate.id JOIN accounts_user s ON s.id = i.sender_id
    WHERE {belongs(wanted=feed.wanted)} AND {HELD} ORDER BY i.id DESC
    """  # noqa: S608 (constants)


VERIFY_IDS = statement(_verify_ids)


class Verified(NamedTuple):
    """A row of `VERIFY_BODIES`: a candidate that exists, and what the reader's home makes of it.

    The inbox may forget an item that does not belong into the reader's home, and every window one that is not
    published. An item that belongs but is not held (its sender does not follow back, or is suspended), or is held but
    not shown (its original is hidden), stays in the windows: none is told when that changes.
    """

    item: ItemRow
    belongs: bool
    is_held: bool
    has_shown_original: bool | None
    """Whether it is no repost, or its original is shown; None of a repost whose original was not asked for yet."""
    is_published: bool
    older: int | None
    """The kind of items below an id: `POSTS`, `REPOSTS` or `NOTHING`; None where it was not asked."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "Verified":
        """A row that begins with the columns of `VERIFY_BODIES`."""
        return cls(ItemRow.of(row), *row[WIDTH:VERIFIED_WIDTH])

    @classmethod
    def alone(cls, row: Sequence[Any]) -> "Verified":
        """A row that begins with the columns of `verified_alone`."""
        said = Said._make(row[:SAID])
        counts, is_liked, is_reposted, is_bookmarked, belongs, is_held, is_published, older = row[SAID:ALONE_WIDTH]
        has_shown_original = True if said.repost_of_id is None else None
        item = ItemRow(said, counts, is_liked, is_reposted, is_bookmarked, None)
        return cls(item, belongs, is_held, has_shown_original, is_published, older)

    @property
    def is_entry(self) -> bool:
        """Whether it stands in the reader's home, shown or not."""
        return self.belongs and self.is_held

    @property
    def is_shown(self) -> bool:
        """Whether the entry belongs to the home, and it and its original may be shown."""
        return self.belongs and self.is_held and self.has_shown_original is True

    @property
    def is_hidden(self) -> bool:
        """Whether it belongs into the home and is not shown just now."""
        return self.belongs and not self.is_shown


VERIFIED_WIDTH = WIDTH + len(Verified._fields) - 1
"""How many columns `Verified.of` takes."""
ALONE_WIDTH = MET + len(Verified._fields) - 2
"""How many columns `Verified.alone` takes."""


def verify_bodies(reader_id: int, ids: Sequence[int], below: int = 0, *, list_id: int = 0) -> dict[int, Verified]:
    """The candidates that exist, by id. Their rows say what follows below `below`, unless that is 0."""
    if not ids:
        return {}
    params = {"reader": reader_id, "ids": id_array(ids), "below": below}
    query: Statement = VERIFY_LAST_BODIES if below else VERIFY_BODIES
    rows = query.rows(params, list_id, Verified.of)
    return {row.item.id: row for row in rows}


def verify_ids(reader_id: int, ids: Sequence[int], *, list_id: int = 0) -> list[Candidate]:
    """The candidates that are entries of the reader's home, newest first."""
    if not ids:
        return []
    return VERIFY_IDS.rows({"reader": reader_id, "ids": id_array(ids)}, list_id, Candidate._make)
