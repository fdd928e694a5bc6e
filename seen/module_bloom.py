"""Bloom filters for a server with BF.*."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import redis

from seen.bloom import Addition, Fill, KnownItems, is_wrong_type, replies_of
from storage.connections import Command, pipelined_with_errors, register_script

REDISBLOOM = "MBbloom--"
"""The type of RedisBloom's keys."""

# ARGV: error rate, capacity, Unix time of the expiry, whether to replace a key of another type, members
MODULE_ADD = register_script(
    f"""
    local key = KEYS[1]
    local function reserve()
        redis.call('BF.RESERVE', key, 2 * ARGV[1], ARGV[2])
        if redis.call('TYPE', key).ok ~= '{REDISBLOOM}' then
            redis.call('DEL', key)
            redis.call('BF.RESERVE', key, ARGV[1], ARGV[2])
        end
    end
    local function add()
        local is_new = redis.call('EXISTS', key) == 0
        if is_new then reserve() end
        local reply = redis.pcall('BF.MADD', key, unpack(ARGV, 5))
        if is_new then redis.call('EXPIREAT', key, ARGV[3]) end
        return reply
    end
    local reply = add()
    if not reply.err then return 1 end
    if ARGV[4] == '0' or string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then return reply end
    redis.call('DEL', key)
    reply = add()
    return reply.err and reply or 1
    """
)


@dataclass(frozen=True, slots=True)
class ModuleFilter:
    """Filters by BF.* of the server, with members `{user}:{item}`.

    RedisBloom makes the first filter for half the requested error, so it is asked for twice the rate. valkey-bloom does
    not.
    """

    capacity: int
    error: float

    def known(self, client: redis.Redis, keys: Sequence[str], user_id: int, ids: Sequence[int]) -> KnownItems:
        # RESP by hand, because packing the members for each key costs more than the question.
        user = f"{user_id}:"
        tail = "".join([f"${len(user) + len(item)}\r\n{user}{item}\r\n" for item in map(str, ids)]).encode()
        heads = [b"*%d\r\n$10\r\nBF.MEXISTS\r\n$%d\r\n%b\r\n" % (len(ids) + 2, len(key), key.encode()) for key in keys]
        found: set[int] = set()
        foreign = set()
        for key, reply in zip(keys, pipelined_with_errors(client, [head + tail for head in heads]), strict=True):
            if is_wrong_type(reply):
                foreign.add(key)
            else:
                found.update(compress(ids, reply))
        return KnownItems(found, foreign)

    def add(self, client: redis.Redis, additions: Iterable[Addition], *, replace: bool = False) -> list[Addition]:
        additions = list(additions)
        replies = replies_of(client, [self._adding(addition, replace=replace) for addition in additions])
        return [addition for addition, reply in zip(additions, replies, strict=True) if reply is None]

    def _adding(self, addition: Addition, *, replace: bool) -> Command:
        key, user_id, item_ids, expires_at = addition
        members = (f"{user_id}:{item}" for item in item_ids)
        return ("EVALSHA", MODULE_ADD, 1, key, self.error, self.capacity, expires_at, int(replace), *members)

    def fill(self, client: redis.Redis, keys: Sequence[str]) -> list[Fill | None]:
        replies = pipelined_with_errors(client, [("BF.INFO", key) for key in keys])
        return [self._fill(reply) for reply in replies]

    @staticmethod
    def _fill(reply: Any) -> Fill | None:
        if isinstance(reply, redis.ResponseError) and "not found" in str(reply):
            return None
        if is_wrong_type(reply):
            return None
        facts = dict(zip(reply[::2], reply[1::2], strict=True))
        # Each further filter is twice as large as the one before.
        grown = 2 ** facts[b"Number of filters"] - 1
        return Fill(facts[b"Number of items inserted"], facts[b"Capacity"] // grown)
