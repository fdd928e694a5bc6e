from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.hashers import check_password
from django.utils import timezone
from oauth2_provider.models import AccessToken
from rest_framework.test import APIClient

from accounts import actions
from accounts.models import Level, User
from tests.support.api import API
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return UserFactory(username="Ann")


def test_sign_up_and_log_in() -> None:
    client = APIClient()
    response = client.post(f"{API}/users", {"username": "Bob_1-x", "password": PASSWORD})
    assert response.status_code == 201
    user = User.objects.get()
    assert response.json() == {
        "id": str(user.pk),
        "username": "Bob_1-x",
        "display_name": "",
        "bio": "",
        "fields": [],
        "is_big_v": False,
        "is_locked": False,
        "created_at": user.date_joined.isoformat().replace("+00:00", "Z"),
        "avatar_url": user.avatar_url,
        "banner_url": user.banner_url,
        "is_indexable": True,
        "quotable_by": "everyone",
        "takes_requests": True,
    }
    assert user.level == Level.DAILY
    assert user.last_seen_at is not None
    assert check_password(PASSWORD, user.password)
    token = client.post(f"{API}/auth/token", {"username": "bob_1-X", "password": PASSWORD})
    assert token.status_code == 200
    client.credentials(HTTP_AUTHORIZATION=f"Token {token.json()['token']}")
    assert client.get(f"{API}/users/me").json() == response.json()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("username", "password", "field"),
    [
        ("", PASSWORD, "username"),
        ("a b", PASSWORD, "username"),
        ("ann\n", PASSWORD, "username"),
        (" ann2", PASSWORD, "username"),
        ("ünï", PASSWORD, "username"),
        ("x" * 31, PASSWORD, "username"),
        ("x" * 200, PASSWORD, "username"),
        ("Me", PASSWORD, "username"),
        ("admin", PASSWORD, "username"),
        ("ANN", PASSWORD, "username"),
        (5, PASSWORD, "username"),
        (None, PASSWORD, "username"),
        (["a"], PASSWORD, "username"),
        ("bob", "", "password"),
        ("bob", "short", "password"),
        ("bob", "password", "password"),
        ("bob", "12345678901", "password"),
        ("bobbobbob", "bobbobbob1", "password"),
        ("bob", "a" * 300, "password"),
        ("bob", "a" * 5000, "password"),
        ("bob", {}, "password"),
    ],
)
def test_names_and_passwords_that_are_refused(ann: User, username: object, password: object, field: str) -> None:
    response = APIClient().post(f"{API}/users", {"username": username, "password": password})
    assert response.status_code == 400
    assert list(response.json()) == [field]
    assert User.objects.count() == 1


def test_two_sign_ups_for_one_name(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older process takes the name at the same moment. The database refuses the second."""
    answers = iter([False] * 4 + [True])
    monkeypatch.setattr("accounts.models.UserQuerySet.exists", lambda self: next(answers))
    response = APIClient().post(f"{API}/users", {"username": "ann", "password": PASSWORD})
    assert response.status_code == 400
    assert response.json() == {"username": ["This username is taken."]}


@pytest.mark.parametrize(
    ("username", "password"), [("Ann", "wrong"), ("nobody", PASSWORD), ("Ann", PASSWORD + " "), ("A nn", PASSWORD)]
)
def test_wrong_credentials_are_all_the_same(ann: User, username: str, password: str) -> None:
    response = APIClient().post(f"{API}/auth/token", {"username": username, "password": password})
    assert response.status_code == 400
    assert response.json() == {"non_field_errors": ["Wrong username or password."]}
    assert not AccessToken.objects.exists()


def test_a_token_is_revoked_alone(api: APIClient, ann: User) -> None:
    other = APIClient()
    other.credentials(HTTP_AUTHORIZATION=f"token {actions.issue_token(user=ann)}")
    assert api.delete(f"{API}/auth/token").status_code == 204
    assert api.get(f"{API}/users/me").status_code == 401
    assert api.delete(f"{API}/auth/token").status_code == 401
    assert other.get(f"{API}/users/me").status_code == 200


def test_a_session_revokes_no_token(ann: User) -> None:
    client = APIClient()
    client.force_login(ann)
    assert client.delete(f"{API}/auth/token").status_code == 401


def test_a_worthless_token_does_not_keep_from_a_new_one(ann: User) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION="Token worthless")
    assert client.post(f"{API}/auth/token", {"username": "ann", "password": PASSWORD}).status_code == 200


def test_tokens_end(api: APIClient, ann: User) -> None:
    AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert api.get(f"{API}/users/me").status_code == 401
    actions.issue_token(user=ann)
    assert AccessToken.objects.count() == 1


def test_the_oldest_token_gives_way(api: APIClient, ann: User, settings: LazySettings) -> None:
    settings.TOKEN_CAP = 3
    for _ in range(2):
        actions.issue_token(user=ann)
    assert api.get(f"{API}/users/me").status_code == 200
    actions.issue_token(user=ann)
    assert api.get(f"{API}/users/me").status_code == 401
    assert AccessToken.objects.count() == 3


def test_a_token_is_kept_as_a_hash_only(ann: User) -> None:
    token = actions.issue_token(user=ann)
    row = AccessToken.objects.values().get()
    assert token not in str(row)


def test_editing_oneself(api: APIClient, ann: User) -> None:
    response = api.patch(f"{API}/users/me", {"display_name": " Änn 安 ", "bio": "b" * 500})
    assert response.status_code == 200
    assert response.json()["display_name"] == "Änn 安"
    assert api.patch(f"{API}/users/me", {"bio": ""}).json()["bio"] == ""
    assert api.patch(f"{API}/users/me", {}).status_code == 200
    ann.refresh_from_db()
    assert (ann.display_name, ann.bio) == ("Änn 安", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value"), [("display_name", "x" * 51), ("bio", "x" * 501), ("bio", None), ("bio", 1), ("bio", ["a"])]
)
def test_edits_that_are_refused(api: APIClient, field: str, value: object) -> None:
    response = api.patch(f"{API}/users/me", {field: value})
    assert response.status_code == 400
    assert list(response.json()) == [field]
