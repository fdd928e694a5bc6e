from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.dispatch import Signal

from accounts.levels.big_v import NotActiveError, allow_tagging, complete_demotion, demote, make_big_v, upgrade_big_vs
from accounts.models import BigVChange, User
from accounts.signals import big_v_demotion_requested, big_v_made
from relations import actions
from relations.tasks import fold_follower_counts
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

News = list[tuple[str, int, bool]]


@pytest.fixture
def news() -> Iterator[News]:
    """Name, user id and the flag in the database then."""
    heard: News = []

    def listen(name: str, signal: Signal) -> Any:
        def hear(user: User, **kwargs: Any) -> None:
            assert connection.in_atomic_block
            heard.append((name, user.pk, User.objects.get(pk=user.pk).is_big_v))

        signal.connect(hear)
        return signal, hear

    listeners = [listen("made", big_v_made), listen("demotion", big_v_demotion_requested)]
    yield heard
    for signal, hear in listeners:
        signal.disconnect(hear)


def test_made(news: News) -> None:
    user, other = UserFactory.create(), UserFactory.create()
    assert make_big_v(user=user) is True
    assert User.objects.get(pk=user.pk).is_big_v
    assert not User.objects.get(pk=other.pk).is_big_v
    assert news == [("made", user.pk, True)]


def test_making_a_big_v_again_takes_back_a_demotion(news: News) -> None:
    user = UserFactory.create(is_big_v=True)
    assert make_big_v(user=user) is False
    assert news == [("made", user.pk, True)]


def test_a_demotion_is_asked_for_and_the_flag_stands(news: News) -> None:
    user = UserFactory.create(is_big_v=True)
    assert demote(user=user) is True
    assert news == [("demotion", user.pk, True)]
    assert User.objects.get(pk=user.pk).is_big_v


def test_only_big_vs_are_demoted(news: News) -> None:
    assert demote(user=UserFactory.create()) is False
    assert news == []


def test_a_stale_user_does_not_decide(news: News) -> None:
    """The caller's copy may be old. The locked row decides."""
    user = UserFactory.create()
    User.objects.filter(pk=user.pk).update(is_big_v=True, follower_count=7, window_epoch=9)
    assert make_big_v(user=user) is False
    assert demote(user=user) is True
    after = User.objects.get(pk=user.pk)
    assert (after.follower_count, after.window_epoch) == (7, 9)


def test_the_threshold_only_upgrades(settings: Any, news: News) -> None:
    settings.BIG_V_THRESHOLD = 10
    below, at, unnamed = (UserFactory.create(follower_count=count) for count in (9, 10, 11))
    already, fallen = (UserFactory.create(follower_count=count, is_big_v=True) for count in (12, 3))
    assert upgrade_big_vs([user.pk for user in (below, at, already, fallen)]) == [at.pk]
    flags = dict(User.objects.values_list("pk", "is_big_v"))
    assert flags == {below.pk: False, at.pk: True, unnamed.pk: False, already.pk: True, fallen.pk: True}
    assert news == [("made", at.pk, True)]


def test_no_threshold_no_upgrade(settings: Any) -> None:
    settings.BIG_V_THRESHOLD = 0
    assert upgrade_big_vs([UserFactory.create(follower_count=1_000_000).pk]) == []
    assert not User.objects.filter(is_big_v=True).exists()


def test_folding_upgrades_who_has_reached_it(settings: Any) -> None:
    settings.BIG_V_THRESHOLD = 2
    star = UserFactory.create()
    fans = UserFactory.create_batch(2)
    actions.follow(follower=fans[0], followee=star)
    fold_follower_counts()
    assert not User.objects.get(pk=star.pk).is_big_v
    actions.follow(follower=fans[1], followee=star)
    fold_follower_counts()
    after = User.objects.get(pk=star.pk)
    assert (after.is_big_v, after.follower_count) == (True, 2)
    assert User.objects.filter(is_big_v=True).count() == 1


def history(user: User) -> list[tuple[str, str, str | None]]:
    """Oldest first: change, origin, by whom."""
    return list(user.big_v_changes.order_by("pk").values_list("kind", "origin", "by__username"))


def test_demoted_by_hand_is_not_tagged_again_by_the_next_follow(settings: Any) -> None:
    settings.BIG_V_THRESHOLD = 2
    admin, star = UserFactory.create(username="boss"), UserFactory.create()
    for fan in UserFactory.create_batch(2):
        actions.follow(follower=fan, followee=star)
    fold_follower_counts()
    assert User.objects.get(pk=star.pk).is_big_v
    demote(user=star, by=admin)
    complete_demotion(user=star)
    actions.follow(follower=UserFactory.create(), followee=star)
    fold_follower_counts()
    assert not User.objects.get(pk=star.pk).is_big_v
    assert allow_tagging(user=star, by=admin) is True
    assert allow_tagging(user=star, by=admin) is False
    assert not User.objects.get(pk=star.pk).is_big_v
    actions.follow(follower=UserFactory.create(), followee=star)
    fold_follower_counts()
    assert User.objects.get(pk=star.pk).is_big_v
    assert history(star) == [
        ("made", "automatic", None),
        ("demotion", "admin", "boss"),
        ("demoted", "automatic", None),
        ("allowed", "admin", "boss"),
        ("made", "automatic", None),
    ]


def test_made_by_hand_is_tagged_automatically_from_then_on(settings: Any) -> None:
    settings.BIG_V_THRESHOLD = 2
    star = UserFactory.create(is_auto_big_v=False, follower_count=5)
    assert upgrade_big_vs([star.pk]) == []
    assert make_big_v(user=star)
    assert User.objects.get(pk=star.pk).is_auto_big_v
    assert history(star) == [("made", "command", None)]


def test_a_demotion_that_is_taken_back_leaves_automatic_tagging_on() -> None:
    admin, star = UserFactory.create(username="boss"), UserFactory.create(is_big_v=True)
    assert demote(user=star, by=admin)
    assert not User.objects.get(pk=star.pk).is_auto_big_v
    assert make_big_v(user=star, by=admin)
    assert User.objects.get(pk=star.pk).is_auto_big_v
    assert history(star) == [("demotion", "admin", "boss"), ("taken_back", "admin", "boss")]


def test_asking_twice_changes_nothing_and_is_noted_once() -> None:
    star = UserFactory.create()
    assert [make_big_v(user=star), make_big_v(user=star)] == [True, False]
    assert [demote(user=star), demote(user=star)] == [True, False]
    assert [kind for kind, _, _ in history(star)] == ["made", "demotion"]


def test_the_threshold_takes_back_no_demotion(settings: Any) -> None:
    """The upgrade may have read the user before. It checks again under the lock."""
    settings.BIG_V_THRESHOLD = 2
    star = UserFactory.create(follower_count=9, is_big_v=True)
    demote(user=star)
    assert upgrade_big_vs([star.pk]) == []
    complete_demotion(user=star)
    assert upgrade_big_vs([star.pk]) == []
    assert [kind for kind, _, _ in history(star)] == ["demotion", "demoted"]


def test_a_deactivated_user_is_not_made_big_v(settings: Any, news: News) -> None:
    settings.BIG_V_THRESHOLD = 2
    gone = UserFactory.create(follower_count=9)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    with pytest.raises(NotActiveError):
        make_big_v(user=gone)
    assert upgrade_big_vs([gone.pk]) == []
    assert not User.objects.get(pk=gone.pk).is_big_v
    assert not BigVChange.objects.exists()
    assert news == []
