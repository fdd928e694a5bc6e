import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from items import polls
from items.actions import delete, edit, publish, repost
from items.bodies import Poll as PollBody
from items.export import files
from items.filters.filters import create
from items.hydrate import hydrate
from items.models import Item, Poll, Vote
from items.purge import purge
from items.text import ContentError
from notifications.feed import notifications_page
from relations.actions import block
from tests.support.api import client_of
from tests.support.factories import UserFactory, say
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


@pytest.fixture
def carol() -> User:
    return UserFactory.create(username="carol")


def ask(sender: User, *options: str, text: str = "Which?", seconds: int = 3600, **poll: Any) -> Item:
    asked = {"options": list(options or ("tea", "coffee")), "closes_in": seconds, **poll}
    return publish(sender=sender, type="poll", content={"text": text, "poll": asked})


def shown(item: Item, reader: User | AnonymousUser) -> PollBody:
    poll = hydrate([item.pk], reader)[0].shown.poll
    assert poll is not None
    return poll


def over(item: Item) -> None:
    Poll.objects.filter(pk=item.pk).update(closes_at=timezone.now() - timedelta(minutes=5))


@pytest.mark.parametrize(
    "poll",
    [
        None,
        [],
        {},
        {"options": ["a", "b"]},
        {"options": "ab", "closes_in": 600},
        {"options": ["a"], "closes_in": 600},
        {"options": list("abcdefg"), "closes_in": 600},
        {"options": ["a", " "], "closes_in": 600},
        {"options": ["a", "A "], "closes_in": 600},
        {"options": ["a", 1], "closes_in": 600},
        {"options": ["a", "b" * 81], "closes_in": 600},
        {"options": ["a", "b"], "closes_in": 60},
        {"options": ["a", "b"], "closes_in": 31 * 86_400},
        {"options": ["a", "b"], "closes_in": 10**12},
        {"options": ["a", "b"], "closes_in": True},
        {"options": ["a", "b"], "closes_in": 600, "multiple": "yes"},
        {"options": ["a", "b"], "closes_in": 600, "votes": [9, 9]},
        {"options": ["a", "b"], "closes_at": "tomorrow"},
        {"options": ["a", "b"], "closes_at": "2026-13-01T00:00:00Z"},
        {"options": ["a", "b"], "closes_at": (timezone.now() + timedelta(days=2)).replace(tzinfo=None).isoformat()},
        {"options": ["a", "b"], "closes_at": "0001-01-01T00:00:00+14:00"},
        {"options": ["a", "b"], "closes_at": "9999-12-31T23:59:59-14:00"},
    ],
)
def test_what_is_no_poll_is_refused(ann: User, poll: Any) -> None:
    with pytest.raises(ContentError):
        publish(sender=ann, type="poll", content={"text": "Which?", "poll": poll})
    assert not Item.objects.exists()


def test_a_poll_belongs_to_its_type(ann: User) -> None:
    poll = {"options": ["a", "b"], "closes_in": 600}
    with pytest.raises(ContentError):
        publish(sender=ann, content={"text": "Which?", "poll": poll})
    assert publish(sender=ann, type="poll", content={"poll": poll}).pk


def test_a_poll_that_is_sent_twice_is_published_once(ann: User) -> None:
    content = {"poll": {"options": ["a", "b"], "closes_in": 600}}
    first = publish(sender=ann, type="poll", content=content, idempotency_key="k")
    assert publish(sender=ann, type="poll", content=content, idempotency_key="k").pk == first.pk


def test_the_numbers_are_told_after_the_vote(ann: User, bob: User, carol: User) -> None:
    item = ask(ann)
    polls.vote(user=bob, item=item, choices=[1])
    for reader, votes, voted in (
        (ann, [0, 1], None),
        (bob, [0, 1], [1]),
        (carol, [None, None], None),
        (AnonymousUser(), [None, None], None),
    ):
        poll = shown(item, reader)
        assert ([option.votes for option in poll.options], poll.voted, poll.voters) == (votes, voted, 1)
    over(item)
    assert [option.votes for option in shown(item, carol).options] == [0, 1]


@pytest.mark.parametrize("choices", [[], [2], [-1], [0, 0], [0, 1]])
def test_choices_that_the_poll_does_not_have(ann: User, bob: User, choices: list[int]) -> None:
    item = ask(ann)
    with pytest.raises(polls.ChoiceError):
        polls.vote(user=bob, item=item, choices=choices)
    assert shown(item, ann).voters == 0


