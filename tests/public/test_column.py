import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from items.actions import publish
from live import actions as live
from relations.actions import block, follow, mute
from relations.suggestions import followed_by
from tests.support.api import client_of
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client) -> Any:
    reader = UserFactory.create(username="reader")
    client.force_login(reader)
    return reader


def part(client: Client, query: str = "") -> str:
    return client.get(f"/beside{query}", headers={"HX-Request": "true"}).content.decode()


def start(host: User, title: str) -> None:
    now = timezone.now()
    session = live.create(host=host, title=title, starts_at=now + timedelta(hours=1), now=now)
    live.start(session=session, now=now)


def test_people_are_proposed_with_why(client: Client, reader: User) -> None:
    ann, ben, new = (UserFactory.create(username=name, display_name=name.title()) for name in ("ann", "ben", "new"))
    for friend in (ann, ben):
        follow(follower=reader, followee=friend)
        follow(follower=friend, followee=new)
    page = part(client)
    assert re.search("Followed by <bdi>(Ann|Ben)</bdi> and 1 other<", page)
    assert "@new" in page
    assert "<html" not in page


def test_two_active_followees_are_named_at_most(reader: User) -> None:
    friends = [UserFactory.create(username=name) for name in ("ann", "ben", "cat")]
    new = UserFactory.create(username="new")
    for friend in friends:
        follow(follower=reader, followee=friend)
        follow(follower=friend, followee=new)
    found = followed_by(reader, [new])[new.pk]
    assert (len(found.names), found.number) == (2, 3)
    User.objects.filter(pk=friends[0].pk).update(is_active=False)
    assert sorted(followed_by(reader, [new])[new.pk].names) == ["ben", "cat"]


@pytest.mark.parametrize("turned", ["blocked by", "blocks", "mutes"])
def test_no_followee_of_whom_the_reader_would_not_know_is_named(reader: User, turned: str) -> None:
    ann, new = UserFactory.create(username="ann"), UserFactory.create(username="new")
    follow(follower=reader, followee=ann)
    follow(follower=ann, followee=new)
    assert followed_by(reader, [new])[new.pk] == (["ann"], 1)
    {
        "blocked by": lambda: block(blocker=ann, blocked=reader),
        "blocks": lambda: block(blocker=reader, blocked=ann),
        "mutes": lambda: mute(muter=reader, muted=ann),
    }[turned]()
    assert followed_by(reader, [new]) == {}


def test_users_whom_the_reader_asks_to_follow_are_not_proposed(client: Client, reader: User) -> None:
    locked: User = UserFactory.create(username="careful", is_locked=True)
    assert "careful" in part(client)
    follow(follower=reader, followee=locked)
    assert "careful" not in part(client)


def test_the_api_proposes_the_same(reader: User) -> None:
    ann, new = UserFactory.create(username="ann"), UserFactory.create(username="new")
    follow(follower=reader, followee=ann)
    follow(follower=ann, followee=new)
    api = APIClient()
    assert api.get("/api/v1/me/suggestions").status_code == 401
    api.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=reader)}")
    (found,) = api.get("/api/v1/me/suggestions").json()["items"]
    assert (found["user"]["username"], found["followed_by"]) == ("new", ["ann"])


@pytest.mark.parametrize("path", ["tags/trending", "me/suggestions"])
def test_lists_of_one_page_take_what_other_lists_take(reader: User, path: str) -> None:
    for tag in ("bread", "nails", "soup"):
        for _ in range(2):
            publish(sender=UserFactory.create(), content={"text": f"about #{tag}"})
    api = client_of(reader)
    whole = api.get(f"/api/v1/{path}").json()
    assert len(whole["items"]) >= 3
    assert api.get(f"/api/v1/{path}?limit=2").json() == whole | {"items": whole["items"][:2]}
    assert api.get(f"/api/v1/{path}?limit=&last_id=").json() == api.get(f"/api/v1/{path}?limit=5000").json() == whole
    assert api.get(f"/api/v1/{path}?last_id=7").json() == whole | {"items": []}
    for query in ("limit=0", "limit=abc", "limit=1&limit=2", "last_id=0", "last_id=1.5", f"last_id={2**53 + 1}"):
        assert api.get(f"/api/v1/{path}?{query}").status_code == 400, query


