import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from discover import indexing, opensearch_server, recallers
from discover import opensearch as recall_from_opensearch
from discover.postgres import BASE
from discover.recall import RecalledItem
from items.models import Item, Like
from items.search.indexing import index
from relations.models import Follow
from runtime.embedded import Home
from storage import ids as item_ids
from storage.breaker import Breaker
from tests.support.factories import ItemFactory, UserFactory
from tests.support.opensearch import CAN_RUN, OpenSearch, SearchNode

Publish = Callable[..., list[int]]
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
_sequence = iter(range(10**9))


def post(
    text: str = "something", sender: User | None = None, *, age: timedelta = timedelta(hours=1), **fields: Any
) -> Item:
    """Made `age` before NOW, with what recall finds it by."""
    item = ItemFactory.create(
        id=item_ids.compose(NOW - age, next(_sequence) % 4096),
        sender=sender or UserFactory.create(),
        content={"text": text},
        **fields,
    )
    index(item)
    return item


def follow(follower: User, *followees: User, at: datetime = NOW - timedelta(days=30)) -> None:
    for followee in followees:
        Follow.objects.create(follower=follower, followee=followee, created_at=at)


def like(user: User, *items: Item, at: datetime = NOW - timedelta(minutes=5)) -> None:
    for item in items:
        Like.objects.create(user=user, item=item, created_at=at)


@pytest.fixture
def page(client: Client, ann: User) -> Client:
    client.force_login(ann)
    return client


@pytest.fixture
def publish() -> Publish:
    """Publish by this many senders in turn. Returns ids, newest first."""

    def publish(count: int, *, senders: int = 0) -> list[int]:
        people = [UserFactory.create() for _ in range(senders or count)]
        made = [ItemFactory.create(sender=people[number % len(people)]) for number in range(count)]
        return [item.pk for item in reversed(made)]

    return publish


class NewestFirst:
    """Public posts, newest first: a predictable order."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def candidates(self, reader: User, *, count: int, now: datetime) -> list[RecalledItem]:
        self.asked.append(count)
        posts = Item.objects.published().filter(reply_to=None, repost_of=None, visibility="public")
        score = math.log(BASE)
        return [RecalledItem(item.pk, item.sender_id, score, "fresh") for item in posts.order_by("-pk")[:count]]


@pytest.fixture
def newest_first(monkeypatch: pytest.MonkeyPatch) -> NewestFirst:
    recall = NewestFirst()
    monkeypatch.setattr(recallers, "postgres", recall)
    return recall


def ids(items: Sequence[object]) -> list[int]:
    return [int(item.id) for item in items]  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def search_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchNode]:
    """A real node of OpenSearch."""
    if not CAN_RUN:
        pytest.skip("Java and Maven run OpenSearch (apt install default-jdk-headless maven)")
    home = Home(tmp_path_factory.mktemp("opensearch"))
    home.make()
    node = SearchNode(home)
    node.run()
    yield node
    node.stop()


@pytest.fixture
def opensearch(search_node: SearchNode, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenSearch]:
    """The site with OpenSearch. It is empty."""
    monkeypatch.setattr(indexing, "pause", Breaker(0))
    relay = OpenSearch(search_node)
    relay.delete_indexes()
    settings.OPENSEARCH_URL = relay.url
    settings.OPENSEARCH_TIMEOUT_SECONDS = 10  # a busy machine
    opensearch_server.server.cache_clear()
    recall_from_opensearch.breaker.reset()
    yield relay
    opensearch_server.server.cache_clear()
    recall_from_opensearch.breaker.reset()
    relay.close()
