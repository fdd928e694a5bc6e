"""Bells: followers who asked are notified of each post, once, whatever dies."""

import io
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import User
from items import actions as items
from items.models import Item
from notifications import bells
from notifications.feed import notifications_page, unread_count
from notifications.models import Act, Notification, Ringing
from relations import actions
from relations.csv_files import CsvKind, read, write
from relations.importing import import_lines
from relations.models import Follow, FollowRequest
from tests.support.api import API, client_of
from tests.support.at_once import at_once
from tests.support.clients import Caller
from tests.support.factories import UserFactory, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob() -> User:
    return UserFactory(username="Bob")


def ring(follower: User, followee: User) -> None:
    actions.follow(follower=follower, followee=followee, bell=True)


def told(user: User) -> list[tuple[str, str]]:
    return [(entry.kind, entry.item.id if entry.item else "") for entry in notifications_page(user).items]


def published(item: Item) -> str:
    bells.ring(item.pk)
    assert not Ringing.objects.exists()
    return str(item.pk)


# --- The switch ------------------------------------------------------------------------------------------
def test_the_api_turns_it_on_and_off(api: APIClient, ann: User, bob: User) -> None:
    path = f"{API}/users/bob/bell"
    assert api.put(path).status_code == 409
    assert api.delete(path).status_code == 204
    actions.follow(follower=ann, followee=bob)
    for _ in range(2):
        assert api.put(path).status_code == 204
        assert api.get(f"{API}/users/bob").json()["bell"] is True
    for _ in range(2):
        assert api.delete(path).status_code == 204
        assert api.get(f"{API}/users/bob").json()["bell"] is False
    assert api.put(f"{API}/users/nobody/bell").status_code == 404
    assert api.put(f"{API}/users/ann/bell").status_code == 400
    assert api.put(path, {"on": True}, format="json").status_code == 400


def test_an_unfollow_ends_it(ann: User, bob: User) -> None:
    ring(ann, bob)
    actions.unfollow(follower=ann, followee=bob)
    actions.follow(follower=ann, followee=bob)
    assert Follow.objects.get().bell is None


def test_there_is_a_limit_that_counts_requests(api: APIClient, ann: User, bob: User, monkeypatch: Any) -> None:
    monkeypatch.setattr(actions, "BELL_CAP", 2)
    locked = UserFactory(is_locked=True)
    ring(ann, UserFactory())
    ring(ann, locked)
    with pytest.raises(actions.BellCapError):
        ring(ann, bob)
    assert not Follow.objects.filter(followee=bob).exists()
    actions.follow(follower=ann, followee=bob)
    assert api.put(f"{API}/users/bob/bell").status_code == 409
    address = f"{API}/users/{locked.username}"
    assert api.get(address).json()["bell"] is True
    assert api.delete(f"{address}/bell").status_code == 204
    assert api.get(address).json()["bell"] is False
    assert api.put(f"{address}/bell").status_code == 409
    ring(ann, locked)
    actions.accept(followee=locked, follower=ann)
    assert Follow.objects.get(followee=locked).bell
    assert not FollowRequest.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_at_once_keep_the_limit(ann: User, monkeypatch: Any) -> None:
    monkeypatch.setattr(actions, "BELL_CAP", 3)
    people = UserFactory.create_batch(6)
    for one in people:
        actions.follow(follower=ann, followee=one)
    results = at_once(*(partial(actions.set_bell, follower=ann, followee=one, rings=True) for one in people))
    assert [isinstance(one, actions.BellCapError) for one in results].count(True) == 3
    assert Follow.objects.filter(bell=True).count() == 3


def test_the_page_shows_and_lists_it(client: Client, ann: User, bob: User) -> None:
    client.force_login(ann)
    profile = "/@Bob"
    assert 'id="bell"' not in client.get(profile).content.decode()
    actions.follow(follower=ann, followee=bob)
    assert 'aria-pressed="false"' in client.get(profile).content.decode()
    client.post(f"{profile}/bell")
    page = client.get(profile).content.decode()
    assert 'id="bell" aria-pressed="true" aria-label="Notify me about each post by @Bob"' in page
    assert "@Bob" in client.get("/settings/bells").content.decode()
    client.post(f"{profile}/silence", {"listed": "1", "next": "/settings/bells"})
    client.get("/")  # shows the message
    assert "@Bob" not in client.get("/settings/bells").content.decode()
    actions.unfollow(follower=ann, followee=bob)
    assert "Follow @Bob first." in client.post(f"{profile}/bell", follow=True).content.decode()


def test_files_keep_it(ann: User, bob: User) -> None:
    ring(ann, bob)
    actions.follow(follower=ann, followee=UserFactory(username="cid"))
    file = io.BytesIO()
    write(ann, CsvKind.FOLLOWS, "testserver", file)
    file.seek(0)
    lines = read(file, CsvKind.FOLLOWS, "testserver")
    assert {line.name: line.bell for line in lines} == {"Bob": True, "cid": False}
    other = UserFactory()
    assert {outcome for _line, outcome in import_lines(user=other, kind=CsvKind.FOLLOWS, lines=lines)} == {"done"}
    assert list(Follow.objects.filter(follower=other, bell=True).values_list("followee", flat=True)) == [bob.pk]


