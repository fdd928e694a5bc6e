from typing import Any

import pytest
from playwright.sync_api import expect

from items.actions import publish
from items.models import Bookmark
from relations.actions import follow
from relations.models import Follow, FollowRequest, Mute
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


def test_requests_are_decided(visitor: Visitor, reader: Any, language: str) -> None:
    for name in ("ann", "bob"):
        FollowRequest.objects.create(follower=UserFactory(username=name), followee=reader)
    accepted, declined = {
        "en-US": ("@ann follows you now.", "You declined @bob's request."),
        "zh-CN": ("@ann 现在关注你了。", "已拒绝 @bob 的请求。"),
    }[language]
    visitor.goto("/follow-requests")
    for verb, said in (("ann/accept", accepted), ("bob/reject", declined)):
        visitor.page.locator(f"form[action$='/@{verb}'] button").click()
        expect(visitor.page.get_by_text(said)).to_be_visible()
    assert list(Follow.objects.filter(followee=reader).values_list("follower__username", flat=True)) == ["ann"]
    assert not FollowRequest.objects.exists()


def test_a_follower_is_removed(visitor: Visitor, reader: Any, javascript: bool, language: str) -> None:
    follow(follower=UserFactory(username="ann"), followee=reader)
    said = {"en-US": "@ann no longer follows you.", "zh-CN": "@ann 不再关注你了。"}[language]
    visitor.goto(f"/@{reader.username}/followers")
    visitor.page.locator("form[action$='/@ann/remove'] button").click()
    if javascript:
        visitor.page.locator("#question [value=sure]").click()
    expect(visitor.page.get_by_text(said)).to_be_visible()
    assert not Follow.objects.filter(followee=reader).exists()


def test_a_mute_for_a_time_is_listed_and_undone(visitor: Visitor, reader: Any) -> None:
    UserFactory(username="ann")
    visitor.goto("/@ann/mute-for")
    visitor.page.locator("[name=lasts]").select_option("24")
    visitor.page.locator("[name=notifications]").uncheck()
    visitor.page.locator("main form button").click()
    visitor.page.locator("#standing .mark").wait_for()
    mute = Mute.objects.get()
    assert (mute.muter, mute.notifications, mute.expires_at is None) == (reader, False, False)
    visitor.goto("/settings/mutes")
    visitor.page.locator("form[action$='/@ann/unmute'] button").click()
    visitor.page.locator("form[action$='/@ann/unmute']").wait_for(state="detached")
    expect(visitor.page.locator("form[action$='/@ann/follow']")).to_have_count(0)
    assert not Mute.objects.exists()


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
