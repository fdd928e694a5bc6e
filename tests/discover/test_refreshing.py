import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from discover import refreshing, tasks
from discover.models import PopularItem, WordRarity
from discover.refreshing import refresh_words
from items import actions
from storage import ids
from tests.support.factories import ItemFactory, UserFactory
from tests.support.recommending import follow

pytestmark = pytest.mark.django_db


def test_rare_words_are_known_and_others_are_not() -> None:
    for number, text in enumerate(["rare", "rare", *["of"] * 18]):
        actions.publish(sender=UserFactory.create(), content={"text": f"common {text} w{number}"})
    now = timezone.now() + timedelta(seconds=1)
    for _ in range(2):
        refresh_words(now=now)
        assert set(WordRarity.objects.values_list("word", flat=True)) == {"rare"}
    assert WordRarity.objects.get().rarity == pytest.approx(2.302585)
    refresh_words(now=now - timedelta(days=1))
    assert not WordRarity.objects.exists()


@pytest.mark.long
def test_the_demo_community_has_both(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path
    call_command("demo", "--no-pictures", verbosity=0)
    assert PopularItem.objects.count() > 10
    assert WordRarity.objects.count() > 10


def test_the_followers_of_now_are_those_that_users_carry_and_those_of_then_are_counted() -> None:
    now = timezone.now()
    carries, had = UserFactory.create(follower_count=1_000), UserFactory.create()
    for number in range(3):
        follow(UserFactory.create(), had, at=now - timedelta(days=9 + number))
    first = ids.compose(now - timedelta(days=8), 0)
    posts = [ItemFactory.create(pk=first + number, sender=sender) for number, sender in enumerate((carries, had))]

    def popular(at: datetime) -> list[int]:
        refreshing.refresh_popular(now=at)
        return list(PopularItem.objects.order_by("-popularity").values_list("item_id", flat=True))

    assert popular(now) == [posts[0].pk, posts[1].pk]
    assert popular(now - timedelta(days=7)) == [posts[1].pk, posts[0].pk]


def test_tasks() -> None:
    items = [actions.publish(sender=UserFactory.create(), content={"text": "hello"}) for _ in range(2)]
    time.sleep(0.002)  # until their millisecond is over
    tasks.refresh_popular()
    tasks.refresh_words()
    assert set(PopularItem.objects.values_list("item_id", flat=True)) == {item.pk for item in items}
    assert WordRarity.objects.get().word == "hello"
