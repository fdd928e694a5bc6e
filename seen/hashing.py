"""Hashes of ids and the bits that they set: part of the filters' format.

The 32-bit hashes of an id under a 64-bit seed are the halves, the lower first, of the words w(0), w(1), ... with

    w(j) = mix((id XOR seed) + (j + 1) * GOLDEN)        modulo 2**64

These are the outputs of splitmix64, and `mix` is its finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number
generators, 2014). A hash h sets the bit `h * m >> 32` of m.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
WORD = 2**64 - 1


def splitmix64(number: int) -> int:
    """The first output of splitmix64 from this state."""
    word = (number + GOLDEN) & WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return word ^ word >> 31


def hash_rows(ids: Sequence[int], *, seed: int, hashes: int) -> Numbers:
    """Rows of 32-bit hashes, one column for each id."""
    states = np.fromiter(ids, dtype=np.uint64, count=len(ids)) ^ np.uint64(seed)
    steps = np.arange(1, (hashes + 1) // 2 + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    words = mix_in_place(states + steps[:, None])
    halves = np.stack((words & np.uint64(2**32 - 1), words >> np.uint64(32)), axis=1)
    return halves.reshape(-1, len(ids))[:hashes]


def mix_in_place(words: Numbers) -> Numbers:
    """Apply the finaliser of splitmix64 to the words, in place."""
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def positions(numbers: Numbers, bits: int) -> NDArray[np.intp]:
    """The bits that 32-bit hashes set."""
    places = numbers * np.uint64(bits)
    places >>= np.uint64(32)
    return places.view(np.intp)
