from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.levels.presence import PresenceMiddleware
from accounts.models import Level, User
from stream.hub import Hub
from tests.support.factories import ItemFactory, UserFactory
from tests.support.loops import on_a_loop
from tests.support.statements import statements

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = timedelta(days=8)


def away(level: Level = Level.MONTHLY) -> User:
    return UserFactory.create(level=level, last_seen_at=timezone.now() - LONG_AGO)


def is_seen(user: User) -> bool:
    user.refresh_from_db()
    assert user.last_seen_at is not None
    here = timezone.now() - user.last_seen_at < timedelta(minutes=1)
    assert (user.level == Level.DAILY) == here
    return here


@pytest.mark.parametrize("address", ["/", "/discover", "/live", "/notifications", "/search?q=words", "item"])
def test_every_page_counts(address: str, client: Client) -> None:
    user = away()
    item = ItemFactory()
    client.force_login(user)
    page = client.get(f"/items/{item.pk}" if address == "item" else address, follow=True)
    assert page.status_code == 200
    assert is_seen(user)


@pytest.mark.parametrize("address", ["timeline/home", "me/history", "live/feed", "me/notifications", "users/me"])
def test_every_call_counts(address: str) -> None:
    user = away()
    api = APIClient(headers={"Authorization": f"Token {issue_token(user=user)}"})
    assert api.get(f"/api/v1/{address}").status_code == 200
    assert is_seen(user)


def test_a_stranger_and_a_wrong_token_count_for_nobody(client: Client) -> None:
    user = away()
    client.get("/")
    APIClient(headers={"Authorization": "Token wrong"}).get("/api/v1/timeline/home")
    assert not is_seen(user)


@pytest.mark.slow
def test_being_here_is_written_once_in_the_interval(client: Client) -> None:
    user = away()
    client.force_login(user)
    with statements() as first:
        client.get("/")
    with statements() as second:
        client.get("/")
    assert sum("last_seen_at = now()" in one for one in first) == 1
    assert not any("last_seen_at = now()" in one for one in second)


def test_it_is_written_after_the_answer() -> None:
    user = away()
    request = RequestFactory().get("/")
    request.user = user
    response = PresenceMiddleware(lambda request: HttpResponse())(request)
    assert not is_seen(user)
    response.close()  # as the server does after sending
    assert is_seen(user)


def test_an_open_stream_counts(settings: Any) -> None:
    settings.LAST_SEEN_INTERVAL = timedelta(seconds=0)
    user, other = away(), away()

    async def one_turn() -> None:
        hub = Hub()
        hub._of_user[user.pk] = 1
        hub._opening = ThreadPoolExecutor(1)  # closes the one connection
        await hub._note_presence()
        await hub.in_thread(connections.close_all)
        await hub.stop()

    on_a_loop(one_turn())
    assert is_seen(user)
    assert not is_seen(other)


@pytest.mark.slow
@pytest.mark.sessions
def test_a_database_that_only_reads_fails_no_page(client: Client) -> None:
    user = away()
    client.force_login(user)
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    assert client.get("/live").status_code == 200
    connection.close()
    assert not is_seen(user)
    assert client.get("/live").status_code == 200
    assert is_seen(user)
    connection.close()
