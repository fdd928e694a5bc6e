from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from discover.models import IssuedPage, NotInterested
from items.actions import publish
from items.models import Item
from relations.actions import follow
from relations.models import Follow
from tests.support.browsers import OPENER, UNREACHABLE, Visit, Visitor
from tests.support.factories import UserFactory, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def reader(settings: Any) -> Any:
    settings.DISCOVER_REFRESH_SECONDS = 1000
    return UserFactory.create(username="reader")


@pytest.fixture
def posts(db: None) -> list[Item]:
    return write(45)


def write(count: int, words: str = "words") -> list[Item]:
    """Each by another author, because a page limits posts by one."""
    return [say(UserFactory.create(), f"{words} {number}") for number in range(count)]


def enter(visit: Visit, reader: Any, path: str = "/discover", **options: Any) -> Visitor:
    visitor = visit(**options)
    visitor.enter(reader)
    visitor.goto(path)
    return visitor


def articles(page: Page) -> Locator:
    return page.locator("[role=feed] article")


def scroll_down(page: Page) -> None:
    page.evaluate("scrollTo(0, document.body.scrollHeight)")


def said(page: Page, text: str) -> None:
    expect(page.locator("#toast")).to_have_text(text)


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1280])
def test_home_has_two_tabs(visit: Visit, reader: Any, posts: list[Item], javascript: bool, width: int) -> None:
    follow(follower=reader, followee=posts[0].sender)
    visitor = enter(visit, reader, "/", java_script_enabled=javascript, viewport={"width": width, "height": 844})
    page = visitor.page
    tabs = page.get_by_role("navigation", name="Timelines")
    places = []
    for name, count in (("Following", 1), ("Discover", 20), ("Following", 1)):
        visitor.go(tabs.get_by_role("link", name=name))
        expect(page.locator(".tabs [aria-current=page]")).to_have_text(name)
        expect(articles(page)).to_have_count(count)
        expect(page.get_by_role("navigation", name="Main").locator("[aria-current]")).to_have_text("Home")
        places.append([tab.bounding_box() for tab in tabs.get_by_role("link").all()])
    assert places[0] == places[1] == places[2]


def test_scrolling_never_repeats_itself(visit: Visit, reader: Any, posts: list[Item]) -> None:
    visitor = enter(visit, reader)
    for count in (20, 40, 45):
        expect(articles(visitor.page)).to_have_count(count)
        scroll_down(visitor.page)
    assert sorted(visitor.shown()) == sorted(post.text for post in posts)
    expect(articles(visitor.page).last).to_have_attribute("aria-posinset", "45")
    expect(visitor.page.get_by_text("You've seen everything for now.")).to_be_visible()
    expect(visitor.page.locator(".why")).to_have_count(45)

    write(2, "more")
    visitor.page.locator("#more").get_by_role("button", name="Refresh").click()
    expect(articles(visitor.page)).to_have_count(2)
    expect(articles(visitor.page).first).to_be_focused()


def test_the_refresh_button(visit: Visit, reader: Any, posts: list[Item]) -> None:
    visitor = enter(visit, reader)
    page = visitor.page
    first = visitor.shown()
    articles(page).nth(10).scroll_into_view_if_needed()
    button = page.locator("#refresh").get_by_role("button", name="Refresh")
    button.focus()
    page.keyboard.press("Enter")
    said(page, "20 more posts")
    expect(button).to_be_focused()
    assert not set(visitor.shown()[:20]) & set(first)
    visitor.is_at_top()
    button.click()
    said(page, "5 more posts")
    expect(articles(page)).to_have_count(5)
    button.click()
    said(page, "Nothing new right now.")
    expect(articles(page)).to_have_count(5)
    say(UserFactory.create(), "fresh words")
    page.get_by_role("navigation", name="Timelines").get_by_role("link", name="Discover").click()
    said(page, "1 more post")
    visitor.shows(["fresh words"])


@pytest.mark.parametrize("keys", [False, True], ids=["mouse", "keys"])
def test_not_interested_and_interested_again(visit: Visit, reader: Any, posts: list[Item], keys: bool) -> None:
    visitor = enter(visit, reader)
    page = visitor.page
    first = visitor.shown()
    card = articles(page).nth(1)
    why = card.locator(".why").inner_text()

    def dismiss() -> None:
        opener = card.locator(OPENER)
        if keys:
            opener.press("Enter")
            card.get_by_role("button", name="Not interested").press("Enter")
        else:
            opener.click()
            card.get_by_role("button", name="Not interested").click()
        expect(card.get_by_text("You'll see less like this.")).to_be_visible()
        expect(card.get_by_role("button", name="Undo")).to_be_focused()

    dismiss()
    assert NotInterested.objects.get().item.text == first[1]
    visitor.shows([first[0], *first[2:]])
    card.get_by_role("button", name="Undo").press("Enter")
    expect(card.locator(".why")).to_have_text(why)
    expect(card).to_be_focused()
    visitor.shows(first)
    assert not NotInterested.objects.exists()

    dismiss()
    page.reload()
    visitor.shows([first[0], *first[2:]])
    scroll_down(page)
    expect(articles(page)).to_have_count(39)


