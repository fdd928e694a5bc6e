"""Users who reposted an item, as far as the reader may know of them: newest repost first, with a bound of work."""

from functools import cache

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from accounts.rows import user_columns, user_of
from relations.rules import READER, unblocked
from storage.connections import fetch
from storage.ids import MAX_ID

SCAN = 300
"""Reposts that a page looks through."""


@cache
def _reposters() -> str:
    return f"""
        SELECT r.id, NOT u.is_active OR NOT {unblocked(READER, "u.id")}, {user_columns("u")} FROM (
            SELECT id, sender_id FROM items_item
            WHERE repost_of_id = %(item)s AND status = 'published' AND id < %(below)s ORDER BY id DESC LIMIT {SCAN}
        ) r JOIN accounts_user u ON u.id = r.sender_id ORDER BY r.id DESC
    """  # noqa: S608 (columns of our own model)


def reposters_page(
    item_id: int, reader: User | AnonymousUser, *, last_id: int | None, limit: int
) -> tuple[list[User], int | None]:
    """Users below the repost `last_id`, at most `limit`, and the repost below which more may be, or None."""
    below = MAX_ID + 1 if last_id is None else last_id
    rows = fetch(_reposters(), {"item": item_id, "reader": reader.pk or 0, "below": below})
    users: list[User] = []
    for place, (repost_id, is_hidden, *columns) in enumerate(rows):
        if not is_hidden:
            users.append(user_of(columns))
        if len(users) == limit:
            return users, repost_id if place + 1 < len(rows) or len(rows) == SCAN else None
    return users, rows[-1][0] if len(rows) == SCAN else None
