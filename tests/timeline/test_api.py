from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import User
from items import actions as items
from relations import actions as relations
from tests.support import servers
from tests.support.api import API
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bob(ann: User) -> User:
    bob = UserFactory(username="bob")
    relations.follow(follower=ann, followee=bob)
    return bob


def publish(sender: User, count: int) -> list[str]:
    """The ids are newest first."""
    made = [items.publish(sender=sender, content={"text": f"words {number}"}) for number in range(count)]
    return [str(item.pk) for item in reversed(made)]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_the_home_is_walked_whole(api: APIClient, ann: User, bob: User, limit: int) -> None:
    ids = publish(bob, 6) + publish(ann, 1)
    found: list[str] = []
    query = ""
    while True:
        response = api.get(f"{API}/timeline/home?limit={limit}{query}")
        assert set(response["X-Feed-Source"].split(",")) <= {"inbox", "outbox", "pending", "sql"}
        body: dict[str, Any] = response.json()
        found += [item["id"] for item in body["items"]]
        if not body["has_more"]:
            break
        query = f"&last_id={body['last_id']}"
    assert found == sorted(ids, key=int, reverse=True)


def test_an_item_of_the_home(api: APIClient, bob: User) -> None:
    (item_id,) = publish(bob, 1)
    (item,) = api.get(f"{API}/timeline/home").json()["items"]
    assert item | {"reason": None} == api.get(f"{API}/items/{item_id}").json()


def test_an_empty_home(api: APIClient) -> None:
    body = api.get(f"{API}/timeline/home").json()
    assert (body["items"], body["has_more"]) == ([], False)
    assert api.get(f"{API}/timeline/home/new").json() == {"count": 0, "capped": False}


def test_new_items_are_counted(api: APIClient, bob: User) -> None:
    ids = publish(bob, 5)
    for place, since_id in enumerate(ids):
        answer = api.get(f"{API}/timeline/home/new?since_id={since_id}")
        assert answer.json() == {"count": place, "capped": False}
    for query in ["", "?since_id="]:
        assert api.get(f"{API}/timeline/home/new{query}").json() == {"count": 5, "capped": False}
    assert api.get(f"{API}/timeline/home/new?since_id={2**53}").json() == {"count": 0, "capped": False}


@pytest.mark.parametrize("value", ["0", "-1", "abc", "1.5", "%00", "9" * 30, "1&since_id=2"])
def test_bad_positions(api: APIClient, value: str) -> None:
    response = api.get(f"{API}/timeline/home/new?since_id={value}")
    assert response.status_code == 400
    assert list(response.json()) == ["since_id"]


@pytest.mark.slow
def test_a_home_without_redis(api: APIClient, bob: User, feeds_server: servers.Valkey) -> None:
    ids = publish(bob, 3)
    with servers.frozen(feeds_server):
        response = api.get(f"{API}/timeline/home")
        assert response["X-Feed-Source"] == "sql"
        assert [item["id"] for item in response.json()["items"]] == ids
