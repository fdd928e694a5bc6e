import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, urlsplit

import pytest
import redis
from django.conf import settings as configured
from django.test import Client as Browser
from oauth2_provider.models import AccessToken
from rest_framework.test import APIClient

from accounts.actions import change_password, issue_token, log_out_everywhere, revoke_token
from accounts.deactivation import deactivate
from accounts.models import User
from accounts.signing_in import grants
from accounts.signing_in.tokens import digest_of
from items import actions as items
from items.models import Item
from relations import actions as relations
from runtime.embedded import wait_for
from storage import events, keys
from storage.connections import feeds_for_tasks
from stream.api import origin_of
from stream.hub import end_all
from tests.support.api import client_of
from tests.support.changed_settings import changed
from tests.support.factories import PASSWORD, ItemFactory, UserFactory
from tests.support.loops import on_a_loop
from tests.support.streams import PATH, Client, RefusedError, StreamServer
from web import rates

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SITE = "http://127.0.0.1:8000"
Listen = Callable[..., Client]
BAD_IDS = ("0", "-1", "abc", "1.5", "%00", "9" * 30, "1&item=2", "1_0", "%D9%A3")
BAD_EVENT_IDS = ("1", "x", "1-", "1-2-3", "%00", "1-2&last_event_id=1-2", "9" * 30)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[StreamServer]:
    """One process for all tests, because it starts slowly."""
    folder = tmp_path_factory.mktemp("stream")
    server = StreamServer(folder, FEEDSITE_STREAM_CAP="5", **changed(STREAM_USER_CAP=3))
    yield server
    server.end()


@pytest.fixture
def streams(process: StreamServer) -> Iterator[StreamServer]:
    """The process without connections."""
    if process.process is None:
        process.start()
    assert wait_for(lambda: not process.holds_connections(), 30)
    before = len(process.said())
    yield process
    said = process.said()[before:]
    assert said.count("Traceback") == said.count("exceptions.DisallowedHost: "), said


@pytest.fixture
def listen(streams: StreamServer) -> Iterator[Listen]:
    clients: list[Client] = []

    def listen(user: User, query: str = "", **headers: str) -> Client:
        clients.append(streams.listen(user, query, **headers))
        return clients[-1]

    yield listen
    for client in clients:
        client.close()


@pytest.fixture
def fan(author: User) -> User:
    fan = UserFactory(username="fan")
    relations.follow(follower=fan, followee=author)
    return fan


def publish(sender: User, **fields: Any) -> Item:
    return items.publish(sender=sender, content={"text": "words"}, **fields)


def test_it_tells_what_happens(listen: Listen, author: User, fan: User) -> None:
    stranger = UserFactory()
    root = ItemFactory(sender=author)
    clients = [listen(fan), listen(author), listen(stranger), listen(stranger, f"?item={root.pk}")]
    assert clients[0].response.headers["Content-Type"] == "text/event-stream"
    assert clients[0].response.headers["Cache-Control"] == "no-store"
    assert clients[0].response.headers["X-Content-Type-Options"] == "nosniff"
    for client in clients:
        client.waits_for(lambda one: one.resets == 1)
    item = publish(author)
    reply = publish(stranger, reply_to=root)
    items.edit(item=item, content={"text": "other words"})
    events.announce(events.Notified(fan.pk, {"unread": 1, "text": "中文"}))
    told = [("item", item.pk), ("edit", item.pk)]
    clients[0].waits_for(lambda one: len(one.news) == 3)
    assert clients[0].news == [*told, ("notification", {"unread": 1, "text": "中文"})]
    clients[1].waits_for(lambda one: [each for each in one.news if each[0] != "notification"] == told)
    clients[3].waits_for(lambda one: one.news == [("item", reply.pk)])
    assert clients[2].news == []
    ids = [events.Position.parse(each.id) for each in clients[0].heard]
    assert ids == sorted(set(ids))


