import logging
import math
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connection

from accounts.models import User
from discover import indexing
from discover.feed import refresh
from discover.indexing import index_slice
from discover.interests import interests_of
from discover.models import SearchIndex
from discover.opensearch import FOLLOWED, OpenSearchRecall, breaker, search
from discover.opensearch_server import server
from discover.postgres import BASE, LAST, PostgresRecall
from discover.recall import RecalledItem, RecallUnavailableError
from discover.recallers import recall
from discover.refreshing import refresh_words
from items import actions
from items.models import ItemCounts, Visibility
from runtime import metrics
from runtime.embedded import wait_for
from tests.support.factories import UserFactory
from tests.support.opensearch import Handler, OpenSearch, Trouble, late, says, status
from tests.support.patience import SHORT
from tests.support.recommending import NOW, follow, like, post
from tests.support.statements import statements

pytestmark = [pytest.mark.django_db, pytest.mark.long]

DAY = timedelta(days=1)


def recalled(reader: User, *, count: int = 500, now: datetime = NOW) -> list[RecalledItem]:
    return OpenSearchRecall().candidates(reader, count=count, now=now)


def reasons(reader: User, **options: Any) -> dict[int, str]:
    return {candidate.item_id: candidate.reason for candidate in recalled(reader, **options)}


def source(reader: User) -> str:
    """There must be something to find."""
    counts = {name: metrics.discover_recalled.labels(name)._value for name in ("opensearch", "postgres")}
    before = {name: count.get() for name, count in counts.items()}
    recall(reader, count=10, now=NOW)
    return next(name for name, count in counts.items() if count.get() > before[name])


@pytest.fixture
def reader(opensearch: OpenSearch) -> User:
    return UserFactory.create()


# --- Found items, and reasons ----------------------------------------------------------------------------
def test_every_interest_is_a_reason(reader: User) -> None:
    friend, friends_friend, fan, kindred, stranger = UserFactory.create_batch(5)
    follow(reader, friend)
    follow(friend, friends_friend)
    follow(fan, reader)
    both = post("gardening #garden")
    like(reader, both)
    like(kindred, both)
    by_kindred = post("other words", stranger)
    like(kindred, by_kindred)
    tagged = post("again #garden", stranger)
    popular = post("everybody reads this", stranger)
    ItemCounts.objects.create(item=popular, likes=900)
    for _ in range(3):
        post("volcano erupts", stranger)
    like(reader, post("a volcano"))
    said = post("the volcano sleeps", stranger)
    refresh_words(now=NOW)
    of_friend, of_friends_friend, of_fan = post("hi", friend), post("hello", friends_friend), post("hey", fan)
    fresh = post("nothing in common", stranger)
    index_slice()
    found = reasons(reader)
    assert found[by_kindred.pk] == "liked"
    assert found[tagged.pk] == "tag:garden"
    assert found[said.pk] == "words:volcano"
    assert found[of_friends_friend.pk] == "follows:1"
    assert found[of_fan.pk] == "follower"
    assert found[popular.pk] == "popular"
    assert found[fresh.pk] == "fresh"
    assert found[of_friend.pk] == "followed"
    assert list(found)[-1] == of_friend.pk, "the Following tab has them"


def test_own_and_later_items_are_not_found(reader: User) -> None:
    post("own", reader)
    later = post("later", age=-timedelta(hours=1))
    there = post("there")
    index_slice()
    assert list(reasons(reader)) == [there.pk]
    assert list(reasons(reader, now=NOW + DAY)) == [later.pk, there.pk]


def test_the_published_decay(opensearch: OpenSearch, reader: User, settings: Any) -> None:
    """Our score is the logarithm of the published formula."""
    settings.DISCOVER_OFFSET_DAYS, settings.DISCOVER_SCALE_DAYS, settings.DISCOVER_DECAY = 2, 10, 0.25
    now = NOW + timedelta(milliseconds=1)
    ages = [0, 1, 2, 7, 12, 22, 42]
    items = [post("words", age=age * DAY) for age in ages]
    index_slice()
    body, _ = search(interests_of(reader, now=now), reader_id=reader.pk, count=10, now=now)
    scores = opensearch.scores(body)
    found = {candidate.item_id: candidate.score for candidate in recalled(reader, now=now)}
    for age, item in zip(ages, items, strict=True):
        worth = scores[item.pk]
        assert worth == pytest.approx(BASE * 0.25 ** ((max(0, age - 2) / 10) ** 2), rel=1e-6)
        assert math.exp(found[item.pk]) == pytest.approx(worth, rel=1e-6)
    assert list(found)[3:] == [item.pk for item in items[3:]]


def test_both_recalls_agree_on_the_decay(reader: User) -> None:
    for age in (1, 5, 40, 400, 4000):
        post("words", age=age * DAY)
    index_slice()
    by_postgres = {one.item_id: one.score for one in PostgresRecall().candidates(reader, count=10, now=NOW)}
    by_opensearch = {one.item_id: one.score for one in recalled(reader)}
    assert list(by_opensearch) == list(by_postgres), "also where a 32-bit score is 0"
    assert by_opensearch == {item_id: pytest.approx(score, rel=1e-6) for item_id, score in by_postgres.items()}


