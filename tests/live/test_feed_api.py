from datetime import timedelta
from typing import Any

import pytest
import redis
import time_machine
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import User
from live.models import State
from relations import actions as relations
from tests.support.api import client_of
from tests.support.sessions import seen, session
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db(transaction=True)

FEED = "/api/v1/live/feed"


@pytest.fixture
def host(workers: Workers) -> User:
    return seen(username="host", display_name="The Host")


@pytest.fixture
def reader(host: User) -> User:
    reader = seen()
    relations.follow(follower=reader, followee=host)
    return reader


@pytest.fixture
def api(reader: User) -> APIClient:
    return client_of(reader)


@pytest.mark.slow
def test_a_walk(api: APIClient, host: User, workers: Workers) -> None:
    ended, upcoming, live = (session(host, state) for state in (State.REPLAY, State.UPCOMING, State.LIVE))
    workers.work()
    first = api.get(FEED, {"page_size": 2})
    assert first.status_code == 200
    assert first["X-Feed-Source"] == "lineup,sql", "no inbox of replays is built for who does not read"
    body = first.json()
    assert list(body) == ["items", "last_id", "session_id", "has_more"]
    assert [(item["id"], item["state"], item["shown_as"]) for item in body["items"]] == [
        (str(live.pk), "live", "live"),
        (str(upcoming.pk), "upcoming", "upcoming"),
    ]
    assert body["items"][0]["host"]["username"] == "host"
    assert body["last_id"] == str(upcoming.pk)
    assert body["has_more"] is True
    rest = api.get(FEED, {"session_id": body["session_id"], "last_id": body["last_id"]}).json()
    assert [item["id"] for item in rest["items"]] == [str(ended.pk)]
    assert rest["last_id"] == str(ended.position)
    assert (rest["session_id"], rest["has_more"]) == (body["session_id"], False)
    end = api.get(FEED, {"session_id": body["session_id"], "last_id": rest["last_id"]}).json()
    assert end == {"items": [], "last_id": None, "session_id": body["session_id"], "has_more": False}
    again = api.get(FEED, {"session_id": body["session_id"], "page_size": 2}).json()
    assert again == body
    only = api.get(FEED, {"last_id": ended.position + 1}).json()
    assert ([item["id"] for item in only["items"]], only["session_id"]) == ([str(ended.pk)], None)


@pytest.mark.parametrize(
    "value", ["0", "-1", "abc", "1_0", "٣", "²", "10" * 10, "1" * 5_000, "1.5", "+1", " 1", "1\x00"]
)
def test_a_page_size_that_is_none(api: APIClient, value: str) -> None:
    answer = api.get(FEED, {"page_size": value})
    assert (answer.status_code, list(answer.json())) == (400, ["page_size"])


@pytest.mark.parametrize("value", ["abc", "1.5", "NaN", "\x00", "-1", "0", str(2**53 + 1), "1" * 5_000])
def test_a_last_id_that_is_none(api: APIClient, value: str) -> None:
    answer = api.get(FEED, {"last_id": value})
    assert (answer.status_code, list(answer.json())) == (400, ["last_id"])


@pytest.mark.parametrize("name", ["page_size", "last_id", "session_id"])
def test_empty_parts_are_absent_and_nothing_is_given_twice(api: APIClient, host: User, name: str) -> None:
    session(host, State.LIVE)
    assert len(api.get(f"{FEED}?{name}=").json()["items"]) == 1
    answer = api.get(f"{FEED}?{name}=1&{name}=1")
    assert (answer.status_code, list(answer.json())) == (400, [name])


def test_a_large_page_size_counts_as_100_and_any_position_is_one(api: APIClient, host: User) -> None:
    for state in (State.LIVE, State.REPLAY):
        session(host, state)
    body = api.get(FEED, {"page_size": 10**15}).json()
    assert len(body["items"]) == 2
    far = {"session_id": body["session_id"], "last_id": 2**53}
    assert len(api.get(FEED, far).json()["items"]) == 1, "a position among the replays, from the top"
    assert api.get(FEED, far | {"last_id": 1}).json()["items"] == []


def test_a_session_id_that_is_not_the_callers(api: APIClient, host: User) -> None:
    """Malformed, forged and foreign ids get the same 404 as unknown objects."""
    unknown = api.get("/api/v1/live/sessions/1").content
    foreign = client_of(host).get(FEED).json()["session_id"]
    own = api.get(FEED).json()["session_id"]
    forged = own[:-2] + ("BA" if own.endswith("AA") else "AA")
    for name in ("x", "\x00", "é", "0", foreign, forged, own.upper(), own + own, "A" * 5_000):
        answer = api.get(FEED, {"session_id": name})
        assert (answer.status_code, answer.content) == (404, unknown), name


def test_an_expired_walk_is_gone(api: APIClient, host: User, feeds: redis.Redis) -> None:
    session(host, State.LIVE)
    name = api.get(FEED).json()["session_id"]
    feeds.flushall()
    with time_machine.travel(timezone.now() + timedelta(minutes=31)):
        answer = api.get(FEED, {"session_id": name})
    assert answer.status_code == 410
    assert answer.json() == {"detail": "This walk has expired; begin a new one.", "code": "snapshot_expired"}


def test_strangers(db: None) -> None:
    answer = APIClient().get(FEED)
    assert answer.status_code == 401
    assert "WWW-Authenticate" in answer


def test_the_snapshot_is_written_when_the_answer_is_closed(
    api: APIClient, host: User, feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    from live import feed_api

    session(host, State.LIVE)
    kept: list[Any] = []
    monkeypatch.setattr(feed_api.LivePage, "store", lambda page: kept.append(page.session_id))
    answer = api.get(FEED)
    assert kept == [answer.json()["session_id"]]
    answer.close()
    assert len(kept) == 1
