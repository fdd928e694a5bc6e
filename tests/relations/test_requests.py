import json
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from rest_framework.test import APIClient

from accounts.actions import edit_profile
from accounts.models import User
from items import actions as items
from notifications.feed import notifications_page
from relations import actions
from relations.models import Block, Follow, FollowerCountChange, FollowRequest
from relations.people import waiting_requests
from tests.support.answers import whole
from tests.support.api import API, client_of
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.statements import statements
from timeline.oracle import home_ids

pytestmark = pytest.mark.django_db


@pytest.fixture
def lea() -> User:
    return UserFactory(username="lea", is_locked=True)


def waiting(user: User) -> list[str]:
    return [one["username"] for one in client_of(user).get(f"{API}/me/follow-requests").json()["items"]]


def told(user: User) -> list[tuple[str, list[str]]]:
    return [(entry.kind, [one.username for one in entry.actors]) for entry in notifications_page(user).items]


def test_a_follow_begins_when_it_is_accepted(ann: User, lea: User) -> None:
    said = items.publish(sender=lea, content={"text": "words"}, visibility="followers")
    before = User.objects.get(pk=ann.pk)
    assert actions.follow(follower=ann, followee=lea) is True
    assert actions.follow(follower=ann, followee=lea) is False
    assert (Follow.objects.count(), FollowRequest.objects.count(), FollowerCountChange.objects.count()) == (0, 1, 0)
    assert User.objects.get(pk=ann.pk).window_epoch == before.window_epoch
    assert home_ids(ann.pk) == []
    assert (told(lea), told(ann)) == ([("follow_request", ["ann"])], [])
    assert actions.accept(followee=lea, follower=ann) is True
    assert actions.accept(followee=lea, follower=ann) is False
    assert (Follow.objects.count(), FollowRequest.objects.count(), FollowerCountChange.objects.count()) == (1, 0, 1)
    after = User.objects.get(pk=ann.pk)
    assert (after.following_count, after.window_epoch == before.window_epoch) == (1, False)
    assert home_ids(ann.pk) == [said.pk]
    assert (told(lea), told(ann)) == ([], [("follow_accepted", ["lea"])])
    assert actions.unfollow(follower=ann, followee=lea) is True
    assert told(ann) == []


@pytest.mark.parametrize("end", ["withdraw", "reject", "block", "be blocked"])
def test_a_request_ends(ann: User, lea: User, end: str) -> None:
    actions.follow(follower=ann, followee=lea)
    if end == "withdraw":
        assert actions.unfollow(follower=ann, followee=lea) is True
    elif end == "reject":
        assert actions.reject(followee=lea, follower=ann) is True
        assert actions.reject(followee=lea, follower=ann) is False
    elif end == "block":
        actions.block(blocker=ann, blocked=lea)
    else:
        actions.block(blocker=lea, blocked=ann)
    Block.objects.all().delete()
    assert actions.accept(followee=lea, follower=ann) is False
    assert (Follow.objects.count(), FollowRequest.objects.count(), told(lea), told(ann)) == (0, 0, [], [])
    assert actions.follow(follower=ann, followee=lea) is True, "they may ask again"


def test_requests_stay_when_the_account_is_unlocked(ann: User, lea: User) -> None:
    eve = UserFactory(username="eve")
    for one in (ann, eve):
        actions.follow(follower=one, followee=lea)
    edit_profile(user=lea, is_locked=False)
    assert waiting(lea) == ["eve", "ann"]
    assert actions.follow(follower=ann, followee=lea) is True
    assert (waiting(lea), Follow.objects.get().follower) == (["eve"], ann)
    assert actions.accept(followee=lea, follower=eve) is True


def test_followers_of_before_stay_when_it_is_locked(ann: User, lea: User) -> None:
    edit_profile(user=lea, is_locked=False)
    actions.follow(follower=ann, followee=lea)
    edit_profile(user=lea, is_locked=True)
    assert actions.follow(follower=ann, followee=lea, reposts=False) is False
    assert (Follow.objects.get().reposts, FollowRequest.objects.count()) == (False, 0)


