"""Late arrivals: posts that became visible (approved, restored, shown to more people) below the top of an open page.

The reader has passed their id, so they count as new. Reposts do not count: they have no text.
"""

from collections.abc import Sequence

from items.bodies import ItemBody
from relations.rules import members
from timeline.home import NEW_CAP
from timeline.rules import followed_tags_of_post, shown, welcome
from timeline.senders import LIST, Feed, Scope, statement

SCANNED = 1_000
"""The newest arrivals of the whole site that are checked."""


IS_MEMBER = f"EXISTS ({members('%(list)s', '')} AND member_id = i.sender_id OFFSET 0)"


def _late_query(feed: Feed) -> str:
    among, is_shown = IS_MEMBER if feed is LIST else "true", shown(wanted=feed.wanted)
    if feed.tags:
        is_shown = (
            f"({is_shown} OR {followed_tags_of_post('i.id')} IS NOT NULL AND {welcome('i.sender_id', 's.is_active')})"
        )
    return f"""{feed.with_tags_clause()}
        SELECT i.id FROM (
            SELECT id FROM items_item
            WHERE published_at > to_timestamp(%(since)s / 1000.0) AND published_at IS NOT NULL
            ORDER BY published_at DESC LIMIT %(scanned)s
        ) arrived
        JOIN items_item i ON i.id = arrived.id JOIN accounts_user s ON s.id = i.sender_id
        WHERE i.id <= %(top)s AND i.repost_of_id IS NULL AND {among}
            AND {is_shown}
        ORDER BY i.id DESC LIMIT %(cap)s
    """


LATE = statement(_late_query)


def late_ids(scope: Scope, *, since: int, top: int) -> list[int]:
    """Posts at or below `top` that became visible after `since` (milliseconds), newest first."""
    return [row[0] for row in LATE.rows({"since": since, "top": top, "scanned": SCANNED, "cap": NEW_CAP + 1}, scope)]


def late_arrivals(scope: Scope, items: Sequence[ItemBody], *, since: int | None) -> list[int]:
    """Late arrivals below the top of a first page, newest first. Empty without `since`."""
    return late_ids(scope, since=since, top=int(items[0].id)) if since and items else []


def with_late(new: tuple[int, bool], scope: Scope, *, since: int | None, top: int | None) -> tuple[int, bool]:
    """Add an open page's late arrivals below its `top` to the number of new items."""
    count, capped = new
    if since and top and not capped:
        count += len(late_ids(scope, since=since, top=top))
    return min(count, NEW_CAP), capped or count > NEW_CAP
