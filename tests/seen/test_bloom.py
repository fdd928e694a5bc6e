import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import redis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from discover.impressions import KINDS
from runtime.embedded import Valkey
from seen.bitmap_bloom import BLOCK_BYTES, CHOICES, BitmapFilter
from seen.bloom import PIPELINE_LENGTH, Addition, Fill, KnownItems, SharedFilters, has_module, is_module_missing
from seen.hashing import GOLDEN, hash_rows, positions, splitmix64
from seen.module_bloom import ModuleFilter
from storage.connections import client_of, feeds_for_tasks
from tests.support.effort import some, tries

END = 4_102_444_800  # 2100
ITEMS = st.integers(1, 2**53 - 1)
MakeFilter = Callable[[int, float], SharedFilters]


@pytest.fixture
def make(kind: str) -> MakeFilter:
    return KINDS[kind]


@pytest.fixture
def client(kind: str) -> redis.Redis:
    return feeds_for_tasks()


def add(chosen: SharedFilters, user_id: int, item_ids: Sequence[int], key: str = "filter") -> None:
    assert chosen.add(feeds_for_tasks(), [Addition(key, user_id, item_ids, END)]) == []


def known(chosen: SharedFilters, user_id: int, item_ids: Sequence[int], *keys: str) -> set[int]:
    answer = chosen.known(feeds_for_tasks(), keys or ("filter",), user_id, item_ids)
    assert not answer.foreign_keys
    return answer.item_ids


