"""One user's month of plays as bytes: a Bloom filter that grows with them.

The same plays in the same order give the same bytes everywhere. Little-endian: a head, the heads of the parts, their
bits:

| at | bytes | meaning |
|---|---|---|
| 0 | 4 | `FSPF` |
| 4 | 1 | version of the format: 1 |
| 5 | 1 | p, the number of parts |
| 6 | 2 | 0 |
| 8 | 8 | seed of the hashes |
| 16 + 16 i | 4 | m, the bits of part i, a multiple of 64 |
| 20 + 16 i | 4 | capacity in ids |
| 24 + 16 i | 4 | ids added |
| 28 + 16 i | 1 | k, hashes of an id |
| 29 + 16 i | 3 | 0 |
| 16 + 16 p | m / 8, for each part in order | bit b is bit b % 8 of byte b // 8 |

An id sets the bits `h(j) * m >> 32` of a part for j = 0 ... k - 1 (seen.hashing). New ids go into the last part. When
it is full, another one is added with twice its capacity and half its error rate, so all parts together stay below twice
the first rate (Almeida, Baquero, Preguica, Hutchison: Scalable Bloom filters, 2007).
"""

import logging
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seen.hashing import GOLDEN, mix_in_place, positions, splitmix64

Ids = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]

logger = logging.getLogger(__name__)

MAGIC = b"FSPF"
VERSION = 1
LEAST = 64
"""The least capacity of a filter."""
FEW = 64
GROWTH = 2
TIGHTENING = 0.5
_HEAD = struct.Struct("<4sBBHQ")
_PART = struct.Struct("<IIIB3x")


class BadFilterError(ValueError):
    """The bytes are no filter of a known version."""


def id_numbers(ids: Sequence[int]) -> Ids:
    """The ids as an array of numpy."""
    return np.fromiter(ids, dtype=np.uint64, count=len(ids))


class Hashes:
    """Hashes of ids under a seed, computed when needed."""

    def __init__(self, ids: Ids, seed: int) -> None:
        self.seed = seed
        self._states = ids ^ np.uint64(seed)
        self._rows: list[Ids] = []
        # For few ids numpy's calls cost more than unused hashes.
        self._at_once = 8 if len(ids) <= FEW else 1

    def row(self, number: int) -> Ids:
        """The hashes of all ids by one of the functions."""
        while len(self._rows) <= number:
            first = len(self._rows) // 2 + 1
            steps = np.arange(first, first + self._at_once, dtype=np.uint64) * np.uint64(GOLDEN)
            words = mix_in_place(self._states + steps[:, None])
            for low, high in zip(words & np.uint64(2**32 - 1), words >> np.uint64(32), strict=True):
                self._rows += (low, high)
        return self._rows[number]


