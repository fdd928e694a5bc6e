"""Suggestions of users to follow, and why."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache as once
from typing import Any, NamedTuple

from django.core.cache import cache

from accounts.models import User
from accounts.rows import user_columns, user_of
from relations.rules import READER, follows, is_wanted, may_be_proposed
from storage import keys
from storage.connections import fetch, id_array
from storage.ids import MAX_ID
from storage.replica import PRIMARY, read_from_replica

KEPT = timedelta(minutes=10)
"""How long suggestions are cached while all are still allowed. A rising user appears this late."""
LOOKED_AT = 2_500
"""Most followed users considered. More than FOLLOW_CAP."""

MAY_BE = f"""
    {may_be_proposed("u", READER)}
    ORDER BY u.follower_count DESC, u.id
"""

REASONS = 2
COUNTED = 100
"""Followees counted as a reason at most."""
FOLLOWED_BY = f"""
    SELECT proposed.id, between.username, between.display_name, between.number
    FROM unnest(%(ids)s::bigint[]) AS proposed (id) CROSS JOIN LATERAL (
        SELECT known.username, known.display_name, count(*) OVER () AS number
        FROM (
            SELECT u.username, u.display_name FROM relations_follow mine JOIN accounts_user u ON u.id = mine.followee_id
            WHERE mine.follower_id = {READER} AND u.is_active AND {follows("mine.followee_id", "proposed.id")}
                AND {is_wanted(READER, "mine.followee_id")}
            LIMIT {COUNTED}
        ) known
        LIMIT %(reasons)s
    ) between
"""


class KnownFollowers(NamedTuple):
    """Up to `REASONS` names of the reader's followees who follow a user, and the number of all, up to `COUNTED`."""

    names: list[str]
    number: int

    @property
    def others(self) -> int:
        """How many there are besides the first."""
        return self.number - 1


def suggestions(reader: User, *, count: int = 6) -> list[User]:
    """The most followed users without a relation to the reader, among the top `LOOKED_AT`, cached for `KEPT` and
    verified.
    """
    name = keys.suggestions(reader.pk, count)
    kept = cache.get(name)
    if _are_ids(kept):
        users = _fetch_allowed(reader, kept)
        if len(users) == count:
            return users
    users, on = read_from_replica(reader.pk, lambda on: (_fetch_most_followed(reader, count, on), on))
    ids = [user.pk for user in users]
    if len(ids) == count:  # a small site shows each newcomer at once
        cache.set(name, ids, KEPT.total_seconds())
    return users if on == PRIMARY else _fetch_allowed(reader, ids)


def _fetch_most_followed(reader: User, count: int, on: str) -> list[User]:
    return [user_of(row) for row in fetch(_most_followed_query(count), {"reader": reader.pk}, on=on)]


def _fetch_allowed(reader: User, ids: Sequence[int]) -> list[User]:
    return [user_of(row) for row in fetch(_users_by_id_query(), {"reader": reader.pk, "ids": id_array(ids)})]


def _are_ids(kept: Any) -> bool:
    return isinstance(kept, list) and all(type(one) is int and 0 < one <= MAX_ID for one in kept)  # bool excluded


def followed_by(reader: User, users: Sequence[User]) -> dict[int, KnownFollowers]:
    """The followees of `reader` who follow each user, by user id."""
    if not users:
        return {}
    params = {"reader": reader.pk, "ids": id_array(user.pk for user in users), "reasons": REASONS}
    found: dict[int, KnownFollowers] = {}
    for user_id, username, display_name, number in fetch(FOLLOWED_BY, params):
        found.setdefault(user_id, KnownFollowers([], number)).names.append(display_name or username)
    return found


def known_followers(reader: User, user: User, *, count: int) -> list[User]:
    """At most `count` followees of `reader` who follow `user`."""
    params = {"reader": reader.pk, "user": user.pk, "count": count}
    return [user_of(row) for row in fetch(_known_followers_query(), params)]


@once
def _known_followers_query() -> str:
    return f"""
        SELECT {user_columns("u")} FROM relations_follow mine JOIN accounts_user u ON u.id = mine.followee_id
        WHERE mine.follower_id = {READER} AND u.is_active AND {follows("mine.followee_id", "%(user)s")}
            AND {is_wanted(READER, "mine.followee_id")}
        LIMIT %(count)s
    """


@once
def _most_followed_query(count: int) -> str:
    # The LIMIT lets the planner see that they are few, so it does not sort all users.
    most_followed = f"SELECT * FROM accounts_user WHERE is_active ORDER BY follower_count DESC, id LIMIT {LOOKED_AT}"
    return f"SELECT {user_columns('u')} FROM ({most_followed}) u WHERE {MAY_BE} LIMIT {count:d}"


@once
def _users_by_id_query() -> str:
    return f"SELECT {user_columns('u')} FROM accounts_user u WHERE u.id = ANY(%(ids)s::bigint[]) AND {MAY_BE}"
