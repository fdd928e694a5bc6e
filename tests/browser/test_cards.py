import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, expect

from items.actions import publish
from items.models import Item
from live import actions as live
from tests.support.browsers import OPENER, Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def author() -> Any:
    return UserFactory.create(username="author", display_name="An Author")


@pytest.fixture
def said(reader: Any, author: Any) -> Item:
    return publish(sender=author, content={"text": "Words to choose from.\n\nSee https://example.org/ and #books"})


@pytest.fixture
def visitor(visit: Visit, screen: dict[str, Any], reader: Any, said: Item) -> Visitor:
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/")
    return visitor


def press(visitor: Visitor, place: Locator, **options: Any) -> None:
    """Tap on touch screens, click elsewhere."""
    if visitor.page.evaluate("matchMedia('(hover: hover)').matches"):
        place.click(**options)
    else:
        place.tap(**options)


def test_the_whole_card_opens_the_post_and_the_arrow_leads_back(visitor: Visitor, said: Item) -> None:
    page = visitor.page
    card = page.locator(f"#item-{said.pk}")
    with page.expect_navigation():
        press(visitor, card.locator(".text"), position={"x": 60, "y": 10})
    expect(page).to_have_url(f"{visitor.site}/items/{said.pk}")
    with page.expect_navigation():
        press(visitor, page.get_by_role("link", name="Back", exact=True))
    expect(page).to_have_url(f"{visitor.site}/")
    expect(card).to_be_visible()


def test_what_a_card_holds_does_what_it_says(visitor: Visitor, said: Item) -> None:
    page = visitor.page
    card = page.locator(f"#item-{said.pk}")
    press(visitor, card.get_by_role("button", name="Like"))
    expect(card.get_by_role("button", name="Like 1")).to_have_attribute("aria-pressed", "true")
    press(visitor, card.locator(OPENER))
    expect(card.locator(".menu-items")).to_be_visible()
    press(visitor, card.locator(".text"), position={"x": 8, "y": 10})  # only closes the menu
    expect(card.locator(".menu-items")).to_be_hidden()
    press(visitor, card.get_by_role("link", name="Reply", exact=True))
    area = card.locator(".slot textarea")
    expect(area).to_be_visible()
    press(visitor, area)
    expect(area).to_be_focused()
    expect(page).to_have_url(f"{visitor.site}/")
    with page.expect_navigation():
        press(visitor, card.get_by_role("link", name="#books"))
    expect(page).to_have_url(f"{visitor.site}/tags/books")


def test_a_selection_opens_nothing(visit: Visit, reader: Any, said: Item) -> None:
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/")
    text = visitor.page.locator(f"#item-{said.pk} .text")
    box = text.bounding_box()
    assert box
    visitor.page.mouse.move(box["x"] + 4, box["y"] + 10)
    visitor.page.mouse.down()
    visitor.page.mouse.move(box["x"] + 120, box["y"] + 10, steps=4)
    visitor.page.mouse.up()
    assert visitor.page.evaluate("getSelection().toString().length") > 3
    expect(visitor.page).to_have_url(f"{visitor.site}/")


def test_enter_opens_the_card_that_has_the_focus(visit: Visit, reader: Any, said: Item) -> None:
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/")
    card = visitor.page.locator(f"#item-{said.pk}")
    with visitor.page.context.expect_page() as opened:
        card.press("Control+Enter")
    expect(opened.value).to_have_url(f"{visitor.site}/items/{said.pk}")
    opened.value.close()
    card.focus()
    with visitor.page.expect_navigation():
        visitor.page.keyboard.press("Enter")
    expect(visitor.page).to_have_url(f"{visitor.site}/items/{said.pk}")


def test_the_count_of_replies_opens_the_thread(visitor: Visitor, said: Item, author: Any) -> None:
    page = visitor.page
    expect(page.locator(".replies")).to_be_hidden()
    publish(sender=author, content={"text": "an answer"}, reply_to=said)
    visitor.goto("/")
    with page.expect_navigation():
        press(visitor, page.get_by_role("link", name="1 reply", exact=True))
    expect(page).to_have_url(f"{visitor.site}/items/{said.pk}#replies")
    visitor.shows(["an answer"])
    expect(page.locator(".slot form")).to_have_count(0)


def test_the_way_back_without_a_page_before(visitor: Visitor, said: Item, author: Any) -> None:
    now = timezone.now()
    session = live.create(host=author, title="A talk", starts_at=now + timedelta(hours=1), now=now)
    ways = {
        f"/items/{said.pk}": "/",
        "/@author": "/",
        "/@author/followers": "/@author",
        "/items/new": "/",
        f"/live/{session.pk}": "/live",
        "/tags/books": "/search",
    }
    for page, back in ways.items():
        expect_link(visitor, page, back)


def expect_link(visitor: Visitor, page: str, back: str) -> None:
    visitor.page.goto("about:blank")
    visitor.goto(page)
    link = visitor.page.locator(".head [data-back]")
    expect(link).to_have_attribute("href", re.compile(f"^{re.escape(back)}$"))
    with visitor.page.expect_navigation():
        press(visitor, link)
    expect(visitor.page).to_have_url(f"{visitor.site}{back}")
