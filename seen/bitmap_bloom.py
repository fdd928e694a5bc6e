"""Bloom filters for a server without BF.*: strings of bits that scripts read and write.

See docs/decisions.md: Own code in place of a library.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import redis
from numpy.typing import NDArray

from runtime import metrics
from seen.bloom import Addition, Fill, KnownItems, is_wrong_type, replies_of
from seen.hashing import hash_rows, positions, splitmix64
from storage.connections import Command, pipelined_with_errors, register_script
from storage.keys import further_impressions

logger = logging.getLogger(__name__)

BLOCK_BYTES = 4096
CHOICES = 3
"""Blocks of a user."""
HASHES = 8
PACKED = "<" + "I4" * HASHES
"""The format in which a script reads an item's hashes."""
ADDED_AT_ONCE = 25
"""After this many items a script looks again for the user's emptiest block."""

FILTERS = 4
"""The most filters of a key. What does not fit into one goes into the next; the rest is dropped."""

ASKED_AT_ONCE = 1000
"""Ids to look up at once, so that numpy's arrays fit into the CPU cache."""

# The blocks of a string for a user with the hashes `a` and `b`: their starts and size. `emptiest` returns the bits set
# in the emptiest block, and its start.
BLOCKS = f"""
    local function emptiest(key, starts, size)
        local best, fewest
        for _, start in ipairs(starts) do
            local bits = redis.call('BITCOUNT', key, start, start + size - 1)
            if not fewest or bits < fewest then best, fewest = start, bits end
        end
        return fewest, best
    end
    local function blocks(length, a, b)
        local count = math.max(math.floor(length / {BLOCK_BYTES}), 1)
        local size = math.floor(length / count)
        local step = 1 + b % math.max(count - 1, 1)
        local starts = {{}}
        for nth = 1, {CHOICES} do starts[nth] = (a + nth * step) % count * size end
        return starts, size
    end
"""
# ARGV: hashes of the user, share of bits of a full block. Replies whether all blocks are full, then the blocks.
BITMAP_READ = register_script(
    BLOCKS
    + """
    local length = redis.pcall('STRLEN', KEYS[1])
    if length == 0 or type(length) == 'table' then return length end
    local starts, size = blocks(length, ARGV[1], ARGV[2])
    local found = {emptiest(KEYS[1], starts, size) >= ARGV[3] * size * 8 and 1 or 0}
    for nth, start in ipairs(starts) do found[nth + 1] = redis.call('GETRANGE', KEYS[1], start, start + size - 1) end
    return found
    """
)
# ARGV: hashes of the user, bytes of a new string, Unix time of its expiry, whether to replace a key of another type,
# hashes of the items (HASHES numbers of 4 bytes each), share of bits of a full block. Replies how many items, from the
# first on, are in it now.
BITMAP_ADD = register_script(
    BLOCKS
    + f"""
    local key, hashes = KEYS[1], ARGV[6]
    local floor, byte, band, rshift = math.floor, string.byte, bit.band, bit.rshift
    local length = redis.pcall('STRLEN', key)
    if type(length) == 'table' then
        if ARGV[5] == '0' then return length end
        redis.call('DEL', key)
        length = 0
    end
    local is_new = length == 0
    if is_new then
        length = redis.call('SETRANGE', key, ARGV[3] - 1, '\\0')
    end
    local starts, size = blocks(length, ARGV[1], ARGV[2])
    local before = {{}}
    for nth, start in ipairs(starts) do before[nth] = redis.call('GETRANGE', key, start, start + size - 1) end

    local function has(block, places)
        for hash = 1, {HASHES} do
            local place = places[hash]
            if band(byte(block, floor(place / 8) + 1), rshift(128, place % 8)) == 0 then return false end
        end
        return true
    end
    local function is_known(places)
        for _, block in ipairs(before) do
            if has(block, places) then return true end
        end
        return false
    end

    local command, last, block, fewest = {{}}, 0
    local function set()
        for at = 3, last, 4 do command[at] = block * 8 + command[at] end
        redis.call('BITFIELD', key, unpack(command, 1, last))
        last = 0
    end

    local scale, full, added = size * 8 / 4294967296, ARGV[7] * size * 8, #hashes / {4 * HASHES}
    for at = 1, #hashes, {4 * HASHES} do
        local places = {{struct.unpack('{PACKED}', hashes, at)}}
        for hash = 1, {HASHES} do places[hash] = floor(places[hash] * scale) end
        if not is_known(places) then
            if last == 0 then
                fewest, block = emptiest(key, starts, size)
                if fewest >= full then
                    added = (at - 1) / {4 * HASHES}
                    break
                end
            end
            for hash = 1, {HASHES} do
                command[last + 1], command[last + 2] = 'SET', 'u1'
                command[last + 3], command[last + 4] = places[hash], '1'
                last = last + 4
            end
            if last >= {ADDED_AT_ONCE * HASHES * 4} then set() end
        end
    end
    if last > 0 then set() end
    if is_new then redis.call('EXPIREAT', key, ARGV[4]) end
    return added
    """
)