def test_of_what_is_too_old_for_a_score_the_newest_comes_first(reader: User) -> None:
    post()
    ages = [4003, 4001, 4005, 4002, 4004]
    old = {age: post(age=age * DAY) for age in ages}
    index_slice()
    assert [one.item_id for one in recalled(reader, count=2)][1] == old[4001].pk


@pytest.mark.slow
def test_the_score_is_what_the_server_computes(opensearch: OpenSearch, reader: User) -> None:
    """Otherwise the order would not be the server's."""
    friend, far, kindred = UserFactory.create_batch(3)
    follow(reader, friend)
    follow(friend, far)
    for number in range(12):
        sender = [friend, far, UserFactory.create()][number % 3]
        item = post(f"volcano #garden {number}" if number % 2 else "words", sender, age=number * DAY)
        like(kindred, item)
        ItemCounts.objects.create(item=item, likes=number * 300)
    like(reader, *[post("volcano #garden") for _ in range(3)])
    like(kindred, *[like_of.item for like_of in reader.likes.select_related("item")])
    refresh_words(now=NOW)
    index_slice()
    body, _ = search(interests_of(reader, now=NOW), reader_id=reader.pk, count=10, now=NOW)
    scores = opensearch.scores(body)
    found = recalled(reader)
    assert len({candidate.reason for candidate in found}) >= 3
    for candidate in found:
        worth = scores[candidate.item_id]
        if candidate.reason == "followed":
            assert FOLLOWED * math.exp(candidate.score + LAST) == pytest.approx(worth, rel=1e-6)
        else:
            assert math.exp(candidate.score) == pytest.approx(worth, rel=1e-6)


def test_no_sender_fills_the_list(reader: User) -> None:
    busy = UserFactory.create()
    for number in range(30):
        post("words", busy, age=number * timedelta(minutes=1))
    other = post("words", age=DAY)
    index_slice()
    found = recalled(reader, count=25)
    assert [candidate.sender_id for candidate in found].count(busy.pk) == 20
    assert found[-1].item_id == other.pk


def test_count(opensearch: OpenSearch, reader: User) -> None:
    for _ in range(5):
        post()
    index_slice()
    assert len(recalled(reader, count=3)) == 3
    recalled(reader, count=8000)
    assert [body["size"] for body in opensearch.searches()] == [6, 10_000]


def test_an_empty_site(reader: User) -> None:
    index_slice()
    assert recalled(reader) == []


@pytest.mark.slow
def test_clauses_and_queries_are_bounded(opensearch: OpenSearch, reader: User) -> None:
    """The real server refuses more than 1,024 clauses."""
    friends, kindred = UserFactory.create_batch(60), UserFactory.create_batch(30)
    follow(reader, *friends)
    for number, friend in enumerate(friends):
        follow(friend, *kindred)
        like(reader, liked := post(f"word{number} both #tag{number} #also{number}", friend))
        like(kindred[number % 30], liked, post())
    for friend in kindred:
        follow(friend, reader)
    index_slice()
    with statements() as executed:
        recalled(reader)
    assert len(executed) <= 8
    (body,) = opensearch.searches()
    clauses = body["query"]["function_score"]["query"]["function_score"]["query"]["bool"]["should"]
    assert 40 < len(clauses) < 200


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_what_it_has_not_heard_of_is_not_shown(opensearch: OpenSearch, reader: User) -> None:
    """The index only suggests. PostgreSQL decides what is shown."""
    shown, deleted, hidden, suspended, unsaid = (post(f"number {number}", age=DAY) for number in range(5))
    index_slice()
    actions.delete(item=deleted)
    actions.change_visibility(item=hidden, visibility=Visibility.FOLLOWERS)
    User.objects.filter(pk=suspended.sender_id).update(is_active=False)
    opensearch.node.ask("PUT", "/site-items/_doc/12345", opensearch.documents[unsaid.pk] | {"item": 12345})
    page = refresh(reader, limit=20)
    assert {item.id for item in page.items} == {str(shown.pk), str(unsaid.pk)}
    assert len(opensearch.searches()) == 1


# --- The server in trouble -------------------------------------------------------------------------------
NO_HITS = b'{"took": 1, "timed_out": %s, "_shards": {}, "hits": {"hits": []}}'

