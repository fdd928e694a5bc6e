from datetime import datetime
from typing import Any

import pytest
from playwright.sync_api import expect

from items.actions import repost
from items.models import Item
from tests.support.browsers import CHOICE, Visit
from tests.support.factories import UserFactory, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_an_own_repost_is_no_new_post(visit: Visit, screen: dict[str, Any], reader: Any, author: Any) -> None:
    far = say(UserFactory.create(), "from elsewhere")
    near = say(author, "at hand")
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/")
    repost(sender=reader, item=far)
    visitor.page.locator("article").get_by_role("button", name="Repost").click()
    visitor.page.locator(CHOICE).click()
    expect(visitor.page.locator("article [data-act=repost]")).to_have_attribute("aria-pressed", "true")
    with visitor.page.expect_response(lambda response: "/new?" in response.url and response.status == 204):
        pass  # a poll without news
    expect(visitor.page.locator(".pill")).to_have_count(0)
    say(author, "the news")
    visitor.page.get_by_role("link", name="1 new post").click()
    # A post and its repost on the same page are one entry. A repost from elsewhere is new.
    visitor.shows(["the news", "from elsewhere", "at hand"])
    assert Item.objects.filter(repost_of=near, sender=reader).exists()


def test_a_repost_shows_when_it_was_reposted(visit: Visit, screen: dict[str, Any], reader: Any, author: Any) -> None:
    original = say(UserFactory.create(username="writer"), "an older post")
    new, _ = repost(sender=author, item=original)
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/")
    card = visitor.page.locator("article")
    for place, item in ((".via", new), (".byline", original)):
        times = card.locator(f"{place} time")
        expect(times).to_be_visible()
        assert datetime.fromisoformat(times.get_attribute("datetime") or "") == item.created_at.replace(microsecond=0)
