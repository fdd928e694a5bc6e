import re
from typing import Any

import pytest
from playwright.sync_api import Dialog, Locator, expect

from accounts.about.actions import change_settings
from accounts.about.models import PublicAccess
from items.actions import publish
from items.models import Item
from tests.support.browsers import UNREACHABLE, Held, Visit, Visitor
from tests.support.factories import PASSWORD

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

LOGGED_OUT = "You've been logged out."


@pytest.fixture
def question(author: Any) -> Item:
    return publish(sender=author, content={"text": "a question"})


@pytest.fixture
def mine(reader: Any) -> Item:
    return publish(sender=reader, content={"text": "mine"})


@pytest.fixture
def visitor(visit: Visit, reader: Any, question: Item, mine: Item, screen: dict[str, Any]) -> Visitor:
    visitor = visit(**screen)
    visitor.enter(reader)
    return visitor


def area_of(visitor: Visitor, place: str) -> Locator:
    return visitor.page.locator(f'form[data-draft="{place}"] textarea')


def log_in_again(visitor: Visitor) -> None:
    notice = visitor.page.get_by_role("alert").filter(has_text=LOGGED_OUT)
    expect(notice).to_be_visible()
    visitor.go(notice.get_by_role("link", name="Log in"))
    visitor.page.get_by_label("Username").fill("reader")
    visitor.page.get_by_label("Password").fill(PASSWORD)
    visitor.go(visitor.page.get_by_role("main").get_by_role("button", name="Log in", exact=True))


def test_publishing_by_the_keyboard_empties_the_box(visitor: Visitor) -> None:
    """A focused box fires a change event when it is removed. That must not become a draft."""
    visitor.goto("/")
    area = visitor.page.get_by_label("What's new?")
    area.click()
    visitor.page.keyboard.type("typed and sent")
    visitor.page.keyboard.press("Control+Enter")
    expect(visitor.page.locator("#feed article .text").first).to_have_text("typed and sent")
    expect(area).to_have_value("")
    visitor.page.reload()
    expect(area).to_have_value("")


@pytest.mark.parametrize("place", ["/", "/items/new"])
def test_the_composer_says_who_sees_a_public_post(visitor: Visitor, place: str) -> None:
    sentences = {PublicAccess.MEMBERS: "Everyone on this site.", PublicAccess.EVERYBODY: "Anyone can see it"}
    for looking, words in sentences.items():
        change_settings(looking=looking)
        visitor.goto(place)
        visitor.page.get_by_label("What's new?").click()
        visitor.page.locator(".audience > summary").click()
        expect(visitor.page.locator(".audience label").first).to_contain_text(words)


@pytest.mark.parametrize("place", ["home", "write"])
def test_a_post_that_was_begun_is_kept(visitor: Visitor, place: str) -> None:
    address = "/" if place == "home" else "/items/new"
    area = visitor.page.get_by_label("What's new?")
    visitor.goto(address)
    area.fill("half a thou")
    visitor.page.locator(".audience > summary").click()
    visitor.page.locator('[name="visibility"][value="followers"]').check()
    expect(visitor.page.locator(".audience > .menu-items")).to_be_hidden()
    for way in ("/settings", "/@author"):
        visitor.goto(way)
        visitor.goto(address)
        expect(area).to_have_value("half a thou")
    visitor.page.reload()
    expect(area).to_have_value("half a thou")
    expect(visitor.page.locator(".audience > summary")).to_contain_text("Followers", use_inner_text=True)
    expect(visitor.page.locator(".send")).to_be_visible()
    visitor.page.go_back()
    with visitor.page.expect_navigation():  # Playwright's own call fails about once in 20 runs here
        visitor.page.evaluate("history.forward()")
    expect(area).to_have_value("half a thou")
    visitor.page.get_by_role("button", name="Publish").click()
    expect(visitor.page.get_by_text("Published.").first).to_be_visible()
    visitor.goto(address)
    expect(area).to_have_value("")


