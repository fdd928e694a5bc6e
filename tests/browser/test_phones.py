from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, expect

from items.actions import publish
from live import actions as live
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
def test_cancel_and_reply_stand_side_by_side(visit: Visit, reader: Any, author: Any, locale: str) -> None:
    publish(sender=author, content={"text": "words"})
    visitor = phone(visit, reader, locale)
    visitor.goto("/")
    visitor.page.locator("[data-act=reply]").tap()
    cancel, send = visitor.page.locator(".slot [data-close]"), visitor.page.locator(".slot .send")
    expect(send).to_be_visible()
    visitor.settle()
    assert box(cancel)["y"] == box(send)["y"]
    assert box(cancel)["x"] < box(send)["x"]


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
    visitor.go(visitor.page.locator(".write"))
    expect(visitor.page.locator("main textarea")).to_be_focused()
    expect(visitor.page.locator(".write")).to_have_attribute("aria-current", "page")


def test_a_long_name_leaves_room_for_the_time(visit: Visit, reader: Any, author: Any) -> None:
    publish(sender=author, content={"text": "words"})
    visitor = phone(visit, reader)
    visitor.goto("/")
    byline = visitor.page.locator(".byline")
    who, name, handle, when = (box(byline.locator(part)) for part in (".who", ".name", ".handle", ".time"))
    assert handle["y"] >= who["y"] + who["height"], "the handle goes as a whole"
    assert name["width"] > 150
    assert when["x"] + when["width"] <= 390 - 44, "the menu stands behind the time"
    assert abs(name["y"] - when["y"]) < name["height"]


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_cancel_and_publish_stand_side_by_side(visit: Visit, reader: Any, locale: str) -> None:
    visitor = phone(visit, reader, locale)
    visitor.goto("/items/new")
    cancel, send = visitor.page.locator("main [data-discard]"), visitor.page.locator("main .send")
    expect(send).to_be_visible()
    assert box(cancel)["y"] == box(send)["y"]


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("place", ["/", "/items/new"])
@pytest.mark.parametrize("width", [320, 390])
def test_what_a_text_may_have_stands_at_the_left_beneath_it(
    visit: Visit, reader: Any, locale: str, place: str, width: int
) -> None:
    visitor = phone(visit, reader, locale)
    visitor.page.set_viewport_size({"width": width, "height": 844})
    visitor.goto(place)
    form = visitor.page.locator("form.composer")
    form.locator("textarea").click()
    text = box(form.locator("textarea"))
    tools = [box(tool) for tool in form.locator(".tool").locator("visible=true").all()]
    audience, send = box(form.locator(".audience > summary")), box(form.locator(".send"))
    assert len(tools) == 6
    assert abs(tools[0]["x"] - text["x"]) < 2
    assert [*sorted(tools, key=lambda tool: tool["x"])] == tools
    assert tools[0]["y"] >= text["y"] + text["height"]
    middles = {round(one["y"] + one["height"] / 2) for one in (*tools, audience)}
    assert max(middles) - min(middles) <= 2
    assert audience["x"] >= tools[-1]["x"] + tools[-1]["width"]
    assert send["y"] >= audience["y"] + audience["height"]
    assert send["y"] - audience["y"] < 60
    assert abs(send["x"] + send["width"] - text["x"] - text["width"]) < 2


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


def test_a_tap_leaves_no_tint(visit: Visit, reader: Any, author: Any) -> None:
    publish(sender=author, content={"text": "words"})
    visitor = phone(visit, reader)
    visitor.goto("/")
    assert visitor.page.evaluate("matchMedia('(hover: none)').matches")
    ground = "getComputedStyle(document.querySelector('[data-act=like]')).backgroundColor"
    before = visitor.page.evaluate(ground)
    visitor.page.locator("[data-act=like]").tap()
    expect(visitor.page.locator("[data-act=like]")).to_have_attribute("aria-pressed", "true")
    visitor.settle()
    assert visitor.page.evaluate(ground) == before


@pytest.mark.parametrize(("locale", "words"), [("en-US", "My sessions"), ("zh-CN", "我的直播")])
def test_my_sessions_says_so(visit: Visit, reader: Any, author: Any, locale: str, words: str) -> None:
    now = timezone.now()
    live.create(host=author, title="A talk", starts_at=now + timedelta(hours=1), now=now)
    visitor = phone(visit, reader, locale)
    visitor.goto("/live")
    label = visitor.page.locator(".head").get_by_text(words, exact=True)
    assert box(label)["width"] > 20
    visitor.page.set_viewport_size({"width": 320, "height": 800})
    visitor.holds("document.documentElement.scrollWidth <= 320")
