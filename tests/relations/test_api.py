import pytest
from django.conf import LazySettings
from django.contrib.auth.models import AnonymousUser
from rest_framework.test import APIClient

from accounts.models import User
from relations import actions, people
from relations.models import Block, Follow, Mute
from tests.support.answers import whole
from tests.support.api import API
from tests.support.factories import UserFactory
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

RELATIONS = {"follow": Follow, "block": Block, "mute": Mute}


@pytest.fixture
def bob() -> User:
    return UserFactory(username="Bob", display_name="Bobby")


@pytest.mark.parametrize("name", RELATIONS)
def test_beginning_and_ending_are_idempotent(api: APIClient, bob: User, name: str) -> None:
    for method, count in [(api.delete, 0), (api.put, 1), (api.put, 1), (api.delete, 0), (api.delete, 0), (api.put, 1)]:
        response = method(f"{API}/users/bob/{name}")
        assert (response.status_code, response.content) == (204, b"")
        assert RELATIONS[name].objects.count() == count


@pytest.mark.parametrize("name", RELATIONS)
def test_users_cannot_relate_to_themselves(api: APIClient, name: str) -> None:
    assert api.put(f"{API}/users/ANN/{name}").status_code == 400
    assert api.delete(f"{API}/users/ann/{name}").status_code == 400


@pytest.mark.parametrize("name", RELATIONS)
def test_hidden_users_do_not_exist(api: APIClient, ann: User, bob: User, name: str) -> None:
    actions.block(blocker=bob, blocked=ann)
    UserFactory(username="gone", is_active=False)
    for method in [api.put, api.delete]:
        answers = [method(f"{API}/users/{who}/{name}") for who in ["bob", "gone", "nobody"]]
        assert [one.status_code for one in answers] == [404] * 3
        assert len(set(map(whole, answers))) == 1
    assert RELATIONS[name].objects.count() == (1 if name == "block" else 0)


@pytest.mark.parametrize("name", RELATIONS)
def test_ones_own_relation_to_who_cannot_be_seen_can_be_ended(api: APIClient, ann: User, bob: User, name: str) -> None:
    for hide in ["block", "leave"]:
        api.put(f"{API}/users/bob/{name}")
        if hide == "block":
            actions.block(blocker=bob, blocked=ann)
        else:
            User.objects.filter(pk=bob.pk).update(is_active=False)
        assert api.delete(f"{API}/users/bob/{name}").status_code == 204
        assert api.delete(f"{API}/users/bob/{name}").status_code == 404
        actions.unblock(blocker=bob, blocked=ann)


@pytest.mark.slow
def test_a_follow_without_reposts(api: APIClient, ann: User, bob: User) -> None:
    path = f"{API}/users/bob/follow"
    for body, stored in [({"reposts": False}, False), ({}, False), (None, False), ({"reposts": True}, True)]:
        response = api.put(path, body, format="json")
        assert (response.status_code, response.content) == (204, b"")
        assert Follow.objects.get().reposts is stored
        assert api.get(f"{API}/users/bob").json()["hiding_reposts"] is not stored
    for body in ({"reposts": None}, {"reposts": "no"}, {"reposts": 0}, {"notify": True}, [], "x", {"reposts": [False]}):
        response = api.put(path, body, format="json")
        assert (response.status_code, Follow.objects.get().reposts) == (400, True), body


@pytest.mark.parametrize("name", ["block", "mute"])
def test_unknown_options_are_refused(api: APIClient, bob: User, name: str) -> None:
    assert api.put(f"{API}/users/bob/{name}", {"reposts": False}, format="json").status_code == 400
    assert not RELATIONS[name].objects.exists()
    assert api.put(f"{API}/users/bob/{name}", "reposts=no", content_type="text/plain").status_code == 415


def test_over_the_cap(api: APIClient, bob: User, settings: LazySettings) -> None:
    settings.FOLLOW_CAP = 1
    UserFactory(username="eve")
    assert api.put(f"{API}/users/bob/follow").status_code == 204
    assert api.put(f"{API}/users/eve/follow").status_code == 409
    assert api.put(f"{API}/users/bob/follow").status_code == 204
    api.delete(f"{API}/users/bob/follow")
    assert api.put(f"{API}/users/eve/follow").status_code == 204