def test_a_lost_connection_goes_on_where_it_was(listen: Listen, streams: StreamServer, author: User, fan: User) -> None:
    client = listen(fan)
    made = [publish(author)]
    client.waits_for(lambda one: len(one.news) == 1)
    client.close()
    made += [publish(author) for _ in range(3)]
    streams.kill()
    made += [publish(author) for _ in range(3)]
    streams.start()
    for resumed in (listen(fan, Last_Event_ID=client.last_id), listen(fan, f"?last_event_id={client.last_id}")):
        made.append(publish(author))
        resumed.waits_for(lambda one: len(one.news) == len(made) - 1)
        assert resumed.news == [("item", item.pk) for item in made[1:]]
        assert resumed.resets == 0
    middle = resumed.heard[2].id
    again = listen(fan, f"?last_event_id={client.last_id}", Last_Event_ID=middle)
    again.waits_for(lambda one: len(one.news) == len(made) - 4)
    assert again.news == [("item", item.pk) for item in made[4:]]


def test_a_user_who_resumes_again_and_again_is_told_to_ask(listen: Listen, author: User, fan: User) -> None:
    """Resuming is expensive. The rate is the default one, because the process has its own settings."""
    client = listen(fan)
    client.waits_for(lambda one: one.resets == 1)
    first = publish(author)
    client.waits_for(lambda one: one.news == [("item", first.pk)])
    missed = publish(author)
    client.waits_for(lambda one: len(one.news) == 2)
    calls, _ = rates.limit("resume")
    for _ in range(calls):
        rates.hit("resume", str(fan.pk))
    refused = listen(fan, Last_Event_ID=client.heard[-2].id)
    refused.waits_for(lambda one: one.resets == 1)
    assert refused.news == []
    feeds_for_tasks().delete(keys.rate("resume", str(fan.pk)))
    resumed = listen(fan, Last_Event_ID=client.heard[-2].id)
    resumed.waits_for(lambda one: one.news == [("item", missed.pk)])


def test_what_cannot_be_made_up_is_said_to_be_lost(listen: Listen, author: User, fan: User, feeds: redis.Redis) -> None:
    client = listen(fan)
    client.waits_for(lambda one: one.resets == 1)
    item = publish(author)
    client.waits_for(lambda one: one.news == [("item", item.pk)])
    trimmed = client.heard[0].id
    feeds.xtrim(keys.events(), minid=client.last_id, approximate=False)
    old = listen(fan, f"?last_event_id={trimmed}")
    old.waits_for(lambda one: one.resets == 1)
    assert old.news == []
    far = listen(fan, "?last_event_id=99999999999999-0")
    far.waits_for(lambda one: one.resets == 1)
    for one in (old, far, client):
        one.close()
    feeds.delete(keys.events())
    empty = listen(fan, f"?last_event_id={client.last_id}")
    empty.waits_for(lambda one: one.resets == 1)
    item = publish(author)
    empty.waits_for(lambda one: one.news == [("item", item.pk)])
    for other in (old, far):
        assert other.news == []


def test_an_id_ahead_of_the_servers_clock_costs_nothing(listen: Listen, author: User, fan: User) -> None:
    """It gets `reset`, then all new events."""
    ahead = listen(fan, "?last_event_id=99999999999999-0")
    ahead.waits_for(lambda one: one.resets == 1)
    item = publish(author)
    ahead.waits_for(lambda one: one.news == [("item", item.pk)])


def test_listening_by_token_session_and_ticket(
    streams: StreamServer, settings: Any, author: User, fan: User, client: Browser
) -> None:
    settings.STREAM_PORT = streams.port
    client.force_login(fan)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    redirect = client.get(f"{PATH}?item=7&last_event_id=1-2", headers={"host": "127.0.0.1:8000"})
    assert redirect.status_code == 307
    place = urlsplit(redirect["Location"])
    assert (place.scheme, place.netloc, place.path) == ("http", f"127.0.0.1:{streams.port}", PATH)
    assert re.fullmatch(r"ticket=[\w%:.-]+&item=7&last_event_id=1-2", place.query)
    assert client.cookies["sessionid"].value not in redirect["Location"]
    api = client_of(fan)
    by_token = urlsplit(api.get(PATH)["Location"])
    for query, headers in (
        ("", {"Cookie": cookie}),
        (f"?{place.query}", {}),
        (f"?{by_token.query}", {"Cookie": "sessionid=wrong"}),
    ):
        listener = Client(streams.port, query, headers)
        listener.waits_for(lambda one: one.resets == 1)
        item = publish(author)
        listener.waits_for(lambda one: one.news == [("item", item.pk)])  # noqa: B023 (called at once)
        listener.close()


