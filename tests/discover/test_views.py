import json
import re
from typing import Any

import pytest
from django.test import Client

from accounts.actions import edit_profile
from accounts.models import User
from discover.models import IssuedPage
from discover.views import COMING, CURRENT, WALK
from items.actions import delete
from items.models import Item
from relations.actions import follow
from storage import keys
from storage.connections import feeds, feeds_breaker
from tests.support import servers
from tests.support.factories import UserFactory, say
from tests.support.pages import PART
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client) -> Any:
    reader = UserFactory.create(username="reader")
    client.force_login(reader)
    return reader


@pytest.fixture
def posts(db: None) -> list[Item]:
    """Different people wrote them, so no page reaches the cap per sender."""
    return [say(UserFactory.create(), f"number {number}.") for number in range(45)]


def shown(response: Any) -> list[str]:
    return re.findall(r'id="item-(\d+)"', response.content.decode())


def hidden(response: Any, form: str) -> dict[str, str]:
    inside = re.search(rf'id="{form}".*?</div>', response.content.decode(), re.DOTALL)
    assert inside
    fields = dict(re.findall(r'name="(\w+)" value="([^"]+)"', inside[0]))
    fields.pop("csrfmiddlewaretoken", None)
    return fields


def following(response: Any) -> dict[str, str]:
    return hidden(response, "more")


def fresh(response: Any) -> dict[str, str]:
    return hidden(response, "fresh")


def test_strangers_are_led_to_the_login(client: Client) -> None:
    assert client.get("/discover")["Location"] == "/login?next=%2Fdiscover"
    assert client.post("/discover", {"walk": "x" * 22})["Location"] == "/login"
    assert client.post("/discover", **PART).status_code == 401


@pytest.mark.slow
def test_a_page_says_what_is_shown_and_why(client: Client, reader: Any, posts: list[Item]) -> None:
    response = client.get("/discover")
    text = response.content.decode()
    assert len(shown(response)) == 20
    assert text.count('class="via why"') == 20
    assert response["X-Feed-Source"]
    assert '<a href="/discover" aria-current="page">' in text
    assert '<a href="/discover" aria-current' not in client.get("/").content.decode()
    assert 'href="/discover"' in client.get("/").content.decode()
    assert 'id="news"' not in text
    assert "private" in response["Cache-Control"]


@pytest.mark.slow
def test_it_is_walked_without_repetition(client: Client, reader: Any, posts: list[Item]) -> None:
    response = client.get("/discover")
    seen = shown(response)
    fields = following(response)
    while fields:
        response = client.post("/discover", fields, **PART)
        assert 'hx-swap-oob="beforeend:#feed"' in response.content.decode()
        assert shown(response)
        seen += shown(response)
        fields = following(response)
    assert sorted(seen) == sorted(str(post.pk) for post in posts)
    assert "You've seen everything for now." in response.content.decode()
    assert "You've seen everything for now." in client.get("/discover?page=9").content.decode()


@pytest.mark.slow
def test_without_javascript_too(client: Client, reader: Any, posts: list[Item]) -> None:
    response: Any = client.get("/discover")
    first = shown(response)
    response = client.post("/discover", following(response), follow=True)
    second = shown(response)
    assert response.redirect_chain[0][1] == 302
    assert len(set(first + second)) == 40
    assert shown(client.get(response.redirect_chain[0][0])) == second
    assert "Back to the start" in response.content.decode()
    response = client.post("/discover", following(response), follow=True)
    assert len(shown(response)) == 5
    assert shown(client.get("/discover")) == first
    say(UserFactory.create())
    response = client.post("/discover", fresh(response), follow=True)
    assert "1 more post" in response.content.decode()
    assert len(shown(response)) == 1
    response = client.post("/discover", fresh(response), follow=True)
    assert "Nothing new right now." in response.content.decode()
    assert len(shown(response)) == 1


@pytest.mark.slow
def test_a_lost_answer_is_asked_for_again(client: Client, reader: Any, posts: list[Item]) -> None:
    first = client.get("/discover")
    lost = client.post("/discover", following(first), **PART)
    again = client.post("/discover", following(first), **PART)
    assert shown(again) == shown(lost)
    assert following(again) == following(lost)
    lost = client.post("/discover", fresh(first), **PART)
    again = client.post("/discover", fresh(first), **PART)
    assert shown(again) == shown(lost)
    assert again["X-Feed-Source"] == "issued"


@pytest.mark.slow
def test_returning_readers_find_what_they_left(client: Client, reader: Any, posts: list[Item]) -> None:
    first = client.get("/discover")
    second = client.post("/discover", following(first), **PART)
    client.get("/")
    back = client.get("/discover")
    assert shown(back) == shown(first)
    again = client.post("/discover", following(back), **PART)
    assert shown(again) == shown(second)
    assert not {CURRENT} & (back.cookies.keys() | again.cookies.keys())  # viewing does not renew it
    refreshed = client.post("/discover", fresh(first), **PART)
    assert shown(client.get("/discover")) == shown(refreshed)
    del client.cookies[CURRENT]  # as browsers do after a while
    assert not set(shown(client.get("/discover"))) & set(shown(first) + shown(second) + shown(refreshed))


