import hashlib
import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from seen.filters import LEAST, BadFilterError, MonthFilter, id_numbers, known
from seen.hashing import splitmix64

id_sets = st.sets(st.integers(1, 2**53 - 1), max_size=200)
ERROR = 0.01
MASK = 2**64 - 1
DIGEST = "c822983bf51a2a6597d9f5a12279074fcb332c5bcf4efd5937cd3da31ccc72af"


def filled(count: int, *, expected: int = LEAST, user_id: int = 7, error: float = ERROR) -> MonthFilter:
    found = MonthFilter.empty(user_id, expected=expected, error=error)
    found.add(id_numbers(range(1, count + 1)))
    return found


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(id_sets, max_size=5))
def test_what_was_added_is_known(batches: list[set[int]]) -> None:
    found = MonthFilter.empty(7, expected=10, error=ERROR)
    for batch in batches:
        found = MonthFilter.writable(found.to_bytes())
        found.add(id_numbers(list(batch)))
    everything = id_numbers(list(set().union(*batches)))
    assert found.known(everything).all()
    assert found.count <= len(everything)


@pytest.mark.slow
@given(id_sets)
def test_adding_again_changes_nothing(ids: set[int]) -> None:
    found = MonthFilter.empty(7, expected=10, error=ERROR)
    found.add(id_numbers(list(ids)))
    before = found.to_bytes()
    assert found.add(id_numbers(list(ids) * 2)) == 0
    assert found.to_bytes() == before


def test_many_filters_know_what_each_of_them_does() -> None:
    """Several users', without common hashes, with repeated items."""
    filters = [filled(count, user_id=user_id) for count, user_id in ((0, 7), (500, 7), (300, 8), (900, 7), (70, 9))]
    asked = id_numbers([*range(1_100, 1, -1), *range(800, 1_000), *range(10**9, 10**9 + 10_000)])
    each = [one.known(asked) for one in filters]
    assert (known(filters, asked) == np.logical_or.reduce(each)).all()
    assert not known([], asked).any()


@pytest.mark.parametrize(("count", "expected"), [(20_000, 20_000), (20_000, LEAST), (64, LEAST), (60_000, 1_000)])
def test_the_error_rate_holds_however_it_grew(count: int, expected: int) -> None:
    found = filled(count, expected=expected)
    asked = id_numbers(range(10**9, 10**9 + 200_000))
    wrong = int(found.known(asked).sum()) / len(asked)
    assert wrong <= ERROR
    assert wrong > 0, "what never errs is no Bloom filter"


def test_a_filter_of_the_right_size_is_as_small_as_its_rate_allows() -> None:
    found = filled(10_000, expected=10_000, error=0.001)
    assert len(found.parts) == 1
    assert len(found.to_bytes()) * 8 / 10_000 < 16, "bits an id; the least for half the rate is 15.8"


def test_it_grows_in_a_few_parts() -> None:
    found = filled(10_000)
    assert [part.capacity for part in found.parts] == [64 << place for place in range(8)]
    assert found.count <= 10_000
    assert found.count >= 9_900


def test_the_first_bits_are_where_the_format_says() -> None:
    """The expected bits come from a twin in plain integers."""
    found = MonthFilter.empty(7, expected=100, error=ERROR)
    found.add(id_numbers([123_456_789]))
    data = found.to_bytes()
    assert data[:8] == b"FSPF\x01\x01\x00\x00"
    seed = int.from_bytes(data[8:16], "little")
    assert seed == splitmix64(7)
    size, capacity, count = (int.from_bytes(data[at : at + 4], "little") for at in (16, 20, 24))
    assert (capacity, count, size % 64) == (100, 1, 0)
    expected = bytearray(size // 8)
    for place in range(data[28]):
        word = ((123_456_789 ^ seed) + (place // 2 + 1) * 0x9E3779B97F4A7C15) & MASK
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
        word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
        word ^= word >> 31
        half = word >> 32 if place % 2 else word & 0xFFFFFFFF
        bit = half * size >> 32
        expected[bit // 8] |= 1 << bit % 8
    assert data[32:] == bytes(expected)


def test_the_bytes_are_those_of_the_first_version() -> None:
    """If this digest changes, the format needs a new version: filters live half a year."""
    digest = hashlib.sha256(filled(1_000, error=0.001).to_bytes()).hexdigest()
    assert digest == DIGEST


def test_another_process_makes_the_same_bytes() -> None:
    code = (
        "import sys; from seen.filters import MonthFilter, id_numbers; "
        "found = MonthFilter.empty(7, expected=64, error=0.01); "
        "found.add(id_numbers(range(1, 501))); sys.stdout.buffer.write(found.to_bytes())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert run.stdout == filled(500).to_bytes()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"FSPF",
        b"x" * 40,
        filled(10).to_bytes()[:-1],
        filled(10).to_bytes() + b"x",
        b"FSPF\x02" + filled(10).to_bytes()[5:],
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadFilterError):
        MonthFilter.from_bytes(data)


def test_reading_copies_nothing() -> None:
    data = filled(500).to_bytes()
    found = MonthFilter.from_bytes(memoryview(data))
    assert found.known(id_numbers([1, 500])).all()
    assert not found.parts[0].bits.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        found.add(id_numbers(np.arange(1000, 1010).tolist()))