@dataclass(frozen=True, slots=True)
class BitmapFilter:
    """A string of bits in blocks of 4 KB (blocked Bloom filters: Putze, Sanders, Singler 2007).

    Single blocks fill unevenly, and the error rate grows with the eighth power of the fill. So a user has `CHOICES`
    blocks, and new items go into the emptiest (Azar, Broder, Karlin, Upfal: Balanced allocations, 1994; placed by
    double hashing: Mitzenmacher, 2014). A reader asks all, so each has a third of the error rate. Measured errors over
    the configured 0.001, at 100,000 impressions:

    | blocks a user | 100 impressions each | 20 to 1000 each (log-uniform) | bits an item |
    |---|---|---|---|
    | 1 | 1.81 | 11.99 | 14.6 |
    | 2 | 1.02 | 1.15 | 16.4 |
    | 3 | 1.00 | 1.01 | 17.5 |

    The error rate decides the bits:

        fill = (error / CHOICES) ** (1 / HASHES),   bits an item = -HASHES / ln(1 - fill)

    If a user's blocks are full, new items go into the key's next string. What exceeds `FILTERS` strings is dropped and
    may be shown again, because overfull blocks hide unseen items.

    The string's length determines its blocks, whatever the settings are now.

    See docs/decisions.md: Bloom filters work without Redis modules.
    """

    capacity: int
    error: float

    @property
    def full(self) -> float:
        """The share of set bits in a full block."""
        return float((self.error / CHOICES) ** (1 / HASHES))

    @property
    def bits_per_item(self) -> float:
        """The bits that a full block has for each item."""
        return -HASHES / math.log1p(-self.full)

    @property
    def length(self) -> int:
        """The length of a new string in bytes."""
        return math.ceil(self.capacity * self.bits_per_item / 8)

    def known(self, client: redis.Redis, keys: Sequence[str], user_id: int, ids: Sequence[int]) -> KnownItems:
        seed, *block_hashes = _user_hashes(user_id)
        asked, foreign = list(keys), set[str]()
        by_size: dict[int, list[bytes]] = {}
        for nth in range(FILTERS):
            names = [further_impressions(key, nth) for key in asked]
            replies = pipelined_with_errors(
                client, [("EVALSHA", BITMAP_READ, 1, name, *block_hashes, self.full) for name in names]
            )
            foreign |= {key for key, reply in zip(asked, replies, strict=True) if is_wrong_type(reply)}
            read = {key: reply for key, reply in zip(asked, replies, strict=True) if isinstance(reply, list)}
            for _, *some in read.values():
                by_size.setdefault(len(some[0]), []).extend(some)
            asked = [key for key, (is_full, *_) in read.items() if is_full]
            if not asked:
                break
        found: set[int] = set()
        for blocks in by_size.values():
            bits = np.unpackbits(np.frombuffer(b"".join(blocks), dtype=np.uint8)).reshape(len(blocks), -1)
            for first in range(0, len(ids), ASKED_AT_ONCE):
                found.update(_known_ids(bits, ids[first : first + ASKED_AT_ONCE], seed))
        return KnownItems(found, foreign)

    def add(self, client: redis.Redis, additions: Iterable[Addition], *, replace: bool = False) -> list[Addition]:
        left, refused = list(additions), list[Addition]()
        for nth in range(FILTERS):
            replies = list(replies_of(client, [self._adding(addition, nth, replace=replace) for addition in left]))
            refused += [addition for addition, added in zip(left, replies, strict=True) if added is None]
            left = [
                addition._replace(item_ids=addition.item_ids[added:])
                for addition, added in zip(left, replies, strict=True)
                if added is not None and added < len(addition.item_ids)
            ]
        if left:
            dropped = sum(len(addition.item_ids) for addition in left)
            logger.warning(
                "dropped %d impressions, because the filters of the day are full. Raise FEEDSITE_IMPRESSION_CAPACITY",
                dropped,
            )
            metrics.impressions_dropped.inc(dropped)
        return refused

    def _adding(self, addition: Addition, nth: int, *, replace: bool) -> Command:
        key, user_id, item_ids, expires_at = addition
        seed, *block_hashes = _user_hashes(user_id)
        numbers = hash_rows(item_ids, seed=seed, hashes=HASHES).T.astype("<u4").tobytes()
        options = (self.length, expires_at, int(replace), numbers, self.full)
        return ("EVALSHA", BITMAP_ADD, 1, further_impressions(key, nth), *block_hashes, *options)

    def fill(self, client: redis.Redis, keys: Sequence[str]) -> list[Fill | None]:
        """Implements `Filter.fill` by an estimate (Swamidass, Baldi 2007)."""
        names = [further_impressions(key, nth) for key in keys for nth in range(FILTERS)]
        replies = pipelined_with_errors(
            client, [command for name in names for command in (("STRLEN", name), ("BITCOUNT", name))]
        )
        each = [self._fill(*pair) for pair in zip(replies[::2], replies[1::2], strict=True)]
        return [_sum_fills(each[first : first + FILTERS]) for first in range(0, len(each), FILTERS)]

    def _fill(self, length: Any, count: Any) -> Fill | None:
        if is_wrong_type(length) or is_wrong_type(count) or not length:
            return None
        bits = length * 8
        members = -bits / HASHES * math.log1p(-min(count, bits - 1) / bits)
        return Fill(round(members), round(bits / self.bits_per_item))


def _sum_fills(fills: Sequence[Fill | None]) -> Fill | None:
    first = fills[0]
    return first and Fill(sum(each.members for each in fills if each), first.capacity)


def _known_ids(blocks: NDArray[np.uint8], ids: Sequence[int], seed: int) -> Iterator[int]:
    first, *others = positions(hash_rows(ids, seed=seed, hashes=HASHES), blocks.shape[1])
    are_set = blocks.take(first, axis=1)
    for places in others:
        are_set &= blocks.take(places, axis=1)
    return compress(ids, are_set.any(axis=0).tolist())


def _user_hashes(user_id: int) -> tuple[int, int, int]:
    """The seed for hashes of items, and two hashes that choose the blocks."""
    seed = splitmix64(user_id)
    place = splitmix64(seed)
    return seed, place & 2**32 - 1, place >> 32
