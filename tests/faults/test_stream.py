"""Streams stay open, lose nothing silently, and slow nobody else."""

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection

from accounts.actions import issue_token
from accounts.models import User
from items import actions as items
from items.models import Item
from runtime.embedded import wait_for
from storage import events
from storage.connections import feeds_breaker
from tests.support import pooler
from tests.support.clients import token_of
from tests.support.patience import SHORT
from tests.support.servers import Valkey, frozen, restart
from tests.support.sites import until
from tests.support.streams import PATH, Client, StreamServer, database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(180)]


def publish(author: User) -> Item:
    start = time.monotonic()
    item = items.publish(sender=author, content={"text": "words"})
    assert time.monotonic() - start < SHORT
    return item


def app_of(streams: StreamServer, user: User) -> Client:
    return Client(streams.port, "", {"Authorization": f"Bearer {token_of(user, 'read')}"}, "/api/v1/streaming/user")


@contextmanager
def no_database() -> Iterator[None]:
    name = connection.settings_dict["NAME"]
    url = database_url().replace(f"/{name}?", "/postgres?")
    connection.close()
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            session.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@pytest.mark.long
def test_the_stream_server_dead_costs_nothing_but_liveness(streams: StreamServer, author: User, fan: User) -> None:
    client = streams.listen(fan)
    first = publish(author)
    client.waits_for(lambda one: one.news == [("item", first.pk)])
    streams.kill()
    second = publish(author)
    client.waits_for(lambda one: one.has_ended)
    streams.start()
    again = streams.listen(fan, Last_Event_ID=client.last_id)
    again.waits_for(lambda one: one.news == [("item", second.pk)])
    for one in (client, again):
        one.close()


@pytest.mark.long
def test_the_feeds_server_frozen(streams: StreamServer, author: User, fan: User, feeds_server: Valkey) -> None:
    client = streams.listen(fan)
    client.waits_for(lambda one: one.resets == 1)
    with frozen(feeds_server):
        publish(author)
        assert wait_for(lambda: "The feeds server does not answer" in streams.said(), 60)
        late = streams.listen(fan)
        late.waits_for(lambda one: one.resets == 1)
    client.waits_for(lambda one: one.resets >= 2)
    feeds_breaker.reset()
    item = publish(author)
    for one in (client, late):
        one.waits_for(lambda each: ("item", item.pk) in each.news)
        assert not one.has_ended
        one.close()


@pytest.mark.long
def test_the_feeds_server_killed(streams: StreamServer, author: User, fan: User, feeds_server: Valkey) -> None:
    client = streams.listen(fan)
    before = publish(author)
    client.waits_for(lambda one: one.news == [("item", before.pk)])
    last_id = client.last_id
    restart(feeds_server)
    client.waits_for(lambda one: one.resets == 2)
    feeds_breaker.reset()
    item = publish(author)
    client.waits_for(lambda one: one.news == [("item", before.pk), ("item", item.pk)])
    resumed = streams.listen(fan, Last_Event_ID=last_id)
    resumed.waits_for(lambda one: one.resets == 1)
    for one in (client, resumed):
        one.close()


@pytest.mark.long
def test_postgresql_gone(streams: StreamServer, author: User, fan: User) -> None:
    client = streams.listen(fan)
    item = publish(author)
    client.waits_for(lambda one: one.news == [("item", item.pk)])
    token = issue_token(user=fan)
    with no_database():
        events.announce(events.Edited(item.pk, "public"), events.Notified(fan.pk, {"unread": 1}))
        response = streams.get(PATH, Authorization=f"Token {token}")
        assert (response.status, response.headers["Retry-After"]) == (503, "2")
        time.sleep(2)  # must not close the connection or be logged again
        assert not client.has_ended
        assert len(client.news) == 1
    client.waits_for(lambda one: len(one.news) == 3)
    assert client.news == [("item", item.pk), ("edit", item.pk), ("notification", {"unread": 1})]
    # A pooler holds queries until PostgreSQL is back.
    assert streams.said().count("PostgreSQL does not answer") in ({0, 1} if pooler.IS_WANTED else {1, 2})
    client.close()


