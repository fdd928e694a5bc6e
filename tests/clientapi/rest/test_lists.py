import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from relations import actions, lists
from relations.models import ListMember
from tests.support.clients import Caller
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    return UserFactory(username="ann")


def followees(owner: User, count: int) -> list[User]:
    users: list[User] = UserFactory.create_batch(count)
    for user in users:
        actions.follow(follower=owner, followee=user)
    return users


@pytest.mark.slow
def test_many_members_cost_as_many_statements_as_one(owner: User) -> None:
    caller, users = Caller(owner), followees(owner, 12)
    path = f"v1/lists/{lists.create(owner=owner, title='Some').pk}/accounts"
    costs = []
    for act in (caller.post, caller.delete):
        for some in (users[:1], users[1:]):
            with CaptureQueriesContext(
                connection,
            ) as asked:
                act(path, {"account_ids": [str(user.pk) for user in some]})
            costs.append(len(asked))
        caller.get(path)
    assert costs[0] == costs[1]
    assert costs[2] == costs[3]
    assert not ListMember.objects.exists()


def test_members_join_all_or_none(owner: User) -> None:
    caller, users, stranger = Caller(owner), followees(owner, 2), UserFactory()
    listed = lists.create(owner=owner, title="Some")
    path = f"v1/lists/{listed.pk}/accounts"
    for other in (stranger, owner):
        caller.post(path, {"account_ids": [str(user.pk) for user in (*users, other)]}, status=422)
    caller.post(path, {"account_ids": [*(str(user.pk) for user in users), "999999"]}, status=404)
    assert not ListMember.objects.exists()
    assert lists.add_each(owner=owner, list_id=listed.pk, members=[user.pk for user in users]) == 2
    assert lists.add_each(owner=owner, list_id=listed.pk, members=[user.pk for user in users]) == 0


@pytest.mark.parametrize("name", ["account_ids", "account_ids[]"])
def test_members_are_named_by_either_spelling(name: str, owner: User) -> None:
    caller, users = Caller(owner), followees(owner, 2)
    listed = lists.create(owner=owner, title="Some")
    path = f"v1/lists/{listed.pk}/accounts"
    ids = [str(user.pk) for user in users]
    caller.post(path, {name: ["", *ids]})
    assert sorted(one["id"] for one in caller.get(path)) == sorted(ids)
    caller.delete(path, {name: ids})
    assert caller.get(path) == []
    for wrong in ({"accounts": ids}, {"account_id": ids[0]}, {}):
        caller.post(path, wrong, status=422)
    caller.post(path, {"account_ids": []})


def test_taking_out_does_not_tell_whether_an_account_is_there(owner: User) -> None:
    path = f"v1/lists/{lists.create(owner=owner, title='Some').pk}/accounts"
    hidden = UserFactory()
    actions.block(blocker=hidden, blocked=owner)
    caller = Caller(owner)
    assert [caller.delete(path, {"account_ids": [str(one)]}) for one in (hidden.pk, 999_999)] == [{}, {}]


@pytest.mark.slow
def test_members_are_walked_both_ways(owner: User) -> None:
    caller, users = Caller(owner), followees(owner, 5)
    listed = lists.create(owner=owner, title="Some")
    for user in users:
        lists.add(owner=owner, list_id=listed.pk, member=user)
    actions.block(blocker=users[2], blocked=owner)
    newest_first = [str(user.pk) for user in reversed(users) if user != users[2]]

    def page(query: str) -> tuple[list[str], dict[str, str]]:
        response = caller.client.get(f"/api/v1/lists/{listed.pk}/accounts?limit=2{query}", **caller.headers)
        links = re.findall(r'[?&]((?:max|min)_id=\d+)>; rel="(\w+)"', response.headers.get("Link", ""))
        return [each["id"] for each in response.json()], {rel: f"&{asked}" for asked, rel in links}

    first, beside = page("")
    second, beside_second = page(beside["next"])
    assert first + second == newest_first
    assert "next" not in beside_second
    up, beside_up = page(beside_second["prev"])
    assert up == first
    assert page(beside_up["prev"])[0] == []
    assert page(beside_up["next"])[0] == second
    since = beside_second["prev"].replace("min_id", "since_id")
    assert page(since)[0] == first
    assert page(since + beside["next"])[0] == []
