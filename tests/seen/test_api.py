from functools import partial
from typing import Any

import pytest
import redis
from django.conf import settings
from rest_framework.test import APIClient

from accounts.models import User
from seen import played
from storage import keys
from tests.support import servers
from tests.support.api import client_of
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.schemas import allowed
from tests.support.seen_doors import SCHEMA, kept
from web import rates

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plays")]

SEEN = "/api/v1/seen"
PATHS = ("plays", "issued", "filter")
JSON = "application/json"


@pytest.fixture
def service(service: User) -> APIClient:
    return client_of(service)


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
        patch.setattr(played, "add_plays", fail)
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


def test_no_more_is_given_back_than_is_counted(service: APIClient, settings: Any) -> None:
    """The rate's slot may end first."""
    settings.RATES = settings.RATES | {"played_ids": "10/hour"}
    user = UserFactory.create()
    rates.hit_each("played_ids", {str(user.pk): 9})
    rates._client().delete(keys.rate("played_ids", str(user.pk)))
    assert batch(service, (user.pk, ["1", "2"])).json()["refused"] == []
    rates.refund_each("played_ids", {str(user.pk): 9})
    assert batch(service, (user.pk, list(map(str, range(1, 11))))).json()["refused"] == []
    assert batch(service, (user.pk, ["11"])).json()["refused"] != [], "ten of a slot, not seventeen"


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
    [{"user_id": "1", "ids": "11"}],
    [{"user_id": "1", "ids": ["-1"]}],
]


@pytest.mark.parametrize("bad", BAD_BATCHES, ids=lambda bad: repr(bad)[:40])
def test_bad_batches(service: APIClient, plays: redis.Redis, bad: Any) -> None:
    refused(service.post(f"{SEEN}/plays/batch", {"plays": bad}), "plays/batch", 400, "plays")
    assert kept(plays) == []


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
