import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import Permission
from rest_framework.test import APIClient

from accounts.actions import delete_account
from accounts.deactivation import deactivate
from accounts.models import User
from seen import played, store, tasks
from seen.lmdb_store import LmdbStore
from storage import keys
from tests.support import servers
from tests.support.api import client_of
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.schemas import allowed
from web import rates
from web.openapi import document

pytestmark = pytest.mark.django_db

SEEN = "/api/v1/seen"
PATHS = ("plays", "issued", "filter")
JSON = "application/json"
SCHEMA = json.loads(document())


@pytest.fixture(autouse=True)
def plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    monkeypatch.setattr(store, "_store", LmdbStore(tmp_path / "played"))
    played.client().flushdb()
    yield played.client()
    played.client().flushdb()


@pytest.fixture
def api(ann: User) -> APIClient:
    return client_of(ann)


@pytest.fixture
def service() -> APIClient:
    user = UserFactory.create(username="ranking")
    user.user_permissions.add(Permission.objects.get(codename="act_for_others"))
    return client_of(user)


def unseen(api: APIClient, *ids: int, **fields: Any) -> list[str]:
    response = api.post(f"{SEEN}/filter", {"ids": list(map(str, ids)), **fields})
    assert response.status_code == 200, response.content
    allowed(SCHEMA, "/seen/filter", "post", response)
    found: list[str] = response.json()["unseen"]
    return found