def test_several_choices_of_one_voter(ann: User, bob: User) -> None:
    item = ask(ann, "a", "b", "c", multiple=True)
    polls.vote(user=bob, item=item, choices=[2, 0])
    poll = shown(item, bob)
    assert ([option.votes for option in poll.options], poll.voters, poll.voted) == ([1, 0, 1], 1, [0, 2])


def test_who_may_not_vote(ann: User, bob: User) -> None:
    item = ask(ann)
    with pytest.raises(polls.OwnPollError):
        polls.vote(user=ann, item=item, choices=[0])
    polls.vote(user=bob, item=item, choices=[0])
    with pytest.raises(polls.VotedError):
        polls.vote(user=bob, item=item, choices=[1])
    with pytest.raises(polls.ChoiceError):
        polls.vote(user=bob, item=say(ann), choices=[0])
    late = ask(ann)
    over(late)
    with pytest.raises(polls.PollEndedError):
        polls.vote(user=bob, item=late, choices=[0])
    assert Vote.objects.count() == 1


def test_a_repost_is_voted_in_as_its_original(ann: User, bob: User, carol: User) -> None:
    item = ask(ann)
    again, _ = repost(sender=bob, item=item)
    polls.vote(user=carol, item=again, choices=[0])
    for one in (item, again):
        assert shown(one, carol).voted == [0]
    both = hydrate([item.pk, again.pk], carol)
    assert all(one.shown.poll for one in both)


@pytest.mark.django_db(transaction=True)
def test_one_person_votes_once_however_many_requests(ann: User, bob: User) -> None:
    item, won, start = ask(ann), [], threading.Barrier(8)

    def try_it(choice: int) -> None:
        try:
            start.wait()
            polls.vote(user=bob, item=item, choices=[choice])
            won.append(choice)
        except polls.VotedError:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=try_it, args=(one % 2,)) for one in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    poll = shown(item, bob)
    assert (len(won), poll.voters, poll.voted) == (1, 1, won)
    assert sum(option.votes or 0 for option in poll.options) == 1


def test_answers_can_be_edited_before_the_first_vote_only(ann: User, bob: User) -> None:
    item = ask(ann)
    edit(item=item, content={"text": "x", "poll": {"options": ["a", "b", "c"], "closes_in": 7200}})
    assert [option.text for option in shown(item, bob).options] == ["a", "b", "c"]
    polls.vote(user=bob, item=item, choices=[2])
    item.refresh_from_db()
    with pytest.raises(polls.PollFixedError):
        edit(item=item, content={"text": "y", "poll": {"options": ["c", "b", "a"], "closes_in": 7200}})
    edit(item=item, content={"text": "z"})
    edit(item=item, content={"text": "z", "poll": item.content["poll"]})
    poll = shown(item, bob)
    assert ([option.text for option in poll.options], poll.voted) == (["a", "b", "c"], [2])


def test_filters_and_rules_read_the_answers(ann: User, bob: User) -> None:
    create(owner=bob, phrase="coffee", whole_word=False)
    bob.refresh_from_db()
    assert hydrate([ask(ann).pk], bob)[0].filtered == ["coffee"]


def kinds(user: User) -> list[str]:
    return [entry.kind for entry in notifications_page(user).items]


def test_sender_and_voters_are_told_of_the_end_once(
    ann: User, bob: User, carol: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polls, "TOLD_AT_ONCE", 1)
    item = ask(ann)
    for user in (bob, carol):
        polls.vote(user=user, item=item, choices=[0])
    assert polls.end_polls() == 0
    over(item)
    assert (polls.end_polls(), polls.end_polls()) == (1, 0)
    assert [kinds(user) for user in (ann, bob, carol)] == [["poll"]] * 3
    (entry,) = notifications_page(bob).items
    assert [actor.username for actor in entry.actors] == ["ann"]


def test_who_may_not_see_the_poll_is_not_told_of_its_end(ann: User, bob: User, carol: User) -> None:
    item = ask(ann)
    for user in (bob, carol):
        polls.vote(user=user, item=item, choices=[0])
    block(blocker=ann, blocked=bob)
    over(item)
    polls.end_polls()
    assert (kinds(bob), kinds(carol)) == ([], ["poll"])
    gone = ask(ann)
    polls.vote(user=carol, item=gone, choices=[0])
    delete(item=gone)
    over(gone)
    assert polls.end_polls() == 1
    assert kinds(carol) == ["poll"]


