"""The followers of a user, for fan-outs: part by part, however many there are.

See docs/decisions.md: Experiments that were not worth it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from accounts.levels import policy
from storage.connections import fetch, fetching

PART = 5_000
"""Followers that one query reads and one pipeline serves."""
FIRST_PART = 2_000
"""Followers of a part that is read before anything is served: the longer it is, the longer nothing is."""


class Part(NamedTuple):
    """Some of the followers, in the order of ids."""

    seen: int
    """How many followers were looked at; fewer than asked for: they are the last."""
    last: int | None
    """The highest id among those."""
    ids: list[int] | None
    """The ids of the followers that were wanted."""
    levels: list[int] | None
    """The levels of the followers that were wanted, in the same order."""


class Reach(NamedTuple):
    """To how many of the newest followers a post is delivered."""

    seen: int
    """Followers who were looked at."""
    as_ordinary: int
    as_big_v: int


LOOKED_AT = 1_000
REACH = f"""
    SELECT count(*), count(*) FILTER (WHERE {policy.has_inbox()}),
        count(*) FILTER (WHERE {policy.has_inbox()} AND u.level >= {policy.PUSH_LEVEL})
    FROM (
        SELECT follower_id FROM relations_follow WHERE followee_id = %(user)s ORDER BY id DESC LIMIT {LOOKED_AT}
    ) f JOIN accounts_user u ON u.id = f.follower_id
"""  # noqa: S608 (constants)


def reach_of(user_id: int) -> Reach:
    """What a post of this user costs: it is delivered to every active follower with an inbox, that of a big-V to those
    who take pushes.
    """
    return Reach(*fetch(REACH, {"user": user_id})[0])


def part_of(
    followee: str, *, after: str, last: str, size: str, where: str, besides: str = "", provided: str = "true"
) -> str:
    """SQL of a `Part`: the first `size` followers with after < id <= last, and of those the ones that meet the
    condition `where` on the user `u`. All arguments are SQL; `besides` is the id of one more user of whom `where` is
    asked. No row is looked at unless `provided`.

    The followers are found first, and then those users by their ids: joined, the planner walks all users from the first
    on. Two arrays are a third of the client's work for as many rows.
    """
    ids = "SELECT id FROM part" + (f" UNION ALL SELECT {besides}" if besides else "")  # noqa: S608 (constants)
    return f"""
    WITH part AS MATERIALIZED (
        SELECT f.follower_id AS id FROM relations_follow f
        WHERE {provided} AND f.followee_id = {followee} AND f.follower_id > {after} AND f.follower_id <= {last}
        ORDER BY f.follower_id LIMIT {size}
    )
    SELECT (SELECT count(*) FROM part) AS seen, (SELECT max(id) FROM part) AS last,
        array_agg(u.id ORDER BY u.id) AS ids, array_agg(u.level ORDER BY u.id) AS levels
    FROM accounts_user u WHERE {provided} AND u.id = ANY(ARRAY({ids})) AND {where}
    """  # noqa: S608 (constants)


FOLLOWERS = part_of(
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
    first: Part | None = None,
) -> Iterator[list[tuple[int, int]]]:
    """The followers with low < id <= high of at least a level, as (id, level), in the order of ids: of `size` followers
    at a time those of the level, if there are any; `with_inbox` those to whom the policy gives an inbox. `first` is the
    first part, of FIRST_PART followers, where it was read already.

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
        part, asked = (first, FIRST_PART) if first else (Part(*fetch(FOLLOWERS, params)[0]), size)
        while True:
            is_last = part.seen < asked
            if not is_last:
                following = ahead(FOLLOWERS, params | {"after": part.last})
            if part.ids and part.levels:
                yield list(zip(part.ids, part.levels, strict=True))
            if is_last:
                return
            part, asked = Part(*following()[0]), size