def test_a_failed_publication_keeps_the_text_and_publishes_once(visitor: Visitor, tolerated: Any) -> None:
    tolerated("503")
    visitor.goto("/items/new")
    area = visitor.page.get_by_label("What's new?")
    area.fill("important words")
    held = Held(visitor.page, "/items/new$")
    visitor.page.get_by_role("button", name="Publish").click()
    expect(area).to_have_attribute("readonly", "")
    held.answer(503)
    expect(visitor.page.locator("#toast")).to_have_text("That didn't work. Try again in a moment.")
    expect(area).to_have_value("important words")
    expect(area).to_be_editable()
    visitor.page.reload()
    expect(area).to_have_value("important words")
    visitor.go(visitor.page.get_by_role("button", name="Publish"))
    assert Item.objects.filter(content__text="important words").count() == 1


def test_a_lost_answer_publishes_once(visitor: Visitor, tolerated: Any) -> None:
    tolerated(*UNREACHABLE)
    visitor.goto("/items/new")
    visitor.page.get_by_label("What's new?").fill("important words")

    def lose(route: Any) -> None:
        route.fetch(max_redirects=0)
        route.abort()

    visitor.page.route(re.compile("/items/new$"), lose)
    visitor.page.get_by_role("button", name="Publish").click()
    expect(visitor.page.locator("#toast")).to_have_text("No connection. Try again in a moment.")
    assert Item.objects.filter(content__text="important words").count() == 1
    visitor.page.unroute(re.compile("/items/new$"))
    visitor.page.reload()
    visitor.go(visitor.page.get_by_role("button", name="Publish"))
    assert Item.objects.filter(content__text="important words").count() == 1


@pytest.mark.parametrize("cookies", ["session", "all"])
def test_a_session_that_ended_keeps_the_text_and_the_page(
    visitor: Visitor, question: Item, tolerated: Any, cookies: str
) -> None:
    tolerated("401")
    visitor.goto("/")
    visitor.page.get_by_label("What's new?").fill("half a thou")
    visitor.page.locator(f"#item-{question.pk} [data-act=reply]").click()
    reply = area_of(visitor, f"reply:{question.pk}")
    reply.fill("an answer")
    visitor.page.context.clear_cookies(**({"name": "sessionid"} if cookies == "session" else {}))
    visitor.page.locator(".slot").get_by_role("button", name="Reply").click()
    log_in_again(visitor)
    expect(visitor.page).to_have_url(f"{visitor.site}/")
    expect(visitor.page.get_by_label("What's new?")).to_have_value("half a thou")
    expect(reply).to_have_value("an answer")
    visitor.settle()
    visitor.page.locator(".slot").get_by_role("button", name="Reply").click()
    expect(visitor.page.locator(".slot article .text")).to_have_text("an answer")
    assert Item.objects.filter(reply_to=question).count() == 1


def test_the_write_page_goes_to_the_page_that_one_came_from(visitor: Visitor) -> None:
    visitor.goto("/items/new?next=/@reader")
    visitor.page.get_by_label("What's new?").fill("fresh words")
    visitor.go(visitor.page.get_by_role("button", name="Publish"))
    expect(visitor.page).to_have_url(f"{visitor.site}/@reader")
    visitor.shows(["fresh words", "mine"])
    expect(visitor.page.get_by_role("status").get_by_text("Published.")).to_be_visible()
    visitor.goto("/items/new")
    expect(visitor.page.get_by_label("What's new?")).to_have_value("")


def test_the_write_page_goes_to_the_post(visitor: Visitor) -> None:
    visitor.goto("/items/new")
    visitor.page.get_by_label("What's new?").fill("fresh words")
    visitor.go(visitor.page.get_by_role("button", name="Publish"))
    expect(visitor.page).to_have_url(f"{visitor.site}/items/{Item.objects.latest('id').pk}")
    expect(visitor.page.locator("article.whole .text")).to_have_text("fresh words")


