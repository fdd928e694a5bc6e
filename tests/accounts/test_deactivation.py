"""Deactivation hides, reactivation shows again; what is seen of it in a home is in tests/properties."""

import pytest

from accounts.deactivation import deactivate, reactivate
from accounts.models import User
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def test_away_and_back() -> None:
    user = UserFactory()
    assert deactivate(user=user) is True
    assert deactivate(user=user) is False
    assert User.objects.get(pk=user.pk).is_active is False
    assert reactivate(user=user) is True
    assert reactivate(user=user) is False
    assert User.objects.get(pk=user.pk).is_active is True
