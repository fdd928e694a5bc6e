from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken

from accounts import actions, purge
from accounts.deactivation import reactivate
from accounts.joining import actions as joining
from accounts.models import Deletion, HeldName, User
from accounts.signals import account_purged
from feedsite import celery
from relations import actions as relations
from relations.models import Block, Follow, FollowerCountChange, Mute
from storage import claims
from tests.support.at_once import at_once
from tests.support.deletions import settle
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in
from tests.support.workers import prompt_tasks

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return UserFactory(
        username="ann", display_name="Ann", bio="about", email="ann@example.org", language="en", time_zone="UTC"
    )


def exact() -> None:
    relations.fold_follower_counts()
    for user in User.objects.all():
        assert user.following_count == Follow.objects.filter(follower=user).count(), user
        assert user.follower_count == Follow.objects.filter(followee=user).count(), user


def test_nothing_personal_is_left(ann: User) -> None:
    token = actions.issue_token(user=ann)
    assert actions.delete_account(user=ann) is True
    gone = User.objects.get(pk=ann.pk)
    assert gone.username.startswith("deleted-")
    personal = (gone.display_name, gone.bio, gone.email, gone.language, gone.time_zone)
    assert personal == ("", "", "", "", "")
    assert (gone.is_active, gone.last_seen_at, gone.last_login) == (False, None, None)
    assert gone.deleted_at is not None
    assert not gone.has_usable_password()
    assert not AccessToken.objects.exists()
    assert authenticate(None, username="ann", password=PASSWORD) is None
    assert authenticate(None, username=gone.username, password=PASSWORD) is None
    assert Client().get("/api/v1/users/me", headers={"authorization": f"Token {token}"}).status_code == 401
    assert "ann" not in str(HeldName.objects.values().get())
    assert actions.delete_account(user=gone) is False


def test_sessions_end(ann: User) -> None:
    client = logged_in(ann)
    actions.delete_account(user=User.objects.get(pk=ann.pk))
    assert client.get("/settings").status_code == 302


def test_a_deleted_user_is_like_one_that_never_was(client: Client, ann: User) -> None:
    actions.delete_account(user=ann)
    name = User.objects.get(pk=ann.pk).username
    never = client.get("/@nobody").content
    assert client.get("/@ann").content == never
    assert client.get(f"/@{name}").content == never
    assert client.get(f"/api/v1/users/{name}").content == client.get("/api/v1/users/nobody").content


@pytest.mark.django_db(transaction=True)
def test_nobody_gets_the_name_again(ann: User, settings: Any) -> None:
    actions.delete_account(user=ann)
    while not purge.purge(ann.pk):
        Deletion.objects.update(tried_at=None, created_at=timezone.now() - timedelta(days=1000))
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another" * 9
    with pytest.raises(ValidationError, match="This username is taken"):
        joining.sign_up(username="ANN", password=PASSWORD)
    assert joining.unavailable_names(["Ann", "ben"]) == {"Ann": "unique"}
    assert HeldName.objects.count() == 1


@pytest.mark.parametrize(("gone", "alike"), [("paul", "pau1"), ("pau1", "PAUL"), ("modern", "modem"), ("Ian", "lan")])
def test_no_name_that_looks_like_a_held_one_is_taken(gone: str, alike: str) -> None:
    user: User = UserFactory(username=gone)
    actions.delete_account(user=user)
    with pytest.raises(ValidationError, match="taken"):
        joining.sign_up(username=alike, password=PASSWORD)
    joining.sign_up(username="somebody", password=PASSWORD)


def test_a_deleted_account_never_comes_back(ann: User) -> None:
    actions.delete_account(user=ann)
    assert reactivate(user=ann) is False
    with pytest.raises(IntegrityError, match="user_deleted_for_good"), transaction.atomic():
        User.objects.filter(pk=ann.pk).update(is_active=True)


def test_a_request_that_was_under_way_writes_nothing_personal(ann: User) -> None:
    stale = User.objects.get(pk=ann.pk)
    actions.delete_account(user=ann)
    actions.edit_profile(user=stale, display_name="Ann again", bio="still here")
    actions.edit_preferences(user=stale, language="zh-hans")
    gone = User.objects.get(pk=ann.pk)
    assert (gone.display_name, gone.bio, gone.language) == ("", "", "")


def test_the_last_superuser_stays(ann: User) -> None:
    User.objects.filter(pk=ann.pk).update(is_superuser=True, is_staff=True)
    ann.refresh_from_db()
    UserFactory(is_superuser=True, is_active=False)
    with pytest.raises(actions.LastSuperuserError):
        actions.delete_account(user=ann)
    UserFactory(is_superuser=True)
    assert actions.delete_account(user=ann) is True
    gone = User.objects.get(pk=ann.pk)
    assert not gone.is_superuser
    assert not gone.is_staff


@pytest.mark.django_db(transaction=True)
def test_of_the_last_two_superusers_one_stays() -> None:
    two = [UserFactory(is_superuser=True) for _ in range(2)]
    results = at_once(*(lambda user=user: actions.delete_account(user=user) for user in two))  # type: ignore[misc]
    assert sorted(type(result).__name__ for result in results) == ["LastSuperuserError", "bool"]
    assert User.objects.active().filter(is_superuser=True).count() == 1


