from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from items.actions import change_visibility, delete, publish, repost
from items.models import Item, Visibility
from relations.actions import block, follow
from tests.support.clients import Caller
from tests.support.factories import say

pytestmark = pytest.mark.django_db


@pytest.fixture
def caller(ann: User) -> Caller:
    return Caller(ann)


def quoting(caller: Caller, item: Item, **fields: Any) -> Any:
    return caller.post("v1/statuses", {"status": "look", "quoted_status_id": str(item.pk), **fields})


def test_a_quote_has_the_status_inside(caller: Caller, ann: User, bob: User) -> None:
    said = say(bob, "the original")
    status = quoting(caller, said)
    assert status["quote"]["state"] == "accepted"
    inner = status["quote"]["quoted_status"]
    assert (inner["id"], inner["account"]["acct"], inner["quote"]) == (str(said.pk), "bob", None)
    assert status["content"].startswith('<p class="quote-inline">RE: <a href=')
    assert caller.get(f"v1/statuses/{said.pk}")["quotes_count"] == 1
    (one,) = caller.get(f"v1/statuses/{said.pk}/quotes")
    assert one["id"] == status["id"]
    again = quoting(caller, Item.objects.get(pk=status["id"]))
    inner = again["quote"]["quoted_status"]["quote"]
    assert inner == {"state": "accepted", "quoted_status_id": str(said.pk)}


def test_a_boost_of_a_quote_has_it_in_the_status_that_is_boosted(caller: Caller, bob: User) -> None:
    again, _ = repost(sender=bob, item=publish(sender=bob, content={"text": "q"}, quote_of=say(bob, "first")))
    status = caller.get(f"v1/statuses/{again.pk}")
    assert status["quote"] is None
    assert status["reblog"]["quote"]["quoted_status"]["content"] == "<p>first</p>"


def test_the_states(caller: Caller, bob: User) -> None:
    first, second = say(bob), say(bob)
    gone, hidden = quoting(caller, first), quoting(caller, second)
    delete(item=first)
    change_visibility(item=second, visibility=Visibility.SELF)
    for status, state in ((gone, "deleted"), (hidden, "unauthorized")):
        now = caller.get(f"v1/statuses/{status['id']}")
        assert now["quote"] == {"state": state, "quoted_status": None}
        assert "quote-inline" not in now["content"]


def test_ones_own_post_is_quoted_for_no_more_people(caller: Caller, ann: User, bob: User) -> None:
    said, mention = say(ann, visibility=Visibility.FOLLOWERS), say(ann, "@bob", visibility=Visibility.MENTIONED)
    for item, visibility in ((said, "public"), (said, "direct"), (mention, "direct"), (mention, "private")):
        for at in ({}, {"scheduled_at": (timezone.now() + timedelta(hours=1)).isoformat()}):
            fields = {"status": "@bob", "quoted_status_id": str(item.pk), "visibility": visibility}
            caller.post("v1/statuses", fields | at, status=403)
    assert quoting(caller, said, visibility="private")["quote"]["state"] == "accepted"
    approvals = [caller.get(f"v1/statuses/{item.pk}")["quote_approval"]["current_user"] for item in (said, mention)]
    assert approvals == ["automatic", "denied"]


def test_the_policy(caller: Caller, ann: User, bob: User) -> None:
    def approval(item: Item) -> Any:
        return caller.get(f"v1/statuses/{item.pk}")["quote_approval"]

    open_one, closed, fans = (say(bob, quotable_by=who) for who in ("everyone", "nobody", "followers"))
    assert approval(open_one) == {"automatic": ["public"], "manual": [], "current_user": "automatic"}
    assert approval(closed) == {"automatic": [], "manual": [], "current_user": "denied"}
    assert approval(fans) == {"automatic": ["followers"], "manual": [], "current_user": "denied"}
    quoting_fails = {"status": "look", "quoted_status_id": str(fans.pk)}
    assert "quote this post" in caller.post("v1/statuses", quoting_fails, status=403)["error"]
    follow(follower=ann, followee=bob)
    assert approval(fans)["current_user"] == "automatic"
    assert approval(say(bob, visibility=Visibility.FOLLOWERS)) == approval(closed)
    assert approval(say(ann, quotable_by="nobody"))["current_user"] == "automatic"
    stranger = Caller(ann)
    stranger.headers = {}
    assert stranger.get(f"v1/statuses/{open_one.pk}")["quote_approval"]["current_user"] == "denied"


