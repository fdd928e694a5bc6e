import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection, transaction

from accounts.models import User
from relations.actions import (
    FollowCapError,
    SelfRelationError,
    block,
    fold_follower_counts,
    follow,
    follower_count,
    mute,
    unblock,
    unfollow,
    unmute,
)
from relations.models import Block, Follow, FollowerCountChange, Mute
from tests.support.at_once import at_once, until_one_waits
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pair() -> tuple[User, User]:
    one, two = UserFactory.create_batch(2)
    EPOCHS.clear()
    EPOCHS.update({user.pk: [user.window_epoch] for user in (one, two)})
    return one, two


EPOCHS: dict[int, list[int]] = {}
"""The epochs of each user so far."""


def state(user: User) -> tuple[int, int, int]:
    """Followees, exact followers, and the place of the epoch among those seen (from 1)."""
    user.refresh_from_db()
    met = EPOCHS.setdefault(user.pk, [user.window_epoch])
    if user.window_epoch not in met:
        met.append(user.window_epoch)
    return user.following_count, follower_count(user), met.index(user.window_epoch) + 1


def follows() -> set[tuple[int, int]]:
    return set(Follow.objects.values_list("follower_id", "followee_id"))


# --- Sequential ------------------------------------------------------------------------------------------
def test_follow_and_unfollow(pair: tuple[User, User]) -> None:
    one, two = pair
    assert follow(follower=one, followee=two) is True
    assert (state(one), state(two)) == ((1, 0, 2), (0, 1, 1))
    assert follow(follower=one, followee=two) is False
    assert (state(one), state(two)) == ((1, 0, 2), (0, 1, 1))
    assert follows() == {(one.pk, two.pk)}

    assert unfollow(follower=one, followee=two) is True
    assert (state(one), state(two)) == ((0, 0, 2), (0, 0, 1))
    assert unfollow(follower=one, followee=two) is False
    assert (state(one), state(two)) == ((0, 0, 2), (0, 0, 1))
    assert follows() == set()

    assert follow(follower=one, followee=two) is True
    assert (state(one), state(two)) == ((1, 0, 3), (0, 1, 1))


def test_following_does_not_write_the_followee(pair: tuple[User, User]) -> None:
    """Followers must not wait for each other on the followee's row."""
    one, two = pair
    follow(follower=one, followee=two)
    two.refresh_from_db()
    assert two.follower_count == 0
    assert list(FollowerCountChange.objects.values_list("user", "change")) == [(two.pk, 1)]


def test_block_and_unblock(pair: tuple[User, User]) -> None:
    one, two = pair
    follow(follower=one, followee=two)
    assert block(blocker=one, blocked=two) is True
    assert block(blocker=one, blocked=two) is False
    assert follows() == {(one.pk, two.pk)}
    assert (state(one), state(two)) == ((1, 0, 2), (0, 1, 1))
    assert unblock(blocker=two, blocked=one) is False
    assert (state(one)[2], state(two)[2]) == (2, 1)
    assert unblock(blocker=one, blocked=two) is True
    assert unblock(blocker=one, blocked=two) is False
    assert (state(one)[2], state(two)[2]) == (3, 1)
    assert not Block.objects.exists()


def test_mute_and_unmute(pair: tuple[User, User]) -> None:
    one, two = pair
    follow(follower=one, followee=two)
    assert mute(muter=one, muted=two) is True
    assert mute(muter=one, muted=two) is False
    assert (state(one)[2], state(two)[2]) == (2, 1)
    assert unmute(muter=one, muted=two) is True
    assert unmute(muter=one, muted=two) is False
    assert (state(one)[2], state(two)[2]) == (3, 1)
    assert not Mute.objects.exists()