def test_a_request_keeps_the_choice_of_reposts(ann: User, lea: User) -> None:
    for reposts in (None, False, None):
        actions.follow(follower=ann, followee=lea, reposts=reposts)
    actions.accept(followee=lea, follower=ann)
    assert Follow.objects.get().reposts is False


def test_the_cap_of_follows_counts_at_acceptance(ann: User, lea: User, settings: LazySettings) -> None:
    settings.FOLLOW_CAP = 1
    actions.follow(follower=ann, followee=lea)
    actions.follow(follower=ann, followee=UserFactory())
    with pytest.raises(actions.RequesterCapError):
        actions.accept(followee=lea, follower=ann)
    refused = logged_in(lea).post("/@ann/accept", headers={"HX-Request": "true"})
    assert "can't follow more people" in json.loads(refused["HX-Trigger"])["said"]["words"]
    assert "/@ann/accept" in refused.content.decode(), "it can be decided later"
    assert (Follow.objects.count(), FollowRequest.objects.count()) == (1, 1)


def test_so_many_requests_wait_and_no_more(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "REQUEST_CAP", 2)
    locked = UserFactory.create_batch(3, is_locked=True)
    for one in locked[:2]:
        actions.follow(follower=ann, followee=one)
    with pytest.raises(actions.RequestCapError):
        actions.follow(follower=ann, followee=locked[2])
    actions.unfollow(follower=ann, followee=locked[0])
    assert actions.follow(follower=ann, followee=locked[2])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("other", ["accept", "withdraw", "reject", "ask"])
def test_two_at_once_leave_one_state(ann: User, lea: User, other: str) -> None:
    if other != "ask":
        actions.follow(follower=ann, followee=lea)
    verbs: dict[str, Any] = {
        "accept": lambda: actions.accept(followee=lea, follower=ann),
        "withdraw": lambda: actions.unfollow(follower=ann, followee=lea),
        "reject": lambda: actions.reject(followee=lea, follower=ann),
        "ask": lambda: actions.follow(follower=ann, followee=lea),
    }
    both = [verbs["ask"] if other == "ask" else verbs["accept"], verbs[other]] * 3
    assert not [error for error in at_once(*both) if isinstance(error, Exception)]
    follows, asked = Follow.objects.count(), FollowRequest.objects.count()
    ann.refresh_from_db()
    assert (ann.following_count, actions.follower_count(lea)) == (follows, follows)
    assert follows + asked <= 1
    assert other != "ask" or (follows, asked) == (0, 1)


@pytest.mark.slow
def test_over_the_api(ann: User, lea: User) -> None:
    asking, asked = client_of(ann), client_of(lea)
    for body in (None, {"reposts": False}):
        answer = asking.put(f"{API}/users/lea/follow", body, format="json")
        assert (answer.status_code, answer.json()) == (202, {"state": "requested"})
    profile = asking.get(f"{API}/users/lea").json()
    assert [profile[name] for name in ("is_locked", "requested", "following")] == [True, True, False]
    assert asked.get(f"{API}/users/ann").json()["requested_by"] is True
    assert waiting(lea) == ["ann"]
    assert asked.post(f"{API}/me/follow-requests/ann/accept").status_code == 204
    assert asked.post(f"{API}/me/follow-requests/ann/accept").status_code == 404
    profile = asking.get(f"{API}/users/lea").json()
    assert [profile[name] for name in ("requested", "following", "hiding_reposts")] == [False, True, True]
    assert asking.put(f"{API}/users/lea/follow").status_code == 204
    assert asking.delete(f"{API}/users/lea/follow").status_code == 204
    asking.put(f"{API}/users/lea/follow")
    assert asked.post(f"{API}/me/follow-requests/ann/reject", {}, format="json").status_code == 204
    asking.put(f"{API}/users/lea/follow")
    assert asking.delete(f"{API}/users/lea/follow").status_code == 204
    assert waiting(lea) == []


