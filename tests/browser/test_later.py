from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from items.models import Item, ScheduledPost
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def visitor(visit: Visit, screen: dict[str, Any]) -> Visitor:
    visitor = visit(**screen)
    visitor.enter(UserFactory.create(username="reader"))
    return visitor


def test_a_post_is_scheduled_in_place_and_edited(visitor: Visitor) -> None:
    visitor.goto("/")
    page = visitor.page
    page.get_by_label("What's new?").click()
    page.keyboard.type("see you tomorrow")
    page.locator(".composer .schedule summary").click()
    send = page.locator(".composer button.send")
    expect(send).to_have_text("Publish")
    page.get_by_label("Publish at").fill((timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M"))
    expect(send).to_have_text("Schedule")
    send.click()
    expect(page.locator("#toast")).to_contain_text("Scheduled for")
    expect(page.get_by_label("What's new?")).to_have_value("")
    assert ScheduledPost.objects.get().post["content"] == {"text": "see you tomorrow"}
    assert not Item.objects.exists()
    visitor.goto("/scheduled")
    page.get_by_role("link", name="Edit the post for").click()
    box = page.get_by_label("What's new?")
    expect(box).to_have_value("see you tomorrow")
    box.fill("see you on Friday")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("see you on Friday")).to_be_visible()


def test_emoji_complete_by_name_and_come_from_the_picker(visitor: Visitor) -> None:
    visitor.goto("/items/new")
    page = visitor.page
    box, options = page.get_by_label("What's new?"), page.locator(".completions li")
    box.press_sequentially("off :rocke")
    expect(options.first).to_contain_text("rocket")
    page.keyboard.press("Enter")
    expect(box).to_have_value("off 🚀 ")
    box.press_sequentially("at 12:30")
    expect(options).to_have_count(0)
    page.locator(".composer .emoji summary").click()
    found = page.locator(".emoji-found button")
    expect(found.first).to_be_visible()
    page.get_by_label("Search emoji").fill("zebra")
    expect(found).to_have_count(1)
    found.first.click()
    expect(box).to_have_value("off 🚀 at 12:30🦓")