@pytest.mark.parametrize("following", [(False, False), (True, False), (False, True), (True, True)])
def test_only_the_epoch_of_a_follower_advances(pair: tuple[User, User], following: tuple[bool, bool]) -> None:
    """A stranger's blocks and mutes must not rebuild anybody's window."""
    for place, other in ((0, 1), (1, 0)):
        if following[place]:
            follow(follower=pair[place], followee=pair[other])
    before = [state(user)[2] for user in pair]
    block(blocker=pair[0], blocked=pair[1])
    unblock(blocker=pair[0], blocked=pair[1])
    after = [state(user)[2] for user in pair]
    assert [old != new for old, new in zip(before, after, strict=True)] == list(following)
    mute(muter=pair[0], muted=pair[1])
    unmute(muter=pair[0], muted=pair[1])
    assert [old != state(user)[2] for old, user in zip(after, pair, strict=True)] == [following[0], False]


def test_an_unblock_under_the_block_of_the_other_shows_nothing(pair: tuple[User, User]) -> None:
    one, two = pair
    follow(follower=one, followee=two)
    follow(follower=two, followee=one)
    block(blocker=one, blocked=two)
    block(blocker=two, blocked=one)
    before = [state(user)[2] for user in pair]
    unblock(blocker=two, blocked=one)
    assert [state(user)[2] for user in pair] == before
    unblock(blocker=one, blocked=two)
    assert all(old != state(user)[2] for old, user in zip(before, pair, strict=True))


@pytest.mark.parametrize(
    ("verb", "first", "second"),
    [(follow, "follower", "followee"), (block, "blocker", "blocked"), (mute, "muter", "muted")],
)
def test_users_cannot_relate_to_themselves(verb: Callable[..., bool], first: str, second: str) -> None:
    user = UserFactory.create()
    with pytest.raises(SelfRelationError):
        verb(**{first: user, second: user})
    assert not any(model._default_manager.exists() for model in (Follow, Block, Mute))


def test_the_cap_binds_and_frees(settings: Any) -> None:
    settings.FOLLOW_CAP = 2
    user, *others = UserFactory.create_batch(4)
    follow(follower=user, followee=others[0])
    follow(follower=user, followee=others[1])
    with pytest.raises(FollowCapError):
        follow(follower=user, followee=others[2])
    assert follow(follower=user, followee=others[0]) is False  # exists already, so the cap does not matter
    assert state(user)[:2] == (2, 0)
    unfollow(follower=user, followee=others[0])
    assert follow(follower=user, followee=others[2]) is True
    assert follow(follower=others[3 - 1], followee=user) is True


def test_users_imported_above_the_cap_may_unfollow_but_not_follow(settings: Any) -> None:
    settings.FOLLOW_CAP = 1
    user, *others = UserFactory.create_batch(4)
    for other in others[:3]:
        Follow.objects.create(follower=user, followee=other)
    User.objects.filter(pk=user.pk).update(following_count=3)
    with pytest.raises(FollowCapError):
        follow(follower=user, followee=UserFactory.create())
    unfollow(follower=user, followee=others[0])
    assert state(user)[0] == 2


def test_folding_moves_the_staged_changes(pair: tuple[User, User]) -> None:
    one, two = pair
    third = UserFactory.create()
    follow(follower=one, followee=two)
    follow(follower=third, followee=two)
    follow(follower=two, followee=one)
    unfollow(follower=two, followee=one)
    assert sorted(fold_follower_counts()) == sorted([one.pk, two.pk])
    assert not FollowerCountChange.objects.exists()
    assert dict(User.objects.values_list("pk", "follower_count")) == {one.pk: 0, two.pk: 2, third.pk: 0}
    assert follower_count(two) == 2
    assert fold_follower_counts() == []


def test_the_followers_of_nobody() -> None:
    assert follower_count(User(pk=12345)) == 0