def test_live_sessions_of_all_hosts_are_shown_to_those_who_may_see_them(client: Client, reader: User) -> None:
    host, other, muted = UserFactory.create(), UserFactory.create(), UserFactory.create()
    start(host, "Bread live")
    start(other, "Nails live")
    start(muted, "Soup live")
    block(blocker=other, blocked=reader)
    mute(muter=reader, muted=muted)
    page = part(client)
    assert "Bread live" in page
    assert "Nails live" not in page
    assert "Soup live" not in page


def test_strangers_are_proposed_no_people(client: Client) -> None:
    for _ in range(2):
        publish(sender=UserFactory.create(), content={"text": "about #bread"})
    page = part(client)
    assert "#bread" in page
    assert "Who to follow" not in page


def test_a_browser_keeps_it_for_a_minute(client: Client, reader: User) -> None:
    answer = client.get("/beside")
    assert answer["Cache-Control"] == "private, max-age=60"
    assert {"Cookie", "HX-Request"} <= set(answer["Vary"].split(", ")), "another who logs in here asks anew"
    assert "<html" in answer.content.decode(), "a page of its own where there is no JavaScript"


# --- What the page itself shows is not beside it ---------------------------------------------------------
def plan(host: User, title: str, hours: int) -> None:
    now = timezone.now()
    live.create(host=host, title=title, starts_at=now + timedelta(hours=hours), now=now)


def test_live_has_the_next_sessions_of_others_beside_it(client: Client, reader: User) -> None:
    hosts = [UserFactory.create(username=name) for name in ("followed", "other", "muted", "blocked", "later")]
    for number, host in enumerate(hosts):
        plan(host, f"by {host.username}", 1 + number)
    plan(reader, "by reader", 1)
    follow(follower=reader, followee=hosts[0])
    mute(muter=reader, muted=hosts[2])
    block(blocker=hosts[3], blocked=reader)
    start(hosts[4], "now live")
    page = part(client, "?at=live")
    assert page.index("by other") < page.index("by later")
    for title in ("by followed", "by muted", "by blocked", "by reader", "now live", "Popular hashtags"):
        assert title not in page


def test_a_profile_has_its_followers_whom_the_reader_follows_beside_it(client: Client, reader: User) -> None:
    ann, ben, star = (UserFactory.create(username=name) for name in ("ann", "ben", "star"))
    for fan in (ann, ben):
        follow(follower=fan, followee=star)
    assert "Followers you know" not in part(client, "?at=profile&name=star")
    follow(follower=reader, followee=ann)
    page = part(client, "?at=profile&name=star")
    assert "@ann" in page
    assert "@ben" not in page
    assert "Who to follow" not in page
    block(blocker=star, blocked=reader)
    assert "@ann" not in part(client, "?at=profile&name=star").partition("Who to follow")[0]
    assert "Who to follow" in part(client, "?at=profile&name=%00")


def test_search_has_narrower_queries_beside_it(client: Client, reader: User) -> None:
    page = part(client, "?at=search&q=sea+swimming")
    assert "/search?q=%22sea%20swimming%22" in page
    assert "/search?q=from%3Areader%20sea%20swimming" in page
    assert "Who to follow" not in page
    assert "/search?q=%23tea" in part(client, "?at=search&q=tea")
    assert "Refine your search" not in part(client, "?at=search&q=%22tea%22")
    assert "&lt;b&gt;" in part(client, "?at=search&q=<b>")
    assert "from%3A" not in part(Client(), "?at=search&q=tea")


def test_a_page_that_proposes_people_has_none_beside_it(client: Client, reader: User) -> None:
    UserFactory.create(username="newcomer")
    assert 'data-address="/beside?at=people"' in client.get("/people").content.decode()
    assert "@newcomer" in part(client)
    assert "@newcomer" not in part(client, "?at=people")