def test_votes_are_exported_and_go_with_the_account(ann: User, bob: User) -> None:
    item = ask(ann)
    polls.vote(user=bob, item=item, choices=[1])
    (row,) = next(file for file in files(bob) if file.name == "votes.jsonl").rows
    assert (row.item_id, row.by, row.choices) == (str(item.pk), "ann", ["coffee"])
    while purge(user_id=bob.pk, limit=10):
        pass
    assert not Vote.objects.exists()
    assert shown(item, ann).voters == 0
    while purge(user_id=ann.pk, limit=10):
        pass
    assert hydrate([item.pk], bob)[0].poll is None


def test_polls_over_the_api(ann: User, bob: User) -> None:
    closes_at = (timezone.now() + timedelta(hours=1)).isoformat()
    content = {"text": "Which?", "poll": {"options": ["tea", "coffee"], "closes_at": closes_at}}
    made = client_of(ann).post("/api/v1/items", {"type": "poll", "content": content}, format="json")
    assert made.status_code == 201, made.content
    address = f"/api/v1/items/{made.json()['id']}"
    poll = client_of(bob).get(address).json()["poll"]
    assert (poll["options"], poll["closed"], poll["voters"], poll["voted"]) == (
        [{"text": "tea", "votes": None}, {"text": "coffee", "votes": None}],
        False,
        0,
        None,
    )
    for choices, status in (([7], 400), ("x", 400), ([], 400), ([1], 200), ([1], 409)):
        assert client_of(bob).put(f"{address}/vote", {"choices": choices}, format="json").status_code == status
    assert client_of(ann).put(f"{address}/vote", {"choices": [0]}, format="json").status_code == 403
    assert client_of(bob).get(address).json()["poll"]["options"][1] == {"text": "coffee", "votes": 1}
    changed = {"content": {"text": "Which?", "poll": {"options": ["x", "y"], "closes_at": closes_at}}}
    assert client_of(ann).patch(address, changed, format="json").status_code == 409
    own = publish(sender=ann, type="poll", content=content, visibility="self")
    for number in (1, own.pk):
        voted = client_of(bob).put(f"/api/v1/items/{number}/vote", {"choices": [1]}, format="json")
        assert voted.status_code == 404


def test_polls_on_pages(client: Client, ann: User, bob: User) -> None:
    client.force_login(ann)
    form = {"text": "", "visibility": "public", "option_1": "tea", "option_2": "coffee", "option_4": "water"}
    assert client.post("/items/new", form | {"poll_lasts": "3600"}).status_code == 302
    item = Item.objects.get()
    assert item.content["poll"]["options"] == ["tea", "coffee", "water"]
    assert client.post("/items/new", form | {"option_2": "tea"}).status_code == 422
    client.force_login(bob)
    assert b"choice-" in client.get(f"/items/{item.pk}").content
    address, choice = f"/items/{item.pk}/vote", f"choice-{item.pk}"
    refused = client.post(address, {}, headers={"HX-Request": "true"})
    assert "Choose an option" in refused["HX-Trigger"]
    assert b"choice-" in refused.content
    answer = client.post(address, {choice: "coffee"}, headers={"HX-Request": "true"}).content.decode()
    assert "100 %" in answer
    assert "already" in client.post(address, {choice: "coffee"}, headers={"HX-Request": "true"})["HX-Trigger"]
    assert client.post(address, {choice: "tea"}, follow=True).status_code == 200
    over(item)
    assert "ended" in client.get(f"/items/{item.pk}").content.decode()


def test_a_page_from_before_an_edit_votes_for_no_other_answer(client: Client, ann: User, bob: User) -> None:
    item = ask(ann)
    content = {"text": "", "poll": item.content["poll"] | {"options": ["beer", "tea"]}}
    edit(item=item, content=content)
    client.force_login(bob)
    address, choice = f"/items/{item.pk}/vote", f"choice-{item.pk}"
    answer = client.post(address, {choice: "coffee"}, headers={"HX-Request": "true"})
    assert "The options have changed" in answer["HX-Trigger"]
    assert 'value="beer"' in answer.content.decode()
    assert not Vote.objects.exists()
    client.post(address, {choice: "tea"})
    assert Vote.objects.get().choices == [1]


def test_a_page_without_polls_asks_nothing_of_them(ann: User, bob: User) -> None:
    plain, poll = [say(ann).pk for _ in range(3)], [ask(ann).pk for _ in range(3)]
    with statements() as without:
        hydrate(plain, bob)
    with statements() as asked:
        hydrate(poll, bob)
    assert len(asked) == len(without) + 1
