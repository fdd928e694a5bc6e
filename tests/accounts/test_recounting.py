"""Counts agree with lists when accounts are hidden and shown again."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F

from accounts import recounting
from accounts.actions import delete_account
from accounts.deactivation import deactivate, reactivate
from accounts.models import Recount, User
from accounts.signals import account_recounted
from feedsite import celery
from items import actions, counts
from items.hydrate import hydrate
from items.models import Item, Like
from moderation.senders import ban, unban
from relations import actions as relations
from relations.models import Follow
from relations.recounting import recount
from relations.visibility import profile_relation
from runtime.embedded import wait_for
from storage.claims import CLAIM_LIFE
from tests.support.api import API, client_of
from tests.support.at_once import at_once
from tests.support.clients import Caller
from tests.support.deletions import settle
from tests.support.factories import UserFactory, say
from tests.support.plans import explained
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    found = Workers({recounting.run.name: recounting.run}, drops_others=True)
    monkeypatch.setattr(celery.app, "send_task", found.send_task)
    return found


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


def act(user: User, item: Item, number: int = 0) -> None:
    """Everything that counts for an item and its sender."""
    actions.like(user=user, item=item)
    actions.repost(sender=user, item=item)
    say(user, f"reply {number}", reply_to=item)
    say(user, f"circle {number}", reply_to=item, visibility="followers")
    say(user, f"quote {number}", quote_of=item)
    relations.follow(follower=user, followee=item.sender)
    relations.follow(follower=item.sender, followee=user)


def exact() -> None:
    """Every count is the number of those whom lists show."""
    counts.fold()
    relations.fold_follower_counts()
    published = Item.objects.published().filter(sender__is_active=True)
    for item in hydrate(list(Item.objects.values_list("pk", flat=True)), UserFactory.build(pk=1)):
        if item.repost_of:
            continue
        replies = published.filter(root=item.id) | published.filter(reply_to=item.id)
        found = (
            Like.objects.filter(item=item.id, user__is_active=True).count(),
            replies.filter(visibility="public").count(),
            published.filter(repost_of=item.id).count(),
            published.filter(quote_of=item.id, is_quote_revoked=False, visibility="public").count(),
        )
        counted = item.counts
        assert (counted.likes, counted.replies, counted.reposts, counted.quotes) == found, item
    for user in User.objects.active():
        relation, follows = profile_relation(user, user), Follow.objects.filter(followee__is_active=True)
        followers = Follow.objects.filter(follower__is_active=True)
        assert relation.followers == user.follower_count == followers.filter(followee=user).count(), user
        assert relation.following_count == follows.filter(follower=user).count(), user
        assert user.following_count == Follow.objects.filter(follower=user).count(), user


def late() -> None:
    """The time passes that stragglers have, and that a dead worker's claim holds."""
    long = CLAIM_LIFE + timedelta(seconds=1)
    Recount.objects.update(created_at=F("created_at") - long, tried_at=F("tried_at") - long)
    recounting.sweep()


def test_numbers_agree_with_lists_after_a_ban_and_its_end(ann: User, workers: Workers) -> None:
    bob, eve = UserFactory(username="bob"), UserFactory(username="eve")
    item = say(ann, "post")
    for user in (bob, eve):
        act(user, item)
    mine, theirs = client_of(bob), Caller(bob)

    def shown() -> list[int]:
        counts.fold()
        relations.fold_follower_counts()
        own = mine.get(f"{API}/items/{item.pk}").json()["counts"]
        app = theirs.get(f"v1/statuses/{item.pk}")
        lists = [
            len(theirs.get(f"v1/statuses/{item.pk}/{name}")) for name in ("favourited_by", "reblogged_by", "quotes")
        ]
        public = len(
            [
                one
                for one in theirs.get(f"v1/statuses/{item.pk}/context")["descendants"]
                if one["visibility"] == "public" and not one["quote"]
            ]
        )
        assert [own["likes"], own["reposts"], own["quotes"], own["replies"]] == [*lists, public]
        assert [app["favourites_count"], app["reblogs_count"], app["quotes_count"], app["replies_count"]] == [
            *lists,
            public,
        ]
        profile = mine.get(f"{API}/users/ann").json()["counts"]
        account = theirs.get(f"v1/accounts/{ann.pk}")
        follow_lists = [len(theirs.get(f"v1/accounts/{ann.pk}/{name}")) for name in ("followers", "following")]
        assert [profile["followers"], profile["following"]] == follow_lists
        assert [account["followers_count"], account["following_count"]] == follow_lists
        return [*lists, public, *follow_lists]

    assert shown() == [2] * 6
    ban(user=eve, by=None)
    workers.work()
    assert shown() == [1] * 6
    unban(user=eve, by=None)
    workers.work()
    assert shown() == [2] * 6
    late()
    workers.work()
    assert not Recount.objects.exists()


