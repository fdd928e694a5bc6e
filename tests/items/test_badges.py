"""A big-V's name must have its badge on every page and in API bodies."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone, translation

from accounts.models import User
from accounts.people import name_of
from items import actions as items
from live import actions as live
from moderation import actions as moderation
from moderation import reports
from moderation.decisions import Grounds
from moderation.models import Case
from relations.actions import follow
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.statements import statements
from web.openapi import document

pytestmark = pytest.mark.django_db

BADGE = '<svg class="icon badge" width="16" height="16" role="img" aria-label="Big account">'


@pytest.fixture
def star() -> Any:
    return UserFactory.create(username="star", display_name="The <Star>", is_big_v=True, follower_count=9)


@pytest.fixture
def reader(client: Client, star: User) -> Any:
    reader = UserFactory.create(username="reader")
    client.force_login(reader)
    return reader


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return str(answer.content.decode())


def named(shown: str, start: str = '<a class="name" href="/@star">') -> int:
    """Checks that each name has a badge, and counts them."""
    name = f"{start}<bdi>The &lt;Star&gt;</bdi>"
    assert shown.count(name) == shown.count(name + BADGE) + shown.count(f"{name}</a>{BADGE}")
    return shown.count(name)


def test_it_has_a_text_in_both_languages(star: User) -> None:
    assert str(name_of(star)).startswith(f"<bdi>The &lt;Star&gt;</bdi>{BADGE}")
    with translation.override("zh-hans"):
        assert 'aria-label="大V"' in name_of(star)
    assert "svg" not in name_of(UserFactory.create())


@pytest.mark.slow
def test_it_stands_beside_the_name_on_every_page(client: Client, star: User, reader: User) -> None:
    assert named(page(client, "/")) == 1, "suggestions"
    follow(follower=reader, followee=star)
    follow(follower=star, followee=reader)
    friend = UserFactory.create(username="friend")
    mine = items.publish(sender=reader, content={"text": "mine"})
    post = items.publish(sender=star, content={"text": "a word"})
    reply = items.publish(sender=star, content={"text": "yes"}, reply_to=mine)
    answer = items.publish(sender=friend, content={"text": "no"}, reply_to=reply)
    items.repost(sender=star, item=mine)
    items.repost(sender=star, item=items.publish(sender=friend, content={"text": "elsewhere"}))
    items.like(user=star, item=mine)
    session = live.create(host=star, title="Talk", starts_at=timezone.now() + timedelta(hours=1), now=timezone.now())
    pages = {
        "/": 2,  # a card and a repost of another's post; the repost of "mine" folds into its card
        f"/items/{post.pk}": 1,
        f"/items/{mine.pk}": 1,
        f"/items/{answer.pk}": 1,
        "/notifications": 4,
        "/@reader/followers": 1,
        "/@reader/following": 1,
        "/@star/followers": 1,
        "/search?q=star": 1,
        "/search?q=word": 1,
        "/live": 1,
        f"/live/{session.pk}": 1,
    }
    found = {address: named(page(client, address)) for address in pages}
    assert found == pages
    assert f'<h1 id="who"><bdi>The &lt;Star&gt;</bdi>{BADGE}' in page(client, "/@star")
    assert f"replying to @star</a>{BADGE}" in page(client, "/@friend/replies")
    assert f"<bdi>The &lt;Star&gt;</bdi>{BADGE}" in page(client, f"/items/{post.pk}/report")
    client.force_login(star)
    assert f"<b><bdi>The &lt;Star&gt;</bdi>{BADGE}" in page(client, "/settings")


@pytest.mark.slow
def test_it_stands_in_the_lists_of_the_admin(admin_client: Client, star: User, reader: User) -> None:
    post = items.publish(sender=star, content={"text": "a word"})
    mine = items.publish(sender=reader, content={"text": "mine"})
    follow(follower=star, followee=reader)
    for item, reporter in ((post, reader), (mine, star)):
        reports.report(item=item, reporter=reporter, reason="spam")
    moderation.warn(user=star, by=User.objects.get(username="admin"), grounds=Grounds("please"))
    case = Case.objects.get(item=post)
    for address in (
        "moderation/report/",
        "moderation/case/?state=all",
        f"moderation/case/{case.pk}/change/",
        f"moderation/case/{Case.objects.get(item=mine).pk}/change/",
        f"moderation/case/act/?users={star.pk}",
        "moderation/decision/",
        "items/item/",
        "relations/follow/",
        "timeline/delivery/",
    ):
        assert BADGE in page(admin_client, f"/admin/{address}"), address


@pytest.mark.slow
def test_the_badge_costs_no_statement(admin_client: Client, star: User, reader: User) -> None:
    counts = []
    for count in (1, 6):
        for _ in range(count):
            big = UserFactory.create(is_big_v=True)
            follow(follower=reader, followee=big)
            post = items.publish(sender=big, content={"text": "a word"})
            reports.report(item=post, reporter=UserFactory.create(is_big_v=True), reason="spam")
        client = logged_in(reader)
        lists = ("items/item/", "moderation/report/", "moderation/case/?state=all", "timeline/delivery/")
        with statements() as asked:
            for address in ("/", "/@reader/following", "/search?q=word"):
                page(client, address)
            for address in lists:
                page(admin_client, f"/admin/{address}")
        counts.append(len(asked))
    assert counts[1] <= counts[0]


def test_every_body_of_the_api_that_names_somebody_has_the_flag() -> None:
    schemas = json.loads(document())["components"]["schemas"]
    people = {
        name for name, schema in schemas.items() if {"username", "display_name"} <= schema.get("properties", {}).keys()
    }
    assert len(people) >= 4
    flagless = {name for name in people if "is_big_v" not in schemas[name]["properties"]}
    assert flagless == set()
