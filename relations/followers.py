"""Who follows a user, for fan-outs: part by part, however many there are."""

from collections.abc import Iterator

from accounts import policy
from feedsite.connections import fetch, fetching

PART = 5_000
"""Followers that one query reads and one pipeline serves."""
LAST_ID = 2**63 - 1

# The followers first, and then those users by their ids: joined, the planner walks all users from the first on. Two
# arrays are a third of the client's work for as many rows.
FOLLOWERS = f"""
    WITH part AS MATERIALIZED (
        SELECT f.follower_id AS id FROM relations_follow f
        WHERE f.followee_id = %(followee)s AND f.follower_id > %(after)s AND f.follower_id <= %(last)s
        ORDER BY f.follower_id LIMIT %(size)s
    )
    SELECT (SELECT count(*) FROM part), (SELECT max(id) FROM part),
        array_agg(u.id ORDER BY u.id), array_agg(u.level ORDER BY u.id)
    FROM accounts_user u WHERE u.id = ANY(ARRAY(SELECT id FROM part)) AND u.level >= %(level)s
        AND (NOT %(with_inbox)s OR {policy.has_inbox()})
"""  # noqa: S608 (constants)


def follower_parts(
    followee_id: int, low: int, high: int, minimum_level: int, size: int = PART, *, with_inbox: bool
) -> Iterator[list[tuple[int, int]]]:
    """The followers with low < id <= high of at least a level, as (id, level), in the order of ids: of `size` followers
    at a time those of the level, if there are any; `with_inbox` those to whom the policy gives an inbox.

    While the caller serves one part, the next is read.
    """
    params = {
        "followee": followee_id,
        "after": low,
        "last": high,
        "size": size,
        "level": minimum_level,
        "with_inbox": with_inbox,
    }
    with fetching() as ahead:
        ((count, last, ids, levels),) = fetch(FOLLOWERS, params)
        while True:
            if count == size:
                following = ahead(FOLLOWERS, params | {"after": last})
            if ids:
                yield list(zip(ids, levels, strict=True))
            if count < size:
                return
            ((count, last, ids, levels),) = following()
