from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from items import actions as items
from items.models import Item
from moderation import reports
from moderation.models import Case, Decision, WordRule
from relations.actions import follow
from tests.support.factories import UserFactory
from tests.support.timelines import workers

__all__ = ["workers"]

Say = Callable[..., Item]


def status(item: Item) -> str:
    return Item.objects.get(pk=item.pk).status


def report(item: Item, count: int = 1, **fields: Any) -> list[User]:
    """Returns the reporters."""
    reporters: list[User] = UserFactory.create_batch(count)
    for reporter in reporters:
        reports.report(item=item, reporter=reporter, reason="spam", **fields)
    return reporters


def log() -> list[tuple[str, str | None]]:
    """Actions with their moderator's name."""
    return [(line.verb, line.by and line.by.username) for line in Decision.objects.order_by("pk").select_related("by")]


@pytest.fixture(autouse=True)
def rules(settings: Settings) -> None:
    settings.MODERATION_LINK_AGE = timedelta(days=3)
    settings.MODERATION_BURST, settings.MODERATION_BURST_SPAN = 5, timedelta(minutes=10)
    settings.MODERATION_SAME_TEXT = 3
    settings.MODERATION_REPORTS = 3


@pytest.fixture
def sender(db: None) -> User:
    return UserFactory.create(username="sender", date_joined=timezone.now() - timedelta(days=30))


@pytest.fixture
def reader(sender: User) -> User:
    reader = UserFactory.create(username="reader", last_seen_at=timezone.now())
    follow(follower=reader, followee=sender)
    return reader


@pytest.fixture
def moderator(db: None) -> User:
    """Staff status only gives access to the admin."""
    moderator = UserFactory.create(username="moderator", is_staff=True)
    moderator.groups.add(Group.objects.get(name="Moderators"))
    return moderator


@pytest.fixture
def desk(client: Client, moderator: User) -> Client:
    """The browser of a moderator who is not a superuser."""
    client.force_login(moderator)
    client.get("/settings")  # copies the session
    return client


@pytest.fixture
def spam(db: None) -> WordRule:
    return WordRule.objects.create(text="spam")


@pytest.fixture
def say(sender: User) -> Say:
    def say(text: str = "words", by: User | None = None, **fields: Any) -> Item:
        return items.publish(sender=by or sender, content={"text": text}, **fields)

    return say


@pytest.fixture
def held(spam: WordRule, say: Say) -> Case:
    return Case.objects.select_related("item").get(item=say("buy spam now"))
