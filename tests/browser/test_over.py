"""Write and Quote stand over the page, which keeps its place."""

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from items.actions import publish
from items.models import Item
from tests.support.browsers import Visit, Visitor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def visitor(visit: Visit, reader: Any, author: Any, screen: dict[str, Any]) -> Visitor:
    for number in range(12):
        publish(sender=author, content={"text": f"words {number}\n\nand\n\nmore"})
    visitor = visit(**screen)
    visitor.enter(reader)
    return visitor


def dialog(visitor: Visitor) -> Locator:
    return visitor.page.locator("#over-page")


def scrolled(visitor: Visitor) -> int:
    return int(visitor.page.evaluate("scrollY"))


def test_a_post_is_written_over_the_feed(visitor: Visitor) -> None:
    visitor.goto("/@author")
    visitor.page.evaluate("scrollTo(0, 600)")
    place = scrolled(visitor)
    visitor.page.locator(".write").click()
    area = dialog(visitor).get_by_label("What's new?")
    expect(area).to_be_focused()
    area.fill("half a thou")
    visitor.page.keyboard.press("Escape")
    expect(dialog(visitor)).to_be_hidden()
    expect(visitor.page.locator("#toast")).to_contain_text("Your text is saved.")
    visitor.page.locator(".write").click()
    expect(area).to_have_value("half a thou")
    area.fill("a thought")
    dialog(visitor).get_by_role("button", name="Publish").click()
    expect(visitor.page.locator("#toast")).to_contain_text("Published.")
    expect(dialog(visitor)).to_be_hidden()
    assert scrolled(visitor) == place
    expect(visitor.page).to_have_url(f"{visitor.site}/@author")
    visitor.go(visitor.page.locator("#toast").get_by_role("button", name="View"))
    expect(visitor.page.locator("article.whole .text")).to_have_text("a thought")


def test_what_is_published_leaves_the_composer_at_home(visitor: Visitor) -> None:
    visitor.goto("/")
    area = visitor.page.locator("main").get_by_label("What's new?")
    area.fill("begun at home")
    area.blur()
    visitor.goto("/")
    expect(area).to_have_value("begun at home")
    visitor.page.locator(".write").click()
    dialog(visitor).get_by_role("button", name="Publish").click()
    expect(dialog(visitor)).to_be_hidden()
    expect(area).to_have_value("")


def test_a_quote_can_be_given_up_and_taken_up_again(visitor: Visitor) -> None:
    visitor.goto("/")
    card = visitor.page.locator("#feed > article").nth(2)
    card.locator('[data-act="repost"]').click()
    visitor.page.locator("#reposting").get_by_role("link", name="Quote").click()
    expect(dialog(visitor).locator(".quote")).to_contain_text("words 9")
    area = dialog(visitor).get_by_label("What's new?")
    area.fill("so it is")
    dialog(visitor).get_by_role("button", name="Cancel").click()
    expect(dialog(visitor)).to_be_hidden()
    visitor.page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(area).to_have_value("so it is")
    dialog(visitor).get_by_role("button", name="Publish").click()
    expect(dialog(visitor)).to_be_hidden()
    assert Item.objects.get(quote_of__isnull=False).text == "so it is"


def test_what_is_refused_stays(visitor: Visitor, tolerated: Any) -> None:
    tolerated("with a status of 422")
    visitor.goto("/")
    visitor.page.locator(".write").click()
    area = dialog(visitor).get_by_label("What's new?")
    area.fill("@nobody")
    dialog(visitor).locator(".audience > summary").click()
    dialog(visitor).locator('[name="visibility"][value="mentioned"]').check()
    dialog(visitor).get_by_role("button", name="Publish").click()
    expect(dialog(visitor).locator(".errorlist")).to_be_visible()
    expect(area).to_have_value("@nobody")
    expect(visitor.page.get_by_label("What's new?").first).to_have_value("")
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.locator("main").get_by_label("What's new?")).to_have_value("@nobody")