def refused(response: Any, path: str, status: int, name: str) -> None:
    """Check the error, as the schema's JSON."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == JSON
    assert list(response.json()) == [name]
    allowed(SCHEMA, f"/seen/{path}", "post", response)


def kept(plays: redis.Redis) -> list[bytes]:
    return [*plays.keys("played:*"), *plays.keys("issued:*")]


def test_what_was_played_or_issued_is_left_out_in_order(api: APIClient) -> None:
    assert unseen(api, 5, 3, 4) == ["5", "3", "4"]
    assert api.post(f"{SEEN}/plays", {"ids": ["3"]}).status_code == 204
    assert api.post(f"{SEEN}/plays", {"ids": ["3", "3"]}).status_code == 204
    assert api.post(f"{SEEN}/issued", {"ids": ["4", "6"]}).status_code == 204
    assert unseen(api, 5, 3, 4, 2, 6, 5) == ["5", "2", "5"]


@pytest.mark.slow
def test_a_user_whose_plays_wait_beyond_the_bound_is_told_when_to_come_again(
    api: APIClient, service: APIClient, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "PLAYED_WAITING_CAP", 20)
    assert api.post(f"{SEEN}/plays", {"ids": list(map(str, range(1, 20)))}).status_code == 204
    for client, fields in ((api, {}), (service, {"user_id": str(ann.pk)})):
        response = client.post(f"{SEEN}/plays", {"ids": ["20", "21"], **fields})
        refused(response, "plays", 429, "detail")
        assert 0 < int(response["Retry-After"]) <= 10
    assert unseen(api, 19, 20, 21) == ["20", "21"]
    assert service.post(f"{SEEN}/plays", {"ids": ["20", "21"]}).status_code == 204
    tasks.merge_user(ann.pk)
    assert api.post(f"{SEEN}/plays", {"ids": ["20", "21"]}).status_code == 204
    assert unseen(api, 19, 20, 21) == []


def test_plays_have_a_rate_in_ids_for_whom_they_are_of(
    api: APIClient, service: APIClient, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.RATES, "played_ids", "10/hour")
    assert api.post(f"{SEEN}/plays", {"ids": list(map(str, range(1, 11)))}).status_code == 204
    for client, fields in ((api, {}), (service, {"user_id": str(ann.pk)})):
        response = client.post(f"{SEEN}/plays", {"ids": ["11"], **fields})
        refused(response, "plays", 429, "detail")
        assert int(response["Retry-After"]) > 10
    assert unseen(api, 10, 11) == ["11"]
    assert service.post(f"{SEEN}/plays", {"ids": ["11"]}).status_code == 204


def test_readers_have_their_own(api: APIClient) -> None:
    api.post(f"{SEEN}/plays", {"ids": ["3"]})
    assert unseen(client_of(UserFactory.create()), 3) == ["3"]


@pytest.mark.slow
def test_a_service_acts_for_others(api: APIClient, service: APIClient, ann: User) -> None:
    assert service.post(f"{SEEN}/plays", {"ids": ["3"], "user_id": str(ann.pk)}).status_code == 204
    assert service.post(f"{SEEN}/issued", {"ids": ["4"], "user_id": str(ann.pk)}).status_code == 204
    assert unseen(api, 3, 4, 5) == ["5"]
    assert unseen(service, 3, 4, 5, user_id=str(ann.pk)) == ["5"]
    assert unseen(service, 3, 4, 5) == ["3", "4", "5"]


@pytest.mark.parametrize("path", PATHS)
def test_other_callers_do_not(api: APIClient, ann: User, path: str) -> None:
    other = UserFactory.create()
    response = api.post(f"{SEEN}/{path}", {"ids": ["3"], "user_id": str(other.pk)})
    refused(response, path, 403, "detail")
    assert unseen(client_of(other), 3) == ["3"]
    assert api.post(f"{SEEN}/{path}", {"ids": ["3"], "user_id": str(ann.pk)}).status_code < 300


def test_ten_thousand_ids(api: APIClient) -> None:
    ids = [2**53 - number for number in range(10_000)]
    api.post(f"{SEEN}/plays", {"ids": [str(item_id) for item_id in ids[:500]]})
    assert unseen(api, *ids) == [str(item_id) for item_id in ids[500:]]


BAD_IDS: list[Any] = [
    None,
    "3",
    [],
    {},
    [3],
    ["0"],
    ["-1"],
    ["1.5"],
    ["abc"],
    ["1_0"],
    ["٣"],
    [""],
    [None],
    [["3"]],
    ["9" * 30],
    [str(2**53 + 1)],
    ["3", "x"],
    ["NaN"],
    ["3 "],
    [True],
    [1e300],
]


@pytest.mark.slow
@pytest.mark.parametrize("ids", BAD_IDS, ids=str)
def test_bad_ids(api: APIClient, plays: redis.Redis, ids: Any) -> None:
    for path in PATHS:
        refused(api.post(f"{SEEN}/{path}", {"ids": ids}), path, 400, "ids")
    assert not kept(plays)


BAD_BODIES: dict[str, bytes] = {
    "no JSON": b"{",
    "a list": b'["1"]',
    "null": b"null",
    "NUL": b'{"ids": ["1"], "user_id": "\\u0000"}',
    "a raw NUL": b'{"ids": ["1\x00"]}',
    "a lone surrogate": b'{"ids": ["\\ud800"]}',
    "a lone surrogate in a key": b'{"ids": ["1"], "\\udfff": 1}',
    "too deep": b'{"ids": ' + b"[" * 32 + b"]" * 32 + b"}",
    "deep as a well": b'{"ids": ' + b"[" * 60_000,
    "a key twice": b'{"ids": ["1"], "ids": ["2"]}',
    "NaN": b'{"ids": [NaN]}',
    "1e400": b'{"ids": [1e400]}',
    "more digits than a number has": b'{"ids": [' + b"9" * 5000 + b"]}",
    "broken UTF-8": b'{"ids": ["\xff"]}',
    "UTF-16": '{"ids": ["1"]}'.encode("utf-16"),
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
def test_bad_bodies(api: APIClient, plays: redis.Redis, body: bytes) -> None:
    for path in PATHS:
        refused(api.post(f"{SEEN}/{path}", body, content_type=JSON), path, 400, "detail")
    assert not kept(plays)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "most"), [("plays", 500), ("issued", 500), ("filter", 10_000)])
def test_other_bad_input(api: APIClient, plays: redis.Redis, path: str, most: int) -> None:
    address = f"{SEEN}/{path}"
    refused(api.post(address, {"ids": ["1"] * (most + 1)}), path, 400, "ids")
    refused(api.post(address, {}), path, 400, "ids")
    refused(api.post(address, b"", content_type=JSON), path, 400, "ids")
    for user_id in (
        "0",
        "abc",
        "-1",
        "1.5",
        "1_0",
        "\u0663",
        str(2**53 + 1),
        "9" * 5000,
        7,
        7.0,
        True,
        [],
        {},
        None,
        "",
    ):
        refused(api.post(address, {"ids": ["1"], "user_id": user_id}), path, 400, "user_id")
    for name in ("at", "id", "sender", "status", "is_superuser", "Ids", ""):
        refused(api.post(address, {"ids": ["1"], name: "2"}), path, 400, name)
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ""):
        refused(api.generic("POST", address, b'{"ids": ["1"]}', kind), path, 415, "detail")
    refused(api.post(address, b" " * 300_000, content_type=JSON), path, 413, "detail")
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        response = api.generic(method, address, b"{}", JSON)
        assert (response.status_code, response["Allow"], list(response.json())) == (405, "POST, OPTIONS", ["detail"])
    response = api.post(address, {"ids": ["1"]}, HTTP_HOST="elsewhere.example")
    assert (response.status_code, response["Content-Type"]) == (400, JSON)
    assert not kept(plays)
    assert api.post(f"{address}?limit=0&last_id=abc&x=%00", {"ids": ["1"] * most}).status_code < 300


def test_strangers(ann: User, plays: redis.Redis) -> None:
    strangers = APIClient(), APIClient(enforce_csrf_checks=True), APIClient()
    strangers[1].force_login(ann)
    strangers[2].credentials(HTTP_AUTHORIZATION="Token nonsense")
    for path in PATHS:
        for stranger, status in zip(strangers, (401, 403, 401), strict=True):
            response = stranger.post(f"{SEEN}/{path}", {"ids": ["1"]})
            refused(response, path, status, "detail")
            assert ("WWW-Authenticate" in response) == (status == 401)
    assert not kept(plays)


@pytest.mark.slow
def test_deleted_users_are_as_unknown_ones(service: APIClient, ann: User, plays: redis.Redis) -> None:
    gone, hidden = UserFactory.create(), UserFactory.create()
    delete_account(user=gone)
    deactivate(user=hidden)
    for path in PATHS:
        answers = set()
        for user_id in (gone.pk, hidden.pk, 2**53):
            response = service.post(f"{SEEN}/{path}", {"ids": ["1"], "user_id": str(user_id)})
            refused(response, path, 404, "detail")
            answers.add(response.content)
        assert len(answers) == 1
    assert not kept(plays)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_over_the_rate(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls count in parallel, and all three together."""
    monkeypatch.setitem(settings.RATES, "played", "3/hour")
    clients = [client_of(ann) for _ in range(6)]

    def call(client: APIClient, path: str) -> Any:
        return client.post(f"{SEEN}/{path}", {"ids": ["1"]})

    responses = at_once(*(partial(call, client, path) for client, path in zip(clients, PATHS * 2, strict=True)))
    late = [
        (response, path) for response, path in zip(responses, PATHS * 2, strict=True) if response.status_code == 429
    ]
    assert len(late) == 3
    for response, path in late:
        refused(response, path, 429, "detail")
        assert 0 < int(response["Retry-After"]) <= 3600


