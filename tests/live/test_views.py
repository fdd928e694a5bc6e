import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from live import actions
from live.models import LiveSession, Reminder, State
from relations.actions import block, follow, mute
from tests.support.answers import lasting
from tests.support.factories import UserFactory
from tests.support.pages import PART, logged_in
from tests.support.sessions import session
from tests.support.statements import statements
from web.rest import PAGE

pytestmark = pytest.mark.django_db


@pytest.fixture
def host() -> Any:
    return UserFactory.create(username="host", display_name="The Host")


@pytest.fixture
def fan(host: Any) -> Any:
    fan = UserFactory.create(username="fan")
    follow(follower=fan, followee=host)
    return fan


def text(response: Any) -> str:
    return str(response.content.decode())


def shown(response: Any) -> list[int]:
    return [int(pk) for pk in re.findall(r'id="session-(\d+)"', text(response))]


def form_of(page: str) -> dict[str, str]:
    fields = dict(re.findall(r'name="(\w+)"[^>]*?value="([^"]*)"', page[page.index("panel form") :]))
    fields |= {name: value for value, name in re.findall(r'value="([^"]*)"[^>]*?name="(\w+)"', page)}
    return {name: value for name, value in fields.items() if name not in ("csrfmiddlewaretoken", "automatic", "q")}


# --- The feed --------------------------------------------------------------------------------------------
def test_the_tab_is_for_whoever_is_signed_in(client: Client, fan: Any) -> None:
    assert client.get("/live")["Location"] == "/login?next=%2Flive"
    page = text(logged_in(fan).get("/live"))
    assert '<a href="/live" aria-current="page">Live</a>' in page
    assert "No live sessions or replays" in page


@pytest.mark.slow
def test_pages_follow_each_other_without_a_gap(host: Any, fan: Any) -> None:
    replays = [session(host, State.REPLAY) for _ in range(3)][::-1]
    upcoming = [session(host, minutes=minutes) for minutes in (10, 20)]
    live = [session(host, State.LIVE) for _ in range(2)][::-1]
    client, found = logged_in(fan), list[int]()
    response = client.get("/live?page_size=2")
    assert response["X-Feed-Source"]
    for _ in range(4):
        found += shown(response)
        rest = re.search(r'rel="next" href="([^"]+)"', text(response))
        if rest is None:
            break
        part = client.get(rest[1].replace("&amp;", "&"), **PART)
        response = client.get(rest[1].replace("&amp;", "&"))
        assert shown(part) == shown(response)
        assert "<main" not in text(part)
    assert found == [one.pk for one in [*live, *upcoming, *replays]]
    assert "You've reached the end." in text(response)


@pytest.mark.parametrize(
    "query",
    [
        "last_id=x",
        "last_id=0",
        "page_size=0",
        "page_size=-1",
        "page_size=a",
        "session_id=a&session_id=b",
        "last_id=1&last_id=2",
    ],
)
def test_what_cannot_be_meant_is_refused(fan: Any, query: str) -> None:
    assert logged_in(fan).get(f"/live?{query}").status_code == 400


@pytest.mark.slow
def test_a_walk_of_somebody_else_is_none(host: Any, fan: Any) -> None:
    for _ in range(3):
        session(host, State.LIVE)
    theirs = re.search(r"session_id=([^&]+)", text(logged_in(fan).get("/live?page_size=2")))
    assert theirs
    other = UserFactory()
    assert logged_in(fan).get(f"/live?session_id={theirs[1]}").status_code == 200
    assert logged_in(other).get(f"/live?session_id={theirs[1]}").status_code == 404
    assert logged_in(fan).get("/live?session_id=made-up").status_code == 404


def test_readers_who_follow_no_host_are_shown_some(host: Any) -> None:
    newcomer, disliked, silent = UserFactory(), UserFactory(username="disliked"), UserFactory(username="silent")
    session(host)
    session(disliked)
    mute(muter=newcomer, muted=disliked)
    page = text(logged_in(newcomer).get("/live"))
    assert "Hosts to follow" in page
    assert "@host" in page
    assert "@disliked" not in page
    assert f"@{silent.username}" not in page