def test_only_the_sites_own_origin_may_listen_from_a_page(
    streams: StreamServer, settings: Any, fan: User, client: Browser
) -> None:
    settings.STREAM_PORT = streams.port
    client.force_login(fan)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    place = urlsplit(client.get(PATH, headers={"host": "127.0.0.1:8000"})["Location"])
    allowed = []
    another = grants.issue_ticket(user=UserFactory(), origin=SITE, token=0)
    elsewhere = grants.issue_ticket(user=fan, origin="http://elsewhere.example", token=0)
    with patch("time.time", lambda: time.time_ns() / 1e9 - grants.TICKET_SECONDS - 1):
        old = grants.issue_ticket(user=fan, origin=SITE, token=0)
    for query, origin in (
        (place.query, SITE),
        (place.query, "http://127.0.0.1:9"),
        ("", SITE),
        ("ticket=x", SITE),
        (f"ticket={another}", SITE),
        (f"ticket={old}", SITE),
        (f"ticket={elsewhere}", "http://elsewhere.example"),
    ):
        listener = Client(streams.port, f"?{query}", {"Origin": origin, "Cookie": cookie})
        allowed.append(listener.response.headers.get("Access-Control-Allow-Origin"))
        assert (listener.response.headers.get("Access-Control-Allow-Credentials") == "true") is bool(allowed[-1])
        listener.close()
        assert wait_for(lambda: streams.get(PATH, Cookie="sessionid=x").status == 401, 60)
    assert allowed == [SITE, *[None] * 6]


def test_a_ticket_is_for_the_origins_that_are_configured(settings: Any, fan: User) -> None:
    ours = grants.Ticket(fan.pk, SITE, 0, "")
    assert origin_of(ours, fan) == SITE
    settings.STREAM_ORIGINS = ["https://example.com"]
    assert origin_of(ours, fan) == ""
    assert origin_of(ours._replace(origin="https://example.com"), fan) == "https://example.com"
    assert origin_of(ours._replace(origin="https://example.com", user_id=fan.pk + 1), fan) == ""


def test_tickets_end(streams: StreamServer, fan: User) -> None:
    with patch("time.time", lambda: time.time_ns() / 1e9 - grants.TICKET_SECONDS - 1):
        old = grants.issue_ticket(user=fan, origin=SITE, token=0)
    gone = UserFactory()
    ticket = grants.issue_ticket(user=gone, origin=SITE, token=0)
    deactivate(user=gone)
    out = UserFactory()
    of_session, of_token = (grants.issue_ticket(user=out, origin=SITE, token=token) for token in (0, 2**40))
    log_out_everywhere(user=out)
    for text in (old, ticket, of_session, of_token, "x", ticket[:-1], "a:b:c"):
        response = streams.get(f"{PATH}?ticket={text}")
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Token")


def test_the_site_has_no_stream_of_its_own(settings: Any, fan: User) -> None:
    """The request missed the stream process. A ticket gives no ticket."""
    api = APIClient()
    assert api.get(PATH).status_code == 401
    settings.STREAM_PORT = 4
    ticket = grants.issue_ticket(user=fan, origin=SITE, token=0)
    assert api.get(f"{PATH}?ticket={ticket}").status_code == 503
    api.force_authenticate(fan)
    assert api.get(PATH).status_code == 307
    settings.STREAM_PORT = 0
    response = api.get(PATH)
    assert (response.status_code, response["Retry-After"]) == (503, "2")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *((f"?item={value}", "item") for value in BAD_IDS),
        *((f"?last_event_id={value}", "last_event_id") for value in BAD_EVENT_IDS),
        ("?ticket=a&ticket=b", "ticket"),
    ],
)
def test_bad_queries(settings: Any, fan: User, query: str, field: str) -> None:
    settings.STREAM_PORT = 4
    api = APIClient()
    api.force_authenticate(fan)
    response = api.get(f"{PATH}{query}")
    assert response.status_code == 400
    assert list(response.json()) == [field]


