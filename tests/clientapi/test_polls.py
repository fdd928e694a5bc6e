from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from items import polls
from items.models import Item, Poll
from tests.support.clients import Caller

pytestmark = pytest.mark.django_db

POLL: dict[str, Any] = {"options": ["tea", "coffee"], "expires_in": 3600}


@pytest.fixture
def caller(ann: User) -> Caller:
    return Caller(ann)


def asked(caller: Caller, **poll: Any) -> Any:
    return caller.post("v1/statuses", {"status": "Which?", "poll": {**POLL, **poll}})


def test_a_status_with_a_poll(caller: Caller, bob: User) -> None:
    status = asked(caller, multiple=False, hide_totals=False)
    poll = status["poll"]
    assert (poll["id"], poll["voted"], poll["own_votes"], poll["expired"]) == (status["id"], True, [], False)
    theirs = Caller(bob).get(f"v1/polls/{poll['id']}")
    assert (theirs["voted"], theirs["voters_count"]) == (False, 0)
    assert theirs["options"] == [{"title": "tea", "votes_count": None}, {"title": "coffee", "votes_count": None}]
    (edit,) = caller.get(f"v1/statuses/{status['id']}/history")
    assert edit["poll"] == {"options": [{"title": "tea"}, {"title": "coffee"}]}


def test_a_form_with_a_poll(caller: Caller) -> None:
    form = {"status": "", "poll[options][]": ["a", "b", "c"], "poll[expires_in]": "300", "poll[multiple]": "true"}
    poll = caller.post("v1/statuses", form, form=True)["poll"]
    assert (poll["multiple"], len(poll["options"])) == (True, 3)


def test_voting(caller: Caller, bob: User) -> None:
    poll, voter = asked(caller)["poll"], Caller(bob)
    address = f"v1/polls/{poll['id']}/votes"
    for choices in ([], ["x"], [5], [0, 1], ["-1"]):
        voter.post(address, {"choices": choices}, status=422)
    after = voter.post(address, {"choices": [1]})
    assert (after["voted"], after["own_votes"], after["votes_count"]) == (True, [1], 1)
    assert [option["votes_count"] for option in after["options"]] == [0, 1]
    voter.post(address, {"choices": [0]}, status=422)
    caller.post(address, {"choices": [0]}, status=422)
    voter.get("v1/polls/1", status=404)


def test_an_edit_that_repeats_the_poll_leaves_it(caller: Caller, ann: User, bob: User) -> None:
    status = asked(caller)
    polls.vote(user=bob, item=Item.objects.get(pk=status["id"]), choices=[0])
    again = caller.put(f"v1/statuses/{status['id']}", {"status": "Well?", "poll": POLL})
    assert (again["content"], again["poll"]["votes_count"]) == ("<p>Well?</p>", 1)
    changed = {"status": "Well?", "poll": {**POLL, "options": ["a", "b"]}}
    caller.put(f"v1/statuses/{status['id']}", changed, status=422)


def test_the_end_is_a_notification(caller: Caller, bob: User) -> None:
    status = asked(caller)
    polls.vote(user=bob, item=Item.objects.get(pk=status["id"]), choices=[0])
    Poll.objects.update(closes_at=timezone.now() - timedelta(seconds=1))
    polls.end_polls()
    (notice,) = Caller(bob).get("v1/notifications")
    assert (notice["type"], notice["account"]["acct"], notice["status"]["poll"]["expired"]) == ("poll", "ann", True)


@pytest.mark.parametrize(
    "poll",
    [{"options": ["a"]}, {"expires_in": 1}, {"expires_in": None}, {"hide_totals": True}, {"options": [["a"], "b"]}],
)
def test_polls_that_cannot_be(caller: Caller, poll: Any) -> None:
    caller.post("v1/statuses", {"status": "x", "poll": {**POLL, **poll}}, status=422)


def test_the_end_of_a_poll_is_dismissed(caller: Caller, bob: User) -> None:
    poll = asked(caller)["poll"]
    Caller(bob).post(f"v1/polls/{poll['id']}/votes", {"choices": [1]})
    Poll.objects.update(closes_at=timezone.now() - timedelta(minutes=1))
    polls.end_polls()
    for reader in (caller, Caller(bob)):
        (told,) = reader.get("v1/notifications")
        assert told["type"] == "poll"
        reader.post(f"v1/notifications/{told['id']}/dismiss")
        assert reader.get("v1/notifications") == []