# --- Concurrent ------------------------------------------------------------------------------------------
@pytest.mark.slow
@committed
def test_the_cap_holds_when_many_calls_come_at_once(settings: Any) -> None:
    settings.FOLLOW_CAP = 5
    user = UserFactory.create()
    others = UserFactory.create_batch(12)
    results = at_once(*(lambda other=other: follow(follower=user, followee=other) for other in others))
    kinds = Counter(type(result) for result in results)
    assert kinds == {bool: 5, FollowCapError: 7}
    assert Follow.objects.filter(follower=user).count() == 5
    assert state(user)[:2] == (5, 0)
    assert sum(follower_count(other) for other in others) == 5


@pytest.mark.slow
@committed
def test_the_same_call_many_times_at_once_counts_once(pair: tuple[User, User]) -> None:
    one, two = pair
    assert sorted(at_once(*[lambda: follow(follower=one, followee=two)] * 8)) == [False] * 7 + [True]
    assert (state(one), state(two)) == ((1, 0, 2), (0, 1, 1))
    assert sorted(at_once(*[lambda: unfollow(follower=one, followee=two)] * 8)) == [False] * 7 + [True]
    assert (state(one), state(two)) == ((0, 0, 2), (0, 0, 1))
    assert sorted(at_once(*[lambda: block(blocker=one, blocked=two)] * 8)) == [False] * 7 + [True]
    assert sorted(at_once(*[lambda: unblock(blocker=one, blocked=two)] * 8)) == [False] * 7 + [True]
    assert sorted(at_once(*[lambda: mute(muter=one, muted=two)] * 8)) == [False] * 7 + [True]
    assert sorted(at_once(*[lambda: unmute(muter=one, muted=two)] * 8)) == [False] * 7 + [True]


@pytest.mark.slow
@committed
def test_following_and_unfollowing_at_once_keep_the_counts_exact(pair: tuple[User, User]) -> None:
    one, two = pair

    def waver() -> None:
        for _ in range(10):
            follow(follower=one, followee=two)
            unfollow(follower=one, followee=two)

    results = at_once(waver, waver, waver, lambda: [fold_follower_counts() for _ in range(20)])
    assert not [result for result in results if isinstance(result, Exception)]
    assert (state(one)[0], state(two)[1]) == (0, 0)
    fold_follower_counts()
    two.refresh_from_db()
    assert two.follower_count == 0


@pytest.mark.slow
@committed
def test_folds_at_once_count_every_follower_once() -> None:
    stars, fans = UserFactory.create_batch(3), UserFactory.create_batch(12)
    stop = threading.Event()

    def fold() -> None:
        while not stop.is_set():
            fold_follower_counts()

    def follow_all(some: Sequence[User]) -> None:
        for fan in some:
            for star in stars:
                follow(follower=fan, followee=star)

    def follow_everybody() -> None:
        try:
            threads = at_once(*(lambda some=fans[part::4]: follow_all(some) for part in range(4)))
            assert threads == [None] * 4
        finally:
            stop.set()

    assert at_once(fold, fold, follow_everybody) == [None] * 3
    assert [follower_count(star) for star in stars] == [12] * 3
    fold_follower_counts()
    assert set(User.objects.filter(pk__in=[star.pk for star in stars]).values_list("follower_count", flat=True)) == {12}


@pytest.mark.slow
@committed
def test_the_count_is_exact_while_it_is_folded() -> None:
    """Folded and staged counts must come from one snapshot."""
    star = UserFactory.create()
    for fan in UserFactory.create_batch(30):
        follow(follower=fan, followee=star)
    stop = threading.Event()

    def fold_slowly() -> None:
        # Fold one change per transaction.
        while pk := FollowerCountChange.objects.order_by("pk").values_list("pk", flat=True).first():
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(
                    "WITH gone AS (DELETE FROM relations_followercountchange WHERE id = %s RETURNING user_id, change)"
                    " UPDATE accounts_user u SET follower_count = follower_count + gone.change FROM gone"
                    " WHERE u.id = gone.user_id",
                    [pk],
                )
        stop.set()

    def read() -> set[int]:
        seen = {follower_count(star)}
        while not stop.is_set():
            seen.add(follower_count(star))
        return seen

    _, *seen = at_once(fold_slowly, read, read)
    assert seen == [{30}, {30}]


