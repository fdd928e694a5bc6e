"""The composer's row, its tools, and what stands below it."""

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from accounts.models import User
from items import actions as items
from tests.support.browsers import Visit, Visitor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

FORM = "form.composer"
WIDE, NARROW = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
SHIFTS = """
    new PerformanceObserver((list) => {
        for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.moved += value;
    }).observe({ type: "layout-shift", buffered: true });
    window.moved = 0;
"""


@pytest.fixture
def visitor(visit: Visit, reader: User) -> Visitor:
    for number in range(4):
        items.publish(sender=reader, type="text", content={"text": f"post {number}"})
    visitor = visit(viewport=WIDE)
    visitor.enter(reader)
    visitor.goto("/")
    return visitor


def box(one: Locator) -> dict[str, float]:
    found = one.bounding_box()
    assert found is not None
    return dict(found)


def choose(visitor: Visitor, tool: str) -> None:
    visitor.page.locator(f"{FORM} .{tool} > summary").first.click()


@pytest.mark.parametrize("limits_replies", [False, True])
def test_the_button_stands_in_the_row_of_the_tools(visitor: Visitor, *, limits_replies: bool) -> None:
    area = visitor.page.get_by_label("What's new?")
    area.fill("x" * 10)
    if limits_replies:
        choose(visitor, "audience")
        visitor.page.get_by_label("Who can reply").select_option("nobody")
        visitor.page.locator(f'{FORM} [name="visibility"][value="mutuals"]').check()
        area.click()
    tool, send = box(visitor.page.locator(f"{FORM} .polled > summary")), box(visitor.page.locator(f"{FORM} .send"))
    assert (tool["width"], tool["height"]) == (36, 44)
    assert tool["y"] <= send["y"] <= send["y"] + send["height"] <= tool["y"] + tool["height"]
    expect(visitor.page.locator(f"{FORM} .limited")).to_be_visible(visible=limits_replies)
    ring = box(visitor.page.locator(f"{FORM} .ring"))
    assert 0 < send["x"] - ring["x"] < 100


def test_replies_begin_in_one_row(visitor: Visitor, reader: User) -> None:
    item = items.publish(sender=reader, type="text", content={"text": "what is answered"})
    visitor.goto(f"/items/{item.pk}")
    area, send = visitor.page.get_by_label("Your reply"), visitor.page.locator("#thread .send")
    assert box(area)["height"] == 44
    expect(send).to_be_hidden()
    area.press_sequentially("mine")
    expect(send).to_be_visible()
    visitor.page.reload()
    expect(area).to_have_value("mine")
    expect(send).to_be_visible()


@pytest.mark.parametrize("screen", [WIDE, NARROW])
def test_nothing_moves_when_a_draft_with_open_tools_returns(visitor: Visitor, screen: Any) -> None:
    page = visitor.page
    page.set_viewport_size(screen)
    page.get_by_label("What's new?").fill("Which one?\n" * 5)
    choose(visitor, "warns")
    page.get_by_label("Content warning").fill("hot drinks")
    choose(visitor, "polled")
    page.get_by_label("Option 1").fill("tea")
    page.get_by_role("button", name="Add option").click()
    page.get_by_label("Option 3").fill("milk")
    page.add_init_script(SHIFTS)
    page.reload()
    expect(page.get_by_label("Option 3")).to_have_value("milk")
    visitor.settle()
    page.wait_for_timeout(300)
    assert page.evaluate("window.moved") == 0
    before = box(page.locator("article").first)
    page.get_by_label("Option 3").click()
    assert box(page.locator("article").first) == before


def test_the_emoji_float_over_the_page(visitor: Visitor) -> None:
    page, first = visitor.page, visitor.page.locator("article").first
    page.get_by_label("What's new?").click()
    before = box(first)
    choose(visitor, "emoji")
    emoji = page.locator(".emoji-found button").first
    emoji.click()
    expect(page.get_by_label("What's new?")).not_to_have_value("")
    assert box(first) == before
    page.keyboard.press("Escape")
    expect(emoji).to_be_hidden()


def test_a_poll_begins_with_two_options(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_label("What's new?").click()
    choose(visitor, "polled")
    fields, drop = page.locator(".option input:visible"), page.get_by_role("button", name="Remove option")
    expect(fields).to_have_count(2)
    expect(drop).to_have_count(0)
    for _ in range(4):
        page.get_by_role("button", name="Add option").click()
    expect(fields).to_have_count(6)
    expect(page.get_by_role("button", name="Add option")).to_be_hidden()
    for number, text in enumerate(("one", "two", "three")):
        fields.nth(number).fill(text)
    for _ in range(4):
        drop.first.click()
    expect(fields).to_have_count(2)
    expect(fields.first).to_be_focused()
    page.reload()
    expect(page.locator(".option input").first).to_be_hidden()


def test_a_poll_is_removed(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_label("What's new?").fill("tea?")
    choose(visitor, "polled")
    page.get_by_role("button", name="Add option").click()
    for number, text in enumerate(("one", "two", "three"), 1):
        page.get_by_label(f"Option {number}").fill(text)
    page.get_by_role("button", name="Remove poll").click()
    expect(page.get_by_label("Option 1")).to_be_hidden()
    expect(page.locator(".polled > summary").first).to_be_focused()
    page.reload()
    expect(page.get_by_label("What's new?")).to_have_value("tea?")
    expect(page.get_by_label("Option 1")).to_be_hidden()


def test_a_draft_keeps_the_options_that_are_left(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_label("What's new?").click()
    choose(visitor, "polled")
    page.get_by_role("button", name="Add option").click()
    for number, text in enumerate(("one", "two", "three"), 1):
        page.get_by_label(f"Option {number}").fill(text)
    page.get_by_role("button", name="Remove option").first.click()
    page.reload()
    expect(page.get_by_label("Option 2")).to_have_value("three")
    expect(page.locator(".option input:visible")).to_have_count(2)
