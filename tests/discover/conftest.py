"""A reader of the recommended feed, and what there is to recommend."""

from collections.abc import Callable, Sequence
from datetime import datetime

import pytest

from accounts.models import User
from discover import candidates
from discover.recall import Candidate
from items.models import Item
from tests.factories import ItemFactory, UserFactory

Publish = Callable[..., list[int]]


@pytest.fixture
def reader() -> User:
    return UserFactory.create(username="reader")


@pytest.fixture
def publish() -> Publish:
    """So many posts by so many senders in turn; their ids, newest first."""

    def publish(count: int, *, senders: int = 0) -> list[int]:
        people = [UserFactory.create() for _ in range(senders or count)]
        made = [ItemFactory.create(sender=people[number % len(people)]) for number in range(count)]
        return [item.pk for item in reversed(made)]

    return publish


class NewestFirst:
    """A recall whose order tests can foretell: public posts, newest first."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def candidates(self, reader: User, *, count: int, now: datetime) -> list[Candidate]:
        self.asked.append(count)
        posts = Item.objects.published().filter(reply_to=None, repost_of=None, visibility="public")
        return [Candidate(item.pk, item.sender_id, item.pk, "fresh") for item in posts.order_by("-pk")[:count]]


@pytest.fixture
def newest_first(monkeypatch: pytest.MonkeyPatch) -> NewestFirst:
    recall = NewestFirst()
    monkeypatch.setattr(candidates, "postgres", recall)
    return recall


def ids(items: Sequence[object]) -> list[int]:
    return [int(item.id) for item in items]  # type: ignore[attr-defined]
