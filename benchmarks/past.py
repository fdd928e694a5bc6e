"""Past dates of a real data set: what was new then is shown, and what was done since is looked for on the pages."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection

from storage import ids

WINDOW, AHEAD = timedelta(days=60), timedelta(days=180)
"""Shown are posts of so long before the date; hits are acts of so long after it."""
PAGE = 20

Post = tuple[int, int]
"""A post: its id and its sender's."""
Ranked = Callable[[int], Iterable[Post]]
"""The posts for a reader (of this id), best first."""


def page(posts: Iterable[Post], is_shown: Callable[[Post], bool]) -> list[Post]:
    """The first 20 that may be shown, of each sender as many as the site's pages take."""
    shown: list[Post] = []
    of_sender: Counter[int] = Counter()
    for post in posts:
        if of_sender[post[1]] < settings.SENDER_CAP and is_shown(post):
            of_sender[post[1]] += 1
            shown.append(post)
            if len(shown) == PAGE:
                break
    return shown


def hits_of(later: Mapping[int, set[int]], shown: Callable[[int], list[Post]], place: int) -> list[int]:
    """How many posts of each reader's page are hits: their id (place 0) or sender (place 1) is among `later`'s."""
    return [sum(post[place] in known for post in shown(reader)) for reader, known in later.items()]


def rates(hits: list[int]) -> tuple[float, float]:
    """The share of pages with a hit, and of posts that are one."""
    count = max(len(hits), 1)
    return sum(hit > 0 for hit in hits) / count, sum(hits) / count / PAGE


def forget_since(moment: datetime) -> None:
    """Take out of the database what was posted, followed and liked from then on."""
    first = ids.compose(moment, 0)
    with connection.cursor() as cursor:
        # No row that stays refers to a row that goes.
        cursor.execute("SET session_replication_role = replica")
        for table, column in (("items_itemdocument", "item_id"), ("items_itemtag", "item_id"), ("items_item", "id")):
            cursor.execute(f"DELETE FROM {table} WHERE {column} >= %s", [first])  # noqa: S608 (constants)
        for table in ("relations_follow", "items_like"):
            cursor.execute(f"DELETE FROM {table} WHERE created_at >= %s", [moment])  # noqa: S608 (constants)
        cursor.execute("RESET session_replication_role")
        for table in ("items_itemdocument", "items_itemtag", "items_item", "relations_follow", "items_like"):
            cursor.execute(f"VACUUM ANALYZE {table}")
