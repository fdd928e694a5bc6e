"""A page belongs to the user it was made for, even after another one logs in."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from items.actions import publish
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

COME_BACK = "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"
"""The event for a page from the back-forward cache, which headless browsers lack."""


@pytest.fixture
def visitor(visit: Visit, reader: Any, screen: dict[str, Any]) -> Visitor:
    visitor = visit(**screen)
    visitor.log_in(reader)
    return visitor


KEEPS_NOTHING = "Storage.prototype.setItem = () => { throw new Error('full'); }"
"""So its tabs tell each other nothing."""


def second_page(visitor: Visitor) -> Page:
    return visitor.page.context.new_page()


def log_out(visitor: Visitor) -> None:
    visitor.goto("/settings")
    visitor.go(visitor.page.get_by_role("button", name="Log out").locator("visible=true"))


def test_a_form_of_another_users_page_says_so_and_changes_nothing(
    visitor: Visitor, reader: Any, author: Any, tolerated: Any
) -> None:
    tolerated("401", "403")
    visitor.page.context.add_init_script(KEEPS_NOTHING)
    visitor.goto("/settings/profile")
    visitor.page.get_by_label("Bio").fill("words of the reader")
    other = Visitor(second_page(visitor), visitor.site)
    log_out(other)
    other.log_in(author)
    visitor.go(visitor.page.get_by_role("button", name="Save"))
    expect(visitor.page.get_by_role("heading", name="You switched accounts")).to_be_visible()
    author.refresh_from_db()
    assert author.bio == ""


def test_a_page_left_open_notes_no_place_for_another_user(
    visitor: Visitor, reader: Any, author: Any, tolerated: Any
) -> None:
    tolerated("401")
    for number in range(30):
        publish(sender=author, content={"text": f"post {number}"})
    visitor.page.context.add_init_script(KEEPS_NOTHING)
    visitor.goto("/")
    other = Visitor(second_page(visitor), visitor.site)
    log_out(other)
    other.log_in(author)
    visitor.page.evaluate("scrollTo(0, 1500)")
    with visitor.page.expect_response(lambda answer: answer.url.endswith("/position")) as noted:
        visitor.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))")
    assert noted.value.status == 401


def test_a_page_that_the_browser_kept_is_not_shown_after_the_log_out(visitor: Visitor, tolerated: Any) -> None:
    tolerated("401")
    visitor.goto("/settings")
    with second_page(visitor) as page:
        log_out(Visitor(page, visitor.site))
    with visitor.page.expect_navigation():
        visitor.page.evaluate(COME_BACK)
    expect(visitor.page).to_have_url(f"{visitor.site}/login?next=%2Fsettings")


def test_a_log_out_in_another_tab_is_said_at_once(visitor: Visitor, reader: Any, author: Any, tolerated: Any) -> None:
    tolerated("401")
    publish(sender=author, content={"text": "for the reader"}, visibility="followers")
    visitor.goto("/")
    said = visitor.page.locator("#logged-out")
    expect(said).to_be_hidden()
    other = Visitor(second_page(visitor), visitor.site)
    log_out(other)
    expect(said).to_contain_text("You logged out in another tab.")
    expect(said.get_by_role("link", name="Log in")).to_be_visible()
    other.log_in(reader)
    expect(said).to_be_hidden()
    log_out(other)
    expect(said).to_be_visible()
    other.log_in(UserFactory.create(username="somebody-else"))
    expect(visitor.page.get_by_text("for the reader")).to_have_count(0)
    expect(visitor.page.locator(".me, .nav").get_by_role("link", name="Profile").first).to_have_attribute(
        "href", "/@somebody-else"
    )


def test_an_answer_leaves_out_what_the_page_shows_no_more(visitor: Visitor) -> None:
    visitor.goto("/")
    visitor.page.evaluate("document.getElementById('unread-messages').remove()")
    with visitor.page.expect_response(re.compile("/unread$")):
        visitor.page.evaluate("document.body.dispatchEvent(new CustomEvent('notified'))")
    visitor.settle()
    expect(visitor.page.locator("#unread")).to_have_count(1)


def test_a_page_that_the_browser_kept_stays_as_it_was(visitor: Visitor) -> None:
    visitor.goto("/settings/profile")
    visitor.page.get_by_label("Bio").fill("half a thou")
    visitor.page.evaluate(COME_BACK)
    expect(visitor.page.locator("body")).not_to_have_attribute("hidden", "")
    expect(visitor.page.get_by_label("Bio")).to_have_value("half a thou")


def test_a_discarded_text_is_offered_to_its_writer_only(
    visitor: Visitor, reader: Any, author: Any, tolerated: Any
) -> None:
    tolerated("401")
    visitor.goto("/items/new")
    visitor.page.get_by_label("What's new?").fill("for my diary")
    visitor.page.context.clear_cookies()
    visitor.go(visitor.page.get_by_role("link", name="Cancel"))
    expect(visitor.page).to_have_url(f"{visitor.site}/")
    visitor.log_in(author)
    expect(visitor.page.get_by_label("What's new?")).to_have_value("")
    expect(visitor.page.locator("#toast")).to_be_empty()
    visitor.page.reload()
    expect(visitor.page.locator("#toast")).to_be_empty()


def test_another_user_of_the_tab_begins_at_the_top(visitor: Visitor, reader: Any, author: Any, tolerated: Any) -> None:
    tolerated("401")
    for number in range(45):
        publish(sender=author, content={"text": f"post {number}"})
    visitor.goto("/")
    visitor.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    visitor.holds("document.querySelectorAll('#feed > article').length > 20")
    visitor.holds("history.state?.place?.count > 20 && history.state.place.seen.length > 0")
    visitor.enter(author)
    visitor.page.reload()
    expect(visitor.page.locator("#feed > article")).to_have_count(20)
    visitor.is_at_top()
