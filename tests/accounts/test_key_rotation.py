"""A new secret key, with the old one in FEEDSITE_SECRET_KEY_FALLBACKS (docs/runbook.md, Rotate keys)."""

from typing import Any

import pytest
from django.conf import settings as site_settings
from django.contrib.auth import HASH_SESSION_KEY
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.test import Client

from accounts import actions, addresses
from accounts.joining import actions as joining
from accounts.mail.models import Letter
from accounts.models import Session, User
from accounts.signing_in.sessions import SessionStore
from tests.support.at_once import at_once
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in

COOKIE = site_settings.SESSION_COOKIE_NAME
PAGE = "/settings"


def rotate(settings: Any) -> None:
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another key " * 5


def browser(key: str) -> Client:
    client = Client()
    client.cookies[COOKIE] = key
    return client


def signed_in() -> str:
    client = logged_in(UserFactory())
    assert client.get(PAGE).status_code == 200
    return client.cookies[COOKIE].value


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("has_copy", [True, False])
def test_parallel_requests_of_one_cookie_stay_signed_in(settings: Any, has_copy: bool) -> None:
    key = signed_in()
    rotate(settings)
    if has_copy:
        SessionStore(key).load()
    clients = [browser(key) for _ in range(8)]
    answers = at_once(*[lambda client=client: client.get(PAGE) for client in clients])
    assert [answer.status_code for answer in answers] == [200] * 8
    assert {client.cookies[COOKIE].value for client in clients} == {key}
    assert [row.session_key for row in Session.objects.all()] == [key]
    settings.SECRET_KEY_FALLBACKS = []
    assert browser(key).get(PAGE).status_code == 200, "without the old key, because the session has the new one's hash"
    cache.clear()
    assert browser(key).get(PAGE).status_code == 200


@pytest.mark.django_db
def test_a_new_hash_replaces_nothing_that_another_request_wrote(settings: Any) -> None:
    key = signed_in()
    rotate(settings)
    here, other = SessionStore(key), SessionStore(key)
    assert here[HASH_SESSION_KEY]
    other["seen"] = "this"
    other.save()
    here.renew_hash("new")
    assert SessionStore(key)["seen"] == "this"
    assert SessionStore(key)[HASH_SESSION_KEY] != "new"


@pytest.mark.django_db
def test_a_session_that_ended_stays_ended(settings: Any) -> None:
    key = signed_in()
    rotate(settings)
    here = SessionStore(key)
    assert here[HASH_SESSION_KEY]
    Session.objects.all().delete()
    here.renew_hash("new")
    assert not Session.objects.exists()


@pytest.mark.django_db
def test_a_forgotten_key_signs_out(settings: Any) -> None:
    key = signed_in()
    settings.SECRET_KEY = "another key " * 5
    assert browser(key).get(PAGE).status_code == 302


@pytest.mark.django_db
def test_names_of_deleted_accounts_stay_held(settings: Any) -> None:
    actions.delete_account(user=UserFactory(username="ann"))
    rotate(settings)
    with pytest.raises(ValidationError, match="taken"):
        joining.sign_up(username="Ann", password=PASSWORD)


@pytest.mark.django_db
def test_links_and_codes_that_were_sent_still_count(settings: Any) -> None:
    users = UserFactory.create_batch(2)
    for user in users:
        addresses.add(user=user, address=f"{user.username}@example.org")
    contexts = [letter.context for letter in Letter.objects.order_by("pk")]
    rotate(settings)
    addresses.prove_by_link(key=contexts[0]["link"].rstrip("/").rpartition("/")[2])
    addresses.prove_by_code(user=users[1], code=contexts[1]["code"])
    assert all(User.objects.get(pk=user.pk).email for user in users)