ROUNDS = range(15)


def waver(one: User, two: User) -> None:
    for _ in ROUNDS:
        unfollow(follower=one, followee=two)
        follow(follower=one, followee=two)


def quarrel(one: User, two: User) -> None:
    for _ in ROUNDS:
        block(blocker=one, blocked=two)
        unblock(blocker=one, blocked=two)


def fold_many(users: Sequence[User]) -> None:
    changes = [(user, change) for user in users for change in (1, -1)]
    for _ in ROUNDS:
        FollowerCountChange.objects.bulk_create(
            FollowerCountChange(user=user, change=change) for user, change in changes
        )
        fold_follower_counts()


@pytest.mark.long
@committed
def test_no_two_verbs_wait_for_each_other() -> None:
    users = UserFactory.create_batch(6)
    pairs = [(one, two) for one in users for two in users if one != two]
    Follow.objects.bulk_create(Follow(follower=one, followee=two) for one, two in pairs)
    User.objects.update(following_count=5, follower_count=5)
    first, second, third = users[:3]
    calls: list[Callable[[], None]] = [
        lambda: waver(first, second),
        lambda: waver(second, first),
        lambda: quarrel(first, second),
        lambda: quarrel(second, first),
        lambda: quarrel(third, second),
        lambda: fold_many(users),
        lambda: fold_many(users[::-1]),  # the opposite lock order
    ]
    assert at_once(*calls) == [None] * len(calls)
    assert {state(user)[:2] for user in users} == {(5, 5)}


@committed
def test_followers_do_not_wait_for_a_locked_followee(pair: tuple[User, User]) -> None:
    """A fold or an admin may hold the followee's row."""
    one, two = pair
    locked, followed = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            User.objects.select_for_update(no_key=True).get(pk=two.pk)
            locked.set()
            assert followed.wait(20)

    def go() -> bool:
        assert locked.wait(20)
        new = follow(follower=one, followee=two)
        followed.set()
        return new

    assert at_once(hold, go) == [None, True]


@pytest.mark.long
@committed
@pytest.mark.parametrize("verbs", [(mute, unmute, "muter", "muted"), (block, unblock, "blocker", "blocked")])
def test_coming_and_going_at_once(pair: tuple[User, User], verbs: Any) -> None:
    verb, reverse, by, whom = verbs

    def again_and_again(which: Callable[..., bool]) -> int:
        return sum(which(**{by: pair[0], whom: pair[1]}) for _ in range(150))

    made, also_made, undone, also_undone = at_once(
        *(lambda which=which: again_and_again(which) for which in (verb, verb, reverse, reverse))  # type: ignore[misc]
    )
    left = (Mute if verb is mute else Block).objects.count()
    assert made + also_made - undone - also_undone == left, "who is told that it is new made it"


@committed
@pytest.mark.parametrize("first", ["follow", "take back"])
@pytest.mark.parametrize("verbs", [(mute, unmute, "muter", "muted"), (block, unblock, "blocker", "blocked")])
def test_a_follow_and_what_is_taken_back_at_once(pair: tuple[User, User], verbs: Any, first: str) -> None:
    """The second waits and advances the epoch, because a window built in between misses items."""
    one, two = pair
    verb, reverse, by, whom = verbs
    verb(**{by: one, whom: two})
    calls = {
        "follow": lambda: follow(follower=one, followee=two),
        "take back": lambda: reverse(**{by: one, whom: two}),
    }
    started, epochs = threading.Event(), []
    second = next(call for name, call in calls.items() if name != first)

    def hold() -> None:
        with transaction.atomic():
            assert calls[first]() is True
            epochs.append(state(one)[2])
            started.set()
            until_one_waits()

    def come_second() -> None:
        assert started.wait(20)
        assert second() is True
        epochs.append(state(one)[2])

    assert at_once(hold, come_second) == [None, None]
    assert epochs[0] != epochs[1]
