from collections.abc import Callable
from functools import partial

import pytest
from django.db import IntegrityError, transaction

from accounts.models import User
from relations import actions, lists, purge
from relations.models import Follow, List, ListMember
from tests.support.at_once import at_once
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def friend(owner: User) -> User:
    friend = UserFactory(username="friend")
    actions.follow(follower=owner, followee=friend)
    return friend


def epoch(user: User) -> int:
    return User.objects.get(pk=user.pk).window_epoch


def members(of: List) -> list[int]:
    return list(ListMember.objects.filter(list=of).order_by("id").values_list("member_id", flat=True))


def test_members_are_followed_and_leave_with_the_follow(owner: User, friend: User) -> None:
    made = lists.create(owner=owner, title="Friends")
    stranger = UserFactory()
    with pytest.raises(actions.NotFollowedError):
        lists.add(owner=owner, list_id=made.pk, member=stranger)
    with pytest.raises(actions.SelfRelationError):
        lists.add(owner=owner, list_id=made.pk, member=owner)
    assert lists.add(owner=owner, list_id=made.pk, member=friend)
    assert not lists.add(owner=owner, list_id=made.pk, member=friend)
    assert members(made) == [friend.pk]
    actions.unfollow(follower=owner, followee=friend)
    assert members(made) == []
    actions.follow(follower=owner, followee=friend)
    assert members(made) == [], "following again does not put back"


def test_postgresql_refuses_a_member_who_is_not_followed(owner: User) -> None:
    made = lists.create(owner=owner, title="Friends")
    with pytest.raises(IntegrityError), transaction.atomic():
        ListMember.objects.create(list=made, owner=owner, member=UserFactory())


@pytest.mark.parametrize("who", ["owner", "friend"])
def test_whatever_takes_the_follow_takes_the_member(owner: User, friend: User, who: str) -> None:
    made = lists.create(owner=owner, title="Friends")
    lists.add(owner=owner, list_id=made.pk, member=friend)
    gone = owner if who == "owner" else friend
    while purge.purge(user_id=gone.pk, limit=1):
        pass
    assert members(made) == []
    assert List.objects.filter(owner=owner).exists() == (who != "owner")
    assert not Follow.objects.exists()


def test_another_members_lists_are_not_there(owner: User, friend: User) -> None:
    made = lists.create(owner=owner, title="Friends")
    for act in (
        lambda: lists.change(owner=friend, list_id=made.pk, title="Mine"),
        lambda: lists.delete(owner=friend, list_id=made.pk),
        lambda: lists.add(owner=friend, list_id=made.pk, member=owner),
        lambda: lists.remove(owner=friend, list_id=made.pk, member=owner),
    ):
        with pytest.raises(List.DoesNotExist):
            act()
    with pytest.raises(List.DoesNotExist):
        lists.own_list(friend, made.pk)
    assert lists.lists_of(friend) == []


def test_bringing_items_back_advances_the_epoch(owner: User, friend: User) -> None:
    made = lists.create(owner=owner, title="Loud", is_exclusive=True)

    def advances(act: Callable[[], object]) -> bool:
        before = epoch(owner)
        act()
        return epoch(owner) != before

    def add() -> bool:
        return lists.add(owner=owner, list_id=made.pk, member=friend)

    assert not advances(add), "what leaves home only has to be verified"
    assert advances(lambda: lists.remove(owner=owner, list_id=made.pk, member=friend))
    assert not advances(lambda: lists.remove(owner=owner, list_id=made.pk, member=friend))
    add()
    assert not advances(lambda: lists.change(owner=owner, list_id=made.pk, title="Louder"))
    assert advances(lambda: lists.change(owner=owner, list_id=made.pk, is_exclusive=False))
    assert not advances(lambda: lists.change(owner=owner, list_id=made.pk, is_exclusive=True))
    assert advances(lambda: lists.delete(owner=owner, list_id=made.pk))
    assert not advances(lambda: lists.delete(owner=owner, list_id=lists.create(owner=owner, title="Plain").pk))


@pytest.mark.slow
def test_bounds_hold_under_concurrent_calls(owner: User, friend: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "LISTS", 2)
    monkeypatch.setattr(lists, "MEMBERS", 1)

    def make(number: int) -> bool:
        try:
            lists.create(owner=owner, title=str(number))
        except lists.ListCapError:
            return False
        return True

    assert sum(at_once(*(partial(make, number) for number in range(4)))) == 2
    others = [friend, *(UserFactory() for _ in range(3))]
    for other in others[1:]:
        actions.follow(follower=owner, followee=other)
    made = List.objects.earliest("id")

    def add(other: User) -> bool:
        try:
            return lists.add(owner=owner, list_id=made.pk, member=other)
        except lists.MemberCapError:
            return False

    assert sum(at_once(*(partial(add, other) for other in others))) == 1
    assert len(members(made)) == 1


def test_adding_while_unfollowing_leaves_no_stranger(owner: User, friend: User) -> None:
    made = lists.create(owner=owner, title="Friends")

    def act(verb: str) -> None:
        try:
            if verb == "add":
                lists.add(owner=owner, list_id=made.pk, member=friend)
            else:
                actions.unfollow(follower=owner, followee=friend)
        except actions.NotFollowedError:
            pass

    at_once(*(partial(act, verb) for verb in ["add", "unfollow"] * 2))
    assert members(made) == []
