"""tests/properties checks what homes show of it."""

import pytest
from django.test import Client

from accounts.actions import issue_token
from accounts.deactivation import deactivate, reactivate
from accounts.models import User
from tests.support.factories import UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db


def test_away_and_back() -> None:
    user = UserFactory()
    assert deactivate(user=user) is True
    assert deactivate(user=user) is False
    assert User.objects.get(pk=user.pk).is_active is False
    assert reactivate(user=user) is True
    assert reactivate(user=user) is False
    assert User.objects.get(pk=user.pk).is_active is True


@pytest.mark.slow
def test_sessions_and_tokens_do_not_come_back_with_the_user(client: Client) -> None:
    user = UserFactory.create()
    client.force_login(user)
    token = issue_token(user=user)
    headers = {"Authorization": f"Token {token}"}
    assert client.get("/settings").status_code == 200
    assert Client().get("/api/v1/users/me", headers=headers).status_code == 200
    assert deactivate(user=user)
    assert reactivate(user=user)
    assert client.get("/settings").status_code == 302
    assert Client().get("/api/v1/users/me", headers=headers).status_code == 401
    again = logged_in(User.objects.get(pk=user.pk))
    assert again.get("/settings").status_code == 200
