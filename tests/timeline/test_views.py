import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from items.actions import delete
from relations.actions import follow
from storage.connections import broker_breaker, feeds_breaker
from tests.support import servers
from tests.support.factories import UserFactory, say
from tests.support.pages import PART
from tests.support.statements import statements
from timeline.views import SETTLED

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client, other: Any) -> Any:
    reader = UserFactory.create(username="reader")
    client.force_login(reader)
    follow(follower=reader, followee=other)
    return reader


@pytest.mark.slow
def test_home_is_walked_without_gap_or_repetition(client: Client, reader: Any, other: Any) -> None:
    for number in range(45):
        say(other, f"number {number}.")
    seen: list[str] = []
    address: str | None = "/"
    while address:
        response = client.get(address)
        assert response["X-Feed-Source"]
        text = response.content.decode()
        seen += re.findall(r"number (\d+)\.", text)
        following = re.search(r'rel="next" href="([^"]+)"', text)
        address = following and following[1]
        say(other, "one more meanwhile")
    assert seen == [str(number) for number in reversed(range(45))]


@pytest.mark.slow
def test_following_pages_are_parts_for_the_end_of_the_feed(client: Client, reader: Any, other: Any) -> None:
    items = [say(other) for _ in range(25)]
    page = client.get("/").context["page"]
    part = client.get("/", {"last_id": page.last_id}, **PART).content.decode()
    assert 'hx-swap-oob="beforeend:#feed"' in part
    assert part.count("<article") == 5
    assert f'id="item-{items[0].pk}"' in part
    assert "composer" not in part


def test_news_are_counted_above_the_top_of_the_page(client: Client, reader: Any, other: Any) -> None:
    say(other)
    page = client.get("/").content.decode()
    poll = re.search(r'hx-get="(/new[^"]+)"', page)
    assert poll
    address = poll[1].replace("&amp;", "&")
    assert client.get(address).status_code == 204
    say(other)
    item = say(other)
    part = client.get(address).content.decode()
    assert "2 new posts" in part
    assert "shows=2" in part
    assert client.get(address.replace("shows=0", "shows=2")).status_code == 204
    delete(item=item)
    assert "1 new post<" in client.get(address).content.decode()
    beginning = client.get("/", **PART).content.decode()
    assert 'id="news"' in beginning
    assert 'hx-swap-oob="true"' in beginning


@pytest.mark.slow
def test_an_empty_home_suggests_whom_to_follow(client: Client) -> None:
    newcomer = UserFactory.create()
    UserFactory.create(username="famous", follower_count=9, display_name="Famous")
    client.force_login(newcomer)
    page = client.get("/").content.decode()
    assert "/@famous/follow" in page
    for number in range(SETTLED):
        assert "/@famous/follow" in client.get("/").content.decode(), number
        follow(follower=newcomer, followee=UserFactory.create())
    assert "/@famous/follow" not in client.get("/").content.decode()


@pytest.mark.slow
def test_home_costs_the_same_for_few_and_many(client: Client, reader: Any, other: Any) -> None:
    User.objects.filter(pk=reader.pk).update(following_count=SETTLED)
    say(other)
    client.get("/")  # records visit and place, copies the session
    for count in (1, 18):
        for _ in range(count):
            say(other)
        with statements() as seen:
            client.get("/")
        assert len(seen) == 5, seen  # user, place, context, bodies, unread


@pytest.mark.slow
def test_pages_work_with_redis_dead(client: Client, reader: Any, other: Any, settings: Any) -> None:
    item = say(other, "still here")
    with servers.dead(servers.servers.feeds), servers.dead(servers.servers.broker):
        for address in ("/", "/@other", f"/items/{item.pk}", "/new", "/@other/followers"):
            feeds_breaker.reset()
            broker_breaker.reset()
            assert client.get(address).status_code in (200, 204)
        response = client.post("/items/new", {"text": "heard all the same", "visibility": "public", "next": "/"})
        assert response["Location"] == "/"
        page = client.get("/").content.decode()
        assert "heard all the same" in page
        assert "still here" in page


def test_suggestions_can_be_dismissed_for_good(client: Client, reader: Any) -> None:
    UserFactory.create(username="proposed")
    assert "@proposed" in client.get("/").content.decode()
    assert client.post("/suggestions/dismiss")["Location"] == "/"
    assert "@proposed" not in client.get("/").content.decode()
    assert "@proposed" not in client.get("/beside", **PART).content.decode()
    assert "@proposed" in client.get("/people").content.decode()
