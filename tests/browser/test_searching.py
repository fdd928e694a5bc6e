import re
from typing import Any

import pytest
from playwright.sync_api import expect

from items.actions import publish
from tests.support.browsers import Visit
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def reader() -> Any:
    author = UserFactory.create(username="xavier", display_name="Xavier Apple")
    publish(sender=author, content={"text": "apple pie"})
    return UserFactory.create(username="reader")


def test_examples_and_tabs(visit: Visit, reader: Any, screen: dict[str, Any]) -> None:
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/search")
    page = visitor.page
    visitor.go(page.get_by_role("link", name="from:reader"))
    expect(page.get_by_role("main").get_by_role("combobox")).to_have_value("from:reader ")
    visitor.goto("/search?q=apple")
    expect(page.locator("article")).to_have_count(1)
    expect(page.locator(".people .name")).to_have_count(1)
    tabs = page.get_by_role("navigation", name="Results")
    visitor.go(tabs.get_by_role("link", name="People"))
    expect(page.locator(".people .name")).to_have_text(["Xavier Apple"])
    expect(page.locator("article")).to_have_count(0)
    visitor.go(tabs.get_by_role("link", name="Posts"))
    expect(page.locator("article")).to_have_count(1)
    expect(page.locator(".people .name")).to_have_count(0)


def test_names_after_from(visit: Visit, reader: Any, screen: dict[str, Any]) -> None:
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/search")
    page = visitor.page
    field = page.get_by_role("main").get_by_role("combobox")
    field.press_sequentially("pie from:xav")
    option = page.get_by_role("option", name=re.compile("@xavier"))
    expect(option).to_be_visible()
    field.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    field.press("Enter")
    expect(field).to_have_value("pie from:xavier ")
    field.press("Enter")
    expect(page.locator("article")).to_have_count(1)


@pytest.mark.parametrize("box", ["search", "side"])
def test_people_and_hashtags_are_offered_from_the_third_letter(visit: Visit, reader: Any, box: str) -> None:
    publish(sender=reader, content={"text": "#xanadu"})
    visitor = visit(viewport={"width": 1280, "height": 800})
    visitor.enter(reader)
    visitor.goto("/search" if box == "search" else "/")
    page = visitor.page
    field = page.get_by_role("main" if box == "search" else "complementary").get_by_role("combobox")
    options = page.locator("#completions").get_by_role("option")
    with page.expect_request("**/complete?*"):
        field.press_sequentially("xa")
        field.press_sequentially("v")
    expect(options).to_have_text([re.compile("@xavier")])
    expect(field).to_have_attribute("aria-expanded", "true")
    expect(page.locator("[aria-selected=true]")).to_have_count(0)
    field.fill("xan")
    expect(options).to_have_text(["#xanadu"])
    field.press("Enter")  # no option chosen, so it searches
    expect(page).to_have_url(re.compile("/search.q=xan$"))
    visitor.goto("/search" if box == "search" else "/")
    field.press_sequentially("xav")
    expect(options).to_have_count(1)
    field.press("ArrowDown")
    expect(options).to_have_attribute("aria-selected", "true")
    with page.expect_navigation():
        field.press("Enter")
    expect(page).to_have_url(f"{visitor.site}/@xavier")


def test_the_navigation_stays_where_it_is(visit: Visit, reader: Any) -> None:
    visitor = visit(viewport={"width": 1280, "height": 800})
    visitor.enter(reader)
    places = []
    for path in ("/", "/search", "/settings"):
        visitor.goto(path)
        places.append([link.bounding_box() for link in visitor.page.locator(".nav > a").all()])
    assert places[0] == places[1] == places[2]


def test_recent_searches(visit: Visit, reader: Any, screen: dict[str, Any]) -> None:
    visitor = visit(**screen)
    visitor.enter(reader)
    for query in ("apple", "pie", "apple"):
        visitor.goto(f"/search?q={query}")
    visitor.goto("/search")
    recent = visitor.page.get_by_role("region", name="Recent searches")
    expect(recent.get_by_role("link")).to_have_text(["apple", "pie"])
    visitor.go(recent.get_by_role("link", name="pie"))
    expect(visitor.page.locator("article")).to_have_count(1)
    visitor.goto("/search")
    recent.get_by_role("button", name="Clear").click()
    expect(recent).to_be_hidden()
    expect(visitor.page.get_by_role("main").get_by_role("combobox")).to_be_focused()
    visitor.goto("/search")
    expect(recent).to_be_hidden()


def test_old_searches_are_forgotten(visit: Visit, reader: Any) -> None:
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/search")
    day = 86_400_000
    put = "([key, asked, age]) => localStorage.setItem(key, JSON.stringify({ at: Date.now() - age, asked }))"
    visitor.page.evaluate(put, [f"searches-{reader.pk}", ["apple"], 89 * day])
    visitor.page.evaluate(put, ["searches-8", ["of somebody"], 91 * day])
    visitor.page.evaluate("localStorage.setItem('searches-9', '{')")
    visitor.page.evaluate("localStorage.setItem('searches-7', '[\"of before\"]')")  # an older format
    visitor.goto("/search")
    expect(visitor.page.get_by_role("region", name="Recent searches").get_by_role("link")).to_have_text(["apple"])
    left = visitor.page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('searches-')).sort()")
    assert left == sorted(["searches-7", f"searches-{reader.pk}"])
    assert visitor.page.evaluate("JSON.parse(localStorage.getItem('searches-7')).at > Date.now() - 60000")


def test_a_long_post_is_unfolded_in_place(visit: Visit, reader: Any, screen: dict[str, Any]) -> None:
    publish(sender=reader, content={"text": "words " * 400 + "the end"})
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/@reader")
    page = visitor.page
    page.get_by_role("link", name="Show more").click()
    expect(page.locator("article").get_by_text("the end")).to_be_visible()
    expect(page.get_by_role("link", name="Show more")).to_have_count(0)
    expect(page).to_have_url(re.compile("/@reader$"))
    visitor.holds("document.activeElement !== document.body")
