from typing import Any

import pytest
from playwright.sync_api import expect

from items.models import Like
from relations.actions import follow
from tests.support.browsers import Visit, Visitor
from tests.support.factories import say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def visitor(visit: Visit, reader: Any, author: Any) -> Visitor:
    follow(follower=reader, followee=author)
    for number in range(4):
        say(author, f"words {number}")
    visitor = visit(viewport={"width": 1280, "height": 800})
    visitor.enter(reader)
    visitor.goto("/")
    return visitor


def press(visitor: Visitor, *keys: str) -> None:
    for key in keys:
        visitor.page.keyboard.press(key)


def test_posts_are_gone_through_liked_and_answered(visitor: Visitor, reader: Any) -> None:
    posts = visitor.page.locator("[role=feed] article")
    press(visitor, "j")
    expect(posts.nth(0)).to_be_focused()
    press(visitor, "j", "j", "k")
    expect(posts.nth(1)).to_be_focused()
    press(visitor, "l")
    expect(posts.nth(1).locator("[data-act=like]")).to_have_attribute("aria-pressed", "true")
    expect(visitor.page.locator(".underway")).to_have_count(0)
    assert [like.item.text for like in Like.objects.filter(user=reader)] == ["words 2"]
    press(visitor, "r")
    area = posts.nth(1).locator("textarea")
    expect(area).to_be_focused()
    visitor.page.keyboard.type("jkl b")
    expect(area).to_have_value("jkl b")
    expect(posts.nth(1).locator("[data-act=like]")).to_have_attribute("aria-pressed", "true")


def test_other_places_are_reached(visitor: Visitor) -> None:
    page = visitor.page
    press(visitor, "/")
    expect(page.get_by_role("complementary").get_by_role("combobox")).to_be_focused()
    press(visitor, "Escape")
    page.locator("#main").focus()
    press(visitor, "n")
    expect(page.get_by_label("What's new?")).to_be_focused()
    page.locator("#main").focus()
    with page.expect_navigation():
        press(visitor, "g", "n")
    expect(page).to_have_url(f"{visitor.site}/notifications")
    with page.expect_navigation():
        press(visitor, "g", "p")
    expect(page).to_have_url(f"{visitor.site}/@reader")
    with page.expect_navigation():
        press(visitor, "g", "h")
    expect(page).to_have_url(f"{visitor.site}/")


def test_the_list_is_shown_and_leads_to_the_switch(visitor: Visitor) -> None:
    page = visitor.page
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    press(visitor, "?")
    expect(dialog).to_be_visible()
    press(visitor, "j")
    expect(page.locator("article:focus")).to_have_count(0)
    press(visitor, "?")
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Keyboard shortcuts").locator("visible=true").click()
    expect(dialog).to_be_visible()
    visitor.go(dialog.get_by_role("link", name="Turn off"))
    page.get_by_label("Keyboard shortcuts, like").uncheck()
    visitor.go(page.get_by_role("button", name="Save"))
    expect(page.get_by_label("Keyboard shortcuts, like")).not_to_be_checked()
    visitor.goto("/")
    press(visitor, "j", "?")
    expect(page.locator("article:focus")).to_have_count(0)
    expect(dialog).to_be_hidden()


def test_the_tabs_are_one_stop(visitor: Visitor) -> None:
    page = visitor.page
    page.locator("#main").focus()
    press(visitor, "Tab")
    tabs = page.get_by_role("navigation", name="Timelines").get_by_role("link")
    expect(tabs.nth(0)).to_be_focused()
    press(visitor, "ArrowRight", "ArrowRight", "ArrowLeft")
    expect(tabs.nth(1)).to_be_focused()
    tabs.nth(0).focus()
    press(visitor, "Tab")
    expect(page.get_by_label("What's new?")).to_be_focused()
