"""Late arrivals below the top of an open page: posts that became visible later than they were made. A post that was
approved, restored or shown to more stands in the home where its id puts it. A reader who loaded the page before has
passed that place, so the post counts as new for them. Reposts do not: they say nothing of their own.

See docs/decisions.md: A post that is shown to more counts as new, also to earlier readers of it.
"""

from storage.connections import fetch
from timeline.home import NEW_CAP
from timeline.hydrate import BELONGS
from timeline.pull import SHOWN

SCANNED = 1_000
"""The newest arrivals of the whole site that are looked at."""
LATE = f"""
    SELECT i.id FROM (
        SELECT id FROM items_item WHERE published_at > to_timestamp(%(since)s / 1000.0) AND published_at IS NOT NULL
        ORDER BY published_at DESC LIMIT %(scanned)s
    ) arrived
    JOIN items_item i ON i.id = arrived.id JOIN accounts_user s ON s.id = i.sender_id
    WHERE i.id <= %(top)s AND i.repost_of_id IS NULL AND {BELONGS} AND {SHOWN}
    ORDER BY i.id DESC LIMIT %(cap)s
"""  # noqa: S608 (constants)


def late_ids(reader_id: int, *, since: int, top: int) -> list[int]:
    """The posts of the reader's home at and below `top` that became visible after `since` (milliseconds), newest
    first, at most one more than `NEW_CAP`.
    """
    params = {"reader": reader_id, "since": since, "top": top, "scanned": SCANNED, "cap": NEW_CAP + 1}
    return [row[0] for row in fetch(LATE, params)]