@pytest.mark.slow
def test_items_deleted_since_are_not_shown_again(client: Client, reader: Any, posts: list[Item]) -> None:
    first = shown(client.get("/discover"))
    delete(item=Item.objects.get(pk=first[0]))
    assert shown(client.get("/discover")) == first[1:]
    for post in Item.objects.filter(pk__in=first[1:]):
        delete(item=post)
    assert len(shown(client.get("/discover"))) == 20


@pytest.mark.slow
def test_a_refresh_begins_a_new_walk(client: Client, reader: Any, posts: list[Item]) -> None:
    first = client.get("/discover")
    response = client.post("/discover", fresh(first), **PART)
    assert len(shown(response)) == 20
    assert not set(shown(first)) & set(shown(response))
    assert "20 more posts" in response["HX-Trigger-After-Settle"]
    assert fresh(response) != fresh(first)
    assert following(response)["walk"] == fresh(first)["walk"]


@pytest.mark.slow
def test_nothing_new_changes_nothing(client: Client, reader: Any) -> None:
    say(UserFactory.create())
    first = client.get("/discover")
    response = client.post("/discover", fresh(first), **PART)
    assert response["HX-Reswap"] == "none"
    assert "Nothing new right now." in response["HX-Trigger-After-Settle"]
    assert shown(client.get("/discover")) == shown(first)
    say(UserFactory.create())
    assert len(shown(client.post("/discover", fresh(response), **PART))) == 1


@pytest.mark.slow
def test_pages_fetched_in_the_background_wait(client: Client, reader: Any, posts: list[Item]) -> None:
    first = client.get("/discover")
    assert "data-poll" in first.content.decode()
    quiet = client.post("/discover", fresh(first) | {"quiet": "1"}, **PART)
    assert "More posts" in quiet.content.decode()
    assert 'hx-trigger="due"' not in quiet.content.decode()  # while one waits, no other is fetched
    assert fresh(quiet) == fresh(first)
    assert "dotted" in client.get("/").content.decode()

    back = client.get("/discover")
    assert shown(back) == shown(first)
    assert 'class="pill"' in back.content.decode()
    issued = IssuedPage.objects.get(request_id=f"{fresh(first)['walk']}.1")
    taken = client.post("/discover", fresh(back), **PART)
    assert shown(taken) == [str(item_id) for item_id in issued.item_ids]
    assert "dotted" not in client.get("/").content.decode()
    assert 'class="pill"' not in client.get("/discover").content.decode()


@pytest.mark.slow
def test_what_waits_begins_the_next_visit(client: Client, reader: Any, posts: list[Item]) -> None:
    first = client.get("/discover")
    client.post("/discover", fresh(first) | {"quiet": "1"}, **PART)
    issued = IssuedPage.objects.get(request_id=f"{fresh(first)['walk']}.1")
    del client.cookies[CURRENT]
    visit = client.get("/discover")
    assert shown(visit) == [str(item_id) for item_id in issued.item_ids]
    assert 'class="pill"' not in visit.content.decode()
    assert not client.cookies[COMING].value


@pytest.mark.slow
def test_nothing_in_the_background_is_no_news(client: Client, reader: Any) -> None:
    say(UserFactory.create())
    first = client.get("/discover")
    quiet = client.post("/discover", fresh(first) | {"quiet": "1"}, **PART)
    assert "More posts" not in quiet.content.decode()
    assert fresh(quiet) != fresh(first)  # or the next one would get this empty answer again
    assert COMING not in quiet.cookies
    say(UserFactory.create())
    assert "More posts" in client.post("/discover", fresh(quiet) | {"quiet": "1"}, **PART).content.decode()


@pytest.mark.slow
@pytest.mark.parametrize("purpose", ["prefetch", "prefetch;prerender"])
def test_what_nobody_looks_at_is_not_issued(client: Client, reader: Any, posts: list[Item], purpose: str) -> None:
    ahead = client.get("/discover", HTTP_SEC_PURPOSE=purpose)
    assert (ahead.status_code, ahead["Cache-Control"]) == (503, "no-store")
    assert client.head("/discover").status_code == 200
    assert not IssuedPage.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    ["walk=short", "walk=" + "x" * 23, "walk=" + "ü" * 22, f"walk={'x' * 22}&walk={'x' * 22}"]
    + [f"page={page}" for page in ("0", "-1", "abc", "1_0", "%EF%BC%91", "1" * 30, "10001", "1&page=2", "%00")],
)
def test_what_no_page_of_ours_asks_for(client: Client, reader: Any, query: str) -> None:
    assert client.get(f"/discover?{query}").status_code == 400
    if "walk" not in query:
        query = f"walk={'x' * 22}&{query}"
    form = "application/x-www-form-urlencoded"
    assert client.post("/discover", query, content_type=form).status_code == 400
    assert client.post("/discover", query, content_type=form, **PART).status_code == 400
    assert not IssuedPage.objects.exists()


