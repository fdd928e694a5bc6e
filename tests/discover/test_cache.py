import pytest
import redis
from django.conf import settings

from discover.cache import CachedRecommendation, CandidateList
from storage import keys
from storage.connections import count_trips
from tests.support.patience import SHORT

ENTRIES = [CachedRecommendation(number, f"tag:{number}|x") for number in range(1, 8)]


@pytest.fixture
def cache() -> CandidateList:
    return CandidateList(7)


def test_pushed_candidates_are_popped_in_order(cache: CandidateList) -> None:
    assert cache.pop(3) == ([], 0)
    cache.push(ENTRIES)
    assert cache.pop(3) == (ENTRIES[:3], 4)
    cache.put_back(ENTRIES[1:3])
    assert cache.pop(10) == (ENTRIES[1:], 0)


def test_the_value_is_the_item_id_alone(cache: CandidateList, feeds: redis.Redis) -> None:
    cache.push(ENTRIES)
    assert feeds.lrange("feed:cache:7", 0, -1) == [str(entry.item_id).encode() for entry in ENTRIES]


@pytest.mark.parametrize("write", ["push", "put_back"])
def test_it_lives_for_half_an_hour(cache: CandidateList, feeds: redis.Redis, write: str) -> None:
    getattr(cache, write)(ENTRIES)
    for key in (keys.candidates(7), keys.candidate_reasons(7)):
        assert settings.CANDIDATES_TTL.total_seconds() - SHORT <= feeds.ttl(key) <= 1800


def test_dropping_it(cache: CandidateList, feeds: redis.Redis) -> None:
    cache.push(ENTRIES)
    cache.drop()
    assert feeds.dbsize() == 0


def test_reasons_that_were_lost_are_empty(cache: CandidateList, feeds: redis.Redis) -> None:
    cache.push(ENTRIES)
    feeds.delete(keys.candidate_reasons(7))
    assert cache.pop(2)[0] == [CachedRecommendation(1, ""), CachedRecommendation(2, "")]


def test_reasons_out_of_step_stay_with_their_items(cache: CandidateList, feeds: redis.Redis) -> None:
    cache.push(ENTRIES)
    feeds.lpop(keys.candidates(7))
    assert cache.pop(3)[0] == [ENTRIES[1], ENTRIES[2], CachedRecommendation(4, "")]


def test_each_call_is_one_round_trip(cache: CandidateList) -> None:
    with count_trips() as asked:
        cache.push(ENTRIES)
        cache.pop(2)
        cache.put_back(ENTRIES[:1])
        cache.drop()
    assert asked.round_trips == 4