# --- Hashing ---------------------------------------------------------------------------------------------
def test_splitmix64_is_the_published_one() -> None:
    """The states are 0 and 1234567."""
    outputs = [splitmix64((1234567 + step * GOLDEN) % 2**64) for step in range(3)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert splitmix64(0) == 0xE220A8397B1DCDAF


@pytest.mark.slow
@given(
    ids=st.lists(ITEMS, min_size=1, max_size=20),
    seed=st.integers(0, 2**64 - 1),
    hashes=st.integers(1, 20),
    bits=st.integers(1, 2**32 - 1),
)
def test_vectors_hash_as_numbers_do(ids: list[int], seed: int, hashes: int, bits: int) -> None:
    numbers = hash_rows(ids, seed=seed, hashes=hashes)
    twin = [
        [(splitmix64(((each ^ seed) + hash_ // 2 * GOLDEN) % 2**64) >> hash_ % 2 * 32) % 2**32 for each in ids]
        for hash_ in range(hashes)
    ]
    assert numbers.tolist() == twin
    assert positions(numbers, bits).tolist() == [[number * bits >> 32 for number in row] for row in twin]


# --- Duties of every kind --------------------------------------------------------------------------------
@pytest.mark.slow
@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(shown=st.lists(st.tuples(st.integers(1, 5), st.sampled_from("abc"), st.lists(ITEMS, max_size=60)), max_size=12))
def test_what_was_added_is_known(
    make: MakeFilter, client: redis.Redis, shown: list[tuple[int, str, list[int]]]
) -> None:
    """The order does not matter, even far beyond capacity."""
    client.flushall()
    chosen = make(50, 0.01)
    for user_id, key, items in shown:
        if items:
            add(chosen, user_id, items, key)
    for user_id in range(1, 6):
        for keys in ("a", "bc", "abc"):
            added = {item for user, key, items in shown for item in items if user == user_id and key in keys}
            if added:
                assert known(chosen, user_id, sorted(added), *keys) == added


def even(total: int) -> list[int]:
    return [100] * (total // 100)


def uneven(total: int) -> list[int]:
    """20 to 1000 items a day, few of them many (log-uniform)."""
    rng = np.random.default_rng(1)
    counts: list[int] = []
    while sum(counts) < total:
        counts.append(min(round(20 * 50 ** rng.random()), total - sum(counts)))
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("load", some(1, [uneven, even]))
@pytest.mark.parametrize("error", some(1, [0.01, 0.001]))
def test_the_error_rate_at_capacity_is_the_configured(
    make: MakeFilter, client: redis.Redis, load: Callable[[int], list[int]], error: float
) -> None:
    """It is within five sigma of the expected false positives."""
    expected = tries(400, 2_500)
    rng = np.random.default_rng(2)
    capacity = 100_000
    chosen = make(capacity, error)
    users = dict(enumerate(load(capacity), 1))
    # Users take turns, as in use.
    pages = [(user, first, min(20, count - first)) for user, count in users.items() for first in range(0, count, 20)]
    additions = [
        Addition("filter", user, range(user * 10**6 + first, user * 10**6 + first + count), END)
        for user, first, count in (pages[place] for place in rng.permutation(len(pages)))
    ]
    assert chosen.add(client, additions) == []
    probes = round(expected / error / len(users))
    wrong = sum(len(known(chosen, user, range(10**12, 10**12 + probes))) for user in users)
    assert wrong / (probes * len(users)) == pytest.approx(error, rel=5 / math.sqrt(expected))


@pytest.mark.long
@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("load", some(1, [uneven, even]))
def test_the_error_rate_beyond_the_capacity_is_near_the_configured(
    make: MakeFilter, client: redis.Redis, load: Callable[[int], list[int]], times: int
) -> None:
    """N times the capacity, about N times the error."""
    capacity, error, probes = 20_000, 0.001, tries(500, 2_000)
    chosen = make(capacity, error)
    users = dict(enumerate(load(times * capacity), 1))
    for first in range(0, max(users.values()), 20):
        chosen.add(
            client,
            [
                Addition("filter", user, range(user * 10**6 + first, user * 10**6 + min(first + 20, count)), END)
                for user, count in users.items()
                if count > first
            ],
        )
    wrong = sum(len(known(chosen, user, range(10**12, 10**12 + probes))) for user in users)
    print(f"{type(chosen).__name__}, {load.__name__}, {times} times: {wrong / (probes * len(users)):.5f}")
    assert wrong / (probes * len(users)) < 1.5 * error * times
    for user, count in users.items():
        seen = range(user * 10**6, user * 10**6 + count)
        assert known(chosen, user, seen) == set(seen)


@pytest.mark.slow
def test_one_user_who_sees_far_too_much_is_told_nothing_wrong(make: MakeFilter, client: redis.Redis) -> None:
    """A user's three blocks hold about 5,600."""
    chosen = make(100_000, 0.001)
    probes = range(10**12, 10**12 + 20_000)
    for first in range(1, 15_001, 100):
        add(chosen, 1, range(first, first + 100))
    assert len(known(chosen, 1, probes)) < 20_000 * 0.001 * 4
    assert known(chosen, 1, range(1, 15_001)) == set(range(1, 15_001))


def test_users_do_not_share_what_they_saw(make: MakeFilter, client: redis.Redis) -> None:
    chosen = make(10_000, 0.001)
    add(chosen, 1, range(1, 500))
    assert known(chosen, 2, range(1, 500)) == set()


def test_members_of_any_key_are_known(make: MakeFilter, client: redis.Redis) -> None:
    """Keys may have other settings."""
    add(make(10_000, 0.001), 1, [1, 2], "a")
    add(make(500, 0.01), 1, [2, 3], "b")
    assert known(make(20_000, 0.0001), 1, [5, 4, 3, 2, 1], "a", "b", "missing") == {1, 2, 3}


def test_other_settings_forget_nothing_and_claim_nothing(make: MakeFilter, client: redis.Redis) -> None:
    add(make(5_000, 0.01), 1, range(1, 300))
    for other in (make(50_000, 0.01), make(5_000, 0.0001), make(1, 0.5)):
        assert known(other, 1, range(1, 300)) == set(range(1, 300))
        assert len(known(other, 1, range(1_000, 2_000))) < 30
        add(other, 1, [999])
        assert known(make(5_000, 0.01), 1, [999]) == {999}


def test_adding_again_changes_nothing(make: MakeFilter, client: redis.Redis) -> None:
    chosen = make(10_000, 0.001)
    add(chosen, 1, range(1, 200))
    before = client.dump("filter")
    add(chosen, 1, range(1, 200))
    add(chosen, 1, range(50, 60))
    assert client.dump("filter") == before


def test_a_key_expires_when_it_was_told_to_at_first(make: MakeFilter, client: redis.Redis) -> None:
    chosen = make(1_000, 0.001)
    chosen.add(client, [Addition("filter", 1, [1], END)])
    chosen.add(client, [Addition("filter", 1, [2], END + 1000)])
    assert client.expiretime("filter") == END


def test_a_key_whose_end_is_past_is_not_kept(make: MakeFilter, client: redis.Redis) -> None:
    make(1_000, 0.001).add(client, [Addition("filter", 1, [1], 1)])
    assert client.exists("filter") == 0


def test_many_additions_go_in_bounded_pipelines(make: MakeFilter, client: redis.Redis) -> None:
    additions = [Addition("filter", user, [1, 2, 3], END) for user in range(2 * PIPELINE_LENGTH + 1)]
    chosen = make(10_000, 0.001)
    assert chosen.add(client, additions) == []
    assert all(known(chosen, user, [1, 2, 3]) == {1, 2, 3} for user in (0, PIPELINE_LENGTH, 2 * PIPELINE_LENGTH))


@pytest.mark.slow
def test_how_full_a_key_is(make: MakeFilter, client: redis.Redis) -> None:
    chosen = make(20_000, 0.001)
    assert chosen.fill(client, ["filter"]) == [None]
    chosen.add(client, [Addition("filter", user, range(1, 101), END) for user in range(200)])
    client.lpush("other", 1)
    found, missing, other = chosen.fill(client, ["filter", "missing", "other"])
    assert (missing, other) == (None, None)
    assert found == Fill(pytest.approx(20_000, rel=0.02), pytest.approx(20_000, rel=0.001))
    chosen.add(client, [Addition("filter", user, range(101, 201), END) for user in range(200)])
    assert chosen.fill(client, ["filter"]) == [Fill(pytest.approx(40_000, rel=0.02), pytest.approx(20_000, rel=0.001))]


def test_foreign_keys_are_left_alone_until_they_are_to_be_replaced(make: MakeFilter, client: redis.Redis) -> None:
    chosen = make(10_000, 0.001)
    client.lpush("other", "precious")
    addition, fine = Addition("other", 1, [1, 2], END), Addition("filter", 1, [1], END)
    assert chosen.known(client, ["filter", "other"], 1, [1, 2]).item_ids == set()
    assert chosen.add(client, [addition, fine]) == [addition]
    assert chosen.known(client, ["filter", "other"], 1, [1, 2]).item_ids == {1}
    assert client.lrange("other", 0, -1) == [b"precious"]
    assert chosen.add(client, [addition], replace=True) == []
    assert chosen.known(client, ["other"], 1, [1, 2]) == KnownItems({1, 2}, set())
    assert client.expiretime("other") == END


def test_scripts_that_the_server_forgot_are_loaded_again(make: MakeFilter, client: redis.Redis) -> None:
    chosen = make(10_000, 0.001)
    add(chosen, 1, [1])
    client.script_flush()
    assert known(chosen, 1, [1, 2]) == {1}
    client.script_flush()
    add(chosen, 1, [2])
    assert known(chosen, 1, [1, 2]) == {1, 2}


def test_the_server_says_whether_it_has_the_module(kind: str, client: redis.Redis) -> None:
    assert has_module(client) == (kind == "module")


# --- Each kind -------------------------------------------------------------------------------------------
def test_without_the_module_its_filter_says_so(feeds: redis.Redis) -> None:
    chosen = ModuleFilter(1_000, 0.001)
    for ask in (
        lambda: chosen.known(feeds, ["filter"], 1, [1]),
        lambda: chosen.add(feeds, [Addition("filter", 1, [1], END)]),
        lambda: chosen.fill(feeds, ["filter"]),
    ):
        with pytest.raises(redis.ResponseError) as raised:
            ask()
        assert is_module_missing(raised.value)
    assert feeds.keys() == []


def test_a_filter_of_the_other_kind_is_foreign(module_server: Valkey) -> None:
    """RedisBloom says "unknown" for a string, which is right for a reader."""
    client = client_of(f"unix://{module_server.socket}", 5)
    bitmap, module = BitmapFilter(1_000, 0.001), ModuleFilter(1_000, 0.001)
    for one, other in ((bitmap, module), (module, bitmap)):
        client.flushall()
        addition = Addition("filter", 1, [1], END)
        assert one.add(client, [addition]) == []
        assert other.known(client, ["filter"], 1, [1]).item_ids == set()
        assert other.fill(client, ["filter"]) == [None]
        assert other.add(client, [addition]) == [addition]
        assert one.known(client, ["filter"], 1, [1]) == KnownItems({1}, set())
        assert other.add(client, [addition], replace=True) == []
        assert other.known(client, ["filter"], 1, [1]) == KnownItems({1}, set())
    client.flushall()
    client.close()


def test_a_bitmap_takes_as_much_memory_as_it_says(feeds: redis.Redis) -> None:
    chosen = BitmapFilter(100_000, 0.001)
    add(chosen, 1, [1])
    assert feeds.strlen("filter") == chosen.length
    assert 8 * chosen.length / 100_000 == pytest.approx(chosen.bits_per_item, rel=0.001)
    assert chosen.bits_per_item == pytest.approx(17.5, abs=0.05)


def test_asking_a_bitmap_brings_the_users_blocks(feeds: redis.Redis) -> None:
    chosen = BitmapFilter(100_000, 0.001)
    add(chosen, 1, range(1, 3_000))
    before = feeds.info("stats")["total_net_output_bytes"]
    assert known(chosen, 1, range(1, 3_000)) == set(range(1, 3_000))
    read = feeds.info("stats")["total_net_output_bytes"] - before
    assert CHOICES * BLOCK_BYTES < read < CHOICES * BLOCK_BYTES + 12_000, "with the answers to INFO"


def test_a_users_blocks_share_what_they_see(feeds: redis.Redis) -> None:
    chosen = BitmapFilter(100_000, 0.001)
    chosen.add(feeds, [Addition("filter", 1, range(first, first + 20), END) for first in range(1, 1_001, 20)])
    count = chosen.length // BLOCK_BYTES
    blocks = np.frombuffer(feeds.get("filter"), dtype=np.uint8)[: chosen.length // count * count].reshape(count, -1)
    used = sorted(int(bits) for bits in np.bitwise_count(blocks).sum(axis=1) if bits)
    assert len(used) == CHOICES
    assert sum(used) == pytest.approx(8_000, rel=0.1)
    assert used[-1] < 1.1 * used[0]