# --- What rings ------------------------------------------------------------------------------------------
def test_a_post_rings_once(ann: User, bob: User) -> None:
    ring(ann, bob)
    post = say(bob)
    assert told(ann) == []
    number = published(post)
    assert told(ann) == [("post", number)]
    assert unread_count(ann).unread == 1
    items.edit(item=post, content={"text": "changed"})
    bells.begin(item=post)
    published(post)
    assert told(ann) == [("post", number)]
    assert Act.objects.get(recipient=ann).actor == bob
    (entry,) = client_of(ann).get(f"{API}/me/notifications").json()["items"]
    assert (entry["kind"], entry["item"]["id"]) == ("post", number)


@pytest.mark.parametrize("what", ["reply", "repost", "self", "mentioned", "no bell", "silenced"])
def test_what_does_not_ring(ann: User, bob: User, what: str) -> None:
    ring(ann, bob)
    theirs = say(UserFactory())
    if what in ("no bell", "silenced"):
        actions.set_bell(follower=ann, followee=bob, rings=False)
    if what == "repost":
        items.repost(sender=bob, item=theirs)
    elif what == "reply":
        say(bob, reply_to=theirs)
    elif what in ("self", "mentioned"):
        say(bob, "@ann", visibility=what)
    else:
        say(bob)
    assert not Ringing.objects.exists()


def test_it_rings_for_those_who_may_see_the_post(ann: User, bob: User) -> None:
    muting, half_muting, blocking, blocked, gone, mutual, mentioned = fans = UserFactory.create_batch(7)
    for fan in [ann, *fans]:
        ring(fan, bob)
    actions.mute(muter=muting, muted=bob)
    actions.mute(muter=half_muting, muted=bob, notifications=False)
    actions.block(blocker=blocking, blocked=bob)
    actions.block(blocker=bob, blocked=blocked)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    actions.follow(follower=bob, followee=mutual)
    number = published(say(bob, f"hello @{mentioned.username}"))
    assert {user for user in [ann, *fans] if ("post", number) in told(user)} == {ann, half_muting, mutual}
    assert told(mentioned) == [("mention", number)]
    assert not Notification.objects.filter(kind="post", recipient__in=[muting, blocking, blocked, gone]).exists()
    number = published(say(bob, visibility="mutuals"))
    assert {user for user in [ann, *fans] if ("post", number) in told(user)} == {mutual}


def test_a_post_that_is_withdrawn_shows_nothing(ann: User, bob: User) -> None:
    ring(ann, bob)
    post = say(bob)
    items.delete(item=post)
    published(post)
    assert told(ann) == []


def test_apps_have_it_as_status(ann: User, bob: User) -> None:
    mastodon = Caller(ann)
    found = mastodon.post(f"v1/accounts/{bob.pk}/follow", {"notify": True})
    assert (found["following"], found["notifying"]) == (True, True)
    number = published(say(bob))
    (notice,) = mastodon.get("v1/notifications?types[]=status")
    assert (notice["type"], notice["status"]["id"]) == ("status", number)
    assert mastodon.post(f"v1/accounts/{bob.pk}/follow", {"reblogs": True})["notifying"] is True
    assert mastodon.post(f"v1/accounts/{bob.pk}/follow", {"notify": False})["notifying"] is False


# --- Work ------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_many_bells_ring_in_ranges(bob: User, monkeypatch: Any) -> None:
    monkeypatch.setattr(bells, "BATCH", 10)
    monkeypatch.setattr(bells, "ROUNDS", 2)
    fans = User.objects.bulk_create(User(username=f"fan{number}", level=3) for number in range(45))
    Follow.objects.bulk_create(Follow(follower=fan, followee=bob, bell=True) for fan in fans)
    post = say(bob)
    turns: list[Any] = []
    monkeypatch.setattr(bells.claims, "enqueue_turn", lambda *what: turns.append(what))
    bells.ring(post.pk)
    assert Notification.objects.count() == 20
    assert len(turns) == 1
    bells.ring(post.pk)
    assert Notification.objects.count() == 40
    bells.ring(post.pk)
    assert Notification.objects.count() == 45
    assert not Ringing.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_dead_worker_is_taken_over(ann: User, bob: User, monkeypatch: Any) -> None:
    ring(ann, bob)
    sent: list[Any] = []
    monkeypatch.setattr(bells.ring, "delay", lambda *arguments: sent.append(arguments) or True)
    post = say(bob)
    real = bells.fetch

    def die(*args: Any, **more: Any) -> Any:
        real(*args, **more)
        raise RuntimeError("killed")

    monkeypatch.setattr(bells, "fetch", die)
    with pytest.raises(RuntimeError):
        bells.ring(post.pk)
    monkeypatch.setattr(bells, "fetch", real)
    assert told(ann) == []
    Ringing.objects.update(tried_at="2020-01-01T00:00Z", created_at="2020-01-01T00:00Z")
    assert bells.sweep() == 1
    assert at_once(*[partial(bells.ring, *sent[-1])] * 2) == [None, None]
    assert told(ann) == [("post", str(post.pk))]
    assert not Ringing.objects.exists()


def test_bells_that_fail_again_and_again_are_given_up(ann: User, bob: User) -> None:
    ring(ann, bob)
    post = say(bob)
    Ringing.objects.update(attempts=bells.ATTEMPTS)
    with transaction.atomic():
        bells.ring(post.pk)
    assert not Ringing.objects.exists()
    assert told(ann) == []
