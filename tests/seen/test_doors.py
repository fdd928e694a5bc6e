"""What the API and gRPC have in common: who may do what, and what is refused."""

from typing import Any

import pytest
import redis
from django.utils import timezone

from accounts.actions import delete_account
from accounts.deactivation import deactivate
from accounts.models import User
from seen import played, rpc, store, tasks
from seen.checker import unseen
from seen.redis_store import RedisStore
from tests.support.factories import UserFactory
from tests.support.seen_doors import VERBS, Door, kept
from tests.support.servers import Valkey, dead, frozen

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


# --- Answers ---------------------------------------------------------------------------------------------
def test_what_was_played_or_issued_is_left_out_in_order(door: Door, ann: User) -> None:
    assert door.left(ann, 5, 3, 4) == [5, 3, 4]
    for verb, ids in (("plays", [3]), ("plays", [3, 3]), ("issued", [4, 6])):
        assert door.send(ann, verb, ids).code == "OK"
    assert door.left(ann, 5, 3, 4, 2, 6, 5) == [5, 2, 5]
    assert door.left(ann, 3, 4) == []
    assert unseen(ann.pk, [3, 4, 5], now=timezone.now()) == [5]
    assert door.left(UserFactory.create(), 3) == [3]


def test_as_many_as_may_be(door: Door, ann: User) -> None:
    ids = [2**53 - number for number in range(rpc.ASKED)]
    assert door.send(ann, "plays", ids[:500]).code == "OK"
    assert door.left(ann, *ids) == ids[500:]


def test_a_service_acts_for_others(door: Door, ann: User, service: User) -> None:
    for verb, ids in (("plays", [3]), ("issued", [4])):
        assert door.send(service, verb, ids, ann.pk).code == "OK"
    assert door.left(service, 3, 4, 5, user_id=ann.pk) == [5]
    assert door.left(service, 3, 4, 5) == [3, 4, 5], "its own history is another"
    assert door.left(ann, 3, 4, 5, user_id=ann.pk) == [5], "everybody may name themselves"


def test_a_batch_of_a_hundred_users(door: Door, service: User) -> None:
    users = UserFactory.create_batch(100)
    ids = [2**53 - number for number in range(50)]
    plays = [(user.pk, ids) for user in users[:99]] + [(users[99].pk, ids[:25])]
    answer = door.send_batch(service, plays)
    assert (answer.code, answer.waits, answer.unknown) == ("OK", {}, [])
    assert [door.left(service, *ids, user_id=user.pk) for user in users[98:]] == [[], ids[25:]]


def test_users_refused_in_a_batch_hold_up_no_others(door: Door, service: User, settings: Any) -> None:
    """One is full, one over the rate, one missing, one deleted."""
    full, busy, gone, fine = UserFactory.create_batch(4)
    deactivate(user=gone)
    settings.PLAYED_WAITING_CAP = 10
    settings.RATES = settings.RATES | {"played_ids": "12/hour"}
    ten = list(range(1, 11))
    assert door.send_batch(service, [(full.pk, ten), (busy.pk, ten)]).waits == {}
    tasks.merge_user(busy.pk)
    plays = [(full.pk, [11]), (busy.pk, [11, 12, 13]), (2**53, [1]), (gone.pk, [1]), (fine.pk, [1])]
    answer = door.send_batch(service, plays)
    assert answer.waits.keys() == {full.pk, busy.pk}
    assert answer.waits[full.pk] == played.EARLY_SECONDS
    assert answer.waits[busy.pk] > 10
    assert answer.unknown == [2**53, gone.pk]
    assert door.left(service, 1, user_id=fine.pk) == []
    assert door.left(service, 11, user_id=full.pk) == door.left(service, 11, user_id=busy.pk) == [11]
    tasks.merge_user(full.pk)
    assert door.send_batch(service, [(full.pk, [11, 12])]).waits == {}, "the refused one cost nothing"


# --- Refusals --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value", [None, "", "Token", "Token nonsense", "Bearer nonsense", "Token a b", "Token " + "a" * 4000]
)
def test_without_a_token_nothing(door: Door, plays: redis.Redis, ann: User, value: str | None) -> None:
    for verb in VERBS:
        door.refuses("UNAUTHENTICATED", value, verb, [1])
    assert door.send_batch(value, [(ann.pk, [1])]).code == "UNAUTHENTICATED"
    assert kept(plays) == []


def test_another_user_is_not_for_everybody(door: Door, plays: redis.Redis, ann: User, bob: User) -> None:
    for verb in VERBS:
        door.refuses("PERMISSION_DENIED", ann, verb, [3], bob.pk)
    assert door.send_batch(ann, [(ann.pk, [3]), (bob.pk, [3])]).code == "PERMISSION_DENIED"
    assert kept(plays) == [], "all or nothing"
    assert door.send_batch(ann, [(ann.pk, [3])]).code == "OK"


