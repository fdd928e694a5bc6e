import re
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from accounts.models import User
from relations import tags
from relations.tags import follow_tag, followed_tags_page
from tests.support.api import client_of
from tests.support.clients import Caller
from tests.support.factories import UserFactory, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def client(user: User) -> APIClient:
    return client_of(user)


def followed(user: User) -> list[str]:
    return [tag.name for tag in followed_tags_page(user).tags]


def test_follow_list_and_unfollow(user: User, client: APIClient) -> None:
    for tag in ("Tea", "TEA", "茶"):
        assert client.put(f"/api/v1/tags/{quote(tag)}/follow").status_code == 204
    body = client.get("/api/v1/me/tags?limit=1").json()
    assert [one["tag"] for one in body["items"]] == ["茶"]
    assert body["has_more"]
    assert body["items"][0]["since"].endswith("Z")
    rest = client.get(f"/api/v1/me/tags?last_id={body['last_id']}").json()
    assert ([one["tag"] for one in rest["items"]], rest["has_more"]) == (["tea"], False)
    for _ in range(2):
        assert client.delete("/api/v1/tags/tea/follow").status_code == 204
    assert followed(user) == ["茶"]


@pytest.mark.parametrize("tag", ["123", "two words", "%23", "a" * 101, "a%00b"])
def test_what_is_no_hashtag_is_not_found(tag: str, client: APIClient, user: User) -> None:
    assert client.put(f"/api/v1/tags/{tag}/follow").status_code == 404
    assert client.delete(f"/api/v1/tags/{tag}/follow").status_code == 404
    assert followed(user) == []


def test_strangers_follow_nothing() -> None:
    for method in ("put", "delete"):
        assert getattr(APIClient(), method)("/api/v1/tags/tea/follow").status_code == 401
    assert APIClient().get("/api/v1/me/tags").status_code == 401


def test_the_cap(user: User, client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags, "TAGS", 1)
    assert client.put("/api/v1/tags/tea/follow").status_code == 204
    refused = client.put("/api/v1/tags/milk/follow")
    assert refused.status_code == 409
    assert "You can follow up to" in refused.json()["detail"]
    assert client.put("/api/v1/tags/tea/follow").status_code == 204
    words = Caller(user).post("v1/tags/milk/follow", status=422)["error"]
    assert words.startswith("Validation failed")
    assert followed(user) == ["tea"]


def test_home_says_by_which_hashtag(user: User, client: APIClient) -> None:
    client.put("/api/v1/tags/tea/follow")
    item = say(UserFactory(), "some #Tea")
    (shown,) = client.get("/api/v1/timeline/home").json()["items"]
    assert (shown["id"], shown["reason"]) == (str(item.pk), "#tea")
    assert client.get("/api/v1/timeline/home/new?since_id=1").json() == {"count": 1, "capped": False}
    assert [one["id"] for one in Caller(user).get("v1/timelines/home")] == [str(item.pk)]
    assert [one["id"] for one in Caller(user).get("v1/timelines/home?min_id=1")] == [str(item.pk)]


def test_apps_follow_hashtags(user: User) -> None:
    app = Caller(user)
    assert not app.get("v1/tags/Tea")["following"]
    assert app.post("v1/tags/%23Tea/follow") | {"url": ""} == {
        "id": "tea",
        "name": "tea",
        "url": "",
        "history": [],
        "following": True,
    }
    assert app.get("v1/tags/tea")["following"]
    assert not Caller(UserFactory()).get("v1/tags/tea")["following"]
    assert not Caller(None).get("v1/tags/tea")["following"]
    say(UserFactory(), "#tea")
    (found,) = app.get("v2/search?q=%23tea")["hashtags"]
    assert (found["name"], found["following"]) == ("tea", True)
    assert not app.post("v1/tags/tea/unfollow")["following"]
    assert not app.post("v1/tags/tea/unfollow")["following"]
    app.post("v1/tags/123/follow", status=404)
    assert followed(user) == []


def test_apps_turn_the_pages_of_followed_hashtags(user: User) -> None:
    app = Caller(user)
    for number in range(5):
        follow_tag(user=user, tag=f"tag{number}")
    names, address = [], "v1/followed_tags?limit=2"
    while address:
        names += [one["name"] for one in app.get(address)]
        link = re.search(r"<[^>]*/api/([^>]+)>; rel=\"next\"", app.response.headers.get("Link", ""))
        address = link[1] if link else ""
    assert names == [f"tag{number}" for number in range(5)][::-1]
    oldest = followed_tags_page(user).tags[-1].id
    assert [one["name"] for one in app.get(f"v1/followed_tags?limit=2&min_id={oldest}")] == ["tag2", "tag1"]
    assert all(one["following"] for one in app.get("v1/followed_tags"))
