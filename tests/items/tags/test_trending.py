from datetime import timedelta
from typing import Any

import pytest
import redis
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from rest_framework.test import APIClient

from items.actions import publish
from items.models import Visibility
from items.tags import trending
from items.tags.trending import trends
from tests.support.factories import UserFactory
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

STRANGER = AnonymousUser()


def use(tag: str, senders: int, **fields: Any) -> None:
    for _ in range(senders):
        publish(sender=UserFactory.create(), content={"text": f"about #{tag}"}, **fields)


def test_uses_are_counted_by_the_day() -> None:
    use("bread", 3)
    use("bread", 1, visibility=Visibility.FOLLOWERS)
    assert [(trend.tag, trend.days) for trend in trends(STRANGER)] == [("bread", [0, 0, 0, 0, 0, 0, 3])]


def test_they_are_counted_once_for_all_readers() -> None:
    use("bread", 2)
    trends(STRANGER)
    use("bread", 1)
    with statements() as asked:
        (trend,) = trends(UserFactory.create())
    assert trend.days[-1] == 2
    assert len([one for one in asked if "unnest" in one]) == 1


def test_a_day_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trending, "COUNTED", 2)
    use("bread", 2)
    found = trending._count_uses(["bread"], timezone.now() + timedelta(days=1, minutes=1))
    assert found == {"bread": [0, 0, 0, 0, 0, 2, 0]}
    assert trending._count_uses(["bread"], timezone.now() + timedelta(days=9)) == {"bread": [0] * 7}


@pytest.mark.parametrize("rubbish", [b"7", b"{}", b'{"bread":[1,2]}', b'{"bread":[1,2,3,4,5,6,"x"]}', b"[[]]"])
def test_rubbish_in_the_cache_is_counted_anew(feeds: redis.Redis, rubbish: bytes) -> None:
    use("bread", 2)
    trends(STRANGER)
    (key,) = feeds.scan_iter("cache:*:tags:days")
    feeds.set(key, rubbish)
    assert trends(STRANGER)[0].days[-1] == 2


def test_the_api_shows_them_to_strangers() -> None:
    use("bread", 2)
    assert APIClient().get("/api/v1/tags/trending").json() == {
        "items": [{"tag": "bread", "days": [0, 0, 0, 0, 0, 0, 2]}],
        "last_id": None,
        "has_more": False,
    }


def test_the_curve_rises_and_falls() -> None:
    assert trending.Trend("bread", [0, 1, 2, 4, 0, 0, 0]).points == "0,18 10,14 20,10 30,2 40,18 50,18 60,18"