def test_what_the_process_refuses(streams: StreamServer, fan: User) -> None:
    token = f"Token {issue_token(user=fan)}"
    for path, method, headers, status in (
        (PATH, "GET", {}, 401),
        (PATH, "GET", {"Authorization": "Token wrong"}, 401),
        (PATH, "GET", {"Cookie": "sessionid=wrong"}, 401),
        (f"{PATH}?item=x", "GET", {"Authorization": token}, 400),
        (PATH, "GET", {"Authorization": token, "Last-Event-ID": "x"}, 400),
        (PATH, "POST", {"Authorization": token}, 405),
        (PATH, "DELETE", {}, 405),
        ("/api/v1/timeline/home", "GET", {"Authorization": token}, 404),
        ("/", "GET", {}, 404),
        (f"{PATH}/", "GET", {}, 404),
        (PATH, "GET", {"Host": "elsewhere.example", "Authorization": token}, 400),
    ):
        response = streams.get(path, method, **headers)
        assert response.status == status, (path, method, headers, response.status)
        assert response.headers["Content-Type"] == "application/json"
        assert json.loads(response.body)  # type: ignore[attr-defined]
        assert ("WWW-Authenticate" in response.headers) is (status == 401)


def test_refused_connections_are_counted(tmp_path: Path, fan: User) -> None:
    """They count by address. Known users go on."""
    server = StreamServer(tmp_path, FEEDSITE_RATES="attempt=3/hour,read=6/hour")
    server.start()
    try:
        token = f"Token {issue_token(user=fan)}"
        assert server.get(PATH, "HEAD", Authorization=token).status == 200
        bad = [{"Authorization": "Token wrong"}, {"Cookie": "sessionid=wrong"}, {"Authorization": "Token a b"}] * 2
        assert [server.get(PATH, **headers).status for headers in bad] == [401] * 3 + [429] * 3
        assert [server.get(f"{PATH}?ticket=wrong{number}").status for number in range(8)] == [401] * 6 + [429] * 2
        assert server.get(PATH, "HEAD", Authorization=token).status == 200
        ticket = grants.issue_ticket(user=fan, origin="", token=0)
        assert server.get(f"{PATH}?ticket={quote(ticket)}", "HEAD").status == 200
    finally:
        server.kill()


def test_a_look_at_the_head_opens_nothing(streams: StreamServer, fan: User) -> None:
    token = f"Token {issue_token(user=fan)}"
    for _ in range(5):  # more than one user may have open
        response = streams.get(PATH, "HEAD", Authorization=token)
        assert (response.status, response.headers["Content-Type"]) == (200, "text/event-stream")


def test_too_many_connections(listen: Listen, streams: StreamServer, author: User, fan: User) -> None:
    mine = [listen(fan) for _ in range(3)]
    token = issue_token(user=fan)
    response = streams.get(PATH, Authorization=f"Token {token}")
    assert (response.status, response.headers["Retry-After"]) == (429, "30")
    others = [listen(author) for _ in range(2)]
    response = streams.get(PATH, Authorization=f"Token {issue_token(user=UserFactory())}")
    assert (response.status, response.headers["Retry-After"]) == (503, "30")
    for one in [*mine, *others]:
        one.close()
    assert wait_for(lambda: _opens(streams, token), 60), "closed connections count no more"


def _opens(streams: StreamServer, token: str) -> bool:
    try:
        Client(streams.port, "", {"Authorization": f"Token {token}"}).close()
    except RefusedError:
        return False
    return True


def test_concurrent_openings_do_not_slip_past_the_limit(streams: StreamServer, fan: User) -> None:
    token = issue_token(user=fan)

    def attempt(_: int) -> Client | None:
        try:
            return Client(streams.port, "", {"Authorization": f"Token {token}"})
        except RefusedError:
            return None

    with ThreadPoolExecutor(12) as pool:
        opened = [each for each in pool.map(attempt, range(12)) if each]
    assert len(opened) == 3
    for each in opened:
        each.close()


