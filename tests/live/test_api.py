from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts import deactivation
from accounts.models import User
from live import actions
from live.models import LiveSession, Reminder
from relations import actions as relations
from tests.support.api import client_of
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db

LIVE = "/api/v1/live/sessions"
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def in_hours(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


@pytest.fixture
def host() -> User:
    return UserFactory(username="host", display_name="The Host")


@pytest.fixture
def fan() -> User:
    return UserFactory(username="fan")


@pytest.fixture
def api(host: User) -> APIClient:
    return client_of(host)


def plan(host: User, **fields: Any) -> LiveSession:
    now = datetime.now(UTC)
    return actions.create(host=host, now=now, **{"title": "Show", "starts_at": now + timedelta(hours=2)} | fields)


@pytest.mark.slow
def test_from_a_plan_to_a_replay(api: APIClient, host: User, fan: User) -> None:
    starts_at = in_hours(3)
    made = api.post(LIVE, {"title": "Show", "starts_at": starts_at, "url": "https://watch.example/1"})
    assert made.status_code == 201
    session = LiveSession.objects.get()
    body = made.json()
    assert datetime.fromisoformat(body.pop("starts_at")) == session.starts_at
    assert body == {
        "id": str(session.pk),
        "title": "Show",
        "host": {"id": str(host.pk), "username": "host", "display_name": "The Host", "is_big_v": False}
        | {"avatar_url": host.avatar_url},
        "url": "https://watch.example/1",
        "cover_url": "",
        "cover": None,
        "state": "upcoming",
        "shown_as": "upcoming",
        "started_at": None,
        "ended_at": None,
        "duration": None,
        "reminder": False,
        "automatic": False,
        "version": 1,
        "hidden": False,
        "review": "",
        "minutes": 60,
    }
    path = f"{LIVE}/{session.pk}"
    seen = client_of(fan).get(path).json()
    assert seen["url"] == "", "nobody watches what has not begun"
    assert not {"hidden", "minutes", "review"} & seen.keys()

    edited = api.patch(path, {"title": "Better show", "automatic": True, "minutes": 30})
    assert (edited.json()["title"], edited.json()["automatic"], edited.json()["minutes"]) == ("Better show", True, 30)
    live = api.post(f"{path}/start")
    assert live.status_code == 200
    assert live.json()["state"] == "live"
    assert APIClient().get(path).json()["url"] == "https://watch.example/1"
    ended = api.post(f"{path}/end")
    assert (ended.json()["state"], ended.json()["version"]) == ("replay", 4)
    assert ended.json()["duration"] >= 0
    assert api.patch(path, {"title": "Watch it again"}).json()["title"] == "Watch it again"


@pytest.mark.slow
def test_a_wrong_transition_says_the_state(api: APIClient, host: User) -> None:
    session = plan(host)
    path = f"{LIVE}/{session.pk}"
    assert api.post(f"{path}/end").json() == {"detail": "The session is upcoming.", "state": "upcoming"}
    assert api.post(f"{path}/start").status_code == 200
    again = api.post(f"{path}/start")
    assert (again.status_code, again.json()["state"]) == (409, "live")
    assert api.delete(path).json()["state"] == "live"
    assert api.patch(path, {"starts_at": in_hours(9)}).status_code == 409
    assert api.post(f"{path}/end").status_code == 200
    assert api.post(f"{path}/start").json()["state"] == "replay"
    other = plan(host)
    assert api.delete(f"{LIVE}/{other.pk}").status_code == 204
    assert api.patch(f"{LIVE}/{other.pk}", {"title": "x"}).json()["state"] == "cancelled"
    assert api.put(f"{LIVE}/{other.pk}/reminder").json()["state"] == "cancelled"


CALLS = [("patch", ""), ("delete", ""), ("post", "/start"), ("post", "/end"), ("put", "/reminder")]


def call(client: APIClient, method: str, path: str) -> Any:
    return getattr(client, method)(path, {"title": "x"} if method == "patch" else None)


def test_only_the_host_changes_it(host: User, fan: User) -> None:
    session = plan(host)
    client = client_of(fan)
    for method, route in CALLS[:-1]:
        assert call(client, method, f"{LIVE}/{session.pk}{route}").status_code == 403
        assert call(APIClient(), method, f"{LIVE}/{session.pk}{route}").status_code == 401
    assert APIClient().put(f"{LIVE}/{session.pk}/reminder").status_code == 401
    session.refresh_from_db()
    assert (session.state, session.version) == ("upcoming", 1)


@pytest.mark.slow
@pytest.mark.parametrize("why", ["hidden", "blocks", "blocked", "inactive", "deleted account"])
def test_readers_who_may_not_see_it_find_nothing(host: User, fan: User, why: str) -> None:
    session = plan(host)
    relations.follow(follower=fan, followee=host)
    match why:
        case "hidden":
            actions.hide(session=session, now=NOW)
        case "blocks":
            relations.block(blocker=fan, blocked=host)
        case "blocked":
            relations.block(blocker=host, blocked=fan)
        case "inactive":
            deactivation.deactivate(user=host)
        case _:
            User.objects.filter(pk=host.pk).update(is_active=False, deleted_at=NOW)
    client = client_of(fan)
    for method, route in [("get", ""), *CALLS, ("delete", "/reminder")]:
        hidden = call(client, method, f"{LIVE}/{session.pk}{route}")
        never = call(client, method, f"{LIVE}/12345{route}")
        assert (hidden.status_code, hidden.content) == (404, never.content), (method, route)
    if why == "hidden":
        assert client.get("/api/v1/users/host/live").json()["items"] == []
        assert client_of(host).get(f"{LIVE}/{session.pk}").json()["hidden"] is True


@pytest.mark.slow
def test_a_host_s_sessions_are_paged(api: APIClient, host: User, fan: User) -> None:
    sessions = [plan(host, title=f"{number}") for number in range(5)]
    actions.cancel(session=sessions[3], now=datetime.now(UTC))
    path = "/api/v1/users/host/live"

    def walk(client: APIClient) -> list[str]:
        titles: list[str] = []
        page = client.get(f"{path}?limit=2").json()
        while True:
            titles += [item["title"] for item in page["items"]]
            if not page["has_more"]:
                return titles
            page = client.get(f"{path}?limit=2&last_id={page['last_id']}").json()

    assert walk(client_of(fan)) == walk(APIClient()) == ["4", "2", "1", "0"]
    assert walk(api) == ["4", "3", "2", "1", "0"], "the host sees what was cancelled too"
    assert api.get(f"{path}?last_id={2**53}").status_code == 200
    for wrong in ("limit=0", "limit=1_0", "last_id=abc", "last_id=0", "last_id=1&last_id=2"):
        assert api.get(f"{path}?{wrong}").status_code == 400, wrong
    assert api.get(f"{path}?limit=&last_id=").status_code == 200
    assert api.get("/api/v1/users/nobody/live").status_code == 404


BAD = [
    {"title": ""},
    {"title": " "},
    {"title": 5},
    {"title": "x" * 201},
    {"title": "a\x00b"},
    {"title": None},
    {"starts_at": "tomorrow"},
    {"starts_at": (datetime.now(UTC) + timedelta(days=2)).replace(tzinfo=None).isoformat()},
    {"starts_at": 1_777_000_000},
    {"starts_at": "0001-01-01T00:00:00+14:00"},
    {"starts_at": "9999-12-31T23:59:59-14:00"},
    {"starts_at": "2020-01-01T00:00:00Z"},
    {"starts_at": "2068-01-01T00:00:00Z"},
    {"url": "http://watch.example/"},
    {"url": "javascript:alert(1)"},
    {"url": "https://"},
    {"url": "https://[::1"},
    {"url": "https://a b.example/"},
    {"url": "https://watch.example/" + "x" * 2000},
    {"cover_url": "ftp://watch.example/a.png"},
    {"cover_url": []},
    {"automatic": "yes"},
    {"automatic": 1},
    {"minutes": "5"},
    {"minutes": 0},
    {"minutes": 1441},
    {"minutes": True},
    {"minutes": 10**19},
    {"state": "live"},
    {"host": "1"},
    {"id": "7"},
    {"hidden_at": None},
    {"version": 3},
]


@pytest.mark.slow
def test_wrong_fields_are_refused_and_change_nothing(api: APIClient, host: User, settings: Any) -> None:
    settings.RATE_SCALE = 1000.0
    session = plan(host)
    for wrong in BAD:
        name = next(iter(wrong))
        posted = api.post(LIVE, {"title": "t", "starts_at": in_hours(1)} | wrong)
        assert (posted.status_code, list(posted.json())) in ((400, [name]), (400, ["detail"])), (wrong, posted.json())
        patched = api.patch(f"{LIVE}/{session.pk}", wrong)
        assert patched.status_code == 400, wrong
    for text in ('{"title": NaN}', '{"title": "a", "title": "b"}', "[]", "{", '{"title": "\\ud800"}'):
        assert api.post(LIVE, text, content_type="application/json").status_code == 400, text
    assert api.post(LIVE, "title=t", content_type="application/x-www-form-urlencoded").status_code == 415
    assert api.post(LIVE, {"title": "t" * 70_000}).status_code == 413
    assert api.post(f"{LIVE}/{session.pk}/start", {"now": True}).status_code == 400
    assert api.get(LIVE).status_code == 405
    for wrong_id in ("abc", "0", "-1", "1_0", "1.5", str(2**53 + 1), "9" * 5000, "%00", "٣"):
        assert api.get(f"{LIVE}/{wrong_id}").status_code == 404, wrong_id
    assert list(LiveSession.objects.values_list("version", "state")) == [(1, "upcoming")]


def test_the_rate_and_the_cap_of_plans(api: APIClient, settings: Any) -> None:
    settings.LIVE_SCHEDULED_CAP = 2
    fields = {"title": "t", "starts_at": in_hours(1)}
    assert [api.post(LIVE, fields).status_code for _ in range(3)] == [201, 201, 409]
    settings.RATES = settings.RATES | {"live": "2/hour"}
    assert api.post(LIVE, fields).status_code == 429


def test_reminders_are_idempotent(host: User, fan: User) -> None:
    session = plan(host)
    client = client_of(fan)
    path = f"{LIVE}/{session.pk}/reminder"
    assert [client.put(path).status_code for _ in range(2)] == [204, 204]
    assert Reminder.objects.count() == 1
    assert client.get(f"{LIVE}/{session.pk}").json()["reminder"] is True
    assert client_of(host).get(f"{LIVE}/{session.pk}").json()["reminder"] is False
    assert [client.delete(path).status_code for _ in range(2)] == [204, 204]
    assert not Reminder.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_starts_at_once_one_is_told_that_it_is_live(host: User, workers: Workers) -> None:
    path = f"{LIVE}/{plan(host).pk}/start"
    clients = [client_of(host), client_of(host)]
    answers = at_once(*[partial(client.post, path) for client in clients])
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert [answer.json()["state"] for answer in answers] == ["live", "live"]
