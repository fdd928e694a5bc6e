"""A big-V's active fans, as a sharded SET in Redis.

A shard is used only if it is complete for the policy's generation and was built in this run (window.RUN): after a
failover a replica may lack fans. Otherwise fan-out asks PostgreSQL. A shard may hold too many fans, never too few:
readers are added before their inbox is completed.
"""

import secrets
from collections import defaultdict

from django.conf import settings

from accounts.levels import policy
from relations import rules
from storage import keys
from storage.connections import Command, feeds_for_tasks, fetch, pipelined, register_script
from storage.queue import task
from storage.window import RUN

OWN_MEMBERS = 2
"""Members of a complete shard that are not fans: `complete:{generation}` and the run."""
TTL_SECONDS = 86_400
"""Counted from the start of the build. A set that expires and is rebuilt loses fans who went away."""
PART = 1000

FOLLOWED_BIG_VS = rules.followed_big_vs("%s")
FANS = f"""
    SELECT u.id FROM ({rules.followers("%s")}) f JOIN accounts_user u ON u.id = f.follower_id
    WHERE u.level >= %s AND {policy.has_inbox()}
"""
# KEYS[1]. ARGV: token, TTL in seconds.
BEGIN = register_script(
    RUN
    + """
    redis.call('DEL', KEYS[1])
    redis.call('SADD', KEYS[1], ARGV[1], run())
    return redis.call('EXPIRE', KEYS[1], ARGV[2])
    """
)
# ARGV: followers. Adding to a missing key would create one that nothing removes.
ADD = register_script("return redis.call('EXISTS', KEYS[1]) == 1 and redis.call('SADD', KEYS[1], unpack(ARGV))")
# ARGV: token, mark. Completes only what this token began in this run.
SEAL = register_script(
    RUN
    + """
    local began = redis.call('SREM', KEYS[1], ARGV[1]) == 1
    if not began or redis.call('SISMEMBER', KEYS[1], run()) == 0 then return 0 end
    redis.call('SADD', KEYS[1], ARGV[2])
    return 1
    """
)
# ARGV[1] is the mark.
COUNTS = """
    local function counts()
        return redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 and redis.call('SISMEMBER', KEYS[1], run()) == 1
    end
"""
# Both reply nil for an unusable shard.
SIZE = register_script(RUN + COUNTS + "return counts() and redis.call('SCARD', KEYS[1])")
MEMBERS = register_script(RUN + COUNTS + "return counts() and redis.call('SMEMBERS', KEYS[1])")


def shard_of(follower_id: int) -> int:
    """The shard of this follower, from 0."""
    return follower_id % int(settings.ACTIVE_FANS_SHARDS)


def _generation_mark(generation: int | None) -> str:
    return f"complete:{generation}"


def add(follower_id: int) -> None:
    """Add a reader to the sets of followed big-Vs, before their inbox is filled."""
    big_vs = [row[0] for row in fetch(FOLLOWED_BIG_VS, [follower_id])]
    shard = shard_of(follower_id)
    pipelined(
        feeds_for_tasks(),
        [("EVALSHA", ADD, 1, keys.active_fans(big_v, shard), follower_id) for big_v in big_vs],
    )


def sizes(big_v_id: int, generation: int | None) -> list[int] | None:
    """The number of fans in each shard. None if a shard is incomplete."""
    shards = range(settings.ACTIVE_FANS_SHARDS)
    names = [keys.active_fans(big_v_id, shard) for shard in shards]
    replies = pipelined(feeds_for_tasks(), [("EVALSHA", SIZE, 1, key, _generation_mark(generation)) for key in names])
    if None in replies:
        return None
    return [size - OWN_MEMBERS for size in replies]


def members(big_v_id: int, shards: list[int], generation: int | None) -> list[int] | None:
    """The fans in these shards. None if a shard is incomplete."""
    mark = _generation_mark(generation)
    commands = [("EVALSHA", MEMBERS, 1, keys.active_fans(big_v_id, shard), mark) for shard in shards]
    replies = pipelined(feeds_for_tasks(), commands)
    if None in replies:
        return None
    return [int(member) for reply in replies for member in reply if member.isdigit()]


def fans_by_shard(big_v_id: int, push_level: int) -> dict[int, list[int]]:
    """The active fans by shard, read from PostgreSQL."""
    by_shard: dict[int, list[int]] = defaultdict(list)
    for (follower_id,) in fetch(FANS, [big_v_id, push_level]):
        by_shard[shard_of(follower_id)].append(follower_id)
    return by_shard


@task("timeline.build_active_fans")
def build(big_v_id: int) -> bool:
    """Fill every shard of a big-V's active fans from PostgreSQL. True if all are complete."""
    client = feeds_for_tasks()
    token = f"build:{secrets.token_hex(8)}"
    shards = range(settings.ACTIVE_FANS_SHARDS)
    names = [keys.active_fans(big_v_id, shard) for shard in shards]
    begin: list[Command] = [("EVALSHA", BEGIN, 1, key, token, TTL_SECONDS) for key in names]
    pipelined(client, begin)
    push_level, _, generation = policy.current()
    if generation is None:
        return False
    for shard, followers in fans_by_shard(big_v_id, push_level).items():
        for first in range(0, len(followers), PART):
            pipelined(client, [("EVALSHA", ADD, 1, names[shard], *followers[first : first + PART])])
    return all(pipelined(client, [("EVALSHA", SEAL, 1, key, token, _generation_mark(generation)) for key in names]))


def drop(big_v_id: int) -> None:
    """Delete a big-V's sets of active fans. Fan-out then asks PostgreSQL."""
    pipelined(
        feeds_for_tasks(),
        [("UNLINK", keys.active_fans(big_v_id, shard)) for shard in range(settings.ACTIVE_FANS_SHARDS)],
    )
