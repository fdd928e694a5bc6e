import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from items.actions import publish
from items.models import Item, Like, Status
from relations.models import Follow
from tests.support.browsers import CHOICE, UNREACHABLE, Held, Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def item(author: Any) -> Item:
    return publish(sender=author, content={"text": "likeable"})


@pytest.fixture
def visitor(visit: Visit, reader: Any, item: Item, screen: dict[str, Any]) -> Visitor:
    visitor = visit(**screen)
    visitor.enter(reader)
    return visitor


def button(visitor: Visitor, name: str, count: str = "") -> Locator:
    return visitor.page.locator("article").first.get_by_role("button", name=f"{name} {count}".strip(), exact=True)


def shows(visitor: Visitor, name: str, count: str, pressed: str) -> None:
    expect(button(visitor, name, count)).to_have_attribute("aria-pressed", pressed)


@pytest.mark.long
def test_acts_are_shown_before_their_answers(visitor: Visitor, reader: Any, item: Item) -> None:
    visitor.goto("/")
    held = Held(visitor.page, r"/items/\d+/(like|repost)$")
    button(visitor, "Like").click()
    shows(visitor, "Like", "1", "true")
    button(visitor, "Repost").click()
    visitor.page.locator(CHOICE).press("Enter")
    shows(visitor, "Repost", "1", "true")
    visitor.holds("document.activeElement.dataset.act === 'repost'")
    assert not Like.objects.exists()
    held.let_go()
    visitor.settle()
    shows(visitor, "Like", "1", "true")
    shows(visitor, "Repost", "1", "true")
    assert Like.objects.filter(user=reader, item=item).exists()
    assert Item.objects.filter(sender=reader, repost_of=item, status=Status.PUBLISHED).exists()


def test_back_shows_what_was_pressed(visitor: Visitor) -> None:
    visitor.goto("/")
    button(visitor, "Like").click()
    button(visitor, "Bookmark").click()
    visitor.settle()
    visitor.page.locator("article .time").first.click()
    visitor.page.wait_for_url("**/items/**")
    visitor.page.go_back()
    visitor.page.wait_for_url("**/")
    shows(visitor, "Like", "1", "true")
    shows(visitor, "Bookmark", "", "true")
    star = UserFactory(username="star")
    visitor.goto(f"/@{star.username}")
    follow = visitor.page.locator("form[data-follow] button").first
    follow.click()
    visitor.settle()
    visitor.page.get_by_role("link", name="Home").first.click()
    visitor.page.wait_for_url("**/")
    visitor.page.go_back()
    expect(follow).to_have_class(re.compile("following"))


def test_a_browser_that_keeps_nothing_acts_all_the_same(visitor: Visitor, reader: Any, item: Item) -> None:
    refuses = "Object.defineProperty(window, 'sessionStorage', {get() { throw new DOMException('', 'SecurityError') }})"
    visitor.page.add_init_script(refuses)
    visitor.goto("/")
    button(visitor, "Like").click()
    visitor.settle()
    button(visitor, "Like", "1").click()
    visitor.settle()
    shows(visitor, "Like", "", "false")
    assert not Like.objects.filter(user=reader, item=item).exists()


def test_a_reply_is_begun_while_a_like_is_underway(visitor: Visitor, reader: Any, item: Item) -> None:
    visitor.goto("/")
    held = Held(visitor.page, r"/items/\d+/like$")
    button(visitor, "Like").click()
    visitor.page.locator("[data-act=reply]").click()
    area = visitor.page.locator(".slot textarea")
    expect(area).to_be_focused()
    area.fill("an answer")
    held.let_go()
    visitor.settle()
    expect(area).to_be_focused()
    visitor.page.locator(".slot").get_by_role("button", name="Reply").click()
    expect(visitor.page.locator(".slot article .text")).to_have_text("an answer")
    shows(visitor, "Like", "1", "true")
    assert Like.objects.filter(user=reader, item=item).exists()
    assert Item.objects.filter(sender=reader, reply_to=item).exists()