def test_a_user_who_is_gone_is_as_an_unknown_one(door: Door, plays: redis.Redis, service: User) -> None:
    gone, hidden = UserFactory.create(), UserFactory.create()
    delete_account(user=gone)
    deactivate(user=hidden)
    for verb in VERBS:
        words = {door.refuses("NOT_FOUND", service, verb, [1], one).words for one in (gone.pk, hidden.pk, 2**53)}
        assert len(words) == 1
    assert kept(plays) == []


def test_ids_out_of_range(door: Door, plays: redis.Redis, service: User, ann: User) -> None:
    for verb in VERBS:
        most = rpc.ASKED if verb == "filter" else rpc.REPORTED
        for ids in ([], [0], [1, 2**53 + 1], [2**64 - 1], range(1, most + 2)):
            door.refuses("INVALID_ARGUMENT", service, verb, ids)
        for user_id in (2**53 + 1, 2**64 - 1):
            door.refuses("INVALID_ARGUMENT", service, verb, [1], user_id)
    assert kept(plays) == []
    for verb in VERBS:
        assert door.send(service, verb, [2**53], ann.pk).code == "OK"


def test_malformed_batches(door: Door, plays: redis.Redis, service: User, ann: User) -> None:
    for batch in (
        [],
        [(ann.pk, [])],
        [(ann.pk, [0])],
        [(2**53 + 1, [1])],
        [(ann.pk, list(range(1, 502)))],
        [(ann.pk, [1])] * 101,
        [(ann.pk, list(range(1, 501)))] * 11,
    ):
        assert door.send_batch(service, batch).code == "INVALID_ARGUMENT"
    assert kept(plays) == []


def test_over_the_rate_of_calls(door: Door, ann: User, settings: Any) -> None:
    """All calls count together."""
    settings.RATES = settings.RATES | {"played": "3/hour"}
    assert [door.send(ann, verb, [1]).code for verb in VERBS] == ["OK"] * 3
    for verb in VERBS:
        assert 0 < door.refuses("RESOURCE_EXHAUSTED", ann, verb, [2]).wait <= 3600
    assert door.left(UserFactory.create(), 1) == [1]


def test_over_the_rate_of_ids(door: Door, service: User, ann: User, settings: Any) -> None:
    """Those of a user count, whoever sends them."""
    settings.RATES = settings.RATES | {"played_ids": "10/hour"}
    assert door.send(ann, "plays", range(1, 11)).code == "OK"
    for who in (ann, service):
        assert door.refuses("RESOURCE_EXHAUSTED", who, "plays", [11], ann.pk).wait > 10
    assert door.left(ann, 10, 11) == [11]
    assert door.send(service, "plays", [11]).code == "OK"


def test_plays_that_have_no_room_yet(door: Door, service: User, ann: User, settings: Any) -> None:
    settings.PLAYED_WAITING_CAP = 20
    assert door.send(ann, "plays", range(1, 20)).code == "OK"
    for who in (ann, service):
        assert 0 < door.refuses("RESOURCE_EXHAUSTED", who, "plays", [20, 21], ann.pk).wait <= 10
    assert door.left(ann, 19, 20, 21) == [20, 21]
    assert door.send(service, "plays", [20, 21]).code == "OK"
    tasks.merge_user(ann.pk)
    assert door.send(ann, "plays", [20, 21]).code == "OK"
    assert door.left(ann, 19, 20, 21) == []


# --- Outages ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("trouble", [dead, frozen])
def test_without_the_server_of_the_plays(
    door: Door, service: User, ann: User, plays_server: Valkey, settings: Any, trouble: Any
) -> None:
    """The client repeats what was not acknowledged, and a refused one costs nothing."""
    settings.RATES = settings.RATES | {"played_ids": "1/hour"}
    with trouble(plays_server):
        for verb in VERBS:
            assert door.refuses("UNAVAILABLE", ann, verb, [4]).wait == 2
        answer = door.send_batch(service, [(ann.pk, [4])])
        assert (answer.code, answer.wait) == ("UNAVAILABLE", 2)
    played.client().flushdb()
    played.breaker.reset()
    assert door.left(ann, 4) == [4]
    assert door.send_batch(service, [(ann.pk, [4])]).waits == {}
    assert door.left(ann, 4) == []


def test_without_the_store(door: Door, ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_store", RedisStore("redis://127.0.0.1:1/0"))
    door.refuses("UNAVAILABLE", ann, "filter", [1])
    assert door.send(ann, "plays", [1]).code == "OK"