def test_a_connection_ends_with_what_it_rests_on(tmp_path: Path, author: User, fan: User, client: Browser) -> None:
    server = StreamServer(tmp_path, **changed(STREAM_RECHECK_SECONDS=0.3))
    server.start()
    try:
        client.force_login(fan)
        session = Client(server.port, "", {"Cookie": f"sessionid={client.cookies['sessionid'].value}"})
        token = issue_token(user=fan)
        by_token = Client(server.port, "", {"Authorization": f"Token {token}"})
        ticket = grants.issue_ticket(user=author, origin=SITE, token=0)
        by_ticket = Client(server.port, f"?ticket={ticket}", {})
        stays = server.listen(author)
        leaves = server.listen(fan)
        for _ in range(3):  # must end nothing else
            user = UserFactory()
            lapsed = server.listen(user)
            User.objects.filter(pk=user.pk).update(is_active=False)  # no event says so
            lapsed.waits_for(lambda one: one.has_ended)
            lapsed.close()
        assert not any(one.has_ended for one in (session, by_token, by_ticket, leaves))
        client.logout()
        session.waits_for(lambda one: one.has_ended)
        assert not by_token.has_ended
        revoke_token(token_id=AccessToken.objects.get(token_checksum=digest_of(token)).pk)
        by_token.waits_for(lambda one: one.has_ended)
        assert not leaves.has_ended
        fan.set_password("another password")
        fan.save()
        leaves.waits_for(lambda one: one.has_ended)
        deactivate(user=author)
        for one in (stays, by_ticket):
            one.waits_for(lambda each: each.has_ended)
        for one in (session, by_token, by_ticket, stays, leaves):
            one.close()
    finally:
        server.kill()


def test_revoked_connections_end_at_once(tmp_path: Path, author: User, fan: User) -> None:
    server = StreamServer(tmp_path, **changed(STREAM_RECHECK_SECONDS=3600))
    server.start()
    try:
        browsers = [Browser(), Browser()]
        for browser in browsers:
            browser.force_login(fan)
        cookies = [browser.cookies["sessionid"].value for browser in browsers]
        out, stays = (Client(server.port, "", {"Cookie": f"sessionid={cookie}"}) for cookie in cookies)
        tokens = [issue_token(user=fan) for _ in range(2)]
        revoked, kept = (Client(server.port, "", {"Authorization": f"Token {token}"}) for token in tokens)
        by_ticket = Client(server.port, f"?ticket={grants.issue_ticket(user=fan, origin=SITE, token=0)}", {})
        others = server.listen(author)
        assert not any(one.has_ended for one in (out, stays, revoked, kept, by_ticket, others))
        browsers[0].post("/logout")
        out.waits_for(lambda one: one.has_ended)
        by_ticket.waits_for(lambda one: one.has_ended)
        APIClient().delete("/api/v1/auth/token", headers={"Authorization": f"Token {tokens[0]}"})
        revoked.waits_for(lambda one: one.has_ended)
        assert not stays.has_ended
        assert not kept.has_ended
        log_out_everywhere(user=fan, keep_token=AccessToken.objects.get(token_checksum=digest_of(tokens[1])).pk)
        stays.waits_for(lambda one: one.has_ended)
        assert not kept.has_ended
        change_password(user=User.objects.get(pk=fan.pk), current=PASSWORD, new="another password 7")
        kept.waits_for(lambda one: one.has_ended)
        assert not others.has_ended
        deactivate(user=author)
        others.waits_for(lambda one: one.has_ended)
        assert all(one.is_whole for one in (out, stays, revoked, kept, by_ticket, others))
        for one in (out, stays, revoked, kept, by_ticket, others):
            one.close()
    finally:
        server.kill()


def test_it_serves_the_settings_of_the_site() -> None:
    """Nobody could tell that the session ended."""
    assert grants.BORROWED_SECONDS <= 60
    assert configured.STREAM_USER_CAP < configured.STREAM_CAP


def test_a_task_ends_whose_cancellation_is_dropped() -> None:
    """`wait_for` may drop a cancellation in Python 3.11."""

    async def stop() -> tuple[list[str], bool]:
        answer, asks, turns = asyncio.get_running_loop().create_future(), asyncio.Event(), list[str]()

        async def listen() -> None:
            asks.set()
            turns.append(await asyncio.wait_for(answer, 60))
            await asyncio.Event().wait()

        task = asyncio.create_task(listen())
        await asks.wait()
        answer.set_result("answered")
        async with asyncio.timeout(10):
            await end_all([task])
        return turns, task.cancelled()

    turns, is_cancelled = on_a_loop(stop())
    assert is_cancelled
    assert turns == (["answered"] if sys.version_info < (3, 12) else [])


def test_the_process_says_that_it_is_at_work(streams: StreamServer) -> None:
    assert "feedsite.starts: stream is at work, for 5 connections" in streams.said()
