"""Counts are exact on the next request, whatever happens at once."""

from typing import Any

import pytest
from django.db import connection, transaction

from accounts.models import User
from items import tasks
from items.actions import (
    RepostError,
    approve,
    change_visibility,
    delete,
    edit,
    hold,
    like,
    publish,
    reject,
    repost,
    restore,
    undo_repost,
    unlike,
)
from items.bodies import Counts, ItemBody
from items.counts import fold
from items.hydrate import hydrate
from items.models import CountChange, Item, ItemCounts, Like, Status, Visibility
from items.signals import item_liked
from tests.support.at_once import at_once
from tests.support.factories import ItemFactory, UserFactory
from tests.support.statements import statements

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


@pytest.fixture
def item(db: None) -> Item:
    return ItemFactory.create()


def body(item: Item, reader: User | None = None) -> ItemBody:
    return hydrate([item.pk], reader or item.sender)[0]


def counts(item: Item) -> tuple[int, int, int]:
    """Likes, replies and reposts, the same before and after folding."""
    staged = body(item).counts
    tasks.fold_counts()
    assert not CountChange.objects.exists()
    assert body(item).counts == staged
    return staged.likes, staged.replies, staged.reposts


def test_a_like_and_its_end(item: Item) -> None:
    ann, bob = UserFactory(), UserFactory()
    assert [like(user=ann, item=item), like(user=ann, item=item), like(user=bob, item=item)] == [True, False, True]
    assert counts(item) == (2, 0, 0)
    assert body(item, ann).liked
    assert not body(item).liked
    assert [unlike(user=ann, item=item), unlike(user=ann, item=item)] == [True, False]
    assert counts(item) == (1, 0, 0)
    assert not body(item, ann).liked
    assert body(item, bob).liked


def test_news_of_likes(item: Item) -> None:
    heard: list[tuple[str, Any]] = []

    def liked(item: Item, user: User, **kwargs: Any) -> None:
        assert connection.in_atomic_block
        heard.append(("liked", user))

    item_liked.connect(liked)
    ann = UserFactory()
    for verb in (like, like, unlike, unlike):
        verb(user=ann, item=item)
    assert heard == [("liked", ann)]


def test_a_like_costs_one_statement(item: Item) -> None:
    ann = UserFactory()
    with statements() as seen:
        like(user=ann, item=item)
    own = [query for query in seen if "SAVEPOINT" not in query and "notifications_" not in query]
    assert len(own) == 1


@pytest.mark.slow
@committed
def test_many_likes_at_once_and_folds_between_them() -> None:
    item = ItemFactory.create()
    people = UserFactory.create_batch(24)
    calls = [lambda person=person: like(user=person, item=item) for person in [*people, *people]]
    folds = [fold] * 6
    assert sum(1 for result in at_once(*calls, *folds)[: len(calls)] if result is True) == 24
    assert body(item).counts.likes == Like.objects.count() == 24
    at_once(*(lambda person=person: unlike(user=person, item=item) for person in [*people[:9], *people[:9]]), *folds)
    assert counts(item) == (15, 0, 0)
    assert ItemCounts.objects.get(item=item.pk).likes == 15


@committed
def test_a_fold_that_dies_loses_nothing(item: Item) -> None:
    like(user=UserFactory(), item=item)

    def die() -> None:
        with transaction.atomic():
            fold()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        die()
    assert CountChange.objects.count() == 1
    assert counts(item) == (1, 0, 0)


@committed
def test_likes_lock_no_row_of_the_item(item: Item) -> None:
    """Likes must not wait for an unfinished edit."""
    ann = UserFactory()

    def like_in_time() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
        try:
            return like(user=ann, item=item)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")

    with transaction.atomic():
        Item.objects.select_for_update().get(pk=item.pk)
        assert at_once(like_in_time) == [True]


def test_a_repost_and_its_end(item: Item) -> None:
    ann = UserFactory()
    one, new = repost(sender=ann, item=item)
    assert new
    assert repost(sender=ann, item=item) == (one, False)
    assert (one.repost_of_id, one.type, one.content, one.visibility) == (item.pk, "repost", {}, Visibility.PUBLIC)
    assert counts(item) == (0, 0, 1)
    assert body(item, ann).reposted
    assert not body(item).reposted
    assert undo_repost(sender=ann, item=item)
    assert not undo_repost(sender=ann, item=item)
    assert counts(item) == (0, 0, 0)
    again, new = repost(sender=ann, item=item)
    assert new
    assert again.pk > one.pk
    assert not restore(item=one)
    assert counts(item) == (0, 0, 1)