def test_a_large_account_takes_turns_and_goes_on_after_a_kill(
    ann: User, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recounting, "BATCH", 2)
    monkeypatch.setattr(recounting, "ROUNDS", 2)
    for number in range(7):
        act(ann, say(UserFactory(), "post"), number)
    deaths: list[Any] = []

    def die(places: dict[str, int], **kwargs: Any) -> None:
        if len(deaths) < 3 and places not in deaths:
            deaths.append(dict(places))
            raise SystemExit

    account_recounted.connect(die)
    try:
        deactivate(user=ann)
        for _ in range(3):
            with pytest.raises(SystemExit):
                workers.work()
            workers.queue.clear()
            late()
    finally:
        account_recounted.disconnect(die)
    workers.work()
    exact()
    assert Like.objects.filter(uncounted=True).count() == 7


@pytest.mark.parametrize("first", [reactivate, lambda user: delete_account(user=User.objects.get(pk=user.pk))])
def test_what_changes_before_all_is_recounted(
    ann: User, workers: Workers, monkeypatch: pytest.MonkeyPatch, first: Callable[..., Any]
) -> None:
    monkeypatch.setattr(recounting, "BATCH", 2)
    monkeypatch.setattr(recounting, "ROUNDS", 1)
    items = [say(UserFactory(), "post") for _ in range(6)]
    for number, item in enumerate(items):
        act(ann, item, number)
    deactivate(user=ann)
    for _ in range(2):  # a part is left out
        recounting.run(*workers.queue.pop(0)[1])
    for item in (items[0], items[5]):
        relations.unfollow(follower=item.sender, followee=ann)
        for said in Item.objects.filter(sender=ann, reply_to=item):
            actions.reject(item=said)
        for quote in Item.objects.filter(sender=ann, quote_of=item):
            actions.revoke_quote(quote=quote)
    first(user=ann)
    if User.objects.get(pk=ann.pk).is_active:
        actions.unlike(user=ann, item=items[1])
        actions.unlike(user=ann, item=items[4])
        relations.unfollow(follower=ann, followee=items[1].sender)
        actions.approve(item=Item.objects.filter(sender=ann, reply_to=items[0])[0])
    else:
        settle(ann)
    workers.work()
    exact()


def test_late_likes_are_met(ann: User, workers: Workers) -> None:
    items = [say(UserFactory(), "post") for _ in range(2)]
    deactivate(user=ann)
    workers.work()
    act(ann, items[0])
    late()
    workers.work()
    exact()
    assert not Recount.objects.exists()


def toggle(user: User) -> None:
    for _ in range(3):
        deactivate(user=user)
        reactivate(user=user)
    deactivate(user=user)


def recount_all() -> None:
    for pk in Recount.objects.values_list("pk", flat=True):
        recounting.run(pk)


def change(users: list[User], items: list[Item]) -> None:
    for item in items:
        for user in users:
            relations.unfollow(follower=item.sender, followee=user)
            actions.unlike(user=user, item=item)
            for said in Item.objects.filter(sender=user, reply_to=item):
                actions.reject(item=said)
                actions.approve(item=said)


@pytest.mark.slow
def test_hiding_showing_and_verbs_at_once(ann: User, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recounting, "BATCH", 3)
    monkeypatch.setattr(celery.app, "send_task", lambda *args, **options: True)
    users = [ann, UserFactory()]
    items = [say(UserFactory(), "post") for _ in range(6)]
    for number, item in enumerate(items):
        for user in users:
            act(user, item, number)
    work = [recount_all] * 12
    calls = [partial(toggle, user) for user in users] + [partial(change, users, items[:4])] * 2
    done = at_once(*calls, *[lambda: [one() for one in work]] * 2)
    assert [one for one in done if isinstance(one, Exception)] == []
    for _ in range(3):
        late()
        recount_all()
    exact()
    assert not Recount.objects.exists()
    reactivate(user=ann)
    recount_all()
    exact()


def is_all_visible() -> bool:
    """Whether a VACUUM found each page's commits on disk."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) relations_follow")
        cursor.execute("SELECT relallvisible = relpages FROM pg_class WHERE relname = 'relations_follow'")
        return bool(cursor.fetchone()[0])


@pytest.mark.slow
def test_a_part_of_the_followers_reads_no_other_follows() -> None:
    """Right after a VACUUM, when PostgreSQL expects that an index alone is cheap."""
    star, *people = User.objects.bulk_create([User(username=f"p{number}") for number in range(501)])
    follows = [(one, star) for one in people]
    follows += [(one, people[(place + ahead) % 500]) for place, one in enumerate(people) for ahead in range(1, 21)]
    Follow.objects.bulk_create([Follow(follower=one, followee=other) for one, other in follows])
    assert wait_for(is_all_visible, 30)
    with transaction.atomic(), explained() as recorder:
        recount(star.pk, {}, 100, is_hidden=True)
    assert max(one.touched for one in recorder.explained) < 1_000
    assert recorder.failed == {}
