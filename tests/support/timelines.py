from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from accounts.purge import purge
from feedsite import celery
from items import actions as items
from items.models import Item
from relations import actions as relations
from tests.support.factories import UserFactory
from tests.support.workers import Workers
from timeline import active_fans, backfill, fanout, inbox, outbox
from timeline.home import home_page

TASKS = {
    task.name: task.run
    for task in (
        fanout.fan_out,
        fanout.fan_out_range,
        backfill.run,
        inbox.materialise,
        inbox.deepen_or_build,
        inbox.deepen,
        outbox.materialise,
        active_fans.build,
        purge,
    )
}


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    workers = Workers(TASKS)
    monkeypatch.setattr(celery.app, "send_task", workers.send_task)
    return workers


@pytest.fixture
def say() -> Callable[..., Item]:

    def say(sender: User, text: str = "words", **fields: Any) -> Item:
        return items.publish(sender=User.objects.get(pk=sender.pk), content={"text": text}, **fields)

    return say


@pytest.fixture
def follow() -> Callable[[User, User], None]:
    def follow(follower: User, followee: User) -> None:
        relations.follow(follower=follower, followee=followee)

    return follow


@pytest.fixture
def reader(db: None) -> User:
    return seen()


def seen(**fields: Any) -> User:
    """A user whose level does not rise by reading."""
    return UserFactory(last_seen_at=timezone.now(), **fields)


def read(user: User, **page: Any) -> list[int]:
    return [int(item.id) for item in home_page(User.objects.get(pk=user.pk), **page).items]


def sources(user: User, **page: Any) -> list[str]:
    return home_page(User.objects.get(pk=user.pk), **page).sources