def test_only_the_filter_takes_large_bodies(api: APIClient) -> None:
    body = b'{"ids": ["1"]}' + b" " * 65_536
    statuses = {path: api.post(f"{SEEN}/{path}", body, content_type="application/json").status_code for path in PATHS}
    assert statuses == {"plays": 413, "issued": 413, "filter": 200}


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_without_its_redis_it_is_an_outage(api: APIClient, plays_server: servers.Valkey, path: str) -> None:
    """The client repeats unacknowledged plays."""
    assert api.post(f"{SEEN}/{path}", {"ids": ["3"]}).status_code < 300
    with servers.dead(plays_server):
        response = api.post(f"{SEEN}/{path}", {"ids": ["4"]})
    refused(response, path, 503, "detail")
    assert response["Retry-After"] == "2"
    played.breaker.reset()
    assert api.post(f"{SEEN}/plays", {"ids": ["5"]}).status_code == 204
    assert unseen(api, 5) == []


def test_acknowledged_plays_survive_the_death_of_redis(api: APIClient, plays_server: servers.Valkey) -> None:
    api.post(f"{SEEN}/plays", {"ids": ["3"]})
    servers.restart(plays_server)
    assert unseen(api, 3, 4) == ["4"]


@pytest.mark.slow
@pytest.mark.parametrize("code", [429, 503])
def test_plays_that_are_refused_cost_nothing_of_the_day(
    api: APIClient, ann: User, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    ids = {"ids": [str(number) for number in range(1, 501)]}

    def fail(*_: Any, **__: Any) -> list[int]:
        if code == 429:
            return [ann.pk]
        raise played.PlayedUnavailableError("no server")

    with monkeypatch.context() as patch:
        patch.setattr(played, "take", fail)
        answers = [api.post(f"{SEEN}/plays", ids) for _ in range(50)]
    assert {answer.status_code for answer in answers} == {code}
    assert all(int(answer["Retry-After"]) <= 5 for answer in answers)
    assert api.post(f"{SEEN}/plays", ids).status_code == 204


def test_a_batch_that_does_not_fit_leaves_room_for_a_smaller_one(api: APIClient, settings: Any) -> None:
    settings.RATES = settings.RATES | {"played_ids": "600/day"}
    assert api.post(f"{SEEN}/plays", {"ids": [str(number) for number in range(1, 501)]}).status_code == 204
    assert api.post(f"{SEEN}/plays", {"ids": [str(number) for number in range(501, 1001)]}).status_code == 429
    assert api.post(f"{SEEN}/plays", {"ids": [str(number) for number in range(501, 551)]}).status_code == 204


# --- Of many users at once -------------------------------------------------------------------------------
def batch(api: APIClient, *plays: tuple[Any, Any]) -> Any:
    body = {"plays": [{"user_id": str(user), "ids": ids} for user, ids in plays]}
    response = api.post(f"{SEEN}/plays/batch", body)
    allowed(SCHEMA, "/seen/plays/batch", "post", response)
    return response


def test_a_batch_is_each_users_own(service: APIClient, ann: User) -> None:
    ben = UserFactory.create()
    response = batch(service, (ann.pk, ["3", "4"]), (ben.pk, ["5"]), (ann.pk, ["6"]))
    assert (response.status_code, response.json()) == (200, {"refused": [], "unknown": []})
    assert unseen(service, 3, 4, 5, 6, user_id=str(ann.pk)) == ["5"]
    assert unseen(service, 3, 4, 5, 6, user_id=str(ben.pk)) == ["3", "4", "6"]


def test_a_hundred_users_with_fifty_plays_each(service: APIClient) -> None:
    users = UserFactory.create_batch(100)
    ids = [str(2**53 - number) for number in range(50)]
    assert batch(service, *((user.pk, ids) for user in users)).json() == {"refused": [], "unknown": []}
    assert unseen(service, *map(int, ids), user_id=str(users[99].pk)) == []


def test_users_refused_in_a_batch_hold_up_no_others(service: APIClient, ann: User, settings: Any) -> None:
    """One is full, one over the rate, one missing, one deleted."""
    full, busy, gone, fine = UserFactory.create_batch(4)
    deactivate(user=gone)
    settings.PLAYED_WAITING_CAP = 10
    settings.RATES = settings.RATES | {"played_ids": "12/hour"}
    ten = list(map(str, range(1, 11)))
    assert batch(service, (full.pk, ten), (busy.pk, ten)).json()["refused"] == []
    tasks.merge_user(busy.pk)
    found = batch(
        service, (full.pk, ["11"]), (busy.pk, ["11", "12", "13"]), (2**53, ["1"]), (gone.pk, ["1"]), (fine.pk, ["1"])
    ).json()
    waits = {wait["user_id"]: wait["retry_after"] for wait in found["refused"]}
    assert waits.keys() == {str(full.pk), str(busy.pk)}
    assert waits[str(full.pk)] == played.EARLY_SECONDS
    assert waits[str(busy.pk)] > 10
    assert found["unknown"] == [str(2**53), str(gone.pk)]
    assert unseen(service, 1, user_id=str(fine.pk)) == []
    assert unseen(service, 11, user_id=str(full.pk)) == unseen(service, 11, user_id=str(busy.pk)) == ["11"]
    tasks.merge_user(full.pk)
    assert batch(service, (full.pk, ["11", "12"])).json()["refused"] == [], "the refused one cost nothing"


def test_no_more_is_given_back_than_is_counted(service: APIClient, settings: Any) -> None:
    """The rate's slot may end first."""
    settings.RATES = settings.RATES | {"played_ids": "10/hour"}
    user = UserFactory.create()
    rates.hit_each("played_ids", {str(user.pk): 9})
    rates._client().delete(keys.rate("played_ids", str(user.pk)))
    assert batch(service, (user.pk, ["1", "2"])).json()["refused"] == []
    rates.give_back_each("played_ids", {str(user.pk): 9})
    assert batch(service, (user.pk, list(map(str, range(1, 11))))).json()["refused"] == []
    assert batch(service, (user.pk, ["11"])).json()["refused"] != [], "ten of a slot, not seventeen"


def test_a_batch_for_others_takes_the_permission(api: APIClient, ann: User, plays: redis.Redis) -> None:
    other = UserFactory.create()
    response = batch(api, (ann.pk, ["3"]), (other.pk, ["3"]))
    assert (response.status_code, list(response.json())) == (403, ["detail"])
    assert kept(plays) == [], "all or nothing"
    assert batch(api, (ann.pk, ["3"])).status_code == 200


BAD_BATCHES: list[Any] = [
    None,
    "x",
    {},
    [],
    [1],
    [[]],
    [{}],
    [{"user_id": "1"}],
    [{"user_id": "1", "ids": ["1"], "more": 1}],
    [{"user_id": 1, "ids": ["1"]}],
    [{"user_id": "0", "ids": ["1"]}],
    [{"user_id": "1", "ids": []}],
    [{"user_id": "1", "ids": "11"}],
    [{"user_id": "1", "ids": ["-1"]}],
    [{"user_id": "1", "ids": ["1"] * 501}],
    [{"user_id": "1", "ids": ["1"]}] * 101,
    [{"user_id": "1", "ids": ["1"] * 500}] * 11,
]


@pytest.mark.parametrize("bad", BAD_BATCHES, ids=lambda bad: repr(bad)[:40])
def test_bad_batches(service: APIClient, plays: redis.Redis, bad: Any) -> None:
    refused(service.post(f"{SEEN}/plays/batch", {"plays": bad}), "plays/batch", 400, "plays")
    assert kept(plays) == []


def test_a_batch_without_its_redis_is_an_outage(
    service: APIClient, ann: User, plays_server: servers.Valkey, settings: Any
) -> None:
    settings.RATES = settings.RATES | {"played_ids": "1/hour"}
    with servers.dead(plays_server):
        response = batch(service, (ann.pk, ["4"]))
    assert (response.status_code, response["Retry-After"]) == (503, "2")
    played.breaker.reset()
    assert batch(service, (ann.pk, ["4"])).json()["refused"] == []


def test_a_batch_takes_as_many_round_trips_whatever_its_size(
    service: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = UserFactory.create_batch(30)
    trips: list[int] = []

    def counted(module: Any) -> None:
        pipelined = module.pipelined
        monkeypatch.setattr(
            module, "pipelined", lambda *args, **options: (trips.append(1), pipelined(*args, **options))[1]
        )

    counted(played)
    counted(rates)
    batch(service, (users[0].pk, ["1"]))  # marks the token
    sizes = []
    for some in (users[:2], users):
        trips.clear()
        batch(service, *((user.pk, ["7"]) for user in some))
        sizes.append(len(trips))
    assert sizes[0] == sizes[1] <= 4, sizes
