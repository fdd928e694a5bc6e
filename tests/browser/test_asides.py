from typing import Any

import pytest
from playwright.sync_api import expect

from items.actions import publish
from relations.actions import follow
from tests.support.browsers import Visit
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def reader() -> Any:
    reader = UserFactory.create(username="reader")
    author = UserFactory.create(username="author")
    follow(follower=reader, followee=author)
    for number in range(25):
        publish(sender=author, content={"text": f"words {number:02}"})
    for number in range(2):
        publish(sender=reader, content={"text": f"mine {number}"})
    return reader


def test_deleting_asks_in_the_page_and_keeps_the_focus(visit: Visit, reader: Any, screen: dict[str, Any]) -> None:
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/")
    page = visitor.page
    visitor.choose("Delete", "mine 1")
    question = page.get_by_role("dialog", name="Delete this post?")
    expect(question.locator(".danger")).to_have_text("Delete")
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    visitor.holds("document.activeElement !== document.body")
    visitor.choose("Delete", "mine 1")
    visitor.confirm("Delete this post?")
    expect(page.get_by_text("mine 1")).to_have_count(0)
    expect(page.locator("article").filter(has_text="mine 0")).to_be_focused()


def test_the_focus_goes_on_to_what_was_loaded(visit: Visit, reader: Any, screen: dict[str, Any]) -> None:
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/")
    page = visitor.page
    page.get_by_role("link", name="Load more").focus()  # scrolling there loads more
    expect(page.locator("[role=feed] article")).to_have_count(27)
    visitor.settle()
    visitor.holds("document.activeElement !== document.body")


def test_a_menu_that_closes_and_a_card_that_leaves_hand_the_focus_on(
    visit: Visit, reader: Any, screen: dict[str, Any]
) -> None:
    other = UserFactory.create(username="other")
    follow(follower=reader, followee=other)
    publish(sender=other, content={"text": "first of another"})
    publish(sender=other, content={"text": "second of another"})
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/")
    page = visitor.page
    card = page.locator("article").filter(has_text="second of another")
    visitor.choose("Block @other", "second of another")
    visitor.confirm("Block @other?", is_sure=False)
    expect(card.locator("summary")).to_be_focused()
    visitor.choose("Mute @other", "second of another")
    expect(page.locator("article").filter(has_text="of another")).to_have_count(0)
    expect(page.locator("article").filter(has_text="mine 1")).to_be_focused()