def test_cancel_leads_back_and_the_text_can_be_had_again(visitor: Visitor) -> None:
    visitor.goto("/items/new?next=/@reader")
    visitor.page.get_by_label("What's new?").fill("half a thou")
    visitor.go(visitor.page.get_by_role("link", name="Cancel"))
    expect(visitor.page).to_have_url(f"{visitor.site}/@reader")
    expect(visitor.page.locator("#toast")).to_contain_text("Draft discarded.")
    visitor.go(visitor.page.locator("#toast").get_by_role("button", name="Undo"))
    expect(visitor.page.get_by_label("What's new?")).to_have_value("half a thou")
    visitor.go(visitor.page.get_by_role("link", name="Cancel"))
    visitor.goto("/items/new")
    expect(visitor.page.get_by_label("What's new?")).to_have_value("")


def test_each_user_has_drafts_of_their_own(visitor: Visitor, reader: Any, author: Any, tolerated: Any) -> None:
    tolerated("401")  # a poll without a session
    visitor.goto("/")
    area = visitor.page.get_by_label("What's new?")
    area.fill("of the reader")
    visitor.page.context.clear_cookies()
    visitor.enter(author)
    visitor.goto("/")
    expect(area).to_have_value("")
    area.fill("of the author")
    visitor.page.context.clear_cookies()
    visitor.log_in(reader)
    expect(area).to_have_value("of the reader")


def test_replies_and_edits_that_were_begun_open_again(visitor: Visitor, question: Item, mine: Item) -> None:
    reply, edit = area_of(visitor, f"reply:{question.pk}"), area_of(visitor, f"edit:{mine.pk}")
    visitor.goto("/")
    visitor.page.locator(f"#item-{question.pk} [data-act=reply]").click()
    reply.fill("half an answer")
    visitor.choose("Edit", "mine")
    edit.fill("mine, and mo")
    visitor.page.reload()
    expect(reply).to_have_value("half an answer")
    expect(edit).to_have_value("mine, and mo")
    visitor.goto(f"/items/{question.pk}")
    expect(reply).to_have_value("half an answer")
    visitor.goto("/@reader")
    expect(edit).to_have_count(0)
    visitor.choose("Edit", "mine")
    expect(edit).to_have_value("mine, and mo")
    visitor.page.locator(".slot").get_by_role("button", name="Save").click()
    expect(visitor.page.locator(f"#item-{mine.pk} .text")).to_have_text("mine, and mo")
    visitor.choose("Edit", "mine")
    expect(edit).to_have_value("mine, and mo")
    expect(edit).to_be_focused()


def test_a_discarded_reply_can_be_had_again(visitor: Visitor, question: Item) -> None:
    visitor.goto("/")
    visitor.page.locator(f"#item-{question.pk} [data-act=reply]").click()
    area = area_of(visitor, f"reply:{question.pk}")
    area.fill("half an answer")
    visitor.page.locator(".slot").get_by_role("button", name="Cancel").click()
    expect(area).to_have_count(0)
    visitor.page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(area).to_have_value("half an answer")
    visitor.settle()
    visitor.page.locator(".slot").get_by_role("button", name="Cancel").click()
    visitor.page.locator(f"#item-{question.pk} [data-act=reply]").click()
    expect(area).to_have_value("")


