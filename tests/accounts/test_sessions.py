"""Sessions are read from Redis copies, but only PostgreSQL decides that they end."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.models import Session as DjangoSession
from django.core.cache import cache
from django.db import connection
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone

from accounts.actions import log_out_everywhere
from accounts.deactivation import deactivate
from accounts.models import Session, User
from accounts.signing_in.sessions import SessionStore, user_of
from runtime.embedded import wait_for
from storage import connections
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in
from tests.support.patience import SHORT, waits_once_a_second
from tests.support.servers import Valkey, dead, frozen, full
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

PAGE = "/settings"
Fault = Callable[[Valkey], Any]


def signed_in(user: User) -> Client:
    """A browser with a cached session."""
    client = Client()
    assert client.login(username=user.username, password=PASSWORD)
    assert is_in(client)
    assert is_in(client)
    return client


def is_in(client: Client) -> bool:
    status = client.get(PAGE).status_code
    assert status in (200, 302)
    return status == 200


def asked(client: Client, page: str = PAGE) -> list[str]:
    with statements() as seen:
        assert client.get(page).status_code == 200
    return seen


def key_of(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def copies(feeds: redis.Redis) -> list[bytes]:
    return list(feeds.scan_iter("cache:*:session:*"))


FAULTS = pytest.mark.parametrize("fault", [frozen, dead, full])


def test_a_page_asks_postgresql_for_the_user_and_not_for_the_session(ann: User) -> None:
    client = logged_in(ann)
    client.get(PAGE)  # records presence and caches the session
    with_copy = asked(client)
    cache.clear()
    without = asked(client)
    assert len(without) == len(with_copy) + 1
    assert not [one for one in with_copy if "django_session" in one]
    assert sum("django_session" in one for one in without) == 1
    assert len([one for one in with_copy if "session_generation" in one]) == 1


@pytest.mark.slow
def test_a_copy_lives_an_hour_at_most_and_no_longer_than_its_session(ann: User, feeds: redis.Redis) -> None:
    client = signed_in(ann)
    (copy,) = copies(feeds)
    assert 3500 < feeds.ttl(copy) <= 3600
    Session.objects.update(expire_date=timezone.now() + timedelta(seconds=1))
    assert is_in(client)
    assert feeds.ttl(copy) <= 1
    feeds.persist(copy)
    assert wait_for(lambda: not is_in(client), 30), "the session is over, whatever the copy says"


def test_a_copy_names_neither_the_session_nor_its_key(ann: User, feeds: redis.Redis) -> None:
    key = key_of(signed_in(ann))
    (copy,) = copies(feeds)
    assert key.encode() not in copy
    assert key.encode() not in feeds.get(copy)


def log_out(client: Client, user: User) -> None:
    assert client.post("/logout").status_code == 302


def by_sql(client: Client, user: User) -> None:
    """As an operator or another version does."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_session WHERE session_key = %s", [key_of(client)])


def change_password(client: Client, user: User) -> None:
    other = logged_in(user)
    body = {"current": PASSWORD, "new": "another one of mine"}
    assert other.post("/settings/password", body).status_code == 302


def everywhere(client: Client, user: User) -> None:
    log_out_everywhere(user=user)


def be_deactivated(client: Client, user: User) -> None:
    deactivate(user=user)


ENDS = pytest.mark.parametrize("end", [log_out, by_sql, change_password, everywhere, be_deactivated])


@pytest.mark.long
@pytest.mark.slow
@ENDS
@FAULTS
def test_a_session_that_ended_while_the_cache_was_away_does_not_live_on(
    ann: User, feeds_server: Valkey, feeds: redis.Redis, end: Callable[[Client, User], None], fault: Fault
) -> None:
    client = signed_in(ann)
    key = key_of(client)
    kept = {copy: feeds.get(copy) for copy in copies(feeds)}
    with fault(feeds_server):
        end(client, ann)
    connections.cache_breaker.reset()
    for copy, value in kept.items():
        feeds.set(copy, value)  # worst case: the copy survives
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = key
    assert not is_in(thief)


def test_the_other_sessions_of_the_user_go_on_for_one_statement(ann: User) -> None:
    here, there = signed_in(ann), signed_in(ann)
    usual = len(asked(there))
    log_out(here, ann)
    assert [len(asked(there)) for _ in range(3)] == [usual + 2, usual, usual]  # the session's row, and the user again
    assert not is_in(here)


def test_a_stranger_s_session_costs_no_other_user_anything(ann: User) -> None:
    here, other = signed_in(ann), signed_in(UserFactory())
    usual = len(asked(here))
    log_out(other, ann)
    assert len(asked(here)) == usual


