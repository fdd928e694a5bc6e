"""Statuses are whole entities, for a bounded number of statements."""

import time
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.models import User
from clientapi.accounts.people import post_counts
from items import actions as items
from items.filters.filters import create
from items.models import Item
from relations import actions as relations
from storage.connections import count_trips
from tests.support.api import client_of
from tests.support.clients import Caller
from tests.support.factories import UserFactory, with_card

pytestmark = pytest.mark.django_db

PAGE = 20


def full_home(reader: User, senders: int = PAGE) -> list[Item]:
    people = [UserFactory() for _ in range(senders)]
    for one in people:
        relations.follow(follower=reader, followee=one)
    return [
        items.publish(sender=people[number % senders], content={"text": f"post {number} #tag for @reader"})
        for number in range(PAGE)
    ]


def asked(client: Any, path: str, **headers: str) -> int:
    """Through `fetch` and the ORM."""
    with CaptureQueriesContext(connection) as queries, count_trips() as fetched:
        assert client.get(path, **headers).status_code == 200
    return max(len(queries.captured_queries), fetched.statements if hasattr(fetched, "statements") else 0)


@pytest.mark.slow
def test_a_page_of_many_senders_asks_no_more_than_one_of_few(reader: User) -> None:
    full_home(reader)
    caller = Caller(reader)
    caller.get("v1/timelines/home")
    many = asked(caller.client, "/api/v1/timelines/home?limit=20", **caller.headers)
    few = asked(caller.client, "/api/v1/timelines/home?limit=1", **caller.headers)
    own = asked(client_of(reader), "/api/v1/timeline/home?limit=20")
    assert many == few
    assert many <= own + 2


def test_a_status_is_whole(reader: User) -> None:
    other = UserFactory(username="bob", display_name="Bob <b>", bio="hi #there")
    item = items.publish(sender=other, content={"text": "one @reader #Tag", "warning": "careful"})
    status = Caller(reader).get(f"v1/statuses/{item.pk}")
    assert status["id"] == str(item.pk)
    assert (status["spoiler_text"], status["sensitive"], status["visibility"]) == ("careful", True, "public")
    assert status["url"].endswith(f"/items/{item.pk}")
    assert [mention["acct"] for mention in status["mentions"]] == ["reader"]
    assert [tag["name"] for tag in status["tags"]] == ["tag"]
    assert (status["reblog"], status["poll"], status["card"], status["edited_at"]) == (None, None, None, None)
    assert status["created_at"].endswith("Z")
    assert datetime.fromisoformat(status["created_at"]).microsecond % 1000 == 0
    assert len(status["created_at"]) == len("2026-01-01T00:00:00.000Z")
    account = status["account"]
    assert (account["id"], account["acct"], account["display_name"]) == (str(other.pk), "bob", "Bob <b>")
    assert account["avatar"].startswith("http")
    assert account["note"].startswith("<p>hi ")
    assert "pinned" not in status


def test_the_card_of_a_link(reader: User, settings: Any) -> None:
    item = with_card(items.publish(sender=UserFactory(), content={"text": "see"}))
    assert Caller(reader).get(f"v1/statuses/{item.pk}")["card"] == {
        "url": "https://far.example/page",
        "title": "A page",
        "description": "Its words",
        "type": "link",
        "author_name": "",
        "author_url": "",
        "provider_name": "Far",
        "provider_url": "https://far.example",
        "html": "",
        "width": 640,
        "height": 336,
        "image": f"{settings.SITE_URL}/media/aa/bb.jpg",
        "embed_url": "",
        "blurhash": "LEHV",
        "authors": [],
        "missing_attribution": None,
    }


def test_a_repost_shows_its_original(reader: User) -> None:
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob")
    said = items.publish(sender=ann, content={"text": "words"})
    shared, _ = items.repost(sender=bob, item=said)
    status = Caller(reader).get(f"v1/statuses/{shared.pk}")
    assert (status["account"]["acct"], status["reblog"]["account"]["acct"]) == ("bob", "ann")
    assert status["content"] == status["reblog"]["content"] == "<p>words</p>"


def test_a_name_of_nobody_leads_nowhere_and_a_blockers_neither(reader: User) -> None:
    blocker = UserFactory(username="bob")
    relations.block(blocker=blocker, blocked=reader)
    item = items.publish(sender=UserFactory(), content={"text": "@nobody @bob @reader"})
    status = Caller(reader).get(f"v1/statuses/{item.pk}")
    assert [mention["acct"] for mention in status["mentions"]] == ["reader"]
    assert status["content"].count("<a ") == 1


def test_a_filter_that_matches_is_told_with_its_id(reader: User) -> None:
    made = create(owner=reader, phrase="words", whole_word=False, action="hide")
    item = items.publish(sender=UserFactory(), content={"text": "some words"})
    (result,) = Caller(reader).get(f"v1/statuses/{item.pk}")["filtered"]
    assert result["filter"]["id"] == str(made.pk)
    assert (result["filter"]["filter_action"], result["keyword_matches"]) == ("hide", ["words"])


def seconds_of(client: Any, path: str, **headers: str) -> float:
    began = time.process_time()
    assert client.get(path, **headers).status_code == 200
    return time.process_time() - began


@pytest.mark.slow
def test_home_takes_little_more_than_the_own_apis_page(reader: User) -> None:
    """The site's goal is 1.25 on a quiet machine. This bound allows for noise."""
    full_home(reader)
    post_counts.forget()
    caller, client = Caller(reader), APIClient()
    paths = ("/api/v1/timelines/home?limit=20", "/api/v1/timeline/home?limit=20")
    rounds = [[seconds_of(client, path, **caller.headers) for path in paths] for _ in range(40)]
    theirs, own = (min(column) for column in zip(*rounds, strict=True))
    print(f"home: {theirs / own:.2f} of the own API's")
    assert theirs / own < 1.75