def test_a_poll_tells_of_the_log_out_and_leads_nowhere(visitor: Visitor, reader: Any, tolerated: Any) -> None:
    tolerated("401")
    visitor.goto("/")
    visitor.page.get_by_label("What's new?").fill("half a thou")
    elsewhere = Visitor(visitor.page.context.new_page(), visitor.site)
    elsewhere.goto("/settings")
    visitor.page.context.clear_cookies(name="sessionid")
    notice = visitor.page.get_by_role("alert").filter(has_text=LOGGED_OUT)
    visitor.page.bring_to_front()
    expect(notice).to_be_visible()
    expect(visitor.page).to_have_url(f"{visitor.site}/")
    expect(visitor.page.get_by_label("What's new?")).to_have_value("half a thou")
    elsewhere.log_in(reader)  # also changes the CSRF token
    visitor.page.bring_to_front()
    expect(notice).to_be_hidden()
    visitor.page.get_by_role("button", name="Publish").click()
    expect(visitor.page.get_by_role("status").get_by_text("Published.")).to_be_visible()
    assert Item.objects.filter(content__text="half a thou").count() == 1


def test_what_another_tab_published_is_no_draft_any_more(visitor: Visitor) -> None:
    visitor.goto("/")
    visitor.page.get_by_label("What's new?").fill("half a thou")
    other = Visitor(visitor.page.context.new_page(), visitor.site)
    other.goto("/items/new")
    expect(other.page.get_by_label("What's new?")).to_have_value("half a thou")
    other.page.get_by_label("What's new?").fill("a whole thought")
    other.go(other.page.get_by_role("button", name="Publish"))
    visitor.page.bring_to_front()
    visitor.page.reload()
    expect(visitor.page.get_by_label("What's new?")).to_have_value("")


REFUSING = {
    "full": "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };",
    "forbidden": "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no'); } });",
}
"""Browsers without storage."""


@pytest.mark.parametrize("browser_is", REFUSING)
def test_where_the_browser_keeps_nothing_the_page_keeps_the_text_and_says_so(
    visitor: Visitor, reader: Any, question: Item, browser_is: str, tolerated: Any
) -> None:
    tolerated("401")
    visitor.page.add_init_script(REFUSING[browser_is])
    visitor.goto(f"/@{question.sender.username}")
    reply = area_of(visitor, f"reply:{question.pk}")
    opener = visitor.page.locator(f"#item-{question.pk} [data-act=reply]")
    opener.click()
    reply.press_sequentially("half an answer")
    reply.press("Escape")
    expect(visitor.page.locator("#toast")).to_contain_text("Your text is saved.")
    opener.click()
    expect(reply).to_have_value("half an answer")
    visitor.page.context.clear_cookies()
    visitor.page.locator(".slot").get_by_role("button", name="Reply").click()
    notice = visitor.page.get_by_role("alert").filter(has_text=LOGGED_OUT)
    expect(notice.get_by_text("Your text isn't saved")).to_be_visible()
    expect(notice.get_by_text("Your text is saved in this browser.")).to_be_hidden()
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    visitor.page.on("dialog", stay)
    notice.get_by_role("link", name="Log in").click(no_wait_after=True)
    expect(reply).to_have_value("half an answer")
    while not asked:  # pytest's time-out bounds this
        visitor.page.wait_for_timeout(50)
    assert asked == ["beforeunload"]
    visitor.page.remove_listener("dialog", stay)
    visitor.page.on("dialog", lambda dialog: dialog.accept())
    visitor.go(notice.get_by_role("link", name="Log in"))


def test_a_draft_that_cannot_be_read_is_dropped(visitor: Visitor, reader: Any) -> None:
    visitor.goto("/")
    mine, old = f"draft {reader.pk} post", "draft 9 post"
    broken = {mine: "null", old: '{"text": "words"}', "draft 8 post": "{", "draft 7 post": '{"at": 1}'}
    for key, value in broken.items():
        visitor.page.evaluate("([key, value]) => localStorage.setItem(key, value)", [key, value])
    visitor.page.reload()
    visitor.holds("!Object.keys(localStorage).some((key) => key.startsWith('draft '))")
    expect(visitor.page.get_by_label("What's new?")).to_have_value("")