# --- Polling ---------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_an_open_page_hears_what_went_live_and_what_changed(host: Any, fan: Any) -> None:
    since = int((timezone.now() - timedelta(minutes=1)).timestamp() * 1000)
    upcoming, other = session(host), session(host)
    asked = f"/live/news?since={since}&has={upcoming.pk}:{upcoming.version},{other.pk}:{other.version}"
    client = logged_in(fan)
    assert client.get(f"{asked}&shows=0").status_code == 204
    actions.start(session=upcoming, now=timezone.now())
    news = client.get(f"{asked}&shows=0", **PART)
    assert "1 session went live" in text(news)
    assert json.loads(news["HX-Trigger"]) == {"sessions": {str(upcoming.pk): 2}}
    assert client.get(f"{asked}&shows=1", **PART).status_code == 200
    assert client.get(f"/live/news?since={since}&shows=1&has={upcoming.pk}:2").status_code == 204
    known = client.get(f"/live/news?since={since}&known={upcoming.pk}&shows=9")
    assert known.status_code == 200
    assert "went live" not in text(known)
    actions.hide(session=other, now=timezone.now())
    assert json.loads(client.get(asked, **PART)["HX-Trigger"])["sessions"][str(other.pk)] == 0
    for who in ("muting", "blocked"):
        reader = UserFactory(username=who)
        follow(follower=reader, followee=host)
        if who == "muting":
            mute(muter=reader, muted=host)
        else:
            block(blocker=host, blocked=reader)
        assert "went live" not in text(logged_in(reader).get(f"/live/news?since={since}&shows=9"))
    assert Client().get(f"/live/news?since={since}&shows=0").status_code == 204
    assert client.get("/live/news?since=x").status_code == 400
    assert client.get("/live/news?shows=0&has=x:1,1:y,,:,9:9:9").status_code == 204


# --- One session -----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_readers_who_may_not_see_it_find_what_never_was(client: Client, host: Any, fan: Any) -> None:
    one = session(host, State.LIVE)
    blocked = UserFactory()
    block(blocker=host, blocked=blocked)
    never = lasting(client.get("/live/12345"))
    assert client.get(f"/live/{one.pk}").status_code == 200
    assert logged_in(blocked).get(f"/live/{one.pk}").status_code == 404
    actions.hide(session=one, now=timezone.now())
    assert lasting(client.get(f"/live/{one.pk}")) == never
    assert lasting(client.get(f"/live/{10**30}")) == never
    for verb in ("remind", "forget", "start", "end", "cancel", "remove"):
        assert logged_in(fan).post(f"/live/{one.pk}/{verb}").status_code == 404
    assert logged_in(fan).get(f"/live/{one.pk}/edit").status_code == 404
    assert logged_in(host).get(f"/live/{one.pk}").status_code == 200


@pytest.mark.slow
def test_the_address_to_watch_is_shown_while_there_is_something_to_watch(host: Any, fan: Any) -> None:
    one = session(host)
    LiveSession.objects.update(url="https://watch.example/1", cover_url="javascript:alert(1)")
    link = 'href="https://watch.example/1" target="_blank" rel="nofollow noopener noreferrer ugc"'
    assert link not in text(logged_in(fan).get(f"/live/{one.pk}"))
    assert link in text(logged_in(host).get(f"/live/{one.pk}"))
    actions.start(session=one, now=timezone.now())
    page = text(logged_in(fan).get(f"/live/{one.pk}"))
    assert link in page
    assert "javascript:" not in page
    LiveSession.objects.update(url="http://watch.example/1", cover_url="https://watch.example/1.jpg")
    page = text(logged_in(fan).get(f"/live/{one.pk}"))
    assert "http://watch" not in page
    assert re.search(
        r'<img src="https://watch.example/1.jpg" [^>]*loading="lazy"[^>]*referrerpolicy="no-referrer"', page
    )


@pytest.mark.slow
def test_a_card_says_what_changed_since_it_was_shown(host: Any, fan: Any) -> None:
    one = session(host)
    client = logged_in(fan)
    for verb, words in ((actions.start, "has started"), (actions.end, "has ended")):
        verb(session=one, now=timezone.now())
        card = text(client.get(f"/live/{one.pk}?look=card&as=upcoming", **PART))
        assert words in card
        assert 'data-shown="upcoming"' in card
        assert "<main" not in card
    for odd in ("look=x&as=y", "look=card&as=replay"):
        assert "has ended" not in text(client.get(f"/live/{one.pk}?{odd}", **PART))


def test_reminders(client: Client, host: Any, fan: Any) -> None:
    one = session(host)
    assert client.post(f"/live/{one.pk}/remind")["Location"] == "/login"
    for _ in range(2):
        assert logged_in(fan).post(f"/live/{one.pk}/remind")["Location"] == f"/live/{one.pk}"
    assert Reminder.objects.get().user == fan
    card = logged_in(fan).post(f"/live/{one.pk}/forget", {"look": "card", "as": "upcoming"}, **PART)
    assert "Notify me" in text(card)
    assert not Reminder.objects.exists()
    actions.start(session=one, now=timezone.now())
    late = logged_in(fan).post(f"/live/{one.pk}/remind", {"look": "card"}, **PART)
    assert late.status_code == 422
    assert "The session is live." in json.loads(late["HX-Trigger"])["said"]["words"]
    assert logged_in(fan).get(f"/live/{one.pk}/remind").status_code == 405