def test_the_last_press_counts(visitor: Visitor, reader: Any, item: Item) -> None:
    visitor.goto("/")
    held = Held(visitor.page, r"/items/\d+/(un)?like$")
    button(visitor, "Like").click()
    shows(visitor, "Like", "1", "true")
    button(visitor, "Like", "1").press("Enter")
    shows(visitor, "Like", "", "false")
    held.let_go()
    visitor.settle()
    shows(visitor, "Like", "", "false")
    assert [re.sub(".*/", "", address) for address in held.asked] == ["like", "unlike"]
    assert not Like.objects.exists()


@pytest.mark.parametrize("status", [500, 429])
def test_a_refused_act_is_taken_back_with_a_word(
    visitor: Visitor, reader: Any, item: Item, tolerated: Any, status: int
) -> None:
    tolerated(f"with a status of {status}")
    visitor.goto("/")
    held = Held(visitor.page, r"/items/\d+/like$")
    button(visitor, "Like").click()
    shows(visitor, "Like", "1", "true")
    held.answer(status)
    shows(visitor, "Like", "", "false")
    words = (
        "Slow down a little, and try again in a moment."
        if status == 429
        else "That didn't work. Try again in a moment."
    )
    expect(visitor.page.locator("#toast")).to_have_text(words)
    expect(button(visitor, "Like")).to_be_focused()
    button(visitor, "Like").press("Enter")
    shows(visitor, "Like", "1", "true")
    visitor.settle()
    assert Like.objects.filter(user=reader, item=item).exists()


def test_without_a_network_an_act_is_taken_back(visitor: Visitor, item: Item, tolerated: Any) -> None:
    tolerated(*UNREACHABLE)
    visitor.goto("/")
    with visitor.page.expect_event("requestfailed", lambda request: "/new" in request.url):  # a poll
        visitor.page.context.set_offline(True)
    button(visitor, "Like").click()
    expect(visitor.page.locator("#toast")).to_have_text("No connection. Try again in a moment.")
    shows(visitor, "Like", "", "false")
    visitor.page.context.set_offline(False)
    assert not Like.objects.exists()


def test_a_pressed_follow_offers_its_end_only_when_the_pointer_has_come_back(
    visit: Visit, reader: Any, item: Item
) -> None:
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/@author")
    button = visitor.page.locator("#follow")
    button.click()
    expect(button).to_have_text("Follow", use_inner_text=True)
    visitor.settle()
    button.click()
    expect(button).to_have_class(re.compile("following"))
    visitor.settle()
    expect(button).to_have_text("Following", use_inner_text=True)
    visitor.page.mouse.move(0, 0)
    button.hover()
    expect(button).to_have_text("Unfollow", use_inner_text=True)


def test_a_follow_is_shown_before_its_answer(visitor: Visitor, reader: Any, author: Any, tolerated: Any) -> None:
    tolerated("with a status of 500")
    visitor.goto("/@author")
    held = Held(visitor.page, r"/@author/(un)?follow$")
    button = visitor.page.locator("#follow")
    expect(button).to_have_class(re.compile("following"))
    button.click()
    expect(button).to_have_text("Follow", use_inner_text=True)
    expect(button).to_be_focused()
    assert Follow.objects.filter(follower=reader, followee=author).exists()
    held.answer(500)
    expect(button).to_have_class(re.compile("following"))
    expect(visitor.page.locator("#toast")).to_have_text("That didn't work. Try again in a moment.")
    button.press("Enter")
    expect(button).to_have_text("Follow", use_inner_text=True)
    visitor.settle()
    expect(visitor.page.get_by_role("link", name="0 followers", exact=True)).to_be_visible()
    expect(visitor.page.locator("#follow")).to_be_focused()
    assert not Follow.objects.exists()


def test_a_follow_that_is_too_many_is_taken_back(visitor: Visitor, settings: Any, tolerated: Any) -> None:
    tolerated("422 (Unprocessable Entity)")
    UserFactory.create(username="another")
    settings.FOLLOW_CAP = 1
    visitor.goto("/@another")
    visitor.page.locator("#follow").click()
    expect(visitor.page.locator("#toast")).to_have_text("You've reached the limit of follows. Unfollow someone first.")
    expect(visitor.page.locator("#follow")).to_have_text("Follow", use_inner_text=True)
    assert Follow.objects.count() == 1
