import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from playwright.sync_api import Route, expect

from items.actions import publish
from items.models import ItemType
from media.actions import upload
from relations.actions import follow
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory
from tests.support.pictures import jpeg
from tests.support.pictures import upload as sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

MOST_BYTES = 150_000
MOST_REQUESTS = 20
MOST_SHIFT = 0.002
SLOW = {"offline": False, "latency": 100, "downloadThroughput": 200_000, "uploadThroughput": 90_000}
"""Slow enough to paint before scripts run."""
PAGES = [
    "/",
    "/discover",
    "/@author",
    "/@author/replies",
    "/items/{item}",
    "/items/new",
    "/tags/still",
    "/search?q=still",
    "/live",
    "/lists",
    "/notifications",
    "/history",
    "/settings",
    "/settings/account",
    "/settings/devices",
    "/settings/filters",
    "/about",
]
SIZES = [(640, 420), (300, 620), (500, 500), (900, 300)]
OBSERVED = """
    window.seen = { shift: 0, largest: 0, element: "" };
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) seen.shift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
            seen.largest = entry.startTime;
            seen.element = entry.element?.tagName ?? "";
        }
    }).observe({ type: "largest-contentful-paint", buffered: true });
"""

STANDING = """
    (card) => Array.from(card.querySelectorAll(".byline > *, .acts > *"), (part) => part.getBoundingClientRect())
        .map(({ x, y, width }) => [x, y, width].map(Math.round))
"""
"""Where the parts of a card are."""


def said(author: Any, *, pictures: bool) -> None:
    for place in range(20):
        count = place // 2 % 4 + 1 if place % 2 and pictures else 0
        rows = [upload(owner_id=author.pk, file=sent(jpeg(*SIZES[number])), description="x") for number in range(count)]
        content = {"text": f"Post number {place}. " * 5} | ({"media": [str(row.pk) for row in rows]} if rows else {})
        publish(sender=author, type=ItemType.IMAGE if rows else ItemType.TEXT, content=content)


def sent_bytes(address: str, received: float) -> float:
    """Production compresses static files (web.static_files). Here pages ask for news at once, too."""
    if "/new?" in address:
        return 0
    _site, static, name = address.partition("/static/")
    path = finders.find(name) if static else None
    return len(gzip.compress(Path(path).read_bytes())) if path else received


def measured(visitor: Visitor) -> dict[str, Any]:
    """Loads home without cache."""
    page = visitor.page
    page.add_init_script(OBSERVED)
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.clearBrowserCache")
    received: list[float] = []
    addresses: dict[str, str] = {}
    session.on(
        "Network.responseReceived", lambda event: addresses.update({event["requestId"]: event["response"]["url"]})
    )
    session.on(
        "Network.loadingFinished",
        lambda event: received.append(sent_bytes(addresses.get(event["requestId"], ""), event["encodedDataLength"])),
    )
    visitor.goto("/")
    page.wait_for_load_state("load")
    page.wait_for_timeout(1000)  # include late shifts
    found: dict[str, Any] = page.evaluate("({ ...seen })")
    found["bytes"], found["requests"] = sum(received), len(received)
    for _ in range(12):
        page.mouse.wheel(0, 600)
        page.wait_for_timeout(120)
    found["shift_of_all"] = page.evaluate("seen.shift")
    return found


@pytest.mark.parametrize("pictures", [False, True])
def test_the_first_view(visit: Visit, reader: Any, author: Any, media_folder: Path, pictures: bool) -> None:
    said(author, pictures=pictures)
    visitor = visit()
    visitor.find_media(media_folder)
    visitor.enter(reader)
    found = measured(visitor)
    print("first view", found)
    assert visitor.page.locator("article").count() >= 20
    assert (visitor.page.locator(".picture img").count() > 0) == pictures
    assert found["bytes"] > 10_000, "it was counted"
    assert found["bytes"] <= MOST_BYTES
    if not pictures:
        assert 3 < found["requests"] <= MOST_REQUESTS
    assert found["largest"] > 0
    assert found["shift"] <= MOST_SHIFT
    assert found["shift_of_all"] <= MOST_SHIFT


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_moves_while_a_page_comes(visit: Visit, reader: Any, author: Any, width: int) -> None:
    for number in range(12):
        follow(follower=author, followee=UserFactory.create(username=f"friend-{number}"))  # suggestions for the reader
        item = publish(sender=author, content={"text": f"#still {number} " + "words " * 40})
    visitor = visit(viewport={"width": width, "height": 844}, has_touch=width == 390, is_mobile=width == 390)
    visitor.enter(reader)
    page = visitor.page
    page.add_init_script(OBSERVED)
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", SLOW)
    moved = {}
    for path in PAGES:
        visitor.goto(path.format(item=item.pk))
        if path == "/discover" or (width == 1440 and not page.locator(".settings").count()):
            expect(page.locator(".beside").first).to_be_visible()
        page.wait_for_timeout(500)  # include late shifts
        shift = page.evaluate("seen.shift")
        if shift > MOST_SHIFT:
            moved[path] = shift
    assert not moved


def test_a_passkey_has_its_place_before_its_script(visit: Visit) -> None:
    visitor = visit(viewport={"width": 390, "height": 844})
    held: list[Route] = []
    visitor.page.route(re.compile(r"/passkeys\."), lambda route: held.append(route))
    visitor.page.goto(f"{visitor.site}/login", wait_until="commit")
    last = visitor.page.locator("main p").last
    expect(last).to_be_visible()
    before = last.bounding_box()
    expect(visitor.page.get_by_role("button", name="passkey")).to_be_hidden()
    held[0].continue_()
    expect(visitor.page.get_by_role("button", name="passkey")).to_be_visible()
    assert last.bounding_box() == before


@pytest.mark.parametrize("end", [r'<div class="menu">', r'<button [^>]*data-act="like"', r'<a class="act like"'])
def test_what_comes_later_moves_no_part_of_a_card(visit: Visit, reader: Any, author: Any, end: str) -> None:
    """Browsers paint a card before all of it has come."""
    item = publish(sender=author, content={"text": "painted early"})
    visitor = visit(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    is_member = "<a" not in end
    if is_member:
        visitor.enter(reader)
    page = visitor.page
    visitor.goto("/" if is_member else "/@author")
    whole = page.locator(f"#item-{item.pk}").evaluate(STANDING)
    before, card = page.content().split(f'id="item-{item.pk}"')
    begun_card = re.split(end, card)[0]
    assert begun_card != card
    page.route(page.url, lambda route: route.fulfill(body=f'{before}id="item-{item.pk}"{begun_card}'))
    page.reload()
    begun = page.locator(f"#item-{item.pk}").evaluate(STANDING)
    assert len(begun) > 1
    assert begun == whole[: len(begun)]


def test_a_shift_is_seen(visit: Visit, reader: Any, author: Any) -> None:
    """Checks the measure: a card pushes the others down."""
    said(author, pictures=False)
    visitor = visit()
    visitor.enter(reader)
    measured(visitor)
    visitor.page.mouse.wheel(0, -9000)
    visitor.page.wait_for_timeout(1_500)  # shifts within 500 ms of scrolling do not count
    visitor.page.evaluate("document.querySelector('article').style.paddingTop = '300px'")
    visitor.holds("seen.shift > 0.05")
