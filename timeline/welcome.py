from collections.abc import Sequence
from functools import cache

from accounts.models import User
from accounts.rows import user_columns, user_of
from items.visibility import public_post
from relations.rules import READER, may_be_proposed
from relations.suggestions import suggestions
from storage.connections import fetch

PEOPLE = 12
"""The most users to suggest, and the most interests to use."""
NEWEST = 200
"""Newest items of each hashtag whose senders are suggested."""


def people_for(reader: User, tags: Sequence[str]) -> list[User]:
    """Users to follow: those who use the hashtags most, then the most followed."""
    found: list[User] = []
    if tags:
        params = {"reader": reader.pk, "tags": list(tags[:PEOPLE])}
        found = [user_of(row) for row in fetch(_users_of_tags_query(), params)]
    known = {user.pk for user in found}
    more = [user for user in suggestions(reader, count=PEOPLE) if user.pk not in known]
    return (found + more)[:PEOPLE]


@cache
def _users_of_tags_query() -> str:
    return f"""
        SELECT {user_columns("u")} FROM (
            SELECT i.sender_id, count(*) AS uses FROM unnest(%(tags)s::text[]) AS asked (tag)
            CROSS JOIN LATERAL (
                SELECT t.item_id FROM items_itemtag t WHERE t.tag = asked.tag ORDER BY t.item_id DESC LIMIT {NEWEST}
            ) newest JOIN items_item i ON i.id = newest.item_id WHERE {public_post("i")}
            GROUP BY i.sender_id
        ) used JOIN accounts_user u ON u.id = used.sender_id
        WHERE {may_be_proposed("u", READER)}
        ORDER BY used.uses DESC, u.follower_count DESC, u.id LIMIT {PEOPLE}
    """