def test_acts_on_a_repost_are_acts_on_its_original(item: Item) -> None:
    ann, bob = UserFactory(), UserFactory()
    middle, _ = repost(sender=ann, item=item)
    far, _ = repost(sender=bob, item=middle)
    assert far.repost_of_id == item.pk
    like(user=bob, item=middle)
    reply = publish(sender=bob, content={"text": "yes"}, reply_to=far)
    assert (reply.reply_to_id, reply.root_id) == (item.pk, item.pk)
    assert counts(item) == (1, 1, 2)
    assert body(middle, bob).counts == Counts(1, 1, 2)
    assert (body(middle, bob).liked, body(middle, bob).reposted) == (True, True)
    assert (body(middle, ann).liked, body(middle, ann).reposted) == (False, True)
    assert undo_repost(sender=bob, item=middle)
    assert counts(item) == (1, 1, 1)


def test_a_repost_is_published_and_deleted_and_nothing_else(item: Item) -> None:
    one, _ = repost(sender=UserFactory(), item=item)
    with pytest.raises(RepostError):
        edit(item=one, content={"text": "words"})
    with pytest.raises(RepostError):
        change_visibility(item=one, visibility=Visibility.SELF)
    assert delete(item=one)
    assert restore(item=one)
    assert counts(item) == (0, 0, 1)


@committed
def test_many_reposts_at_once_are_one() -> None:
    item, ann = ItemFactory.create(), UserFactory()
    results = at_once(*[lambda: repost(sender=ann, item=item)] * 6)
    assert sorted(new for _, new in results) == [False] * 5 + [True]
    assert len({one.pk for one, _ in results}) == 1
    assert counts(item) == (0, 0, 1)


def test_replies_count_under_their_parent_and_under_the_root(item: Item) -> None:
    ann = UserFactory()
    first = publish(sender=ann, content={"text": "first"}, reply_to=item)
    second = publish(sender=ann, content={"text": "second"}, reply_to=first)
    third = publish(sender=ann, content={"text": "third"}, reply_to=second)
    assert [reply.root_id for reply in (first, second, third)] == [item.pk] * 3
    assert [counts(one)[1] for one in (item, first, second, third)] == [3, 1, 1, 0]
    delete(item=second)
    assert [counts(one)[1] for one in (item, first, second)] == [2, 0, 1]
    restore(item=second)
    assert [counts(one)[1] for one in (item, first, second)] == [3, 1, 1]


@pytest.mark.slow
def test_what_strangers_cannot_see_is_in_no_number_that_they_see(item: Item) -> None:
    ann = UserFactory()
    for visibility in Visibility:
        words = f"words @{item.sender.username}"
        publish(sender=ann, content={"text": words}, reply_to=item, visibility=visibility)
    assert counts(item) == (0, 1, 0)
    change_visibility(item=item, visibility=Visibility.FOLLOWERS)
    assert counts(item) == (0, 3, 0)
    for reply in Item.objects.filter(root=item).exclude(visibility=Visibility.MENTIONED):
        change_visibility(item=reply, visibility=Visibility.SELF)
    assert counts(item) == (0, 0, 0)


@pytest.mark.parametrize("back", [approve, restore])
def test_review_takes_a_reply_out_of_the_count_and_brings_it_back(item: Item, back: Any) -> None:
    reply = publish(sender=UserFactory(), content={"text": "words"}, reply_to=item)
    assert hold(item=reply, reasons=["reported"])
    assert not hold(item=reply, reasons=["reported"])
    assert counts(item) == (0, 0, 0)
    assert reject(item=reply)
    assert not reject(item=reply)
    assert counts(item) == (0, 0, 0)
    assert back(item=reply)
    assert counts(item) == (0, 1, 0)
    reply.refresh_from_db()
    assert reply.status == Status.PUBLISHED
    assert reply.published_at is not None


def test_what_its_sender_deleted_no_moderator_publishes(item: Item) -> None:
    delete(item=item)
    assert not approve(item=item)
    assert not reject(item=item)
    assert Item.objects.get(pk=item.pk).status == Status.DELETED


def test_counts_cost_no_statement_of_their_own(item: Item) -> None:
    for person in UserFactory.create_batch(3):
        like(user=person, item=item)
        repost(sender=person, item=item)
    more = [item.pk, *(one.pk for one in ItemFactory.create_batch(5))]
    with statements() as seen:
        assert hydrate(more, item.sender)[0].counts == Counts(3, 0, 3)
    assert len(seen) == 1