# --- Hosting ---------------------------------------------------------------------------------------------
def plan_of(**fields: str) -> dict[str, str]:
    tomorrow = (timezone.now() + timedelta(days=1)).strftime("%Y-%m-%dT20:00")
    return {"title": "Show", "starts_at": tomorrow, "minutes": "60", "zone": "UTC"} | fields


@pytest.mark.slow
def test_a_time_is_of_the_zone_that_the_form_was_shown_in(host: Any) -> None:
    client = logged_in(host)
    client.cookies["time_zone"] = "Asia/Shanghai"
    page = text(client.get("/live/new"))
    assert "Shanghai (UTC+8)" in page
    assert form_of(page)["zone"] == "Asia/Shanghai"
    client.cookies["time_zone"] = "America/New_York"
    now = timezone.now()
    year = now.year + (now > datetime(now.year, 1, 10, 12, tzinfo=UTC))  # the next one, since plans reach one year
    made = client.post("/live/new", plan_of(zone="Asia/Shanghai", starts_at=f"{year}-01-10T20:00"))
    one = LiveSession.objects.get()
    assert made["Location"] == f"/live/{one.pk}"
    assert one.starts_at == datetime(year, 1, 10, 12, tzinfo=UTC)
    page = text(client.get(f"/live/{one.pk}/edit"))
    assert form_of(page)["starts_at"] == f"{year}-01-10T07:00"
    assert "10 Jan" in text(client.get(f"/live/{one.pk}"))