def test_a_text_that_another_tab_published_may_be_published_again(visitor: Visitor) -> None:
    visitor.goto("/")
    area = visitor.page.get_by_label("What's new?")
    key = visitor.page.locator("form.composer [name=key]")
    own = key.input_value()
    other = Visitor(visitor.page.context.new_page(), visitor.site)
    other.goto("/items/new")
    other.page.get_by_label("What's new?").press_sequentially("good morning")
    expect(area).to_have_value("good morning")
    expect(key).not_to_have_value(own)
    other.go(other.page.get_by_role("button", name="Publish"))
    expect(area).to_have_value("")
    expect(key).to_have_value(own)


def test_the_post_stands_at_home_before_it_is_said(visitor: Visitor) -> None:
    visitor.goto("/")
    held = Held(visitor.page, f"^{re.escape(visitor.site)}/$")
    visitor.page.get_by_label("What's new?").fill("fresh words")
    visitor.page.get_by_role("button", name="Publish").click()
    expect(visitor.page.locator("#toast")).to_have_text("Published.")
    assert visitor.shown()[0] == "fresh words"  # before any reload
    held.let_go()
    visitor.shows(["fresh words", "mine", "a question"])


def test_a_reply_stands_in_its_thread_before_it_is_said(visitor: Visitor, question: Item) -> None:
    visitor.goto(f"/items/{question.pk}")
    visitor.page.get_by_label("Your reply").fill("an answer")
    visitor.page.get_by_role("button", name="Reply", exact=True).click()
    expect(visitor.page.locator("#toast")).to_have_text("Published.")
    assert visitor.shown() == ["an answer"]
    expect(visitor.page.get_by_text("No replies yet.")).to_have_count(0)
    expect(visitor.page.get_by_label("Your reply")).to_have_value("")
    expect(visitor.page.locator("article.whole").get_by_role("link", name="1 reply", exact=True)).to_be_visible()
    visitor.holds("document.activeElement !== document.body")
    visitor.page.reload()
    visitor.shows(["an answer"])


def test_an_edit_begins_and_ends_with_the_focus(visitor: Visitor, mine: Item) -> None:
    visitor.goto("/")
    card = visitor.page.locator(f"#item-{mine.pk}")
    visitor.choose("Edit", "mine")
    area = area_of(visitor, f"edit:{mine.pk}")
    expect(area).to_be_focused()
    expect(card.locator(":scope > .said > .text")).to_be_hidden()
    expect(card.locator('[name="visibility"][value="public"]')).to_be_checked()
    visitor.page.keyboard.press("Escape")
    expect(area).to_have_count(0)
    expect(card.locator("summary")).to_be_focused()
    expect(card.locator(".text")).to_have_text("mine")
    visitor.choose("Edit", "mine")
    visitor.page.keyboard.type(" and yours")
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.locator("#toast")).to_have_text("Your text is saved.")
    expect(card.locator(".text")).to_have_text("mine")
    visitor.choose("Edit", "mine")
    expect(area).to_have_value("mine and yours")
    visitor.page.keyboard.press("Control+Enter")
    expect(card.locator(".text")).to_have_text("mine and yours")
    expect(card).to_be_focused()
    visitor.choose("Edit", "mine")
    area.fill("")
    card.get_by_role("link", name="Cancel").click()
    expect(card.locator(".text")).to_have_text("mine and yours")
    expect(card.locator("summary")).to_be_focused()


def test_an_item_is_edited_in_place_on_its_own_page(visitor: Visitor, mine: Item) -> None:
    visitor.goto(f"/items/{mine.pk}")
    visitor.choose("Edit")
    area_of(visitor, f"edit:{mine.pk}").fill("mine and yours")
    visitor.page.get_by_role("button", name="Save").click()
    expect(visitor.page.locator("article.whole .text")).to_have_text("mine and yours")
    expect(visitor.page.locator("article.whole")).to_be_focused()
    assert Item.objects.get(pk=mine.pk).text == "mine and yours"
