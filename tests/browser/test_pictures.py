import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from items.actions import publish
from items.models import Item, ItemType
from media import actions as media
from tests.support.browsers import Visit, Visitor
from tests.support.pictures import jpeg, upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SIZES = [(1600, 1000), (900, 1600), (800, 800), (2000, 600)]
LONG = "a " * 300
WORDS = "A red field under a grey sky.\nWith a second line."
POSTS: list[tuple[str, dict[str, Any], list[tuple[tuple[int, int], str]]]] = [
    ("veiled", {"sensitive": True}, [(SIZES[0], "veiled")]),
    ("warned", {"warning": "Spiders, and a rather long warning of them"}, [(SIZES[2], "")]),
    ("one", {}, [(SIZES[0], WORDS)]),
    ("tall", {}, [(SIZES[1], "")]),
    ("small", {}, [((120, 90), "x")]),
    ("wide", {}, [((3000, 100), "")]),
    ("two", {}, [(SIZES[0], "a"), (SIZES[1], "")]),
    ("three", {}, [(SIZES[0], "a"), (SIZES[1], ""), (SIZES[2], "")]),
    ("four", {}, [(SIZES[0], LONG), (SIZES[1], ""), (SIZES[2], "ccc"), (SIZES[3], "")]),
]
"""By text: other content, then size and description of each picture."""


@pytest.fixture
def items(author: Any, media_folder: Path) -> dict[str, Item]:
    found = {}
    for name, content, pictures in POSTS:
        ids = [
            str(media.upload(owner_id=author.pk, file=upload(jpeg(*size)), description=said, focus=(0.0, 0.6)).pk)
            for size, said in pictures
        ]
        found[name] = publish(sender=author, type=ItemType.IMAGE, content={"text": name, "media": ids} | content)
    return found


@pytest.fixture
def home(visit: Visit, screen: dict[str, Any], reader: Any, items: dict[str, Item], media_folder: Path) -> Visitor:
    visitor = visit(**screen)
    visitor.find_media(media_folder)
    visitor.enter(reader)
    visitor.goto("/")
    return visitor


@pytest.fixture
def card(home: Visitor, items: dict[str, Item]) -> Callable[[str], Locator]:
    return lambda name: home.page.locator(f"#item-{items[name].pk}")


