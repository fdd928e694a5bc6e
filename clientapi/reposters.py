"""Users who reposted an item, as far as the reader may know of them, with a bound of work.

They are in the order of their ids, those who joined last first, for which there is an index: a sort by time would read
all reposts of a viral item.
"""

from functools import cache
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from accounts.rows import user_columns, user_of
from clientapi.paging import Wanted
from relations.rules import READER, unblocked
from storage.connections import fetch
from storage.paging import below

SCAN = 300
"""Reposts that a page looks through."""


class Reposters(NamedTuple):
    """A page of reposters, of the highest id first: `next_id` and `prev_id` are None at an end of the list."""

    users: list[User]
    next_id: int | None
    prev_id: int | None


@cache
def _reposters(order: str) -> str:
    return f"""
        SELECT r.sender_id, NOT u.is_active OR NOT {unblocked(READER, "u.id")}, {user_columns("u")} FROM (
            SELECT sender_id FROM items_item WHERE repost_of_id = %(item)s AND status = 'published'
                AND repost_of_id IS NOT NULL AND sender_id > %(above)s AND sender_id < %(below)s
            ORDER BY sender_id {order} LIMIT {SCAN}
        ) r JOIN accounts_user u ON u.id = r.sender_id ORDER BY r.sender_id {order}
    """  # noqa: S608 (columns of our own model)


def reposters_page(item_id: int, reader: User | AnonymousUser, asked: Wanted) -> Reposters:
    """Users who reposted the item, on the page that is asked for by their ids."""
    order = "ASC" if asked.goes_up else "DESC"
    params = {"item": item_id, "reader": reader.pk or 0, "above": asked.above, "below": below(asked.max_id)}
    rows = fetch(_reposters(order), params)
    users: list[User] = []
    last, has_more = None, False
    for place, (user_id, is_hidden, *columns) in enumerate(rows):
        last, has_more = user_id, place + 1 < len(rows) or len(rows) == SCAN
        if not is_hidden:
            users.append(user_of(columns))
        if len(users) == asked.limit:
            break
    if asked.goes_up:
        users.reverse()
    return Reposters(
        users, *asked.beside(users[0].pk if users else None, users[-1].pk if users else None, last, has_more)
    )
