"""Users who reposted an item, as far as the reader may know of them, with a bound of work.

They are in the order of their ids, those who joined last first, for which there is an index: a sort by time would read
all reposts of a viral item.
"""

from functools import cache

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from accounts.rows import user_columns, user_of
from relations.followers import LAST_ID
from relations.rules import READER, unblocked
from storage.connections import fetch

SCAN = 300
"""Reposts that a page looks through."""


@cache
def _reposters() -> str:
    return f"""
        SELECT r.sender_id, NOT u.is_active OR NOT {unblocked(READER, "u.id")}, {user_columns("u")} FROM (
            SELECT sender_id FROM items_item WHERE repost_of_id = %(item)s AND status = 'published'
                AND repost_of_id IS NOT NULL AND sender_id < %(below)s ORDER BY sender_id DESC LIMIT {SCAN}
        ) r JOIN accounts_user u ON u.id = r.sender_id ORDER BY r.sender_id DESC
    """  # noqa: S608 (columns of our own model)


def reposters_page(
    item_id: int, reader: User | AnonymousUser, *, last_id: int | None, limit: int
) -> tuple[list[User], int | None]:
    """Users below the user `last_id`, at most `limit`, and the user below whom more may be, or None."""
    below = LAST_ID if last_id is None else last_id
    rows = fetch(_reposters(), {"item": item_id, "reader": reader.pk or 0, "below": below})
    users: list[User] = []
    for place, (user_id, is_hidden, *columns) in enumerate(rows):
        if not is_hidden:
            users.append(user_of(columns))
        if len(users) == limit:
            return users, user_id if place + 1 < len(rows) or len(rows) == SCAN else None
    return users, rows[-1][0] if len(rows) == SCAN else None