TROUBLES: dict[str, Trouble] = {
    "500": status(500),
    "429": status(429),
    "404": status(404, b'{"error": {"type": "index_not_found_exception", "reason": "no such index"}, "status": 404}'),
    "a page": status(502, b"<html>Bad Gateway</html>"),
    "redirect": status(302),
    "hangs": late(3),
    "cut": says(b""),
    "cut in the middle": says(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"took": 1, "hi'),
    "rubbish": says(b"\x16\x03\x01 what?\r\n\r\n"),
    "no JSON": status(200, b"yes"),
    "another shape": status(200, b'{"hits": []}'),
    "out of time": status(200, NO_HITS % b"true"),
    "an unknown clause": status(
        200,
        NO_HITS.replace(b"[]", b'[{"_id": "1", "fields": {"sender": ["1"]}, "matched_queries": ["99999"]}]') % b"false",
    ),
    "an id that is none": status(
        200, NO_HITS.replace(b"[]", b'[{"_id": "x", "fields": {"sender": ["1"]}}]') % b"false"
    ),
    "no sender": status(200, NO_HITS.replace(b"[]", b'[{"_id": "1", "fields": {"sender": []}}]') % b"false"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TROUBLES)
def test_postgresql_recalls_when_it_fails(
    opensearch: OpenSearch, reader: User, settings: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    there = post()
    index_slice()
    assert source(reader) == "opensearch"
    settings.OPENSEARCH_TIMEOUT_SECONDS = 0.5
    monkeypatch.setattr(breaker, "_seconds", 600)
    failures = metrics.opensearch_failures.labels("search")._value
    before = failures.get()
    with opensearch.in_trouble(TROUBLES[name]):
        found = recall(reader, count=10, now=NOW)
        assert [one.item_id for one in found] == [there.pk]
        asked = failures.get()
        assert asked == before + 1
        assert source(reader) == "postgres"
        assert failures.get() == asked, "it is not asked again while the breaker is open"
    settings.OPENSEARCH_TIMEOUT_SECONDS = 10
    breaker.reset()
    assert source(reader) == "opensearch"


@pytest.mark.django_db(transaction=True)
def test_one_search_at_a_time_finds_out_however_long_it_waits(
    opensearch: OpenSearch, reader: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes longer than the breaker stays open."""
    index_slice()
    post()
    settings.OPENSEARCH_TIMEOUT_SECONDS = 100
    monkeypatch.setattr(breaker, "_seconds", 0.1)
    failures = metrics.opensearch_failures.labels("search")._value
    breaker.trip()
    assert wait_for(lambda: not breaker.is_open, 10)
    before = failures.get()
    is_asked, may_end = Event(), Event()

    def hangs(handler: Handler) -> bool:
        is_asked.set()
        may_end.wait(60)
        handler.close_connection = True
        return True

    def search() -> str:
        try:
            return source(reader)
        finally:
            connection.close()

    with opensearch.in_trouble(hangs), ThreadPoolExecutor(1) as threads:
        first = threads.submit(search)
        assert is_asked.wait(60)
        for _ in range(3):
            time.sleep(0.2)  # longer than the breaker stays open
            assert source(reader) == "postgres"
        assert not first.done(), "the others were answered while it waited"
        may_end.set()
        assert first.result() == "postgres"
    assert failures.get() == before + 1


def test_no_server_listens(opensearch: OpenSearch, reader: User, settings: Any) -> None:
    index_slice()
    there = post()
    settings.OPENSEARCH_URL = "http://127.0.0.1:1/site-items"
    server.cache_clear()
    assert [one.item_id for one in recall(reader, count=10, now=NOW)] == [there.pk]


def test_until_everything_is_loaded_postgresql_recalls(reader: User) -> None:
    there = post()
    with pytest.raises(RecallUnavailableError):
        recalled(reader)
    assert [one.item_id for one in recall(reader, count=10, now=NOW)] == [there.pk]
    indexing.create()
    assert source(reader) == "postgres"
    index_slice()
    assert source(reader) == "opensearch"


def test_without_an_address_nobody_is_asked(settings: Any) -> None:
    assert settings.OPENSEARCH_URL == ""
    index_slice()
    indexing.enqueue_changes([1])
    indexing.restart_load()
    post()
    assert source(UserFactory.create()) == "postgres"
    assert not SearchIndex.objects.exists()


def test_recalls_are_counted_and_timed(reader: User) -> None:
    post()
    index_slice()
    count = metrics.discover_recalled.labels("opensearch")._value.get
    seconds = metrics.discover_recall_seconds.labels("opensearch")._sum.get
    before = count(), seconds()
    recall(reader, count=10, now=NOW)
    assert count() == before[0] + 1
    assert 0 < seconds() - before[1] < SHORT


@pytest.mark.slow
def test_no_password_and_no_text_is_in_the_log(
    opensearch: OpenSearch, reader: User, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    post("volcano")
    index_slice()
    settings.OPENSEARCH_TIMEOUT_SECONDS = 0.3
    for trouble in TROUBLES.values():
        with opensearch.in_trouble(trouble), pytest.raises(RecallUnavailableError), caplog.at_level(logging.DEBUG):
            recalled(reader)
        breaker.reset()
    assert "PostgreSQL searches instead" in caplog.text
    for private in ("pass", "admin", "volcano"):
        assert private not in caplog.text