def test_a_walk_must_have_a_name(client: Client, reader: Any) -> None:
    assert client.post("/discover", **PART).status_code == 400
    assert client.post("/discover", {"page": "2"}).status_code == 400
    assert client.put("/discover").status_code == 405


@pytest.mark.slow
def test_a_cookie_that_is_none_counts_as_not_there(client: Client, reader: Any, posts: list[Item]) -> None:
    client.cookies[CURRENT] = client.cookies[COMING] = "x"
    assert len(shown(client.get("/discover"))) == 20
    assert WALK.fullmatch(client.cookies[CURRENT].value)


@pytest.mark.slow
def test_another_reader_of_the_browser_gets_a_walk_of_their_own(client: Client, reader: Any, posts: list[Item]) -> None:
    first = client.get("/discover")
    other = UserFactory.create()
    mine = say(other)
    cookies = client.cookies[CURRENT].value
    client.force_login(other)
    client.cookies[CURRENT] = cookies
    response = client.get("/discover")
    assert response["X-Feed-Source"] != "issued"
    assert str(mine.pk) not in shown(response)
    assert len(shown(first)) == 20


def test_too_often(client: Client, reader: Any, settings: Any) -> None:
    settings.RATES = settings.RATES | {"discover": "2/minute"}
    assert client.get("/discover").status_code == 200
    assert client.post("/discover", {"walk": "x" * 22}, **PART).status_code == 200
    for response in (client.get("/discover"), client.post("/discover", {"walk": "x" * 22}, **PART)):
        assert response.status_code == 429
        assert int(response["Retry-After"]) > 0


def test_a_site_where_nobody_has_said_anything(client: Client, reader: Any) -> None:
    UserFactory.create(username="famous", follower_count=9)
    say(reader)
    page = client.get("/discover").content.decode()
    assert "Nothing to recommend yet." in page
    assert "/@famous/follow" in page
    assert 'id="refresh"' in page


def test_all_seen(client: Client, reader: Any) -> None:
    say(UserFactory.create())
    assert len(shown(client.get("/discover"))) == 1
    del client.cookies[CURRENT]
    response = client.get("/discover")
    assert "You've seen everything for now." in response.content.decode()
    assert "Nothing to recommend yet." not in response.content.decode()
    assert CURRENT not in response.cookies


@pytest.mark.slow
def test_it_speaks_chinese(client: Client, reader: Any, posts: list[Item]) -> None:
    response = client.get("/discover", HTTP_ACCEPT_LANGUAGE="zh-CN")
    assert "刷新" in response.content.decode()
    refreshed = client.post("/discover", fresh(response), HTTP_ACCEPT_LANGUAGE="zh-CN", **PART)
    assert json.loads(refreshed["HX-Trigger-After-Settle"])["refreshed"]["said"] == "还有 20 条帖子"


@pytest.mark.slow
def test_it_costs_the_same_for_few_and_many(client: Client, reader: Any) -> None:
    client.get("/settings")  # copies the session
    counts = []
    for count in (1, 25):
        for _ in range(count):
            say(UserFactory.create(), "#tag words")
        client.cookies.pop(CURRENT, None)
        feeds().delete(keys.kept_recall(reader.pk))
        with statements() as seen:
            assert shown(client.get("/discover"))
        counts.append(len(seen))
    assert counts[0] == counts[1], counts


@pytest.mark.slow
def test_it_works_with_redis_dead(client: Client, reader: Any, posts: list[Item]) -> None:
    with servers.dead(servers.servers.feeds):
        feeds_breaker.reset()
        response = client.get("/discover")
        assert "no-dedup" in response["X-Feed-Source"]
        assert len(shown(response)) == 20
        second = client.post("/discover", following(response) or {"walk": "x" * 22, "page": "2"}, **PART)
        assert second.status_code == 200
        assert not set(shown(response)) & set(shown(second))


def test_cards_offer_to_follow_whom_the_reader_does_not_follow(client: Client, reader: User) -> None:
    """A locked account gets a request, once."""
    known, new, locked, asked = (UserFactory.create(username=name) for name in ("known", "new", "locked", "asked"))
    for one in (locked, asked):
        edit_profile(user=one, is_locked=True)
    for one in (known, new, locked, asked):
        say(one, f"words of {one.username}.")
    for one in (known, asked):
        follow(follower=reader, followee=User.objects.get(pk=one.pk))
    page = client.get("/discover").content.decode()
    buttons = re.findall(r'aria-label="([^"]*follow @\w+)[",]', page, re.IGNORECASE)
    assert sorted(buttons) == ["Follow @locked", "Follow @new"]
