"""The played history over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth.models import Permission
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from seen import played, store
from seen.store import LmdbStore
from tests import servers
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

SEEN = "/api/v1/seen"


@pytest.fixture(autouse=True)
def plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    monkeypatch.setattr(store, "_store", LmdbStore(tmp_path / "played"))
    played.client().flushdb()
    yield played.client()
    played.client().flushdb()


@pytest.fixture
def ann() -> User:
    return UserFactory.create(username="ann")


def api_of(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=user)}")
    return client


@pytest.fixture
def api(ann: User) -> APIClient:
    return api_of(ann)


@pytest.fixture
def service() -> APIClient:
    user = UserFactory.create(username="ranking")
    user.user_permissions.add(Permission.objects.get(codename="act_for_others"))
    return api_of(user)


def unseen(api: APIClient, *ids: int, **fields: Any) -> list[str]:
    response = api.post(f"{SEEN}/filter", {"ids": list(map(str, ids)), **fields})
    assert response.status_code == 200, response.content
    assert response.json().keys() == {"unseen"}
    found: list[str] = response.json()["unseen"]
    return found


def test_what_was_played_or_issued_is_left_out_in_order(api: APIClient) -> None:
    assert unseen(api, 5, 3, 4) == ["5", "3", "4"]
    assert api.post(f"{SEEN}/plays", {"ids": ["3"]}).status_code == 204
    assert api.post(f"{SEEN}/plays", {"ids": ["3", "3"]}).status_code == 204
    assert api.post(f"{SEEN}/issued", {"ids": ["4", "6"]}).status_code == 204
    assert unseen(api, 5, 3, 4, 2, 6, 5) == ["5", "2", "5"]


def test_readers_have_their_own(api: APIClient) -> None:
    api.post(f"{SEEN}/plays", {"ids": ["3"]})
    assert unseen(api_of(UserFactory.create()), 3) == ["3"]


def test_a_service_acts_for_others(api: APIClient, service: APIClient, ann: User) -> None:
    assert service.post(f"{SEEN}/plays", {"ids": ["3"], "user_id": str(ann.pk)}).status_code == 204
    assert service.post(f"{SEEN}/issued", {"ids": ["4"], "user_id": str(ann.pk)}).status_code == 204
    assert unseen(api, 3, 4, 5) == ["5"]
    assert unseen(service, 3, 4, 5, user_id=str(ann.pk)) == ["5"]
    assert unseen(service, 3, 4, 5) == ["3", "4", "5"]


@pytest.mark.parametrize("path", ["plays", "issued", "filter"])
def test_nobody_else_does(api: APIClient, ann: User, path: str) -> None:
    other = UserFactory.create()
    response = api.post(f"{SEEN}/{path}", {"ids": ["3"], "user_id": str(other.pk)})
    assert response.status_code == 403
    assert unseen(api_of(other), 3) == ["3"]
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
]


@pytest.mark.parametrize("path", ["plays", "issued", "filter"])
@pytest.mark.parametrize("ids", BAD_IDS, ids=str)
def test_bad_ids(api: APIClient, path: str, ids: Any) -> None:
    response = api.post(f"{SEEN}/{path}", {"ids": ids})
    assert response.status_code == 400
    assert list(response.json()) == ["ids"]


@pytest.mark.parametrize(("path", "most"), [("plays", 500), ("issued", 500), ("filter", 10_000)])
def test_other_bad_input(api: APIClient, path: str, most: int) -> None:
    address = f"{SEEN}/{path}"
    assert list(api.post(address, {"ids": ["1"] * (most + 1)}).json()) == ["ids"]
    assert api.post(address, {"ids": ["1"] * most}).status_code < 300
    assert list(api.post(address, {}).json()) == ["ids"]
    for user_id in ("0", "abc", 7, None, ""):
        assert list(api.post(address, {"ids": ["1"], "user_id": user_id}).json()) == ["user_id"]
    assert api.post(address, {"ids": ["1"], "at": "2020-01-01"}).status_code == 400
    assert api.post(address, b'{"ids": ["1"], "ids": ["2"]}', content_type="application/json").status_code == 400
    assert api.post(address, b"ids=1", content_type="application/x-www-form-urlencoded").status_code == 415
    assert api.post(address, b" " * 300_000, content_type="application/json").status_code == 413
    assert api.get(address).status_code == 405
    stranger = APIClient().post(address, {"ids": ["1"]})
    assert (stranger.status_code, bool(stranger["WWW-Authenticate"])) == (401, True)


def test_only_the_filter_takes_large_bodies(api: APIClient) -> None:
    body = b'{"ids": ["1"]}' + b" " * 65_536
    statuses = {
        path: api.post(f"{SEEN}/{path}", body, content_type="application/json").status_code
        for path in ("plays", "issued", "filter")
    }
    assert statuses == {"plays": 413, "issued": 413, "filter": 200}


@pytest.mark.parametrize("path", ["plays", "issued", "filter"])
def test_without_its_redis_it_is_an_outage(api: APIClient, broker_server: servers.Valkey, path: str) -> None:
    """A play that was not acknowledged is for the client to send again."""
    assert api.post(f"{SEEN}/{path}", {"ids": ["3"]}).status_code < 300
    with servers.dead(broker_server):
        response = api.post(f"{SEEN}/{path}", {"ids": ["4"]})
    assert (response.status_code, response["Retry-After"]) == (503, "2")
    assert api.post(f"{SEEN}/plays", {"ids": ["5"]}).status_code == 204
    assert unseen(api, 5) == []


def test_acknowledged_plays_survive_the_death_of_redis(api: APIClient, broker_server: servers.Valkey) -> None:
    api.post(f"{SEEN}/plays", {"ids": ["3"]})
    servers.restart(broker_server)
    assert unseen(api, 3, 4) == ["4"]