def test_a_step_that_fails_leaves_the_account_whole(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**kwargs: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(actions, "end_streams", fail)
    with pytest.raises(RuntimeError):
        actions.delete_account(user=ann)
    ann.refresh_from_db()
    assert (ann.is_active, ann.username) == (True, "ann")
    assert not Deletion.objects.exists()


@pytest.mark.slow
def test_relations_go_and_the_counts_of_others_stay_exact(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "BATCH", 3)
    others = [UserFactory() for _ in range(8)]
    for other in others:
        relations.follow(follower=ann, followee=other)
        relations.follow(follower=other, followee=ann)
    relations.follow(follower=others[0], followee=others[1])
    relations.block(blocker=ann, blocked=others[0])
    relations.block(blocker=others[1], blocked=ann)
    relations.mute(muter=ann, muted=others[2])
    relations.mute(muter=others[3], muted=ann)
    relations.block(blocker=others[4], blocked=others[5])
    relations.mute(muter=others[4], muted=others[5])
    relations.fold_follower_counts()
    actions.delete_account(user=ann)
    settle(ann)
    exact()
    assert [(follow.follower, follow.followee) for follow in Follow.objects.all()] == [(others[0], others[1])]
    assert [(block.blocker, block.blocked) for block in Block.objects.all()] == [(others[4], others[5])]
    assert [(mute.muter, mute.muted) for mute in Mute.objects.all()] == [(others[4], others[5])]
    assert not Deletion.objects.exists()


@pytest.mark.slow
def test_a_large_account_takes_turns(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(celery.app, "send_task", prompt_tasks(lambda name, args: sent.append((name, *args))))
    monkeypatch.setattr(purge, "BATCH", 2)
    monkeypatch.setattr(purge, "ROUNDS", 2)
    for _ in range(9):
        relations.follow(follower=ann, followee=UserFactory())
    actions.delete_account(user=ann)
    assert purge.purge(ann.pk) is False
    assert Follow.objects.count() == 5
    assert sent == [("accounts.purge", ann.pk)]
    assert settle(ann) > 1
    exact()


def test_a_worker_that_died_is_followed_by_another(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(celery.app, "send_task", prompt_tasks(lambda name, args: sent.append((name, *args))))
    relations.follow(follower=ann, followee=UserFactory())
    actions.delete_account(user=ann)

    def die(**kwargs: Any) -> None:
        raise SystemExit

    account_purged.connect(die)
    try:
        with pytest.raises(SystemExit):
            purge.purge(ann.pk)
    finally:
        account_purged.disconnect(die)
    assert purge.purge(ann.pk) is False  # the dead worker's claim still holds
    assert purge.sweep() == 0
    Deletion.objects.update(tried_at=timezone.now() - claims.CLAIM_LIFE - timedelta(seconds=1))
    assert purge.sweep() == 1
    assert sent == [("accounts.purge", ann.pk)]
    settle(ann)
    assert purge.sweep() == 0
    exact()


def test_what_was_under_way_is_met(ann: User) -> None:
    """A follow may commit just after the deletion."""
    other = UserFactory()
    actions.delete_account(user=ann)
    assert purge.purge(ann.pk) is False
    Follow.objects.create(follower=other, followee=ann)
    User.objects.filter(pk=other.pk).update(following_count=1)
    FollowerCountChange.objects.create(user=ann, change=1)
    settle(ann)
    assert not Follow.objects.exists()
    exact()


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_workers_and_followers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "BATCH", 5)
    ann = UserFactory()
    others = [UserFactory() for _ in range(20)]
    for other in others:
        relations.follow(follower=other, followee=ann)
        relations.follow(follower=ann, followee=other)
    actions.delete_account(user=ann)

    def work() -> None:
        for _ in range(8):
            account_purged.send(sender=User, user=ann, limit=5)

    def change_mind() -> None:
        for other in others:
            relations.unfollow(follower=other, followee=ann)

    def follow_each_other() -> None:
        for one, other in pairwise(others):
            relations.follow(follower=one, followee=other)

    assert at_once(work, work, change_mind, follow_each_other) == [None] * 4
    settle(ann)
    assert Follow.objects.count() == len(others) - 1
    exact()


@pytest.mark.slow
def test_the_admin_shows_what_is_left_and_brings_nobody_back(admin_client: Client, ann: User) -> None:
    actions.delete_account(user=ann)
    name = User.objects.get(pk=ann.pk).username
    assert name in admin_client.get("/admin/accounts/deletion/").content.decode()
    assert admin_client.get("/admin/accounts/deletion/add/").status_code == 403
    assert admin_client.post(f"/admin/accounts/deletion/{ann.pk}/delete/", {"post": "yes"}).status_code == 403
    action = {"action": "reactivate", "_selected_action": [ann.pk]}
    admin_client.post("/admin/accounts/user/", action)
    assert not User.objects.get(pk=ann.pk).is_active
    assert admin_client.get(f"/admin/accounts/user/{ann.pk}/change/").status_code == 200