def test_the_policy_is_chosen(caller: Caller, ann: User, bob: User) -> None:
    assert caller.get("v1/accounts/verify_credentials")["source"]["quote_policy"] == "public"
    named = {"source": {"quote_policy": "followers"}}
    assert caller.ask("patch", "v1/accounts/update_credentials", named)["source"]["quote_policy"] == "followers"
    assert caller.get("v1/preferences")["posting:default:quote_policy"] == "followers"
    status = caller.post("v1/statuses", {"status": "one"})
    assert status["quote_approval"]["automatic"] == ["followers"]
    status = caller.post("v1/statuses", {"status": "two", "quote_approval_policy": "nobody"})
    assert status["quote_approval"]["automatic"] == []
    address = f"v1/statuses/{status['id']}/interaction_policy"
    changed = caller.put(address, {"quote_approval_policy": "public"})
    assert (changed["quote_approval"]["automatic"], changed["edited_at"]) == (["public"], None)
    caller.put(address, {}, status=422)
    caller.put(address, {"quote_approval_policy": "friends"}, status=422)
    caller.put(f"v1/statuses/{say(bob).pk}/interaction_policy", {"quote_approval_policy": "public"}, status=403)
    edited = caller.put(f"v1/statuses/{status['id']}", {"status": "three", "quote_approval_policy": "nobody"})
    assert edited["quote_approval"]["automatic"] == []


def test_a_quote_is_revoked(caller: Caller, ann: User, bob: User) -> None:
    own, other = say(ann), say(bob)
    quote = publish(sender=bob, content={"text": "q"}, quote_of=own)
    answer = caller.post(f"v1/statuses/{own.pk}/quotes/{quote.pk}/revoke")
    assert (answer["id"], answer["quote"]) == (str(quote.pk), {"state": "revoked", "quoted_status": None})
    assert caller.get(f"v1/statuses/{own.pk}/quotes") == []
    theirs = publish(sender=bob, content={"text": "q"}, quote_of=other)
    caller.post(f"v1/statuses/{other.pk}/quotes/{theirs.pk}/revoke", status=404)
    caller.post(f"v1/statuses/{own.pk}/quotes/{theirs.pk}/revoke", status=404)


def test_what_is_quoted_is_not_changed_by_an_edit(caller: Caller, bob: User) -> None:
    said = say(bob)
    status = quoting(caller, said)
    edited = caller.put(f"v1/statuses/{status['id']}", {"status": "new", "quoted_status_id": str(said.pk)})
    assert edited["quote"]["quoted_status"]["id"] == str(said.pk)
    caller.put(f"v1/statuses/{status['id']}", {"status": "x", "quoted_status_id": str(say(bob).pk)}, status=422)


def test_what_is_not_seen_is_not_quoted(caller: Caller, ann: User, bob: User) -> None:
    said = say(bob)
    block(blocker=bob, blocked=ann)
    caller.post("v1/statuses", {"status": "x", "quoted_status_id": str(said.pk)}, status=404)
    assert not Item.objects.filter(sender=ann).exists()


def test_the_author_is_notified(caller: Caller, ann: User, bob: User) -> None:
    quote = publish(sender=bob, content={"text": "q"}, quote_of=say(ann))
    (notice,) = caller.get("v1/notifications")
    assert (notice["type"], notice["status"]["id"]) == ("quote", str(quote.pk))
    assert caller.get("v1/notifications", {"types[]": ["quote"]})[0]["id"] == notice["id"]
    (group,) = caller.get("v2/notifications")["notification_groups"]
    assert group["type"] == "quote"
