import pickle
from typing import Any

import pytest
import redis
from django.core.cache import cache

from storage import connections
from tests.support.patience import waits_once_a_second
from tests.support.servers import Valkey, dead, frozen, full


@pytest.fixture
def kept(feeds: redis.Redis) -> bytes:
    """The key of the cache's only value."""
    cache.set("name", {"words": ["zebra", 7, None]}, 60)
    (key,) = feeds.keys("*")
    return bytes(key)


def test_values_are_kept_as_json_for_their_time(feeds: redis.Redis, kept: bytes) -> None:
    assert feeds.get(kept) == b'{"words":["zebra",7,null]}'
    assert 0 < feeds.ttl(kept) <= 60
    assert cache.get("name") == {"words": ["zebra", 7, None]}
    assert cache.get("other", "none") == "none"


@pytest.mark.parametrize("value", [pickle.dumps({"words": 7}), b"\xff", b"{", b"[" * 100_000])
def test_values_of_another_program_are_not_there(feeds: redis.Redis, kept: bytes, value: bytes) -> None:
    feeds.set(kept, value)
    assert cache.get("name") is None


def test_a_key_of_another_type_is_not_there(feeds: redis.Redis, kept: bytes) -> None:
    feeds.delete(kept)
    feeds.lpush(kept, "words")
    assert cache.get("name", "none") == "none"


def test_what_json_cannot_hold_is_the_caller_s_error(feeds: redis.Redis) -> None:
    with pytest.raises(TypeError):
        cache.set("name", object())


@pytest.mark.slow
@pytest.mark.parametrize("fault", [frozen, dead, full])
def test_a_server_of_no_help_costs_one_wait_and_no_error(kept: bytes, feeds_server: Valkey, fault: Any) -> None:
    with fault(feeds_server):
        for number in range(5):
            cache.set(f"name {number}", number)
            assert cache.get(f"name {number}") is None
    connections.cache_breaker.reset()


@pytest.mark.slow
def test_a_frozen_server_is_waited_for_once_a_second(kept: bytes, feeds_server: Valkey) -> None:
    with frozen(feeds_server), waits_once_a_second("cache"):
        for _ in range(20):
            assert cache.get("name", "none") == "none"
    connections.cache_breaker.reset()
    assert cache.get("name") is not None
