from typing import Any

import pytest
from playwright.sync_api import expect

from items.actions import publish
from items.models import Bookmark
from relations.models import Follow, FollowRequest
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(params=["en-US", "zh-CN"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def visitor(visit: Visit, reader: Any, javascript: bool, language: str) -> Visitor:
    visitor = visit(java_script_enabled=javascript, locale=language)
    visitor.enter(reader)
    return visitor


def test_a_request_is_made_withdrawn_and_made_again(visitor: Visitor, reader: Any, language: str) -> None:
    UserFactory(username="lea", is_locked=True)
    asks, waits = {"en-US": ("Follow", "Requested"), "zh-CN": ("关注", "已请求")}[language]
    visitor.goto("/@lea")
    button = visitor.page.locator("#follow")
    for says, count in ((waits, 1), (asks, 0), (waits, 1)):
        button.click()
        expect(visitor.page.locator("#follow")).to_contain_text(says)
        assert FollowRequest.objects.filter(follower=reader).count() == count
        assert not Follow.objects.filter(followee__username="lea").exists()
    visitor.goto("/")
    visitor.goto("/@lea")
    expect(button).to_contain_text(waits)


def test_a_bookmark_is_kept_and_removed(visitor: Visitor, reader: Any) -> None:
    item = publish(sender=UserFactory(), content={"text": "zebra"})
    visitor.goto(f"/items/{item.pk}")
    button = visitor.page.locator("[data-act=bookmark]").first
    for pressed, count in (("true", 1), ("false", 0), ("true", 1)):
        button.click()
        expect(button).to_have_attribute("aria-pressed", pressed)
        visitor.settle()
        assert Bookmark.objects.filter(user=reader).count() == count
    visitor.goto("/bookmarks")
    expect(visitor.page.get_by_text("zebra")).to_be_visible()
