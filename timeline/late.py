"""Late arrivals below the top of an open page: posts that became visible later than they were made. A post that was
approved, restored or shown to more stands in a home, or in a list, where its id puts it. A reader who loaded the page
before has passed that place, so the post counts as new for them. Reposts do not: they say nothing of their own.

No record says who saw a post before it was shown to more, so it counts as new for all.
"""

from collections.abc import Sequence

from items.bodies import ItemBody
from relations.rules import members
from timeline.home import NEW_CAP
from timeline.rules import shown
from timeline.senders import LIST, Feed, statement

SCANNED = 1_000
"""The newest arrivals of the whole site that are looked at."""


IS_MEMBER = f"EXISTS ({members('%(list)s', '')} AND member_id = i.sender_id OFFSET 0)"


def _late(feed: Feed) -> str:
    among = IS_MEMBER if feed is LIST else "true"
    return f"""
        SELECT i.id FROM (
            SELECT id FROM items_item
            WHERE published_at > to_timestamp(%(since)s / 1000.0) AND published_at IS NOT NULL
            ORDER BY published_at DESC LIMIT %(scanned)s
        ) arrived
        JOIN items_item i ON i.id = arrived.id JOIN accounts_user s ON s.id = i.sender_id
        WHERE i.id <= %(top)s AND i.repost_of_id IS NULL AND {among}
            AND {shown(wanted=feed.wanted)}
        ORDER BY i.id DESC LIMIT %(cap)s
    """  # noqa: S608 (constants)


LATE = statement(_late)


def late_ids(reader_id: int, *, since: int, top: int, list_id: int = 0) -> list[int]:
    """The posts of the reader's home at and below `top` that became visible after `since` (milliseconds), newest
    first, at most one more than `NEW_CAP`; with `list_id` those of this list of theirs.
    """
    params = {"reader": reader_id, "since": since, "top": top, "scanned": SCANNED, "cap": NEW_CAP + 1}
    return [row[0] for row in LATE.rows(params, list_id)]


def arrivals(reader_id: int, items: Sequence[ItemBody], *, since: int | None, list_id: int = 0) -> list[int]:
    """The ids of `late_ids` on a page that begins with the newest item, which marks them as new."""
    return late_ids(reader_id, since=since, top=int(items[0].id), list_id=list_id) if since and items else []


def with_late(
    new: tuple[int, bool], reader_id: int, *, since: int | None, top: int | None, list_id: int = 0
) -> tuple[int, bool]:
    """How many items are new to an open page: the `new` ones above its `top`, and those that arrived late below it."""
    count, capped = new
    if since and top and not capped:
        count += len(late_ids(reader_id, since=since, top=top, list_id=list_id))
    return min(count, NEW_CAP), capped or count > NEW_CAP
