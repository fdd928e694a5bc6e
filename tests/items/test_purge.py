from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from accounts.signals import account_purged
from items import actions, purge
from items.bodies import Quote
from items.counts import fold
from items.hydrate import hydrate
from items.models import CountChange, Item, ItemDocument, ItemTag, Like, Poll, Status, Vote
from items.polls import LONGEST, vote, withdraw_votes
from items.signals import item_withdrawn
from tests.support.at_once import at_once
from tests.support.factories import UserFactory, say

pytestmark = pytest.mark.django_db


def counts(item: Item) -> tuple[int, int, int, int]:
    shown = hydrate([item.pk], item.sender)[0].counts
    fold()
    assert hydrate([item.pk], item.sender)[0].counts == shown
    assert not CountChange.objects.exists()
    return shown.likes, shown.replies, shown.reposts, shown.quotes


def settle(user: User) -> None:
    for _ in range(100):
        if not purge.purge(user_id=user.pk, limit=2):
            return
    raise AssertionError("it does not end")


def test_no_words_are_left() -> None:
    ann = UserFactory()
    kept = [actions.publish(sender=ann, title="Title", content={"text": "secret words #tag"}) for _ in range(4)]
    actions.delete(item=kept[0])
    actions.hold(item=kept[1], reasons=["x"])
    actions.edit(item=kept[2], extra_info={"note": "secret"})
    settle(ann)
    for item in Item.objects.filter(sender=ann):
        assert (item.status, item.title, item.content, item.extra_info, item.text) == (Status.DELETED, "", {}, {}, "")
    assert not ItemDocument.objects.filter(item__sender=ann).exists()
    assert not ItemTag.objects.filter(item__sender=ann).exists()
    assert purge.purge(user_id=ann.pk, limit=2) == 0


@pytest.mark.slow
def test_items_go_and_the_counts_of_others_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "BATCHES", 2)
    ann, bob = UserFactory(), UserFactory()
    said, answered = say(bob), say(bob, visibility="followers")
    for number in range(5):
        say(ann)
        reply = say(ann, reply_to=said, visibility="public" if number % 2 else "followers")
        say(ann, reply_to=reply)
        say(ann, reply_to=said, visibility="self")
        say(ann, reply_to=answered, visibility="followers")
        actions.like(user=ann, item=say(bob))
    actions.repost(sender=ann, item=said)
    quote, quoting = say(ann, quote_of=said), say(bob, quote_of=say(ann, "secret"))
    actions.like(user=ann, item=said)
    actions.delete(item=say(ann, reply_to=said))
    actions.hold(item=say(ann, reply_to=said), reasons=["x"])
    say(UserFactory(), reply_to=said)
    actions.like(user=UserFactory(), item=said)
    assert counts(said) == (2, 1 + 2 + 5, 1, 1)
    withdrawn: list[int] = []

    def hear(item: Item, **kwargs: Any) -> None:
        assert item.status == Status.DELETED
        withdrawn.append(item.pk)

    published = set(Item.objects.published().filter(sender=ann).values_list("pk", flat=True))
    item_withdrawn.connect(hear)
    settle(ann)
    assert sorted(withdrawn) == sorted(published)
    assert counts(said) == (1, 1, 0, 0)
    assert counts(answered) == (0, 0, 0, 0)
    assert hydrate([quoting.pk], bob)[0].quote == Quote(str(quoting.quote_of_id), None, "deleted")
    assert not Item.objects.published().filter(pk=quote.pk).exists()
    assert not Item.objects.filter(sender=ann).exclude(status=Status.DELETED).exists()
    assert not Like.objects.filter(user=ann).exists()
    assert Item.objects.published().filter(sender=bob).count() == 8


def poll_of(sender: User, *voters: tuple[User, list[int]]) -> Poll:
    content = {"poll": {"options": ["a", "b", "c"], "multiple": True, "closes_at": str(timezone.now() + LONGEST)}}
    item = actions.publish(sender=sender, type="poll", content=content)
    for voter, choices in voters:
        vote(user=voter, item=item, choices=choices)
    return Poll.objects.get(pk=item.pk)


def test_votes_are_taken_out_of_the_tallies() -> None:
    ann, bob, cid = UserFactory.create_batch(3)
    polls = [poll_of(bob, (ann, [0, 2]), (cid, [2])), *(poll_of(cid, (ann, [1])) for _ in range(4))]
    assert [(poll.votes, poll.voters) for poll in polls[:2]] == [([1, 0, 2], 2), ([0, 1, 0], 1)]
    settle(ann)
    left = [Poll.objects.get(pk=poll.pk) for poll in polls]
    assert [(poll.votes, poll.voters) for poll in left] == [([0, 0, 1], 1), *[([0, 0, 0], 0)] * 4]
    assert list(Vote.objects.values_list("user", flat=True)) == [cid.pk]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_votes_are_taken_out_once_while_others_vote() -> None:
    ann, bob, *others = UserFactory.create_batch(8)
    polls = [poll_of(bob, (ann, [0])) for _ in range(4)]

    def work() -> None:
        while withdraw_votes(user_id=ann.pk, limit=2):
            pass

    def join() -> None:
        for other in others:
            for poll in polls[::-1]:
                vote(user=other, item=poll.item, choices=[0, 1])

    assert at_once(work, work, join) == [None] * 3
    settle(ann)
    assert {(*poll.votes, poll.voters) for poll in Poll.objects.all()} == {(6, 6, 0, 6)}


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_two_workers_and_the_user_at_once() -> None:
    ann, bob = UserFactory(), UserFactory()
    said = [say(bob) for _ in range(30)]
    mine = [say(ann, reply_to=item) for item in said]
    for item in said:
        actions.like(user=ann, item=item)

    def work() -> None:
        while any(taken for _, taken in account_purged.send(sender=User, user=ann, limit=4)):
            pass

    def change_mind() -> None:
        for item, reply in zip(said, mine, strict=True):
            actions.unlike(user=ann, item=item)
            actions.delete(item=reply)

    assert at_once(work, work, change_mind) == [None] * 3
    settle(ann)
    assert {counts(item) for item in said} == {(0, 0, 0, 0)}
