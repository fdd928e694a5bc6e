from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import User
from items import actions as items
from items.filters import filters
from items.models import Filter
from relations import actions as relations
from tests.support.api import API, client_of
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(owner: User) -> APIClient:
    return client_of(owner)


def make(api: APIClient, phrase: str = "zebra", **fields: Any) -> dict[str, Any]:
    made = api.post(f"{API}/me/filters", {"phrase": phrase, **fields}, format="json")
    assert made.status_code == 201, made.content
    body: dict[str, Any] = made.json()
    return body


def test_a_filter_from_its_making_to_its_end(api: APIClient, owner: User) -> None:
    author = UserFactory(username="author")
    relations.follow(follower=owner, followee=author)
    said = items.publish(sender=author, content={"text": "a Zebra"})
    made = make(api, action="hide", expires_at="2099-01-01T00:00:00+08:00")
    assert made | {"id": "", "created_at": ""} == {
        "id": "",
        "title": "zebra",
        "phrase": "zebra",
        "whole_word": True,
        "keywords": [{"phrase": "zebra", "whole_word": True}],
        "contexts": ["home", "notifications", "public", "thread", "account"],
        "action": "hide",
        "expires_at": "2098-12-31T16:00:00Z",
        "created_at": "",
    }
    (shown,) = api.get(f"{API}/timeline/home").json()["items"]
    assert (shown["id"], shown["filtered"], shown["filter_action"]) == (str(said.pk), ["zebra"], "hide")
    address = f"{API}/me/filters/{made['id']}"
    changed = api.patch(address, {"action": "warn", "expires_at": None, "whole_word": False}, format="json").json()
    assert (changed["action"], changed["expires_at"], changed["whole_word"]) == ("warn", None, False)
    assert api.get(f"{API}/items/{said.pk}").json()["filter_action"] == "warn"
    assert api.patch(address, {}, format="json").json() == changed
    assert api.delete(address).status_code == 204
    assert api.delete(address).status_code == 404
    body = api.get(f"{API}/items/{said.pk}").json()
    assert body["filtered"] == []
    assert "filter_action" not in body
    assert APIClient().get(f"{API}/items/{said.pk}").json()["filtered"] == []


def test_filters_are_paged(api: APIClient) -> None:
    made = [make(api, phrase)["id"] for phrase in ("one", "two", "three")]
    first = api.get(f"{API}/me/filters?limit=2").json()
    rest = api.get(f"{API}/me/filters?limit=2&last_id={first['last_id']}").json()
    assert [one["id"] for one in first["items"] + rest["items"]] == made[::-1]
    assert (first["has_more"], rest["has_more"]) == (True, False)


@pytest.mark.slow
def test_others_meet_no_filter(api: APIClient) -> None:
    made, other = make(api)["id"], client_of(UserFactory())
    for number in (made, "12345678", "0", "x", "9" * 40):
        for method, body in (("patch", {"phrase": "mine"}), ("delete", None)):
            answer = getattr(other, method)(f"{API}/me/filters/{number}", body, format="json")
            assert (answer.status_code, answer.json()) == (404, {"detail": "Not found."})
    assert other.get(f"{API}/me/filters").json()["items"] == []
    assert APIClient().get(f"{API}/me/filters").status_code == 401
    assert Filter.objects.get().phrase == "zebra"


def test_the_limit(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    make(api)
    monkeypatch.setattr(filters, "FILTERS", 1)
    assert api.post(f"{API}/me/filters", {"phrase": "more"}, format="json").status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"phrase": ""},
        {"phrase": " "},
        {"phrase": "\u200b"},
        {"phrase": "x" * 51},
        {"phrase": 5},
        {"phrase": "a\x00b"},
        {"phrase": "x", "action": "block"},
        {"phrase": "x", "whole_word": "yes"},
        {"phrase": "x", "expires_at": "soon"},
        {"phrase": "x", "expires_at": "2001-01-01T00:00:00Z"},
        {"phrase": "x", "expires_at": "2099-01-01T00:00:00"},
        {"phrase": "x", "owner": "1"},
    ],
)
def test_bad_bodies_change_nothing(api: APIClient, body: dict[str, Any]) -> None:
    assert api.post(f"{API}/me/filters", body, format="json").status_code == 400
    made = make(api)
    if body:
        assert api.patch(f"{API}/me/filters/{made['id']}", body, format="json").status_code == 400
    assert Filter.objects.get().phrase == "zebra"
