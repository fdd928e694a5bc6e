from typing import Any

import pytest

from feedsite.public import sitemap
from feedsite.public.models import SitemapPart
from feedsite.public.tasks import extend_sitemap
from items.actions import delete, publish
from items.models import Visibility
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "PART", 3)


def every_post() -> list[int]:
    return sorted(entry.id for part in sitemap.post_parts() for entry in sitemap.posts_of(part) or ())


def test_every_public_post_is_in_one_part() -> None:
    sender: Any = UserFactory.create()
    items = [publish(sender=sender, content={"text": f"post {number}"}) for number in range(10)]
    publish(sender=sender, content={"text": "own"}, visibility=Visibility.SELF)
    assert every_post() == [item.pk for item in items[:6]], "the part that grows is bounded until the task has run"
    extend_sitemap()
    assert SitemapPart.objects.count() == 4
    assert every_post() == [item.pk for item in items]
    more = publish(sender=sender, content={"text": "more"})
    assert every_post() == [item.pk for item in (*items, more)]
    delete(item=items[4])
    assert items[4].pk not in every_post()


def test_extending_again_adds_nothing() -> None:
    sender: Any = UserFactory.create()
    for number in range(7):
        publish(sender=sender, content={"text": f"post {number}"})
    assert sitemap.extend() == 2
    assert sitemap.extend() == 0


def test_a_run_adds_so_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "PARTS_AT_ONCE", 1)
    sender: Any = UserFactory.create()
    for number in range(7):
        publish(sender=sender, content={"text": f"post {number}"})
    assert [sitemap.extend() for _ in range(3)] == [1, 1, 0]