def box(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("dialog", name="Pictures")


def shown(visitor: Visitor) -> Locator:
    """The full picture, not its placeholder."""
    return box(visitor).locator(".light-stage img:not(.before)")


@pytest.mark.long
def test_grids_keep_their_place(home: Visitor, card: Callable[[str], Locator]) -> None:
    """A card has its final height before its pictures load."""
    heights = {}
    for name in ("one", "tall", "small", "wide", "two", "three", "four"):
        group = card(name).locator(".pictures")
        heights[name] = group.bounding_box()
        group.scroll_into_view_if_needed()
        expect(group.locator("img").last).to_have_js_property("complete", True)
        for image in group.locator("img").all():
            expect(image).not_to_have_js_property("naturalWidth", 0)
        after = group.bounding_box()
        assert after is not None
        assert heights[name] is not None
        assert (after["width"], after["height"]) == (heights[name]["width"], heights[name]["height"]), name
    expect(card("four").locator(".ground")).to_have_count(0)


def test_pictures_that_are_loaded_before_the_script(home: Visitor, card: Callable[[str], Locator]) -> None:
    """The placeholder must go, because it would show through transparent pictures."""
    held: list[Route] = []
    home.page.route(re.compile(r"/members\."), lambda route: held.append(route))
    home.page.goto(home.site, wait_until="commit")
    image = card("four").locator(".picture img").first
    expect(image).not_to_have_js_property("naturalWidth", 0)
    expect(card("four").locator(".picture").first.locator(".ground")).to_have_count(1)
    held[0].continue_()
    expect(card("four").locator(".picture").first.locator(".ground")).to_have_count(0)


def test_a_description_opens_from_its_badge(home: Visitor, card: Callable[[str], Locator]) -> None:
    badge, words = card("one").locator(".alt > summary"), card("one").locator(".alt > p")
    expect(card("tall").locator(".alt")).to_have_count(0)
    expect(words).to_be_hidden()
    badge.click()
    expect(words).to_have_text("A red field under a grey sky. With a second line.")
    home.page.keyboard.press("Escape")
    expect(words).to_be_hidden()
    expect(badge).to_be_focused()
    assert home.page.url.endswith("/")


def test_sensitive_pictures_are_veiled(home: Visitor, card: Callable[[str], Locator]) -> None:
    veil = card("veiled").locator(".veil > summary")
    picture = card("veiled").locator(".picture img")
    expect(picture).to_be_hidden()
    veil.get_by_text("Sensitive. Show").click()
    expect(picture).to_be_visible()
    veil.get_by_text("Hide").click()
    expect(picture).to_be_hidden()


def test_a_warning_folds_words_and_pictures(home: Visitor, card: Callable[[str], Locator]) -> None:
    warned = card("warned")
    expect(warned.get_by_text("Spiders, and a rather long warning of them")).to_be_visible()
    expect(warned.locator(".text")).to_be_hidden()
    expect(warned.locator(".picture img")).to_be_hidden()
    warned.locator(".warned > summary").press("Enter")
    expect(warned.locator(".text")).to_be_visible()
    expect(warned.locator(".picture img")).to_be_visible()


def test_the_lightbox_by_keys(home: Visitor, items: dict[str, Item], card: Callable[[str], Locator]) -> None:
    links = card("four").locator("a[data-light]")
    links.nth(1).press("Enter")
    expect(box(home)).to_be_visible()
    expect(box(home).get_by_text("2 of 4")).to_be_visible()
    for key, place in (
        ("ArrowRight", 3),
        ("ArrowRight", 4),
        ("ArrowRight", 1),
        ("ArrowLeft", 4),
        ("Home", 1),
        ("End", 4),
    ):
        home.page.keyboard.press(key)
        expect(box(home).get_by_text(f"{place} of 4")).to_be_visible()
        expect(shown(home)).to_have_attribute("src", re.compile(items["four"].media[place - 1]["name"]))
    home.page.keyboard.press("+")
    expect(box(home).get_by_role("button", name="Zoom")).to_have_attribute("aria-pressed", "true")
    home.page.keyboard.press("-")
    for _ in range(9):
        home.page.keyboard.press("Tab")
        assert home.page.evaluate(
            "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
    home.page.keyboard.press("Escape")
    expect(box(home)).to_be_hidden()
    expect(links.nth(3)).to_be_focused()


def test_the_way_back_closes_the_lightbox(home: Visitor, card: Callable[[str], Locator]) -> None:
    address = home.page.url
    card("one").locator("a[data-light]").click()
    expect(box(home)).to_be_visible()
    expect(box(home).get_by_role("button", name="Next picture")).to_be_hidden()
    home.page.evaluate("history.back()")
    expect(box(home)).to_be_hidden()
    assert home.page.url == address
    # Closing by button leaves no history entry.
    card("two").locator("a[data-light]").first.click()
    box(home).get_by_role("button", name="Close").click()
    expect(box(home)).to_be_hidden()
    home.holds("!history.state?.lightbox")


def test_a_swipe_leads_on(home: Visitor, card: Callable[[str], Locator]) -> None:
    card("two").locator("a[data-light]").first.click()
    swipe = """([from, to]) => {
        const stage = document.querySelector(".light-stage");
        const at = (clientX) => ({ clientX, clientY: 300, isPrimary: true, pointerType: "touch", bubbles: true });
        stage.dispatchEvent(new PointerEvent("pointerdown", at(from)));
        stage.dispatchEvent(new PointerEvent("pointerup", at(to)));
    }"""
    for way, place in (([300, 100], 2), ([100, 300], 1), ([200, 190], 1)):
        home.page.evaluate(swipe, way)
        expect(box(home).get_by_text(f"{place} of 2")).to_be_visible()


@pytest.fixture
def fingers(visit: Visit, reader: Any, items: dict[str, Item], media_folder: Path) -> Visitor:
    """A phone. What it is sent are touches, as of a screen, so that the browser's own gestures are in play."""
    visitor = visit(viewport={"width": 390, "height": 844}, device_scale_factor=3, has_touch=True, is_mobile=True)
    visitor.find_media(media_folder)
    visitor.enter(reader)
    visitor.goto("/")
    visitor.page.locator(f"#item-{items['two'].pk} a[data-light]").first.tap()
    expect(box(visitor)).to_be_visible()
    expect(box(visitor).locator(".before")).to_have_count(0)
    return visitor


def touch(visitor: Visitor, *paths: list[tuple[int, int]]) -> None:
    """A finger for each path."""
    session = visitor.page.context.new_cdp_session(visitor.page)
    for step, at in enumerate(zip(*paths, strict=True)):
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(at)]
        session.send("Input.dispatchTouchEvent", {"type": "touchMove" if step else "touchStart", "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def straight(begin: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """Ten steps."""
    (left, top), (right, down) = begin, end
    return [(left + (right - left) * step // 10, top + (down - top) * step // 10) for step in range(11)]


def test_a_finger_swipes_down_to_close(fingers: Visitor) -> None:
    touch(fingers, straight((200, 300), (205, 340)))
    expect(box(fingers)).to_be_visible()
    touch(fingers, straight((200, 300), (210, 560)))
    expect(box(fingers)).to_be_hidden()


def drawn(visitor: Visitor) -> dict[str, float]:
    """Where the picture is, once it stands still."""
    shown(visitor).evaluate("(one) => Promise.all(one.getAnimations().map((each) => each.finished))")
    found = shown(visitor).bounding_box()
    assert found is not None
    return dict(found)


def test_two_fingers_zoom(fingers: Visitor, items: dict[str, Item]) -> None:
    """The picture follows the fingers, and stays where they leave it."""
    near, before = box(fingers).get_by_role("button", name="Zoom"), drawn(fingers)
    touch(fingers, straight((170, 400), (120, 400)), straight((220, 400), (270, 400)))
    after = drawn(fingers)
    assert after["width"] == pytest.approx(3 * before["width"], rel=0.02)
    assert after["x"] - 195 == pytest.approx(3 * (before["x"] - 195), abs=8), "what is under the fingers stays there"
    expect(near).to_have_attribute("aria-pressed", "true")
    expect(shown(fingers)).to_have_attribute("src", re.compile(rf"{items['two'].media[0]['name']}\.jpg$"))
    touch(fingers, straight((200, 400), (260, 430)))
    assert drawn(fingers)["x"] == pytest.approx(after["x"] + 60, abs=2), "one finger moves it"
    touch(fingers, straight((100, 400), (900, 400)))
    assert drawn(fingers)["x"] == pytest.approx(0, abs=1), "not out of sight"
    expect(box(fingers).get_by_text("1 of 2")).to_be_visible()
    touch(fingers, straight((120, 400), (190, 400)), straight((270, 400), (200, 400)))
    assert drawn(fingers) == before
    expect(near).to_have_attribute("aria-pressed", "false")
    expect(box(fingers).get_by_text("1 of 2")).to_be_visible()


def test_two_taps_zoom_to_their_point(fingers: Visitor) -> None:
    near, before = box(fingers).get_by_role("button", name="Zoom"), drawn(fingers)
    for pressed in ("true", "false"):
        for _ in range(2):
            touch(fingers, [(290, 420)])
        expect(near).to_have_attribute("aria-pressed", pressed)
        if pressed == "true":
            scale = drawn(fingers)["width"] / before["width"]
            assert scale >= 2
            assert drawn(fingers)["x"] - 290 == pytest.approx(scale * (before["x"] - 290), abs=2)
    assert drawn(fingers) == before


def test_keys_move_a_near_picture(home: Visitor, card: Callable[[str], Locator]) -> None:
    home.page.emulate_media(reduced_motion="reduce")
    card("two").locator("a[data-light]").first.click()
    expect(box(home).locator(".before")).to_have_count(0)
    for _ in range(3):
        home.page.keyboard.press("+")
    before = drawn(home)
    assert shown(home).evaluate("(one) => one.getAnimations().length") == 0, "the reader wants less motion"
    home.page.keyboard.press("ArrowRight")
    home.page.keyboard.press("ArrowDown")
    after = drawn(home)
    assert (after["x"] < before["x"], after["y"] < before["y"]) == (True, True)
    expect(box(home).get_by_text("1 of 2")).to_be_visible()


def test_a_description_is_shown_on_demand(home: Visitor, card: Callable[[str], Locator]) -> None:
    words, asked = box(home).locator(".light-words"), box(home).get_by_role("button", name="Description")
    card("one").locator("a[data-light]").click()
    expect(shown(home)).to_have_attribute("alt", re.compile("A red field"))
    expect(words).to_be_hidden()
    asked.click()
    expect(asked).to_have_attribute("aria-expanded", "true")
    expect(words).to_have_text("A red field under a grey sky. With a second line.")
    asked.click()
    expect(words).to_be_hidden()
    box(home).get_by_role("button", name="Close").click()
    card("tall").locator("a[data-light]").click()
    expect(asked).to_be_hidden()


def test_the_file_fits_the_screen_and_the_next_one_is_there_before_it_is_asked_for(
    fingers: Visitor, items: dict[str, Item]
) -> None:
    first, second = (each["name"] for each in items["two"].media)
    expect(shown(fingers)).to_have_attribute("src", re.compile(rf"{first}\.1280\.webp$"))
    fingers.holds(f"performance.getEntriesByType('resource').some((one) => one.name.includes('{second}'))")
    loaded = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/media/')).length"
    before = fingers.page.evaluate(loaded)
    touch(fingers, straight((300, 400), (80, 405)))
    expect(box(fingers).get_by_text("2 of 2")).to_be_visible()
    source = shown(fingers).get_attribute("src")
    expect(shown(fingers)).to_have_js_property("complete", True)
    assert fingers.page.evaluate(loaded) == before, f"{source} was there"
