"""Items that reach an open page by several ways stand in one order: the newer edit, replies by their ids, each once."""

from typing import Any

import pytest
from playwright.sync_api import expect

from items.actions import edit, publish
from items.models import Item
from tests.support.browsers import Held, Visit, Visitor, is_live
from tests.support.streams import StreamServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def item(author: Any) -> Item:
    return publish(sender=author, content={"text": "first words"})


@pytest.fixture
def visitor(visit: Visit, streams: StreamServer, reader: Any, item: Item, screen: dict[str, Any]) -> Visitor:
    visitor = visit(**screen)
    visitor.enter(reader)
    return visitor


def open_home(visitor: Visitor) -> None:
    visitor.goto("/")
    is_live(visitor.page)


def open_thread(visitor: Visitor, item: Item) -> None:
    with visitor.page.expect_response(lambda answer: "/stream" in answer.url and answer.status == 200):
        visitor.goto(f"/items/{item.pk}")


def test_the_newer_of_two_edits_wins(visitor: Visitor, item: Item) -> None:
    open_home(visitor)
    text = visitor.page.locator(f"#item-{item.pk} .text")
    old = visitor.page.locator(f"#item-{item.pk}").evaluate("(card) => card.outerHTML")
    held = Held(visitor.page, f"/items/{item.pk}$")
    edit(item=item, content={"text": "second words"})
    visitor.page.wait_for_event("request", lambda request: request.url.endswith(f"/items/{item.pk}"))
    edit(item=item, content={"text": "third words"})
    held.let_go()
    expect(text).to_have_text("third words")
    # An answer that was long underway.
    visitor.page.evaluate(f"(html) => putCard(cardOf(html, '{item.pk}'))", old)
    expect(text).to_have_text("third words")


def test_an_edit_is_shown_after_the_composer_that_was_open(visitor: Visitor, item: Item) -> None:
    open_home(visitor)
    card = visitor.page.locator(f"#item-{item.pk}")
    card.locator("[data-act=reply]").click()
    area = card.locator(".slot textarea")
    area.fill("half an answer")
    edit(item=item, content={"text": "second words"})
    expect(card).to_have_attribute("data-late", "true")
    expect(area).to_have_value("half an answer")
    expect(card.locator(".text")).to_have_text("first words")
    area.press("Escape")
    expect(card.locator(".text")).to_have_text("second words")


def test_an_edit_is_shown_after_the_reply_that_was_written_meanwhile(visitor: Visitor, item: Item) -> None:
    open_home(visitor)
    card = visitor.page.locator(f"#item-{item.pk}")
    card.locator("[data-act=reply]").click()
    card.locator(".slot textarea").fill("an answer")
    edit(item=item, content={"text": "second words"})
    expect(card).to_have_attribute("data-late", "true")
    card.locator(".slot").get_by_role("button", name="Reply").click()
    expect(card.locator(":scope > .said > .text")).to_have_text("second words")
    expect(card.locator(".slot article .text")).to_have_text("an answer")


def test_replies_stand_by_their_ids(visitor: Visitor, author: Any, item: Item) -> None:
    open_thread(visitor, item)
    expect(visitor.page.get_by_text("No replies yet.")).to_be_visible()
    held = Held(visitor.page, r"/items/\d+$")
    first = publish(sender=author, content={"text": "reply 1"}, reply_to=item)
    visitor.page.wait_for_event("request", lambda request: request.url.endswith(f"/items/{first.pk}"))
    visitor.page.get_by_label("Your reply").fill("reply 2")
    visitor.page.get_by_role("button", name="Reply", exact=True).click()
    visitor.shows(["reply 2"])
    held.let_go()
    visitor.shows(["reply 1", "reply 2"])


def test_ones_own_reply_stands_once(visitor: Visitor, item: Item) -> None:
    open_thread(visitor, item)
    visitor.page.get_by_label("Your reply").fill("an answer")
    with visitor.page.expect_response(lambda answer: answer.url.endswith("/items/new")):
        visitor.page.get_by_role("button", name="Reply", exact=True).click()
    expect(visitor.page.locator("#feed > article")).to_have_count(1)
    publish(sender=item.sender, content={"text": "later"}, reply_to=item)  # after which the own one was heard of too
    visitor.shows(["an answer", "later"])
