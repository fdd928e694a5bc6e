from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import User
from items import actions as items
from relations import actions, lists
from tests.support.api import client_of
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def friend(owner: User) -> User:
    friend = UserFactory(username="friend")
    actions.follow(follower=owner, followee=friend)
    return friend


@pytest.fixture
def api(owner: User) -> APIClient:
    return client_of(owner)


def make(api: APIClient, **fields: Any) -> str:
    made = api.post("/api/v1/me/lists", {"title": "Friends", **fields}, format="json")
    assert made.status_code == 201, made.content
    return str(made.json()["id"])


@pytest.mark.slow
def test_a_list_from_its_making_to_its_end(api: APIClient, friend: User) -> None:
    made = make(api, exclusive=True)
    address = f"/api/v1/me/lists/{made}"
    body = api.get(address).json()
    assert body | {"created_at": ""} == {
        "id": made,
        "title": "Friends",
        "exclusive": True,
        "members": 0,
        "created_at": "",
    }
    assert api.put(f"{address}/members/friend").status_code == 204
    assert api.put(f"{address}/members/FRIEND").status_code == 204
    assert [one["username"] for one in api.get(f"{address}/members").json()["items"]] == ["friend"]
    said = items.publish(sender=friend, content={"text": "words"})
    assert api.get("/api/v1/timeline/home").json()["items"] == []
    assert api.get("/api/v1/timeline/home/new").json() == {"count": 0, "capped": False}
    timeline = api.get(f"{address}/timeline")
    assert [item["id"] for item in timeline.json()["items"]] == [str(said.pk)]
    assert timeline["X-Feed-Source"] == "sql"
    assert api.get(f"{address}/timeline/new").json() == {"count": 1, "capped": False}
    assert api.get(f"{address}/timeline/new?since_id={said.pk}").json() == {"count": 0, "capped": False}
    changed = api.patch(address, {"title": "Loud", "exclusive": False}, format="json")
    assert (changed.json()["title"], changed.json()["exclusive"]) == ("Loud", False)
    assert [item["id"] for item in api.get("/api/v1/timeline/home").json()["items"]] == [str(said.pk)]
    assert api.patch(address, {}, format="json").json()["title"] == "Loud"
    assert api.delete(f"{address}/members/friend").status_code == 204
    assert api.delete(f"{address}/members/friend").status_code == 204
    assert api.get(f"{address}/timeline").json() == {"items": [], "last_id": None, "has_more": False}
    assert api.delete(address).status_code == 204
    assert api.delete(address).status_code == 404
    assert api.get("/api/v1/me/lists").json() == {"items": [], "last_id": None, "has_more": False}


def test_lists_and_members_are_paged(api: APIClient, owner: User) -> None:
    made = [make(api, title=str(number)) for number in range(3)]
    first = api.get("/api/v1/me/lists?limit=2").json()
    assert [one["id"] for one in first["items"]] == [made[2], made[1]]
    assert first["has_more"]
    rest = api.get(f"/api/v1/me/lists?limit=2&last_id={first['last_id']}").json()
    assert [one["id"] for one in rest["items"]] == [made[0]]
    assert not rest["has_more"]
    names = []
    for number in range(3):
        member = UserFactory(username=f"member{number}")
        actions.follow(follower=owner, followee=member)
        api.put(f"/api/v1/me/lists/{made[0]}/members/{member.username}")
        names.insert(0, member.username)
    page = api.get(f"/api/v1/me/lists/{made[0]}/members?limit=2").json()
    more = api.get(f"/api/v1/me/lists/{made[0]}/members?limit=2&last_id={page['last_id']}").json()
    assert [one["username"] for one in page["items"] + more["items"]] == names
    assert (page["has_more"], more["has_more"]) == (True, False)


@pytest.mark.slow
def test_others_meet_no_list(api: APIClient, friend: User) -> None:
    made, other = make(api), client_of(friend)
    for number in (made, "12345678", "0", "x", "1" * 40):
        for method, path, body in (
            ("get", "", None),
            ("patch", "", {"title": "Mine"}),
            ("delete", "", None),
            ("get", "/members", None),
            ("put", "/members/owner", None),
            ("delete", "/members/owner", None),
            ("get", "/timeline", None),
            ("get", "/timeline/new", None),
        ):
            answer = getattr(other, method)(f"/api/v1/me/lists/{number}{path}", body, format="json")
            assert answer.status_code == 404, (number, method, path)
            assert answer.json() == {"detail": "Not found."}
    assert APIClient().get(f"/api/v1/me/lists/{made}").status_code == 401
    assert api.get(f"/api/v1/me/lists/{made}").json()["title"] == "Friends"


def test_members_that_are_refused(api: APIClient, friend: User, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(api)
    UserFactory(username="stranger")
    address = f"/api/v1/me/lists/{made}/members"
    assert api.put(f"{address}/stranger").status_code == 409
    assert api.put(f"{address}/owner").status_code == 400
    assert api.put(f"{address}/nobody").status_code == 404
    assert api.delete(f"{address}/nobody").status_code == 404
    assert api.delete(f"{address}/stranger").status_code == 204
    monkeypatch.setattr(lists, "MEMBERS", 0)
    assert api.put(f"{address}/friend").status_code == 409
    monkeypatch.setattr(lists, "LISTS", 1)
    assert api.post("/api/v1/me/lists", {"title": "More"}, format="json").status_code == 409


@pytest.mark.slow
def test_a_member_who_blocks_the_owner_can_be_taken_out(api: APIClient, owner: User, friend: User) -> None:
    made = make(api)
    api.put(f"/api/v1/me/lists/{made}/members/friend")
    actions.block(blocker=friend, blocked=owner)
    assert api.get(f"/api/v1/me/lists/{made}/members").json()["items"] == []
    assert api.delete(f"/api/v1/me/lists/{made}/members/friend").status_code == 204
    assert api.delete(f"/api/v1/me/lists/{made}/members/friend").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"title": ""},
        {"title": "  "},
        {"title": "x" * 101},
        {"title": 5},
        {"title": "a\x00b"},
        {"title": "x", "exclusive": "yes"},
        {"title": "x", "exclusive": 1},
        {"title": "x", "owner": "1"},
        {"title": "x", "members": []},
    ],
)
def test_bad_bodies_change_nothing(api: APIClient, body: dict[str, Any]) -> None:
    assert api.post("/api/v1/me/lists", body, format="json").status_code == 400
    made = make(api)
    if body:
        assert api.patch(f"/api/v1/me/lists/{made}", body, format="json").status_code == 400
    assert [one["title"] for one in api.get("/api/v1/me/lists").json()["items"]] == ["Friends"]