def test_a_session_that_ends_while_a_page_is_made_leaves_no_copy_that_counts(ann: User) -> None:
    client = signed_in(ann)
    cache.clear()
    request = HttpRequest()
    request.session = SessionStore(key_of(client))
    assert request.session["_auth_user_id"] == str(ann.pk)
    by_sql(client, ann)
    assert user_of(request) == AnonymousUser()
    assert not is_in(client)


def test_a_copy_of_a_row_that_a_failover_lost_ends_with_the_log_out(
    ann: User, feeds_server: Valkey, feeds: redis.Redis
) -> None:
    client = signed_in(ann)
    key, kept = key_of(client), {copy: feeds.get(copy) for copy in copies(feeds)}
    with connection.cursor() as cursor:  # the standby lost it
        cursor.execute("ALTER TABLE django_session DISABLE TRIGGER USER")
        cursor.execute("DELETE FROM django_session")
        cursor.execute("ALTER TABLE django_session ENABLE TRIGGER USER")
    log_out(client, ann)
    for copy, value in kept.items():
        feeds.set(copy, value)
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = key
    assert not is_in(thief)


def test_what_changes_in_a_session_is_seen_whatever_the_copy_says(ann: User, feeds: redis.Redis) -> None:
    client = signed_in(ann)
    (copy,) = copies(feeds)
    before = feeds.get(copy)
    session: Any = client.session
    session["seen"] = "this"
    session.save()
    feeds.set(copy, before)  # the deletion was lost
    request = HttpRequest()
    request.session = SessionStore(key_of(client))
    assert user_of(request) == ann
    assert request.session["seen"] == "this"


def test_sessions_that_expire_draw_nothing(ann: User) -> None:
    key_of(signed_in(ann))
    Session.objects.update(expire_date=timezone.now() - timedelta(days=1))
    User.objects.update(session_generation=7)
    SessionStore.clear_expired()
    assert not Session.objects.exists()
    ann.refresh_from_db()
    assert ann.session_generation == 7


def test_sessions_of_the_version_before_go_on(ann: User, feeds: redis.Redis) -> None:
    client = signed_in(ann)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_session SET user_id = NULL")
    feeds.flushall()
    assert is_in(client)
    assert not copies(feeds)
    DjangoSession.objects.all().delete()
    assert not is_in(client)


@pytest.mark.parametrize(
    "rubbish",
    [b"", b"7", b"null", b"{}", b'"signed:by:none"', b"\x80\x04\x95\x05\x00\x00\x00.", b"\xff\xfe", b"[" * 100_000],
)
def test_rubbish_is_no_copy(ann: User, feeds: redis.Redis, rubbish: bytes) -> None:
    client = signed_in(ann)
    (copy,) = copies(feeds)
    feeds.set(copy, rubbish)
    assert is_in(client)
    assert feeds.get(copy) != rubbish


def test_a_key_of_another_type_is_no_copy(ann: User, feeds: redis.Redis) -> None:
    client = signed_in(ann)
    (copy,) = copies(feeds)
    feeds.delete(copy)
    feeds.lpush(copy, "x")
    assert is_in(client)
    assert not connections.cache_breaker.is_open


def test_the_copy_of_one_session_is_none_of_another(ann: User, feeds: redis.Redis) -> None:
    """A copy under another session's key signs nobody in as its user."""
    signed_in(UserFactory(is_superuser=True, is_staff=True))
    (theirs,) = copies(feeds)
    client = signed_in(ann)
    (own,) = set(copies(feeds)) - {theirs}
    feeds.set(own, feeds.get(theirs))
    page = client.get(PAGE)
    assert page.context["user"] == ann


@pytest.mark.parametrize("key", ["a" * 32, "x" * 8, "\x00" * 32, "../" * 10, "'" * 32, "é" * 32, "A" * 5000])
def test_a_key_that_is_none(key: str) -> None:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    assert not is_in(client)


@pytest.mark.slow
@FAULTS
def test_logging_in_and_out_and_pages_without_the_cache(ann: User, feeds_server: Valkey, fault: Fault) -> None:
    old = signed_in(ann)
    with fault(feeds_server):
        client = Client()
        assert client.post("/login", {"username": "ann", "password": PASSWORD}).status_code == 302
        assert is_in(client)
        assert is_in(old)
        log_out(client, ann)
        assert not is_in(client)
        assert is_in(old)
    connections.cache_breaker.reset()
    assert not is_in(client)
    assert is_in(old)


@pytest.mark.slow
def test_a_frozen_cache_costs_one_wait_a_second(ann: User, feeds_server: Valkey) -> None:
    client = signed_in(ann)
    with frozen(feeds_server), waits_once_a_second("cache"):
        began = time.monotonic()
        for _ in range(3):
            assert is_in(client)
        assert time.monotonic() - began < SHORT