@pytest.mark.parametrize(
    "fields",
    [
        {"title": ""},
        {"title": "x" * 201},
        {"title": "a\x00b"},
        {"starts_at": ""},
        {"starts_at": "soon"},
        {"starts_at": "2020-01-01T10:00"},
        {"starts_at": "9999-12-31T23:59"},
        {"starts_at": (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M+02:00")},
        {"url": "http://watch.example/"},
        {"url": "javascript:alert(1)"},
        {"cover_url": "http://watch.example/a.jpg"},
        {"minutes": "0"},
        {"minutes": "100000"},
        {"starts_at": "2027-03-28T02:30", "zone": "Europe/Berlin"},
    ],
)
def test_a_form_that_is_refused_says_why_and_keeps_what_was_typed(host: Any, fields: dict[str, str]) -> None:
    response = logged_in(host).post("/live/new", plan_of(**fields))
    assert response.status_code == 422
    assert "errorlist" in text(response)
    assert not LiveSession.objects.exists()


@pytest.mark.slow
def test_a_form_that_is_sent_twice_plans_once(host: Any) -> None:
    sent = plan_of()
    places = {logged_in(host).post("/live/new", sent)["Location"] for _ in range(2)}
    assert places == {f"/live/{LiveSession.objects.get().pk}"}
    logged_in(host).post("/live/new", plan_of(title="Another"))
    assert LiveSession.objects.count() == 2


@pytest.mark.slow
def test_editing_changes_what_was_changed(host: Any, fan: Any) -> None:
    one = session(host)
    starts_at = timezone.now() - timedelta(minutes=20)  # late, but its unchanged time is not checked again
    LiveSession.objects.update(starts_at=starts_at)
    client = logged_in(host)
    fields = form_of(text(client.get(f"/live/{one.pk}/edit"))) | {"title": "Other words"}
    assert client.post(f"/live/{one.pk}/edit", fields).status_code == 302
    one.refresh_from_db()
    assert (one.title, one.starts_at) == ("Other words", starts_at)
    actions.start(session=one, now=timezone.now())
    assert 'name="starts_at"' not in text(client.get(f"/live/{one.pk}/edit"))
    assert client.post(f"/live/{one.pk}/edit", fields | {"url": "https://watch.example/"}).status_code == 302
    one.refresh_from_db()
    assert one.url == "https://watch.example/"
    other = session(host, State.CANCELLED)
    refused = client.post(f"/live/{other.pk}/edit", fields)
    assert refused.status_code == 422
    assert "Session cancelled." in text(refused)
    for path in ("edit", "start", "end", "cancel", "remove"):
        assert logged_in(fan).post(f"/live/{one.pk}/{path}", fields).status_code == 403


@pytest.mark.slow
def test_steps_without_javascript_ask_first_and_say_what_is(host: Any) -> None:
    one = session(host)
    client = logged_in(host)
    asked = client.get(f"/live/{one.pk}/end?next=/live/own")
    assert "End this session?" in text(asked)
    wrong = client.post(f"/live/{one.pk}/end", follow=True)
    assert "started yet." in text(wrong)
    for _ in range(2):
        started = client.post(f"/live/{one.pk}/start", {"next": "/live/own"}, follow=True)
        assert started.redirect_chain == [("/live/own", 302)]
        assert "re live." in text(started)
    for _ in range(2):
        assert "The session has ended." in text(client.post(f"/live/{one.pk}/end", {"replay": "1"}, follow=True))
    assert "The session has ended." in text(client.post(f"/live/{one.pk}/start", follow=True))
    assert client.post(f"/live/{one.pk}/explode").status_code == 404
    one.refresh_from_db()
    assert (one.state, one.version) == ("replay", 3)
    assert "Replay removed." in text(client.post(f"/live/{one.pk}/remove", follow=True))
    assert Client().get(f"/live/{one.pk}").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(("minutes", "fields", "is_shown"), [(0, {}, False), (0, {"replay": "1"}, True), (2, {}, True)])
def test_a_session_under_a_minute_is_a_replay_where_its_host_wants_one(
    host: Any, minutes: int, fields: dict[str, str], is_shown: bool
) -> None:
    one = session(host)
    client = logged_in(host)
    client.post(f"/live/{one.pk}/start")
    LiveSession.objects.update(started_at=timezone.now() - timedelta(minutes=minutes))
    assert ("Keep the replay" in text(client.get(f"/live/{one.pk}"))) == (minutes == 0)
    assert ("Keep the replay" in text(client.get(f"/live/{one.pk}/end"))) == (minutes == 0)
    ended = text(client.post(f"/live/{one.pk}/end", fields, follow=True))
    assert ("The session has ended." in ended) == is_shown
    assert ("there is no replay" in ended) != is_shown
    assert (Client().get(f"/live/{one.pk}").status_code == 200) == is_shown


def test_going_live_in_review_says_that_others_do_not_see_it(host: Any) -> None:
    one = session(host)
    actions.hide_for_review(session=one, now=timezone.now())
    for _ in range(2):
        started = text(logged_in(host).post(f"/live/{one.pk}/start", follow=True))
        assert "re live. Others see it once" in started


def test_times_name_their_zone_while_the_readers_is_not_known(host: Any) -> None:
    one = session(host)
    assert re.search(r"\d UTC</time>", text(Client().get(f"/live/{one.pk}")))
    known = Client()
    known.cookies["time_zone"] = "Asia/Shanghai"
    assert not re.search(r"UTC</time>", text(known.get(f"/live/{one.pk}")))


def test_a_step_answers_the_card(host: Any) -> None:
    one = session(host)
    client = logged_in(host)
    for _ in range(2):
        card = client.post(f"/live/{one.pk}/start", {"look": "own", "as": "upcoming"}, **PART)
        assert card.status_code == 200
        assert shown(card) == [one.pk]
        assert "re live." in json.loads(card["HX-Trigger"])["said"]["words"]
        assert f'id="end-{one.pk}"' in text(card)
    wrong = client.post(f"/live/{one.pk}/cancel", {"look": "own"}, **PART)
    assert wrong.status_code == 422
    told = json.loads(wrong["HX-Trigger"])["said"]
    assert "do this anymore. The session is live." in told["words"]
    assert told["problem"]


@pytest.mark.slow
def test_a_hosts_own_page_and_profile(host: Any, fan: Any) -> None:
    cancelled, replay = session(host, State.CANCELLED), session(host, State.REPLAY)
    late, soon, live = session(host, minutes=90), session(host, minutes=30), session(host, State.LIVE)
    hidden = session(host)
    actions.hide(session=hidden, now=timezone.now())
    own = logged_in(host).get("/live/own")
    assert shown(own) == [live.pk, soon.pk, hidden.pk, late.pk, replay.pk, cancelled.pk]
    assert shown(logged_in(fan).get("/@host")) == shown(Client().get("/@host")) == [live.pk, soon.pk, late.pk]
    blocked = UserFactory()
    block(blocker=blocked, blocked=host)
    assert shown(logged_in(blocked).get("/@host")) == []
    assert shown(logged_in(fan).get("/live/own")) == []


@pytest.mark.slow
def test_a_host_of_many_sessions_pages_through_them(host: Any) -> None:
    many = [session(host, State.REPLAY).pk for _ in range(PAGE + 1)]
    client = logged_in(host)
    first = client.get("/live/own")
    assert len(shown(first)) == PAGE
    (following,) = re.findall(r'hx-get="(/live/own\?last_id=[\d]+)"', text(first))
    assert sorted(shown(first) + shown(client.get(following, **PART))) == sorted(many)


@pytest.mark.slow
def test_pages_take_as_many_queries_whatever_is_in_them(host: Any, fan: Any) -> None:
    counts = []
    for _ in range(2):
        numbers = []
        for user, path in ((host, "/live/own"), (fan, "/@host"), (fan, "/live/news?since=1")):
            client = logged_in(user)
            client.get(path)
            with statements() as queries:
                client.get(path)
            numbers.append(len(queries))
        counts.append(numbers)
        for _ in range(4):
            session(host)
            session(host, State.REPLAY)
    assert counts[0] == counts[1]
