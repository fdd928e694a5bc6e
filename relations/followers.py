"""Who follows a user, for fan-outs: part by part, however many there are."""

from collections.abc import Iterator
from typing import Any

from feedsite.connections import fetch

PART = 5_000
"""Followers that one query reads and one pipeline serves."""
LAST_ID = 2**63 - 1

FOLLOWERS = """
    SELECT f.follower_id, u.level FROM relations_follow f JOIN accounts_user u ON u.id = f.follower_id
    WHERE f.followee_id = %s AND f.follower_id > %s AND f.follower_id <= %s AND u.level >= %s
    ORDER BY f.follower_id LIMIT %s
"""


def follower_parts(
    followee_id: int, low: int, high: int, minimum_level: int, size: int = PART
) -> Iterator[list[tuple[Any, ...]]]:
    """The followers with low < id <= high of at least a level, as (id, level), `size` at a time, in the order of
    ids.
    """
    while True:
        rows = fetch(FOLLOWERS, [followee_id, low, high, minimum_level, size])
        if rows:
            yield rows
        if len(rows) < size:
            return
        low = rows[-1][0]