@pytest.mark.long
def test_a_client_that_does_not_read_is_dropped(streams: StreamServer, author: User, fan: User) -> None:
    slow = http.client.HTTPConnection("127.0.0.1", streams.port, timeout=60)
    slow.request("GET", PATH, headers={"Authorization": f"Token {issue_token(user=fan)}"})
    response = slow.getresponse()
    sound = streams.listen(author)
    payload = {"text": "x" * 40_000}
    for batch in range(40):
        for _ in range(25):
            events.announce(events.Notified(fan.pk, payload))
        # At its own speed: it answers a missed event with `reset`.
        events.announce(events.Notified(author.pk, {"batch": batch}))
        sound.waits_for(lambda one, batch=batch: one.news[-1:] == [("notification", {"batch": batch})])  # type: ignore[misc]
    assert "reset" not in {each.name for each in sound.heard[1:]}
    read = 0
    try:
        while chunk := response.read1(1_000_000):
            read += len(chunk)
    except http.client.HTTPException:
        pass
    assert read < 30_000_000, "not all of the 40 MB"
    until(lambda: streams.get("/healthz").status == 200, 60)
    again = streams.listen(fan)
    again.waits_for(lambda one: one.resets == 1)
    for one in (sound, again):
        one.close()
    slow.close()


@pytest.mark.long
def test_an_error_that_is_no_outage(streams: StreamServer, author: User, fan: User) -> None:
    """Open streams only get a `reset`. A probe sees it."""
    client = streams.listen(fan)
    first = publish(author)
    client.waits_for(lambda one: one.news == [("item", first.pk)])
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE relations_mute RENAME COLUMN muted_id TO missing")
        try:
            events.announce(events.Edited(first.pk, "public"))
            client.waits_for(lambda one: one.resets == 2)
            assert streams.get("/healthz").status == 503
            resumed = streams.listen(fan, Last_Event_ID=client.heard[0].id)
            resumed.waits_for(lambda one: one.resets == 1)
        finally:
            cursor.execute("ALTER TABLE relations_mute RENAME COLUMN missing TO muted_id")
    until(lambda: streams.get("/healthz").status == 200, 60)
    item = publish(author)
    client.waits_for(lambda one: one.news == [("item", first.pk), ("item", item.pk)])
    resumed.waits_for(lambda one: one.news == [("item", item.pk)])
    said = streams.said()
    assert said.count("messages for 'pages' failed") == 1
    assert 'column "muted_id" does not exist' in said or "muted_id does not exist" in said
    for one in (client, resumed):
        assert not one.has_ended
        one.close()


@pytest.mark.long
def test_an_error_of_one_dialect_is_its_own(streams: StreamServer, author: User, fan: User) -> None:
    """Only the apps' statement fails. Pages notice nothing."""
    page, app = streams.listen(fan), app_of(streams, fan)
    first = publish(author)
    page.waits_for(lambda one: one.news == [("item", first.pk)])
    app.waits_for(lambda one: [each.name for each in one.heard] == ["update"])
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE items_bookmark RENAME COLUMN user_id TO missing")
        try:
            second = publish(author)
            page.waits_for(lambda one: one.news == [("item", first.pk), ("item", second.pk)])
            app.waits_for(lambda one: one.has_ended and one.is_whole)
            third = publish(author)
            page.waits_for(lambda one: one.news[2:] == [("item", third.pk)])
            assert streams.get("/healthz").status == 503
        finally:
            cursor.execute("ALTER TABLE items_bookmark RENAME COLUMN missing TO user_id")
    again = app_of(streams, fan)
    items.edit(item=third, content={"text": "other words"})
    again.waits_for(lambda one: [each.name for each in one.heard][-1:] == ["status.update"] or one.has_ended)
    until(lambda: streams.get("/healthz").status == 200, 60)
    assert page.resets == 1
    assert not page.has_ended
    said = streams.said()
    assert said.count("messages for 'apps' failed") == 1
    assert "messages for 'pages' failed" not in said
    for one in (page, app, again):
        one.close()


@pytest.mark.long
def test_a_revocation_that_cannot_be_checked_ends_the_connections(
    streams: StreamServer, author: User, fan: User
) -> None:
    """The stream reports it once: unchecked counts as revoked."""
    client = streams.listen(fan)
    client.waits_for(lambda one: one.resets == 1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE oauth2_provider_accesstoken RENAME COLUMN expires TO missing")
        try:
            events.announce(events.Revoked(fan.pk))
            client.waits_for(lambda one: one.has_ended)
        finally:
            cursor.execute("ALTER TABLE oauth2_provider_accesstoken RENAME COLUMN missing TO expires")
    client.close()