@dataclass(slots=True)
class BloomPart:
    """A Bloom filter of `size` bits for `capacity` ids."""

    size: int
    capacity: int
    count: int
    hashes: int
    bits: NDArray[np.uint8]

    @classmethod
    def empty(cls, capacity: int, error: float) -> "BloomPart":
        """A part for `capacity` ids with as few bits as the error rate allows."""
        size = math.ceil(capacity * -math.log(error) / math.log(2) ** 2 / 64) * 64
        hashes = max(round(size / capacity * math.log(2)), 1)
        return cls(size, capacity, 0, hashes, np.zeros(size // 8, dtype=np.uint8))

    def known(self, hashes: Hashes, among: Places) -> Places:
        """Those of the places whose ids have all bits set. The cost grows with the ids, not with the part."""
        for number in range(self.hashes):
            row = hashes.row(number)
            asked = row if len(among) == len(row) else row.take(among)
            places = positions(asked, self.size)
            # take and compress are twice as fast as brackets
            are_set = self.bits.take(places >> 3) >> (places & 7).astype(np.uint8) & 1
            among = among.compress(are_set)
            if not len(among):
                break
        return among

    def add(self, ids: Ids, seed: int) -> None:
        """Add ids. Raises ValueError if the filter is read-only."""
        if not self.bits.flags.writeable:  # numpy would write into the bytes read
            raise ValueError("this filter is read-only")
        hashes = Hashes(ids, seed)
        places = positions(np.concatenate([hashes.row(number) for number in range(self.hashes)]), self.size)
        np.bitwise_or.at(self.bits, places >> 3, (1 << (places & 7)).astype(np.uint8))
        self.count += len(ids)


class MonthFilter:
    """One user's plays in one month. `known` never misses an added id."""

    def __init__(self, seed: int, parts: list[BloomPart]) -> None:
        self.seed = seed
        self.parts = parts

    @classmethod
    def empty(cls, user_id: int, *, expected: int, error: float) -> "MonthFilter":
        """A filter for about `expected` ids. The error rate holds for any number."""
        first = BloomPart.empty(max(expected, LEAST), error * (1 - TIGHTENING))
        return cls(splitmix64(user_id), [first])

    @property
    def count(self) -> int:
        """The number of added ids, without those that seemed known."""
        return sum(part.count for part in self.parts)

    def known(self, ids: Ids) -> Mask:
        """For each id, whether it was added. True also for a few others."""
        return known([self], ids)

    def add(self, ids: Ids) -> int:
        """Add ids. Returns how many were new."""
        new = np.unique(ids[~self.known(ids)])
        left = new
        while len(left):
            last = self.parts[-1]
            room = last.capacity - last.count
            if room <= 0:
                self.parts.append(BloomPart.empty(last.capacity * GROWTH, self._error(last) * TIGHTENING))
                continue
            last.add(left[:room], self.seed)
            left = left[room:]
        return len(new)

    def to_bytes(self) -> bytes:
        """The filter as bytes, for the store."""
        heads = (_PART.pack(part.size, part.capacity, part.count, part.hashes) for part in self.parts)
        return b"".join(
            [
                _HEAD.pack(MAGIC, VERSION, len(self.parts), 0, self.seed),
                *heads,
                *(part.bits.tobytes() for part in self.parts),
            ]
        )

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> "MonthFilter":
        """A read-only filter from stored bytes. Raises BadFilterError."""
        return cls._read(data, copy=False)

    @classmethod
    def writable(cls, data: bytes | memoryview) -> "MonthFilter":
        """A filter from stored bytes, for `add`. Raises BadFilterError."""
        return cls._read(data, copy=True)

    @classmethod
    def _read(cls, data: bytes | memoryview, *, copy: bool) -> "MonthFilter":
        try:
            magic, version, count, zero, seed = _HEAD.unpack_from(data)
            heads = [_PART.unpack_from(data, _HEAD.size + place * _PART.size) for place in range(count)]
        except struct.error:
            raise BadFilterError("too short") from None
        at = _HEAD.size + count * _PART.size
        sizes = [head[0] for head in heads]
        if magic != MAGIC or version != VERSION or zero or not count or any(size % 64 for size in sizes):
            raise BadFilterError("another format")
        if len(data) != at + sum(sizes) // 8:
            raise BadFilterError("another length")
        parts = []
        for size, capacity, told, hashes in heads:
            bits = np.frombuffer(data, dtype=np.uint8, count=size // 8, offset=at)
            parts.append(BloomPart(size, capacity, told, hashes, bits.copy() if copy else bits))
            at += size // 8
        return cls(seed, parts)

    @staticmethod
    def _error(part: BloomPart) -> float:
        return math.exp(-part.size / part.capacity * math.log(2) ** 2)


def parse_stored(user_id: int, data: bytes | None) -> MonthFilter | None:
    """The filter in stored bytes, or None. Bad bytes are only logged: some items may be recommended again."""
    try:
        return MonthFilter.from_bytes(data) if data is not None else None
    except BadFilterError as error:
        logger.error("a filter of user %s is damaged and cannot be read: %s", user_id, error)
        return None


def known(filters: Iterable[MonthFilter], ids: Ids) -> Mask:
    """For each id, whether some filter has it. True also for a few others."""
    mask = np.zeros(len(ids), dtype=bool)
    left = np.arange(len(ids))
    hashes = Hashes(ids, 0)
    for one in filters:
        if one.seed != hashes.seed:
            hashes = Hashes(ids, one.seed)
        for part in one.parts:
            found = part.known(hashes, left)
            if len(found):
                mask[found] = True
                left = np.flatnonzero(~mask)
    return mask
