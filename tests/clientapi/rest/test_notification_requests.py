"""Strangers' first private mentions in apps: requests, decisions, and the policy."""

import pytest

from accounts.models import User
from items import actions as items
from items.models import Item, Visibility
from relations import actions as relations
from tests.clientapi.test_shapes import ENTITIES, faults
from tests.support.clients import Caller
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

POLICY = {
    "for_not_following": "accept",
    "for_not_followers": "accept",
    "for_new_accounts": "accept",
    "for_private_mentions": "filter",
    "for_limited_accounts": "accept",
}
REQUESTS = "v1/notifications/requests"
ENTITIES["NotificationRequest"] = """
    id:id created_at:time updated_at:time account:Account notifications_count:number last_status?:Status
"""


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def caller(ann: User) -> Caller:
    return Caller(ann)


def write(sender: User, text: str, reply_to: Item | None = None) -> Item:
    fields = {"content": {"text": text}, "visibility": Visibility.MENTIONED, "reply_to": reply_to}
    return items.publish(sender=sender, **fields)  # type: ignore[arg-type]


def test_requests_are_listed_accepted_and_dismissed(caller: Caller, ann: User) -> None:
    strangers = UserFactory.create_batch(4)
    first, second, third, fourth = (write(one, "@ann hi") for one in strangers)
    write(strangers[0], "@ann again", first)
    found = caller.get(REQUESTS)
    assert not faults(found, "[NotificationRequest]")
    assert [one["id"] for one in found] == [str(one.pk) for one in (first, fourth, third, second)]
    assert [one["notifications_count"] for one in found] == ["2", "1", "1", "1"]
    assert caller.get(f"{REQUESTS}/{second.pk}") == found[3]
    assert [one["id"] for one in caller.get(f"{REQUESTS}?limit=1")] == [str(first.pk)]
    assert [one["id"] for one in caller.get(f"{REQUESTS}?max_id={fourth.pk}")] == [str(third.pk), str(second.pk)]
    policy = caller.get("v2/notifications/policy")
    assert policy["summary"] == {"pending_requests_count": 4, "pending_notifications_count": 5}
    caller.post(f"{REQUESTS}/{first.pk}/accept")
    caller.post(f"{REQUESTS}/accept", {"id": [str(second.pk)]})
    caller.post(f"{REQUESTS}/dismiss", {"id": [str(third.pk)]})
    caller.post(f"{REQUESTS}/{fourth.pk}/dismiss")
    assert caller.get(REQUESTS) == []
    assert {one["id"] for one in caller.get("v1/conversations")} == {str(first.pk), str(second.pk)}
    assert caller.get(f"{REQUESTS}/merged") == {"merged": True}
    for path in (f"{REQUESTS}/accept", f"{REQUESTS}/dismiss"):
        caller.post(path, {"ids": [str(first.pk)]}, status=422)
    for path in (f"{REQUESTS}/{first.pk}", f"{REQUESTS}/5"):
        caller.get(path, status=404)
        caller.post(f"{path}/accept", status=404)
        caller.post(f"{path}/dismiss", status=404)


def test_nobody_decides_for_another(caller: Caller) -> None:
    bob = UserFactory()
    item, other = write(bob, "@ann hi"), Caller(UserFactory())
    for one in (other, Caller(bob)):
        one.get(f"{REQUESTS}/{item.pk}", status=404)
        one.post(f"{REQUESTS}/{item.pk}/accept", status=404)
        one.post(f"{REQUESTS}/accept", {"id": [str(item.pk)]}, status=404)
        assert one.get(REQUESTS) == []
    caller.post(f"{REQUESTS}/accept", {"id": [str(item.pk), "5"]}, status=404)
    assert len(caller.get(REQUESTS)) == 1
    relations.block(blocker=bob, blocked=User.objects.get(username="ann"))
    assert caller.get(REQUESTS) == []
    assert caller.get("v2/notifications/policy")["summary"]["pending_requests_count"] == 0
    caller.get(f"{REQUESTS}/{item.pk}", status=404)
    caller.post(f"{REQUESTS}/{item.pk}/accept", status=404)


def test_the_policy_is_the_sites_own_rule(caller: Caller, ann: User) -> None:
    shown = caller.get("v2/notifications/policy")
    assert {name: value for name, value in shown.items() if name != "summary"} == POLICY
    assert caller.ask("patch", "v2/notifications/policy", POLICY | {"for_private_mentions": "drop"}) == shown | {
        "for_private_mentions": "drop"
    }
    ann.refresh_from_db()
    assert not ann.takes_requests
    for name, value in (("for_private_mentions", "accept"), ("for_not_following", "filter"), ("for_new_accounts", "x")):
        caller.ask("patch", "v2/notifications/policy", {name: value}, status=422)
    caller.ask("patch", "v2/notifications/policy", {"for_private_mentions": "filter"})
    ann.refresh_from_db()
    assert ann.takes_requests
    Caller(ann, "read").ask("patch", "v2/notifications/policy", POLICY, status=403)
    for name, value in (("filter_not_following", True), ("for_bots", "drop"), ("filter_private_mentions", False)):
        caller.ask("patch", "v2/notifications/policy", {name: value}, status=422)


def test_a_request_of_several_people_names_its_sender(caller: Caller) -> None:
    UserFactory(username="bob")
    dan = UserFactory(username="dan")
    write(dan, "@ann @bob hi")
    assert [one["account"]["username"] for one in caller.get(REQUESTS)] == ["dan"]


def test_the_first_version_of_the_policy(caller: Caller) -> None:
    shown = caller.get("v1/notifications/policy")
    flags = {"filter_not_following": False, "filter_not_followers": False, "filter_new_accounts": False}
    assert shown == flags | {"filter_private_mentions": True, "summary": shown["summary"]}
    assert caller.put("v1/notifications/policy", flags | {"filter_private_mentions": True}) == shown
    for wrong in ({"filter_private_mentions": False}, {"filter_new_accounts": True}, {"for_not_following": "drop"}):
        caller.put("v1/notifications/policy", wrong, status=422)


def test_a_conversation_whose_last_message_is_ones_own_is_read(caller: Caller, ann: User) -> None:
    bob = UserFactory(username="bob")
    first = write(ann, "@bob hi")
    write(bob, "@ann yes", first)
    assert caller.get("v1/conversations")[0]["unread"] is True
    items.delete(item=Item.objects.get(reply_to=first))
    (talk,) = caller.get("v1/conversations")
    assert (talk["last_status"]["id"], talk["unread"]) == (str(first.pk), False)
