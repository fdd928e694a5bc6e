from datetime import timedelta

import pytest
from django.db.models.functions import Now
from rest_framework.test import APIClient

from accounts.models import User
from items import actions as items
from notifications.feed import notifications_page
from relations import actions, tasks
from relations.models import Block, Follow, Mute
from tests.support.api import API
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from timeline.oracle import home_ids

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def make_over() -> None:
    Mute.objects.exclude(expires_at=None).update(expires_at=Now() - timedelta(seconds=1))


def epoch(user: User) -> int:
    return User.objects.get(pk=user.pk).window_epoch


def test_a_mute_counts_until_the_task_ends_it(ann: User, bob: User) -> None:
    actions.follow(follower=ann, followee=bob)
    said = items.publish(sender=bob, content={"text": "words"})
    assert actions.mute(muter=ann, muted=bob, lasts=HOUR) is True
    before = epoch(ann)
    tasks.end_mutes()
    assert (home_ids(ann.pk), epoch(ann)) == ([], before)
    make_over()
    assert home_ids(ann.pk) == []
    tasks.end_mutes()
    assert (home_ids(ann.pk), Mute.objects.exists(), epoch(ann) == before) == ([said.pk], False, False)


def test_the_mute_that_is_asked_for_takes_the_place_of_the_other(ann: User, bob: User) -> None:
    for lasts, is_new in ((HOUR, True), (None, False), (HOUR, False)):
        assert actions.mute(muter=ann, muted=bob, lasts=lasts) is is_new
        assert (Mute.objects.get().expires_at is None) == (lasts is None)
    make_over()
    actions.mute(muter=ann, muted=bob)
    assert (actions.end_mutes(), Mute.objects.count()) == (0, 1)


def test_a_mute_of_a_stranger_ends_without_an_epoch(ann: User, bob: User) -> None:
    actions.mute(muter=ann, muted=bob, lasts=HOUR)
    before = epoch(ann)
    make_over()
    assert (actions.end_mutes(), epoch(ann)) == (1, before)


def test_one_call_ends_so_many(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "ENDED", 2)
    for muted in UserFactory.create_batch(3):
        actions.mute(muter=ann, muted=muted, lasts=HOUR)
    make_over()
    assert [actions.end_mutes() for _ in range(3)] == [2, 1, 0]


@pytest.mark.django_db(transaction=True)
def test_two_workers_end_a_mute_once(ann: User, bob: User) -> None:
    actions.follow(follower=ann, followee=bob)
    actions.mute(muter=ann, muted=bob, lasts=HOUR)
    make_over()
    ended = at_once(*[actions.end_mutes] * 3, lambda: actions.unmute(muter=ann, muted=bob))
    assert sum(ended) == 1


@pytest.mark.parametrize("notifications", [True, False])
def test_a_mute_takes_notifications_in_or_not(ann: User, bob: User, notifications: bool) -> None:
    actions.follow(follower=ann, followee=bob)
    items.publish(sender=bob, content={"text": "@ann words"})
    actions.mute(muter=ann, muted=bob, notifications=notifications)
    assert home_ids(ann.pk) == []
    assert [entry.kind for entry in notifications_page(ann).items] == ([] if notifications else ["mention"])


@pytest.mark.slow
def test_options_over_the_api(api: APIClient, ann: User, bob: User) -> None:
    path = f"{API}/users/bob/mute"
    assert api.put(path, {"expires_in": 3600, "notifications": False}, format="json").status_code == 204
    mute = Mute.objects.get()
    assert mute.expires_at is not None
    assert abs(mute.expires_at - mute.created_at - HOUR) < timedelta(minutes=5)
    profile = api.get(f"{API}/users/bob").json()
    assert [profile["muting"], profile["muting_notifications"]] == [True, False]
    assert profile["muted_until"].endswith("Z")
    (card,) = api.get(f"{API}/me/mutes").json()["items"]
    assert (card["username"], card["muted_until"], card["muting_notifications"]) == (
        "bob",
        profile["muted_until"],
        False,
    )
    for body in (None, {}, {"expires_in": None}):
        assert api.put(path, body, format="json").status_code == 204
        profile = api.get(f"{API}/users/bob").json()
        assert (profile["muted_until"], profile["muting_notifications"]) == (None, True)
    for seconds in (0, -1, 1.5, "60", True, 10**12, 10**400, [60]):
        assert api.put(path, {"expires_in": seconds}, format="json").status_code == 400, seconds
    for wrong in ({"expires_at": "2030-01-01T00:00:00Z"}, {"notifications": "no"}):
        assert api.put(path, wrong, format="json").status_code == 400, wrong
    assert Mute.objects.get().expires_at is None


@pytest.mark.parametrize(("name", "verb"), [("blocks", "block"), ("mutes", "mute")])
def test_lists_of_whom_one_turned_away(api: APIClient, ann: User, name: str, verb: str) -> None:
    people = [UserFactory(username=f"other{number}") for number in range(5)]
    for one in people:
        api.put(f"{API}/users/{one.username}/{verb}")
    actions.block(blocker=people[3], blocked=ann)  # the reader muted or blocked them first and may undo it
    User.objects.filter(pk=people[2].pk).update(is_active=False)
    found, last_id = [], ""
    for _ in range(5):
        page = api.get(f"{API}/me/{name}?limit=2&last_id={last_id}").json()
        found += [one["username"] for one in page["items"]]
        if not page["has_more"]:
            break
        last_id = page["last_id"]
    assert found == ["other4", "other3", "other1", "other0"]
    assert APIClient().get(f"{API}/me/{name}").status_code == 401


def test_a_follower_is_removed(api: APIClient, ann: User, bob: User) -> None:
    actions.follow(follower=bob, followee=ann)
    said = items.publish(sender=ann, content={"text": "words"}, visibility="followers")
    assert home_ids(bob.pk) == [said.pk]
    for _ in range(2):
        assert api.delete(f"{API}/users/bob/follower").status_code == 204
        assert (Follow.objects.exists(), home_ids(bob.pk)) == (False, [])
    bob.refresh_from_db()
    assert (bob.following_count, actions.follower_count(ann)) == (0, 0)
    assert api.delete(f"{API}/users/ann/follower").status_code == 400
    assert api.delete(f"{API}/users/nobody/follower").status_code == 404
    actions.follow(follower=bob, followee=ann)
    actions.block(blocker=bob, blocked=ann)
    assert [api.delete(f"{API}/users/bob/follower").status_code for _ in range(2)] == [204, 404]


def test_blocks_are_in_the_order_of_their_making(api: APIClient) -> None:
    for one in UserFactory.create_batch(3):
        api.put(f"{API}/users/{one.username}/block")
    listed = [one["id"] for one in api.get(f"{API}/me/blocks").json()["items"]]
    assert listed == [str(pk) for pk in Block.objects.order_by("-id").values_list("blocked_id", flat=True)]
