"""Work is bounded, however many hidden items others publish."""

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from accounts.models import User
from items import actions as items
from items.models import Item
from relations import actions as relations
from storage import connections
from tests.support.factories import ItemFactory
from tests.support.timelines import seen
from tests.support.workers import Workers
from timeline import home
from timeline.home import home_page, new_count
from timeline.oracle import home_ids

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = settings.BASE_DIR
MANY = 3_000
"""Hidden items: thirty pulls of a hundred."""


@pytest.fixture(autouse=True)
def _workers(workers: Workers) -> Workers:
    return workers


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    fetch = connections.fetch

    def counting(query: str, params: Any = (), **options: Any) -> Any:
        asked.append(query)
        return fetch(query, params, **options)

    for module in ("timeline.truth", "timeline.pull", "timeline.senders"):
        monkeypatch.setattr(f"{module}.fetch", counting)
    return asked


def publish_many(sender: User, *, visibility: str = "public", reposts: bool = False, count: int = MANY) -> None:
    """Undelivered. With `reposts`, the originals are deleted."""
    with connection.cursor() as cursor:
        if reposts:
            author = seen()
            cursor.execute(
                """
                WITH gone AS (
                    INSERT INTO items_item (sender_id, type, title, content, extra_info, status, visibility)
                    SELECT %s, 'text', '', '{"text": "gone"}', '{}', 'deleted', 'public' FROM generate_series(1, %s)
                    RETURNING id
                )
                INSERT INTO items_item (sender_id, type, title, content, extra_info, status, visibility, repost_of_id)
                SELECT %s, 'repost', '', '{}', '{}', 'published', 'public', id FROM gone
                """,
                [author.pk, count, sender.pk],
            )
            return
        cursor.execute(
            """
            INSERT INTO items_item (sender_id, type, title, content, extra_info, status, visibility)
            SELECT %s, 'text', '', '{"text": "words"}', '{}', 'published', %s FROM generate_series(1, %s)
            """,
            [sender.pk, visibility, count],
        )


def follow_two(reader: User) -> tuple[User, User]:
    """The first followee has 30 posts."""
    plain, other = seen(), seen()
    for followee in (plain, other):
        relations.follow(follower=reader, followee=followee)
    for _ in range(30):
        ItemFactory(sender=plain)
    return plain, other


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["mutuals", "self", "suspended"])
@pytest.mark.parametrize("has_inbox", [True, False])
def test_a_page_does_not_pass_hidden_posts_one_by_one(
    reader: User, workers: Workers, queries: list[str], hidden: str, has_inbox: bool
) -> None:
    _, other = follow_two(reader)
    publish_many(other, visibility="public" if hidden == "suspended" else hidden)
    if hidden == "suspended":
        User.objects.filter(pk=other.pk).update(is_active=False)
    if has_inbox:
        home_page(reader)
        workers.work()
    last_id, walked = None, []
    for _ in range(2):
        queries.clear()
        page = home_page(reader, last_id=last_id)
        assert len(queries) <= 7
        walked += [int(item.id) for item in page.items]
        last_id = page.last_id
    assert walked == home_ids(reader.pk)
    assert not page.has_more
    queries.clear()
    assert new_count(reader, since_id=1) == (30, False)
    assert len(queries) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("has_inbox", [True, False])
def test_reposts_of_what_is_hidden_make_short_pages(
    reader: User, workers: Workers, queries: list[str], has_inbox: bool
) -> None:
    _, other = follow_two(reader)
    publish_many(other, reposts=True)
    if has_inbox:
        home_page(reader)
        workers.work()
    walked: list[int] = []
    last_id = None
    pages = 0
    has_more = True
    while has_more:
        pages += 1
        queries.clear()
        page = home_page(reader, last_id=last_id)
        assert len(queries) <= 12
        walked += [int(item.id) for item in page.items]
        assert page.last_id is not None
        assert last_id is None or page.last_id < last_id
        last_id, has_more = page.last_id, page.has_more
    assert 3 < pages < MANY // home.SCAN + 5
    assert walked == home_ids(reader.pk)


@pytest.mark.slow
def test_a_count_over_hidden_reposts_is_bounded(reader: User, queries: list[str]) -> None:
    _, other = follow_two(reader)
    publish_many(other, reposts=True)
    queries.clear()
    assert new_count(reader, since_id=1) == (0, True)
    assert len(queries) <= 2


@pytest.mark.slow
def test_a_large_page_goes_on_behind_hidden_reposts(reader: User) -> None:
    """The page may have examined a full page of rows."""
    plain, other = follow_two(reader)
    publish_many(other, reposts=True, count=5)
    for _ in range(98):
        ItemFactory(sender=plain)
    page = home_page(reader, limit=100)
    assert len(page.items) == 100
    assert page.has_more


@pytest.mark.slow
def test_a_follow_back_and_the_end_of_a_suspension_show_again_what_no_window_heard_of(
    reader: User, workers: Workers, settings: Any
) -> None:
    """Some pages come from a tail written earlier."""
    settings.LEVEL_CAPS = {3: 5}
    plain, other = follow_two(reader)
    suspended = seen()
    relations.follow(follower=reader, followee=suspended)
    for _ in range(40):
        items.publish(sender=other, content={"text": "words"}, visibility="mutuals")
        items.publish(sender=suspended, content={"text": "words"})
        items.publish(sender=plain, content={"text": "words"})
    User.objects.filter(pk=suspended.pk).update(is_active=False)
    home_page(reader)
    workers.work()
    first = home_page(reader)
    second = home_page(reader, last_id=first.last_id)
    relations.follow(follower=other, followee=reader)
    User.objects.filter(pk=suspended.pk).update(is_active=True)
    third = home_page(reader, last_id=second.last_id)
    expected = [item_id for item_id in home_ids(reader.pk) if second.last_id and item_id < second.last_id]
    assert [int(item.id) for item in third.items] == expected[:20]
    assert Item.objects.filter(pk__in=expected[:20], visibility="mutuals").exists()


def calls_of(reader: User) -> int:
    """Calls of a warm page's own code, whose number no busy machine changes."""
    counts: Counter[str] = Counter()

    def count(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            counts[frame.f_code.co_filename] += 1

    sys.setprofile(count)
    try:
        page = home_page(reader)
    finally:
        sys.setprofile(None)
    assert page.sources == ["inbox", "outbox"]
    return sum(number for name, number in counts.items() if name.startswith((f"{ROOT}/timeline/", f"{ROOT}/storage/")))


def test_an_outbox_more_costs_a_page_few_calls(workers: Workers) -> None:
    stars = [seen(is_big_v=True) for _ in range(12)]
    for star in stars * 25:
        ItemFactory(sender=star)
    calls = []
    for count in (2, 12):
        reader = seen(level=2)
        for star in stars[:count]:
            relations.follow(follower=reader, followee=star)
        for _ in range(3):
            home_page(User.objects.get(pk=reader.pk))
            workers.work()
        calls.append(calls_of(User.objects.get(pk=reader.pk)))
    assert calls[1] - calls[0] < 10 * 15, calls  # the entries themselves cost none
