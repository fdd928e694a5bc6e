"""What only a real node of OpenSearch shows: its limits, its death, its scores beside PostgreSQL's."""

import random
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from accounts.models import User
from discover import opensearch_server
from discover.indexing import enqueue_changes, index_slice
from discover.models import ItemChange
from discover.opensearch import OpenSearchRecall, breaker
from discover.opensearch_server import server
from discover.postgres import PostgresRecall
from discover.recallers import recall
from discover.refreshing import refresh_words
from items.models import ItemCounts
from tests.support.factories import UserFactory
from tests.support.far_servers import certificate
from tests.support.opensearch import OpenSearch
from tests.support.recommending import NOW, follow, like, post

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.long]


def recalled(reader: User, count: int = 10) -> list[int]:
    return [one.item_id for one in OpenSearchRecall().candidates(reader, count=count, now=NOW)]


def test_it_dies_between_two_requests(opensearch: OpenSearch) -> None:
    first = post("first")
    index_slice()
    second = post("second")
    enqueue_changes([second.pk])
    opensearch.node.clear()  # kills it
    index_slice()
    assert ItemChange.objects.exists()
    opensearch.node.run()
    index_slice()
    assert set(opensearch.documents) == {first.pk, second.pk}


def test_its_disk_is_full(opensearch: OpenSearch) -> None:
    """The node then blocks writes, and goes on answering."""
    index_slice()
    before = post("before")
    enqueue_changes([before.pk])
    index_slice()
    opensearch.node.ask("PUT", "/site-items/_settings", {"index.blocks.read_only_allow_delete": True})
    after = post("after")
    enqueue_changes([after.pk])
    index_slice()
    assert ItemChange.objects.exists()
    assert recalled(UserFactory.create()) == [before.pk]
    opensearch.node.ask("PUT", "/site-items/_settings", {"index.blocks.read_only_allow_delete": None})
    index_slice()
    assert recalled(UserFactory.create()) == [after.pk, before.pk]


def test_a_certificate_and_a_wrong_password(
    opensearch: OpenSearch, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = post()
    context, _ = certificate("localhost", tmp_path)
    relay = OpenSearch(opensearch.node, context)
    settings.OPENSEARCH_URL = relay.url
    reader = UserFactory.create()
    server.cache_clear()
    index_slice()
    assert relay.requests == [], "its certificate is unknown"
    trusted = ssl.create_default_context(cafile=str(next(tmp_path.glob("*.pem"))))
    monkeypatch.setattr(opensearch_server.ssl, "create_default_context", lambda: trusted)
    server.cache_clear()
    index_slice()
    assert recalled(reader) == [there.pk]
    settings.OPENSEARCH_URL = relay.url.replace("pass", "false")
    server.cache_clear()
    assert [one.item_id for one in recall(reader, count=10, now=NOW)] == [there.pk], "PostgreSQL's"
    assert breaker.is_open
    relay.close()


@pytest.mark.django_db(transaction=True)
def test_it_is_loaded_anew_while_pages_are_served(opensearch: OpenSearch) -> None:
    posts = {post(f"number {number}").pk for number in range(20)}
    index_slice()
    reader = UserFactory.create()

    def load() -> None:
        try:
            call_command("discover_index", "--anew", verbosity=0)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        loading = threads.submit(load)
        while not loading.done():
            assert {one.item_id for one in recall(reader, count=20, now=NOW)} == posts
        loading.result()
    assert set(opensearch.documents) == posts


def test_its_limits_hold_the_largest_reader(opensearch: OpenSearch) -> None:
    """Followed senders by the ten thousand, in one list of terms."""
    reader = UserFactory.create()
    there = post("words")
    index_slice()
    interests = 20_000
    senders = User.objects.bulk_create(
        [UserFactory.build(username=f"sender{number}", email="") for number in range(interests)], batch_size=2_000
    )
    follow_all(reader, senders)
    assert recalled(reader) == [there.pk]


def follow_all(reader: User, senders: list[User]) -> None:
    from relations.models import Follow

    Follow.objects.bulk_create([Follow(follower=reader, followee=sender) for sender in senders], batch_size=2_000)


def test_both_find_the_same(opensearch: OpenSearch) -> None:
    """Among so few that PostgreSQL reads all. Their order differs: it takes few posts of a sender, and each further one
    counts less.
    """
    chance = random.Random(5)  # noqa: S311 (a test)
    words = [f"{first}{second}" for first in "abcdefghijklmnopqrst" for second in ("ola", "ine", "uve", "ork")]
    senders = UserFactory.create_batch(60)
    reader, *kindred = UserFactory.create_batch(8)
    posts = [
        post(" ".join([*chance.sample(words, 2), f"#{chance.choice(words)}"]), chance.choice(senders))
        for _ in range(400)
    ]
    for item in chance.sample(posts, len(posts) // 4):
        ItemCounts.objects.create(item=item, likes=chance.randrange(2_000))
    follow(reader, *senders[:3])
    for fan in kindred:
        like(fan, *chance.sample(posts, 20))
    like(reader, *chance.sample(posts, 20))
    refresh_words(now=NOW)
    while index_slice() or ItemChange.objects.exists():
        pass
    by_postgres = [one.item_id for one in PostgresRecall().candidates(reader, count=200, now=NOW)]
    by_opensearch = recalled(reader, 200)
    assert len(set(by_postgres) & set(by_opensearch)) >= 0.7 * len(by_postgres)