def test_following_works_both_ways_with_whom_one_blocks(api: APIClient, bob: User) -> None:
    for name in ["block", "follow"]:
        assert api.put(f"{API}/users/bob/{name}").status_code == 204
    body = api.get(f"{API}/users/bob").json()
    assert (body["blocking"], body["following"], body["followed_by"], body["muting"]) == (True, True, False, False)


def walk(api: APIClient, path: str, limit: int) -> list[str]:
    """Only the last page may be short."""
    names: list[str] = []
    query = ""
    while True:
        body = api.get(f"{API}{path}?limit={limit}{query}").json()
        names += [user["username"] for user in body["items"]]
        if not body["has_more"]:
            return names
        assert len(body["items"]) == limit
        query = f"&last_id={body['last_id']}"


@pytest.mark.slow
def test_lists_are_walked_whole(api: APIClient, bob: User) -> None:
    fans = UserFactory.create_batch(7)
    for fan in fans:
        actions.follow(follower=fan, followee=bob)
        actions.follow(follower=bob, followee=fan)
    names = [fan.username for fan in reversed(fans)]
    for limit in [1, 3, 6, 7, 8, 100]:
        assert walk(api, "/users/bob/followers", limit) == names
        assert walk(api, "/users/bob/following", limit) == names
        assert walk(APIClient(), "/users/bob/following", limit) == names


def test_a_position_outlives_its_relation(api: APIClient, bob: User) -> None:
    fans = UserFactory.create_batch(4)
    for fan in fans:
        actions.follow(follower=fan, followee=bob)
    last_id = api.get(f"{API}/users/bob/followers?limit=2").json()["last_id"]
    actions.unfollow(follower=fans[2], followee=bob)
    names = [user["username"] for user in api.get(f"{API}/users/bob/followers?last_id={last_id}").json()["items"]]
    assert names == [fans[1].username, fans[0].username]


def test_lists_leave_out_who_cannot_be_seen(api: APIClient, ann: User, bob: User) -> None:
    blocks, gone, blocked, plain = UserFactory.create_batch(4)
    for fan in [blocks, gone, blocked, plain]:
        actions.follow(follower=fan, followee=bob)
    actions.block(blocker=blocks, blocked=ann)
    actions.block(blocker=ann, blocked=blocked)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    assert walk(api, "/users/bob/followers", 1) == [plain.username, blocked.username]
    assert walk(APIClient(), "/users/bob/followers", 1) == [plain.username, blocked.username, blocks.username]


def test_an_empty_list(api: APIClient, bob: User) -> None:
    assert api.get(f"{API}/users/bob/followers").json() == {"items": [], "last_id": None, "has_more": False}


def test_users_are_listed_compactly(api: APIClient, ann: User, bob: User) -> None:
    actions.follow(follower=ann, followee=bob)
    assert api.get(f"{API}/users/ann/following").json()["items"] == [
        {"id": str(bob.pk), "username": "Bob", "display_name": "Bobby", "is_big_v": False}
        | {"avatar_url": bob.avatar_url}
    ]


@pytest.mark.slow
def test_lists_cost_the_same_however_long(api: APIClient, bob: User) -> None:
    for fan in UserFactory.create_batch(30):
        actions.follow(follower=fan, followee=bob)
    costs = set()
    for limit in [1, 1, 30]:
        with statements() as asked:
            assert len(api.get(f"{API}/users/bob/followers?limit={limit}").json()["items"]) == limit
        costs.add(len(asked))
    assert len(costs) == 1
    assert costs < {1, 2, 3}


def test_a_list_of_people_ends_short_at_its_bound_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if most people are suspended."""
    monkeypatch.setattr(people, "SCAN", 5)
    star = UserFactory()
    fans = UserFactory.create_batch(18)
    for fan in fans:
        actions.follow(follower=fan, followee=star)
    User.objects.filter(pk__in=[fan.pk for fan in fans[2:-1]]).update(is_active=False)
    found, last_id, pages = [], None, 0
    for _ in range(10):
        page = people.people_page(star.pk, people.FOLLOWERS, AnonymousUser(), last_id=last_id, limit=3)
        found += page.people
        pages += 1
        if not page.has_more:
            break
        last_id = page.last_id
    assert found == [fans[-1], fans[1], fans[0]]
    assert 3 < pages < 6
