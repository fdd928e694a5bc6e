from datetime import datetime
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import User
from discover.models import IssuedPage
from tests.support import servers
from tests.support.api import client_of
from tests.support.factories import UserFactory
from tests.support.recommending import Publish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("newest_first")]

FEED = "/api/v1/discover/feed"


@pytest.fixture
def api(reader: User) -> APIClient:
    return client_of(reader)


def pull(api: APIClient, action: str = "refresh", **fields: Any) -> Any:
    response = api.post(FEED, {"action": action, **fields})
    assert response.status_code == 200, response.content
    return response.json()


def test_the_envelope(api: APIClient, publish: Publish) -> None:
    made = publish(25)
    body = pull(api)
    assert body.keys() == {"code", "msg", "data"}
    assert (body["code"], body["msg"]) == (0, "success")
    assert body["data"].keys() == {"items", "has_more"}
    assert [item["id"] for item in body["data"]["items"]] == [str(item_id) for item_id in made[:20]]
    assert body["data"]["has_more"] is True
    tail = pull(api, "load_more")["data"]
    assert [item["id"] for item in tail["items"]] == [str(item_id) for item_id in made[20:]]
    assert tail["has_more"] is False


def test_an_item_of_the_feed(api: APIClient, publish: Publish) -> None:
    (item_id,) = publish(1)
    (item,) = pull(api)["data"]["items"]
    assert item["reason"]
    assert item.pop("update_time") == int(datetime.fromisoformat(item["modified_at"]).timestamp())
    assert item | {"reason": None} == api.get(f"/api/v1/items/{item_id}").json()


@pytest.mark.slow
def test_what_served_it(api: APIClient, publish: Publish, feeds_server: servers.Valkey) -> None:
    publish(10)
    sources = [
        api.post(FEED, {"action": action, "limit": 2, "request_id": name})["X-Feed-Source"]
        for action, name in (("refresh", "a"), ("load_more", "b"), ("load_more", "b"))
    ]
    assert sources == ["recall", "cache", "issued"]
    with servers.frozen(feeds_server):
        assert api.post(FEED, {"action": "refresh", "limit": 2})["X-Feed-Source"] == "recall,no-dedup"


@pytest.mark.slow
def test_limits(api: APIClient, publish: Publish) -> None:
    publish(130)
    assert len(pull(api, limit=1)["data"]["items"]) == 1
    assert len(pull(api, limit=5000)["data"]["items"]) == 100


def test_nothing_yet(api: APIClient) -> None:
    for action in ("refresh", "load_more"):
        assert pull(api, action)["data"] == {"items": [], "has_more": False}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "action"),
        ({"action": ""}, "action"),
        ({"action": None}, "action"),
        ({"action": "Refresh"}, "action"),
        ({"action": ["refresh"]}, "action"),
        ({"action": "refresh", "limit": 0}, "limit"),
        ({"action": "refresh", "limit": -1}, "limit"),
        ({"action": "refresh", "limit": "20"}, "limit"),
        ({"action": "refresh", "limit": "abc"}, "limit"),
        ({"action": "refresh", "limit": 1.5}, "limit"),
        ({"action": "refresh", "limit": True}, "limit"),
        ({"action": "refresh", "limit": None}, "limit"),
        ({"action": "refresh", "request_id": ""}, "request_id"),
        ({"action": "refresh", "request_id": None}, "request_id"),
        ({"action": "refresh", "request_id": 7}, "request_id"),
        ({"action": "refresh", "request_id": "x" * 65}, "request_id"),
        ({"action": "refresh", "user_id": 7}, "user_id"),
    ],
)
def test_bad_fields(api: APIClient, publish: Publish, body: dict[str, Any], field: str) -> None:
    publish(1)
    response = api.post(FEED, body)
    assert response.status_code == 400
    assert list(response.json()) == [field]
    assert not IssuedPage.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"action": "refresh", "action": "refresh"}',
        b'{"action": "refresh", "limit": 1e400}',
        b'{"action": "refresh", "limit": NaN}',
        b'{"action": "refresh", "limit": 100000000000000000000}',
        b'{"action": "refresh", "limit": ' + b"9" * 5000 + b"}",
        b'{"action": "refresh", "request_id": "\\u0000"}',
        b'{"action": "refresh", "request_id": "\\ud800"}',
        b'{"action": "refresh", "request_id": "\xff"}',
        b'{"action": ' + b"[" * 40 + b"]" * 40 + b"}",
    ],
)
def test_bad_bodies(api: APIClient, body: bytes) -> None:
    response = api.post(FEED, body, content_type="application/json")
    assert response.status_code == 400
    assert response.json()


def test_other_faults(api: APIClient) -> None:
    assert api.post(FEED, b"x" * 70_000, content_type="application/json").status_code == 413
    assert api.post(FEED, b"action=refresh", content_type="application/x-www-form-urlencoded").status_code == 415
    assert api.get(FEED).status_code == 405
    stranger = APIClient().post(FEED, {"action": "refresh"})
    assert stranger.status_code == 401
    assert stranger["WWW-Authenticate"]


def test_a_session_needs_its_csrf_token(reader: User) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.login(username=reader.username, password="correct horse battery staple")
    assert client.post(FEED, {"action": "refresh"}).status_code == 403


def test_over_the_rate(api: APIClient, settings: Any) -> None:
    settings.RATES = settings.RATES | {"discover": "2/minute"}
    for _ in range(2):
        assert api.post(FEED, {"action": "refresh"}).status_code == 200
    response = api.post(FEED, {"action": "refresh"})
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0


def test_readers_have_their_own(api: APIClient, publish: Publish) -> None:
    publish(3)
    other = client_of(UserFactory.create())
    assert pull(api) == pull(other)
