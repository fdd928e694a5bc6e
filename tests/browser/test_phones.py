from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from items.actions import publish
from tests.support.browsers import SCREENS, Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

LONG = "A Writer With A Display Name As Long As It May Be."


@pytest.fixture
def author() -> Any:
    return UserFactory.create(username="a-writer-with-a-long-username", display_name=LONG, is_big_v=True)


LAST_IS_FREE = """(() => {
    scrollTo({ top: document.body.scrollHeight, behavior: "instant" });
    const shown = [...document.querySelectorAll("main :is(a, button)")].filter((one) => one.checkVisibility());
    const bar = document.querySelector(".nav").getBoundingClientRect();
    return !shown.length || shown.at(-1).getBoundingClientRect().bottom <= bar.top;
})()"""


def phone(visit: Visit, reader: Any, locale: str = "en-US") -> Visitor:
    visitor = visit(**SCREENS["phone"], locale=locale)
    visitor.enter(reader)
    return visitor


def box(place: Locator) -> dict[str, float]:
    found = place.bounding_box()
    assert found
    return dict(found)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("width", [320, 390])
def test_the_pencil_stands_in_the_bar_and_covers_nothing(
    visit: Visit, reader: Any, author: Any, locale: str, width: int
) -> None:
    for number in range(12):
        publish(sender=author, content={"text": f"words {number} #words"})
    visitor = phone(visit, reader, locale)
    visitor.page.set_viewport_size({"width": width, "height": 844})
    name = author.username
    pages = ("/", "/discover", "/live", "/tags/words", "/people", f"/@{name}", f"/@{name}/followers", "/items/new")
    for page in pages:
        visitor.goto(page)
        bar, pencil = box(visitor.page.locator(".nav")), box(visitor.page.locator(".write"))
        assert bar["y"] <= pencil["y"], page
        assert pencil["y"] + pencil["height"] <= bar["y"] + bar["height"], page
        for link in visitor.page.locator(".nav > a:not(.write, .wide-only)").all():
            place = box(link)
            assert place["x"] + place["width"] <= pencil["x"] or place["x"] >= pencil["x"] + pencil["width"], page
            assert place["x"] >= 0, page
            assert place["x"] + place["width"] <= width, page
        # At the end, the last control is above the bar.
        visitor.holds(LAST_IS_FREE)
    visitor.goto(f"/@{name}")
    visitor.page.locator(".write").click()
    expect(visitor.page.get_by_role("dialog").locator("textarea").first).to_be_focused()
    visitor.goto("/items/new")
    expect(visitor.page.locator("main textarea")).to_be_focused()
    expect(visitor.page.locator(".write")).to_have_attribute("aria-current", "page")


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_every_part_of_the_settings_is_in_sight(visit: Visit, reader: Any, locale: str) -> None:
    visitor = phone(visit, reader, locale)
    visitor.goto("/settings")
    rows, part = visitor.page.locator(".parts li > a"), visitor.page.locator(".part")
    expect(rows).to_have_count(11)
    expect(part).to_be_hidden()
    for row in rows.all():
        place = box(row)
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= 390
        assert place["height"] >= 44
    with visitor.page.expect_navigation():
        rows.last.tap()
    expect(part).to_be_visible()
    expect(rows.first).to_be_hidden()
    with visitor.page.expect_navigation():
        part.locator(".back").tap()
    expect(rows.first).to_be_visible()
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    expect(part).to_be_visible()
    expect(rows.first).to_be_visible()


def test_the_way_to_ones_profile_and_back_after_a_save(visit: Visit, reader: Any) -> None:
    visitor = phone(visit, reader)
    visitor.goto("/@reader")
    page = visitor.page
    with page.expect_navigation():
        page.get_by_role("link", name="Edit profile").tap()
    page.get_by_label("Display name").fill("Ann")
    with page.expect_navigation():
        page.get_by_role("button", name="Save").tap()
    expect(page.get_by_role("status").get_by_text("Saved.")).to_be_visible()
    with page.expect_navigation():
        page.locator(".part .back").tap()
    expect(page).to_have_url(f"{visitor.site}/settings")
