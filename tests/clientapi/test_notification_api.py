"""Notifications that an app puts away, all or one."""

from typing import Any

import pytest

from accounts.models import User
from items import actions as items
from items.models import Item
from notifications import actions
from notifications.feed import notifications_page
from notifications.models import Notification
from relations import actions as relations
from tests.support.clients import Caller
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def bob() -> User:
    return UserFactory(username="bob")


def say(sender: User, text: str = "words", **fields: Any) -> Item:
    return items.publish(sender=sender, content={"text": text}, **fields)


def listed(user: User) -> list[tuple[str, str]]:
    """Type and name of each notification that the user's app shows."""
    return [(one["type"], one["account"]["username"]) for one in Caller(user).get("v1/notifications")]


def test_all_are_put_away_and_what_comes_later_is_told(ann: User, bob: User) -> None:
    post = say(ann)
    items.like(user=bob, item=post)
    relations.follow(follower=bob, followee=ann)
    items.like(user=ann, item=say(bob))
    assert listed(ann) == [("follow", "bob"), ("favourite", "bob")]
    assert Caller(ann).post("v1/notifications/clear") == {}
    assert listed(ann) == []
    assert Caller(ann).get("v1/notifications/unread_count") == {"count": 0}
    assert listed(bob) == [("favourite", "ann")]
    assert Caller(ann).post("v1/notifications/clear") == {}
    items.repost(sender=bob, item=post)
    assert listed(ann) == [("reblog", "bob")]


def test_what_moderators_tell_stays(ann: User, bob: User) -> None:
    actions.warn(user=ann, text="Be kind.")
    items.like(user=bob, item=say(ann))
    Caller(ann).post("v1/notifications/clear")
    assert [entry.text for entry in notifications_page(ann).items] == ["Be kind."]


def test_many_are_put_away_by_parts_and_the_rest_by_a_worker(
    ann: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "FEW", 2)
    monkeypatch.setattr(actions, "AT_ONCE", 4)
    for _ in range(10):
        items.like(user=bob, item=say(ann))
    below = actions.put_away(user=ann)
    assert below is not None
    assert Notification.objects.filter(recipient=ann, position__lt=below).count() == 2
    assert len(listed(ann)) == 2
    items.like(user=bob, item=say(ann))
    assert actions.put_away(user=ann, below=below) is None
    assert len(listed(ann)) == 1


def test_one_is_put_away(ann: User, bob: User) -> None:
    post, other = say(ann), UserFactory(username="cid")
    items.like(user=bob, item=post)
    items.like(user=other, item=post)
    relations.follow(follower=bob, followee=ann)
    newest, second, _third = Caller(ann).get("v1/notifications")
    assert (second["type"], second["account"]["username"]) == ("favourite", "cid")
    assert Caller(ann).post(f"v1/notifications/{second['id']}/dismiss") == {}
    assert listed(ann) == [("follow", "bob"), ("favourite", "bob")]
    Caller(bob).post(f"v1/notifications/{newest['id']}/dismiss", status=404)
    assert Caller(ann).post(f"v1/notifications/{newest['id']}/dismiss") == {}
    Caller(ann).get(f"v1/notifications/{newest['id']}", status=404)
    Caller(ann).post(f"v1/notifications/{newest['id']}/dismiss", status=404)
    assert listed(ann) == [("favourite", "bob")]


def test_a_mention_that_was_put_away_is_not_told_again_by_an_edit(ann: User, bob: User) -> None:
    post = say(bob, "hello @ann")
    (mention,) = Caller(ann).get("v1/notifications")
    Caller(ann).post(f"v1/notifications/{mention['id']}/dismiss")
    items.edit(item=post, content={"text": "hello again @ann"})
    assert listed(ann) == []


def test_ids_that_are_none_and_tokens_that_may_not(ann: User) -> None:
    for text in ("0", "-1", "x", "9" * 30):
        Caller(ann).post(f"v1/notifications/{text}/dismiss", status=404)
    for path in ("v1/notifications/clear", "v1/notifications/1/dismiss"):
        Caller(None).post(path, status=401)
        Caller(ann, "read").post(path, status=403)
