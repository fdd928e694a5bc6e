"""The followers of a user in batches, for fan-outs.

See docs/decisions.md: Experiments that were not worth it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from accounts.levels import policy
from storage.connections import fetch, fetch_in_thread

PART = 5_000
"""Followers read by one query and served by one pipeline."""
FIRST_PART = 2_000
"""The first batch is smaller, because nothing is served until it is read."""


class FollowerPart(NamedTuple):
    """Some followers, in the order of ids."""

    seen: int
    """Number of followers read. If fewer than requested, these are the last."""
    last: int | None
    """The highest id read."""
    ids: list[int] | None
    """The ids of those who meet the condition."""
    levels: list[int] | None
    """Their levels, in the same order."""


class Reach(NamedTuple):
    """How many of the newest followers get a post delivered."""

    seen: int
    """Followers checked."""
    as_ordinary: int
    as_big_v: int


LOOKED_AT = 1_000
REACH = f"""
    SELECT count(*), count(*) FILTER (WHERE {policy.has_inbox()}),
        count(*) FILTER (WHERE {policy.has_inbox()} AND u.level >= {policy.PUSH_LEVEL})
    FROM (
        SELECT follower_id FROM relations_follow WHERE followee_id = %(user)s ORDER BY id DESC LIMIT {LOOKED_AT}
    ) f JOIN accounts_user u ON u.id = f.follower_id
"""


def reach_of(user_id: int) -> Reach:
    """The deliveries of a post, ordinary and as a big-V."""
    return Reach(*fetch(REACH, {"user": user_id})[0])


def follower_part_query(
    followee: str, *, after: str, last: str, size: str, where: str, besides: str = "", provided: str = "true"
) -> str:
    """SQL of a `FollowerPart`: the first `size` followers with after < id <= last, filtered by `where` on the user `u`.

    All arguments are SQL. `besides`: one more user. Nothing is read unless `provided`. A join would scan all users, so
    ids come first. Arrays cost PostgreSQL two thirds of rows, and the client one third.
    """
    ids = f"ids || {besides}" if besides else "ids"
    return f"""
    WITH part AS MATERIALIZED (
        SELECT ARRAY(
            SELECT f.follower_id FROM relations_follow f
            WHERE {provided} AND f.followee_id = {followee} AND f.follower_id > {after} AND f.follower_id <= {last}
            ORDER BY f.follower_id LIMIT {size}) AS ids
    )
    SELECT (SELECT cardinality(ids) FROM part) AS seen, (SELECT ids[cardinality(ids)] FROM part) AS last,
        array_agg(u.id ORDER BY u.id) AS ids, array_agg(u.level ORDER BY u.id) AS levels
    FROM accounts_user u WHERE {provided} AND u.id = ANY((SELECT {ids} FROM part)::bigint[]) AND {where}
    """


FOLLOWERS = follower_part_query(
    "%(followee)s",
    after="%(after)s",
    last="%(last)s",
    size="%(size)s",
    where=f"u.level >= %(level)s AND (NOT %(with_inbox)s OR {policy.has_inbox()})",
)


def follower_parts(
    followee_id: int,
    low: int,
    high: int,
    minimum_level: int,
    size: int = PART,
    *,
    with_inbox: bool,
    first: FollowerPart | None = None,
) -> Iterator[tuple[list[int], list[int]]]:
    """The ids of followers with low < id <= high, from `minimum_level` on, and their levels, in batches. `first`: the
    first one, of FIRST_PART. The next is read while the caller serves one.
    """
    params = {
        "followee": followee_id,
        "after": low,
        "last": high,
        "size": size,
        "level": minimum_level,
        "with_inbox": with_inbox,
    }
    with fetch_in_thread() as ahead:
        part, asked = (first, FIRST_PART) if first else (FollowerPart(*fetch(FOLLOWERS, params)[0]), size)
        while True:
            is_last = part.seen < asked
            if not is_last:
                following = ahead(FOLLOWERS, params | {"after": part.last})
            if part.ids and part.levels:
                yield part.ids, part.levels
            if is_last:
                return
            part, asked = FollowerPart(*following()[0]), size
