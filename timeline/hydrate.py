"""The verifying columns: what Redis says becomes a page only through them."""

from collections.abc import Sequence
from typing import Any

from feedsite.connections import fetch, id_array
from items.hydrate import COLUMNS, ORIGINALS, WIDTH
from relations.rules import READER, follows, is_wanted
from timeline.pull import ANY_BELOW, HELD, IN_TIMELINE, POST_BELOW, Candidate, original_shown

FOLLOWED = follows(READER, "i.sender_id")
BELONGS = f"{IN_TIMELINE} AND (i.sender_id = %(reader)s OR ({FOLLOWED} AND {is_wanted(READER, 'i.sender_id')}))"
# What follows below an id: posts (2), only reposts, all of which may be folded or hidden (1), nothing (0). Asked once a
# page, where the windows end with it.
POSTS, REPOSTS, NOTHING = 2, 1, 0
# A plan is set up for all that it might look at: what follows is in a statement of its own.
VERIFIED = tuple(
    f"{COLUMNS}, {BELONGS}, {HELD}, {original_shown('i')}, i.status = 'published', {older}"
    for older in ("NULL", f"CASE WHEN {POST_BELOW} THEN {POSTS} WHEN {ANY_BELOW} THEN {REPOSTS} ELSE {NOTHING} END")
)
"""Columns of an item `i`, its sender `s` and `ORIGINALS`; the second form says what follows below the parameter `below`
too.
"""
BELONGS_AT, HELD_AT, SHOWN_AT, PUBLISHED_AT, OLDER_AT = range(WIDTH, WIDTH + 5)
"""Where their rows say what."""
VERIFY_BODIES, VERIFY_LAST_BODIES = (
    f"""
    SELECT {columns} FROM unnest(%(ids)s::bigint[]) AS candidate (id)
    JOIN items_item i ON i.id = candidate.id JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    """  # noqa: S608
    for columns in VERIFIED
)
VERIFY_IDS = f"""
    SELECT i.id, i.repost_of_id, {original_shown("i")} FROM unnest(%(ids)s::bigint[]) AS candidate (id)
    JOIN items_item i ON i.id = candidate.id JOIN accounts_user s ON s.id = i.sender_id
    WHERE {BELONGS} AND {HELD} ORDER BY i.id DESC
"""  # noqa: S608


def verify_bodies(reader_id: int, ids: Sequence[int], below: int = 0) -> dict[int, Sequence[Any]]:
    """Rows of `VERIFIED` by id, of the candidates that exist: (*COLUMNS, belongs, held, shown, published, older).

    `older` is what follows below `below`, `POSTS`, `REPOSTS` or `NOTHING`; it is not looked for if that is 0.

    The inbox may forget an item that does not belong into the reader's home, and every window one that is not
    published. An item that belongs but is not held (its sender does not follow back, or is suspended), or is held but
    not shown (its original is hidden), stays in the windows: none is told when that changes.
    """
    if not ids:
        return {}
    params = {"reader": reader_id, "ids": id_array(ids), "below": below}
    return {row[0]: row for row in fetch(VERIFY_LAST_BODIES if below else VERIFY_BODIES, params)}


def verify_ids(reader_id: int, ids: Sequence[int]) -> list[Candidate]:
    """Those of the candidates that are entries of the reader's home, newest first."""
    if not ids:
        return []
    return [Candidate(*row) for row in fetch(VERIFY_IDS, {"reader": reader_id, "ids": id_array(ids)})]
