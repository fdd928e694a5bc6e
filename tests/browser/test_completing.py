from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from items.actions import publish
from relations.actions import follow
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def reader() -> Any:
    return UserFactory.create(username="reader")


@pytest.fixture
def visitor(visit: Visit, screen: dict[str, Any], reader: Any) -> Visitor:
    visitor = visit(**screen)
    visitor.enter(reader)
    return visitor


def test_names_complete_by_keys(visitor: Visitor) -> None:
    for name in ("alice", "alan", "bert"):
        UserFactory.create(username=name)
    visitor.goto("/")
    page = visitor.page
    box, options = page.get_by_label("What's new?"), page.get_by_role("option", name="@")
    box.click()
    page.keyboard.type("hello @al")
    expect(options).to_have_count(2)
    expect(options.first).to_have_attribute("aria-selected", "true")
    second = options.nth(1).get_attribute("data-text")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(box).to_have_value(f"hello {second} ")
    expect(options).to_have_count(0)
    page.keyboard.type("and @be")
    expect(options).to_have_count(1)
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    expect(box).to_have_value(f"hello {second} and @be")
    expect(box).to_be_focused()
    page.keyboard.type("r")
    expect(options).to_have_count(1)
    page.keyboard.press("Tab")
    expect(box).to_have_value(f"hello {second} and @bert ")
    expect(box).to_be_focused()


def test_hashtags_complete_by_a_press(visitor: Visitor, screen: dict[str, Any], reader: Any) -> None:
    publish(sender=reader, content={"text": "#travel #小事"})
    visitor.goto("/items/new")
    page = visitor.page
    box, options = page.get_by_label("What's new?"), page.get_by_role("option", name="#")
    box.press_sequentially("off for #tr")
    expect(options).to_have_text(["#travel"])
    press = options.first.tap if screen.get("has_touch") else options.first.click
    press()
    expect(box).to_have_value("off for #travel ")
    expect(box).to_be_focused()
    box.press_sequentially("今天#小")
    expect(options).to_have_text(["#小事"])
    box.press_sequentially(" no")
    expect(options).to_have_count(0)


def test_addresses_do_not_complete(visitor: Visitor) -> None:
    visitor.goto("/")
    page = visitor.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/complete" in request.url else None)
    box = page.get_by_label("What's new?")
    box.fill("me@reader")
    box.fill("https://a.example/@reader")
    box.fill("@rea")
    expect(page.get_by_role("option", name="@reader")).to_have_count(1)
    assert [url.partition("q=")[2] for url in asked] == ["%40rea"]


def test_names_of_nobody_lead_nowhere(visitor: Visitor, reader: Any) -> None:
    author: Any = UserFactory.create(username="author")
    follow(follower=reader, followee=author)
    publish(sender=author, content={"text": "for @reader and for @nobody"})
    visitor.goto("/")
    expect(visitor.page.locator(".text a")).to_have_text(["@reader"])
    visitor.shows(["for @reader and for @nobody"])


WRONG = {"/nothing/here": 404, "/@nobody": 404, "/items/{}/edit": 403}
HEADINGS = {404: "Page not found", 403: "You can't do this"}


@pytest.mark.parametrize("address", WRONG)
def test_errors_keep_the_frame(
    visit: Visit, screen: dict[str, Any], reader: Any, tolerated: Callable[[str], None], address: str
) -> None:
    item = publish(sender=UserFactory.create(), content={"text": "not yours"})
    status = WRONG[address]
    tolerated(f"with a status of {status}")
    for is_known in [True, False][: 1 + (status == 404)]:
        visitor = visit(**screen)
        if is_known:
            visitor.enter(reader)
        answer = visitor.page.goto(visitor.site + address.format(item.pk))
        assert answer
        assert answer.status == status
        expect(visitor.page.get_by_role("heading", name=HEADINGS[status])).to_be_visible()
        navigation = visitor.page.get_by_role("navigation", name="Main" if is_known else "Account")
        expect(navigation).to_be_visible()
        if is_known:
            visitor.go(navigation.get_by_role("link", name="Profile"))
            expect(visitor.page.get_by_role("heading", name="reader")).to_be_visible()
