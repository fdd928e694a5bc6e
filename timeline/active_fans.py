"""A big-V's active fans: the followers whose level takes pushes, so that publishing costs nothing for all the others.

A sharded SET per big-V. A shard counts only with its member `complete`; without it (lost, never built) fan-out asks
PostgreSQL. It may hold too many (who was unfollowed by, or went quiet): their windows ignore or verify away what
they get. It never holds too few, because a reader's inbox is completed only after the reader was added here, and
readers without an inbox use PostgreSQL.
"""

import secrets
from collections import defaultdict

from django.conf import settings

from feedsite import keys
from feedsite.connections import Command, feeds_for_tasks, fetch, pipelined, script

COMPLETE = b"complete"
TTL = 86_400
"""Seconds; a set built anew each day does not keep those who went away."""
PART = 1000

FOLLOWED_BIG_VS = """
    SELECT v.id FROM accounts_user v WHERE v.is_big_v
        AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = %s AND f.followee_id = v.id)
"""
FANS = """
    SELECT f.follower_id FROM relations_follow f JOIN accounts_user u ON u.id = f.follower_id
    WHERE f.followee_id = %s AND u.level >= %s
"""
# KEYS[1]; ARGV: token, seconds to live. Completes only what this token began.
SEAL = script(
    """
    if redis.call('SREM', KEYS[1], ARGV[1]) == 0 then return 0 end
    redis.call('SADD', KEYS[1], 'complete')
    redis.call('EXPIRE', KEYS[1], ARGV[2])
    return 1
    """
)


def shard_of(follower_id: int) -> int:
    return follower_id % int(settings.ACTIVE_FANS_SHARDS)


def add(follower_id: int) -> None:
    """Make a reader known to every big-V they follow, before their inbox is filled."""
    big_vs = [row[0] for row in fetch(FOLLOWED_BIG_VS, [follower_id])]
    pipelined(
        feeds_for_tasks(),
        [("SADD", keys.active_fans(big_v, shard_of(follower_id)), follower_id) for big_v in big_vs],
    )


def sizes(big_v_id: int) -> list[int] | None:
    """How many fans each shard holds, or None where a shard is not complete."""
    shards = range(settings.ACTIVE_FANS_SHARDS)
    names = [keys.active_fans(big_v_id, shard) for shard in shards]
    replies = pipelined(
        feeds_for_tasks(),
        [command for key in names for command in (("SISMEMBER", key, COMPLETE), ("SCARD", key))],
    )
    if not all(replies[0::2]):
        return None
    return [size - 1 for size in replies[1::2]]


def members(big_v_id: int, shards: list[int]) -> list[int] | None:
    """The fans in these shards, or None where one is not complete."""
    replies = pipelined(feeds_for_tasks(), [("SMEMBERS", keys.active_fans(big_v_id, shard)) for shard in shards])
    if not all(COMPLETE in reply for reply in replies):
        return None
    return [int(member) for reply in replies for member in reply if member.isdigit()]


def build(big_v_id: int) -> bool:
    """Fill every shard from PostgreSQL; True if all are complete. Who is added meanwhile stays added."""
    client = feeds_for_tasks()
    token = f"build:{secrets.token_hex(8)}"
    shards = range(settings.ACTIVE_FANS_SHARDS)
    names = [keys.active_fans(big_v_id, shard) for shard in shards]
    begin: list[Command] = [part for key in names for part in (("UNLINK", key), ("SADD", key, token))]
    pipelined(client, begin)
    by_shard: dict[int, list[int]] = defaultdict(list)
    for (follower_id,) in fetch(FANS, [big_v_id, settings.BIG_V_PUSH_LEVEL]):
        by_shard[shard_of(follower_id)].append(follower_id)
    for shard, followers in by_shard.items():
        for first in range(0, len(followers), PART):
            pipelined(client, [("SADD", names[shard], *followers[first : first + PART])])
    return all(pipelined(client, [("EVALSHA", SEAL, 1, key, token, TTL) for key in names]))


def drop(big_v_id: int) -> None:
    """Lose the sets; fan-out asks PostgreSQL until they are built again."""
    pipelined(
        feeds_for_tasks(),
        [("UNLINK", keys.active_fans(big_v_id, shard)) for shard in range(settings.ACTIVE_FANS_SHARDS)],
    )