def test_from_the_history_it_comes_back(visit: Visit, reader: Any, posts: list[Item], javascript: bool) -> None:
    visitor = enter(visit, reader, java_script_enabled=javascript)
    page = visitor.page
    first = visitor.shown()
    visitor.choose("Not interested")
    expect(page.get_by_text("You'll see less like this.")).to_be_visible()
    visitor.go(page.get_by_role("link", name="History"))
    visitor.go(page.get_by_role("link", name="Not interested"))
    visitor.shows(first[:1])
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("article")).to_have_count(0)
    visitor.goto("/discover")
    visitor.shows(first)


def pull(page: Page, *way: tuple[int, int], lift: bool = True) -> None:
    touch = page.context.new_cdp_session(page)
    for place, (x, y) in enumerate(way):
        kind = "touchMove" if place else "touchStart"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    if lift:
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def down(pixels: int) -> list[tuple[int, int]]:
    return [(200, 200 + moved) for moved in range(0, pixels + 1, 20)]


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_pulling_refreshes(visit: Visit, reader: Any, posts: list[Item], motion: str) -> None:
    visitor = enter(visit, reader, reduced_motion=motion, **PHONE)
    page = visitor.page
    first = visitor.shown()
    pull(page, *down(160), lift=False)
    expect(page.locator(".pull")).to_have_class("pull far")
    visitor.shows(first)
    pull(page, *down(160))
    said(page, "20 more posts")
    expect(page.locator(".pull")).to_have_class("pull")
    assert not set(visitor.shown()) & set(first)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(down(60), id="not far enough"),
        pytest.param([*down(160), *reversed(down(160))], id="and back again"),
        pytest.param([(300 - moved, 200 + 3 * moved // 4) for moved in range(0, 300, 20)], id="aside"),
        pytest.param([*reversed(down(200)), *down(500)], id="after scrolling"),
    ],
)
def test_other_ways_of_a_finger_do_not(
    visit: Visit, reader: Any, posts: list[Item], way: list[tuple[int, int]]
) -> None:
    visitor = enter(visit, reader, **PHONE)
    page = visitor.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    pull(page, *way)
    expect(page.locator(".pull")).to_have_class("pull")
    page.get_by_role("button", name="Refresh").click()  # earlier requests would be answered first
    said(page, "20 more posts")
    assert len(asked) == 1


def hide(visitor: Visitor, hidden: bool) -> None:
    """Hide or show the tab, and wait for its requests."""
    is_hidden = """hidden => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    visitor.page.evaluate(is_hidden, hidden)
    visitor.settle()


def test_new_posts_wait_behind_a_badge(visit: Visit, reader: Any, settings: Any) -> None:
    write(3)
    visitor = enter(visit, reader)
    page = visitor.page
    first = visitor.shown()
    settings.DISCOVER_REFRESH_SECONDS = 0.3
    visitor.goto("/discover")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        pass
    visitor.settle()
    expect(page.locator(".pill")).to_have_count(0)
    hide(visitor, True)  # so that one request finds both
    write(2, "fresh")
    hide(visitor, False)
    pill = page.get_by_role("button", name="More posts")
    expect(pill).to_be_in_viewport()
    visitor.shows(first)
    issued = IssuedPage.objects.filter(item_ids__len=2).get()
    del asked[:]
    page.wait_for_timeout(1_000)  # three polls long. None may come while posts wait
    assert asked == []

    visitor.go(page.get_by_role("link", name="Following"))
    tab = page.get_by_role("navigation", name="Timelines").get_by_role("link", name="Discover More posts")
    visitor.go(tab)
    visitor.shows(first)
    pill.focus()
    settings.DISCOVER_REFRESH_SECONDS = 1000
    page.keyboard.press("Enter")
    said(page, "2 more posts")
    expect(articles(page)).to_have_count(2)
    expect(articles(page).first).to_be_focused()
    expect(page.locator(".pill")).to_have_count(0)
    shown = articles(page).evaluate_all("all => all.map(one => Number(one.dataset.id))")
    assert shown == issued.item_ids
    visitor.go(page.get_by_role("link", name="Following"))
    expect(page.get_by_role("link", name="Discover", exact=True)).to_be_visible()


def test_looking_again_after_a_while_asks_for_news(visit: Visit, reader: Any, settings: Any) -> None:
    write(1)
    settings.DISCOVER_REFRESH_SECONDS = 60
    visitor = visit()
    visitor.enter(reader)
    visitor.page.clock.install()
    visitor.goto("/discover")
    say(UserFactory.create(), "fresh words")
    hide(visitor, True)
    visitor.page.clock.run_for(300_000)
    assert IssuedPage.objects.count() == 1
    hide(visitor, False)
    expect(visitor.page.locator(".pill")).to_be_visible()
    assert IssuedPage.objects.count() == 2


def test_a_refresh_takes_what_waits(visit: Visit, reader: Any, posts: list[Item], settings: Any) -> None:
    settings.DISCOVER_REFRESH_SECONDS = 0.2
    visitor = enter(visit, reader)
    expect(visitor.page.locator(".pill")).to_be_visible()
    visitor.page.locator("#refresh button").click()
    said(visitor.page, "20 more posts")
    assert IssuedPage.objects.filter(item_ids__len=20).count() == 2


def test_coming_back_from_a_post(visit: Visit, reader: Any, posts: list[Item], javascript: bool) -> None:
    visitor = enter(visit, reader, java_script_enabled=javascript)
    page = visitor.page
    if javascript:
        visitor.page.locator("#refresh button").click()
        said(page, "20 more posts")
    first = visitor.shown()
    visitor.go(articles(page).nth(3).locator(".time"))
    page.go_back()
    visitor.shows(first)
    page.reload()
    visitor.shows(first)


def test_scrolling_on_after_coming_back(visit: Visit, reader: Any, posts: list[Item]) -> None:
    visitor = enter(visit, reader)
    page = visitor.page
    scroll_down(page)
    expect(articles(page)).to_have_count(40)
    before = visitor.shown()
    visitor.go(articles(page).nth(30).locator(".time"))
    page.go_back()
    expect(page.get_by_text(before[0], exact=True)).to_be_attached()
    scroll_down(page)
    # If the browser scrolls back this far, the rest loads too.
    expect(articles(page).nth(39)).to_be_attached()
    assert visitor.shown()[:40] == before


def lose(page: Page, times: int) -> Callable[[], int]:
    """Drop the next answers after the site sent them."""
    lost = 0

    def handle(route: Route) -> None:
        nonlocal lost
        if route.request.method == "POST" and lost < times:
            lost += 1
            route.fetch()
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/discover", handle)
    return lambda: lost


def test_a_lost_answer_loses_nothing(visit: Visit, reader: Any, posts: list[Item], tolerated: Any) -> None:
    tolerated(*UNREACHABLE)
    visitor = enter(visit, reader)
    page = visitor.page
    lost = lose(page, 1)
    scroll_down(page)
    said(page, "No connection. Try again in a moment.")
    assert lost() == 1
    page.get_by_role("button", name="Load more").click()
    expect(articles(page)).to_have_count(40)
    scroll_down(page)
    expect(articles(page)).to_have_count(45)
    assert sorted(visitor.shown()) == sorted(post.text for post in posts)


@pytest.mark.parametrize(
    ("status", "words"),
    [(429, "Slow down a little, and try again in a moment."), (503, "That didn't work. Try again in a moment.")],
)
def test_a_refusal_is_said_and_can_be_tried_again(
    visit: Visit, reader: Any, posts: list[Item], tolerated: Any, status: int, words: str
) -> None:
    tolerated(f"Response Status Error Code {status}")
    tolerated(f"with a status of {status}")
    visitor = enter(visit, reader)
    page = visitor.page
    page.route("**/discover", lambda route: route.fulfill(status=status), times=1)
    page.locator("#refresh button").click()
    said(page, words)
    expect(articles(page)).to_have_count(20)
    page.locator("#refresh button").click()
    said(page, "20 more posts")


def test_cards_can_be_followed(visit: Visit, screen: dict[str, Any], javascript: bool) -> None:
    reader, known, other = (UserFactory.create(username=name) for name in ("follower", "known", "other"))
    follow(follower=reader, followee=known)
    for number in range(2):
        publish(sender=other, content={"text": f"from elsewhere {number}"})
    publish(sender=known, content={"text": "from a friend"})
    visitor = visit(java_script_enabled=javascript, **screen)
    visitor.enter(reader)
    visitor.goto("/discover")
    page = visitor.page
    cards = page.locator("article").filter(has_text="from elsewhere")
    expect(cards).to_have_count(2)
    buttons = cards.get_by_role("button", name="Follow @other")
    expect(buttons).to_have_count(2)
    friends = page.locator("article").filter(has_text="from a friend")
    expect(friends.get_by_role("button", name="Follow")).to_have_count(0)
    buttons.last.click()
    if javascript:
        expect(cards.get_by_role("button", name="Unfollow @other")).to_have_count(2)
        expect(page.locator(".underway")).to_have_count(0)
        expect(cards.last.get_by_role("button", name="Unfollow @other")).to_be_focused()
    else:
        expect(buttons).to_have_count(0)
    assert Follow.objects.filter(follower=reader, followee=other).exists()
