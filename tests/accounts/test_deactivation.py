"""Deactivation hides; reactivation has the followers' windows rebuilt, which have forgotten."""

import pytest

from accounts.deactivation import deactivate, reactivate
from accounts.models import User
from relations import actions
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def epochs() -> dict[int, int]:
    return dict(User.objects.values_list("pk", "window_epoch"))


def test_away_and_back() -> None:
    user, follower, stranger = UserFactory.create_batch(3)
    actions.follow(follower=follower, followee=user)
    actions.follow(follower=user, followee=stranger)
    before = epochs()

    assert deactivate(user=user) is True
    assert deactivate(user=user) is False
    assert User.objects.get(pk=user.pk).is_active is False
    assert epochs() == before

    assert reactivate(user=user) is True
    assert reactivate(user=user) is False
    assert User.objects.get(pk=user.pk).is_active is True
    assert epochs() == before | {follower.pk: before[follower.pk] + 1}
