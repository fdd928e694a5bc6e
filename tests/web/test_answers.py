"""One handler a door: the site's API, Mastodon's API, pages."""

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from items import actions as items
from items.models import Visibility
from relations import lists
from relations.models import List
from tests.support.clients import Caller
from tests.support.factories import UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann")


def site(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=user)}")
    return client


def page(user: User) -> Client:
    return logged_in(user)


def test_each_door_answers_a_refusal_in_its_words(user: User) -> None:
    UserFactory(username="bob")
    item = items.publish(sender=user, content={"text": "@bob"}, visibility=Visibility.MENTIONED)
    of_site = site(user).post(f"/api/v1/items/{item.pk}/repost", {}, format="json")
    assert (of_site.status_code, of_site.json()) == (403, {"detail": "Private mentions can't be reposted."})
    answer = Caller(user).post(f"v1/statuses/{item.pk}/reblog", {}, status=403)
    assert answer == {"error": "This action is not allowed"}
    assert page(user).post(f"/items/{item.pk}/repost").status_code == 403


def test_an_app_hears_the_sentence_of_the_site_without_its_stop(user: User) -> None:
    other = UserFactory()
    made = lists.create(owner=user, title="friends")
    add = site(user).put(f"/api/v1/me/lists/{made.pk}/members/{other.username}")
    assert (add.status_code, add.json()) == (409, {"detail": "Follow them first."})
    answer = Caller(user).post(f"v1/lists/{made.pk}/accounts", {"account_ids": [str(other.pk)]}, status=422)
    assert answer == {"error": "Validation failed: Follow them first"}


def test_what_goes_meanwhile_is_a_404(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lists.create(owner=user, title="friends")
    change, delete = lists.change, lists.delete

    def gone(**named: object) -> None:
        List.objects.filter(pk=made.pk).delete()  # another request of the owner
        change(**named)  # type: ignore[arg-type]

    monkeypatch.setattr(lists, "change", gone)
    monkeypatch.setattr(lists, "delete", lambda **named: (gone(**named, title="x"), delete(**named)))
    assert site(user).patch(f"/api/v1/me/lists/{made.pk}", {"title": "x"}, format="json").status_code == 404
    made.save(force_insert=True)
    assert Caller(user).put(f"v1/lists/{made.pk}", {"title": "x"}, status=404) == {"error": "Record not found"}
    made.save(force_insert=True)
    assert page(user).post(f"/lists/{made.pk}/delete").status_code == 404


@pytest.mark.parametrize("number", ["0", "007", "1x", str(2**53 + 1), str(2**64)])
def test_an_address_with_no_id_is_a_404_once_the_caller_is_known(user: User, number: str) -> None:
    address = f"/api/v1/items/{number}/like"
    assert APIClient().put(address).status_code == 401
    assert site(user).get(address).status_code == 405
    answer = site(user).put(address)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not found."})
    assert Caller(user).get(f"v1/statuses/{number}", status=404) == {"error": "Record not found"}
    assert page(user).get(f"/items/{number}").status_code == 404