@pytest.mark.parametrize("verb", ["accept", "reject"])
def test_requests_that_are_not_there(ann: User, lea: User, verb: str) -> None:
    UserFactory(username="gone", is_active=False)
    actions.block(blocker=UserFactory(username="hater"), blocked=lea)
    asked = client_of(lea)
    answers = [asked.post(f"{API}/me/follow-requests/{who}/{verb}") for who in ("ann", "gone", "hater", "none", "a b")]
    assert [one.status_code for one in answers] == [404] * 5
    assert len(set(map(whole, answers))) == 1
    assert asked.post(f"{API}/me/follow-requests/ann/{verb}", {"all": True}, format="json").status_code == 400
    assert APIClient().post(f"{API}/me/follow-requests/ann/{verb}").status_code == 401
    assert client_of(ann).post(f"{API}/me/follow-requests/lea/{verb}").status_code == 404


def test_the_lock_is_set_over_the_api(ann: User) -> None:
    own = client_of(ann)
    assert own.get(f"{API}/users/me").json()["is_locked"] is False
    assert own.patch(f"{API}/users/me", {"is_locked": True}, format="json").json()["is_locked"] is True
    assert own.patch(f"{API}/users/me", {"bio": "b"}, format="json").json()["is_locked"] is True
    for wrong in ("yes", 1, None):
        assert own.patch(f"{API}/users/me", {"is_locked": wrong}, format="json").status_code == 400


def test_the_list_is_paged_and_names_nobody_who_hides(lea: User) -> None:
    names = [f"asks{number}" for number in range(5)]
    for name in names:
        actions.follow(follower=UserFactory(username=name), followee=lea)
    User.objects.filter(username="asks2").update(is_active=False)
    # A request sent at the moment of the block.
    FollowRequest.objects.create(follower=UserFactory(username="hater"), followee=lea)
    Block.objects.create(blocker=User.objects.get(username="hater"), blocked=lea)
    asked, found, last_id = client_of(lea), [], ""
    with statements() as sent:
        asked.get(f"{API}/me/follow-requests")
    assert sum("relations_followrequest" in one for one in sent) == 1
    for _ in range(5):
        page = asked.get(f"{API}/me/follow-requests?limit=2&last_id={last_id}").json()
        found += [one["username"] for one in page["items"]]
        if not page["has_more"]:
            break
        last_id = page["last_id"]
    assert found == ["asks4", "asks3", "asks1", "asks0"]
    assert waiting_requests(lea) == 4


@pytest.mark.slow
def test_pages_decide_on_requests(ann: User, lea: User) -> None:
    eve = UserFactory(username="eve")
    page, owner = Client(), Client()
    page.force_login(ann)
    owner.force_login(lea)
    page.post("/@lea/follow")
    actions.follow(follower=eve, followee=lea)
    assert "Requested" in page.get("/@lea").content.decode()
    assert "2 follow requests" in owner.get("/notifications").content.decode()
    for path in ("/follow-requests", "/notifications", "/@ann"):
        shown = owner.get(path).content.decode()
        assert "/@ann/accept" in shown, path
    said = owner.post("/@ann/accept", headers={"HX-Request": "true"}).content.decode()
    assert "@ann follows you now." in said
    again = owner.post("/@ann/accept", headers={"HX-Request": "true"})
    assert ("This request is gone" in again["HX-Trigger"], again.content) == (True, b"")
    assert owner.post("/@eve/reject", {"next": "/notifications"}).headers["Location"] == "/notifications"
    assert "No follow requests." in owner.get("/follow-requests").content.decode()
    assert list(Follow.objects.values_list("follower__username", flat=True)) == ["ann"]
    assert owner.post("/@nobody/accept").status_code == 404
    assert Client().get("/follow-requests").headers["Location"].startswith("/login")


def test_the_settings_lock_an_account(ann: User) -> None:
    own = logged_in(ann)
    for data, is_locked in (({"is_locked": "on"}, True), ({}, False)):
        assert own.post("/settings", {"display_name": "Ann", "bio": ""} | data).status_code == 302
        ann.refresh_from_db()
        assert ann.is_locked is is_locked
