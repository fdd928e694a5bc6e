import re
from typing import Any

import pytest
from playwright.sync_api import expect

from items.models import Item, Status
from relations.models import Block, Follow, Mute
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def author() -> Any:
    return UserFactory.create(username="author", display_name="An Author")


def test_sign_up_publish_and_be_read(visit: Visit, javascript: bool) -> None:
    reader, author = visit(java_script_enabled=javascript), visit(java_script_enabled=javascript)
    author.sign_up("author")
    reader.sign_up("reader")
    reader.goto("/@author")
    reader.page.get_by_role("button", name="Follow", exact=True).click()
    # The mouse is still on the button, which now names the next action.
    expect(reader.page.get_by_role("button", name=re.compile("^(Following|Unfollow)$"))).to_be_visible()
    expect(reader.page.get_by_role("link", name="1 follower", exact=True)).to_be_visible()

    author.publish("First words <b>here</b>\nand 第二行")
    expect(author.page.locator("[role=feed] article")).to_have_count(1)
    expect(author.page.get_by_label("What's new?")).to_have_value("")
    author.publish("Second words")
    expect(author.page.locator("[role=feed] article")).to_have_count(2)

    reader.goto("/")
    assert reader.shown() == ["Second words", "First words <b>here</b>\nand 第二行"]


@pytest.mark.long
def test_scrolling_while_posts_arrive(visit: Visit, reader: Any, author: Any) -> None:
    for number in range(70):
        say(author, f"old {number}")
    visitor = visit()
    visitor.log_in(reader)
    articles = visitor.page.locator("[role=feed] article")
    expect(articles).to_have_count(20)
    for arrived, count in enumerate((40, 60, 70)):
        say(author, f"new {arrived}")
        say(reader, f"own {arrived}")
        visitor.page.locator("#more").scroll_into_view_if_needed()
        expect(articles).to_have_count(count)
    visitor.shows([f"old {number}" for number in reversed(range(70))])
    expect(visitor.page.get_by_text("You've reached the end.")).to_be_visible()

    visitor.page.get_by_role("link", name="3 new posts").click()
    came = ["own 2", "new 2", "own 1", "new 1", "own 0", "new 0"]
    visitor.shows(came + [f"old {number}" for number in range(69, 55, -1)])
    expect(visitor.page.locator(".pill")).to_have_count(0)
    visitor.is_at_top()


@pytest.mark.long
def test_paging_while_posts_arrive_without_javascript(visit: Visit, reader: Any, author: Any) -> None:
    for number in range(70):
        say(author, f"old {number}")
    visitor = visit(java_script_enabled=False)
    visitor.log_in(reader)
    shown = visitor.shown()
    for arrived in range(3):
        say(author, f"new {arrived}")
        visitor.go(visitor.page.get_by_role("link", name="Load more"))
        shown += visitor.shown()
    assert shown == [f"old {number}" for number in reversed(range(70))]
    expect(visitor.page.get_by_role("link", name="Load more")).to_have_count(0)
    visitor.page.get_by_role("link", name="Newest posts").click()
    expect(visitor.page.get_by_text("new 2")).to_be_visible()


@pytest.mark.long
def test_the_pill_counts_what_came_and_moves_nothing(visit: Visit, reader: Any, author: Any) -> None:
    for number in range(30):
        say(author, f"old {number}")
    visitor = visit()
    visitor.log_in(reader)
    article = visitor.page.get_by_text("old 20")
    article.scroll_into_view_if_needed()
    place = article.bounding_box()
    say(author, "fresh")
    pill = visitor.page.get_by_role("link", name="1 new post")
    expect(pill).to_be_in_viewport()
    say(author, "fresher")
    expect(visitor.page.get_by_role("link", name="2 new posts")).to_be_in_viewport()
    assert article.bounding_box() == place
    expect(visitor.page.locator("[aria-live=polite]").filter(has=visitor.page.locator(".pill"))).to_have_count(1)


@pytest.mark.long
def test_publishing_shows_what_came_meanwhile(visit: Visit, reader: Any, author: Any, settings: Any) -> None:
    settings.HOME_POLL_SECONDS = 1000
    say(author, "before")
    visitor = visit()
    settings.HOME_POLL_SECONDS = 1000
    visitor.log_in(reader)
    say(author, "meanwhile")
    visitor.page.get_by_label("What's new?").fill("mine")
    visitor.page.keyboard.press("Control+Enter")
    expect(visitor.page.locator("[role=feed] article")).to_have_count(3)
    visitor.shows(["mine", "meanwhile", "before"])
    expect(visitor.page.get_by_role("status").get_by_text("Published.")).to_be_visible()


@pytest.mark.long
def test_editing(visit: Visit, reader: Any, javascript: bool) -> None:
    say(reader, "befor")
    visitor = visit(java_script_enabled=javascript)
    visitor.log_in(reader)
    visitor.choose("Edit")
    visitor.page.locator("main").get_by_role("link", name="Cancel").click()
    expect(visitor.page.locator("article .text")).to_have_text("befor")
    visitor.goto("/")
    visitor.choose("Edit")
    visitor.page.get_by_role("main").get_by_label("Text", exact=True).fill("before\nand after")
    visitor.page.get_by_role("button", name="Save").click()
    expect(visitor.page.get_by_text("and after")).to_be_visible()
    expect(visitor.page).to_have_url(f"{visitor.site}/" if javascript else re.compile("/items/"))
    assert Item.objects.get().text == "before\nand after"


@pytest.mark.long
def test_deleting(visit: Visit, reader: Any, author: Any, javascript: bool) -> None:
    say(author, "stays")
    say(reader, "goes")
    visitor = visit(java_script_enabled=javascript)
    visitor.log_in(reader)
    visitor.choose("Delete")
    if javascript:
        visitor.confirm("Delete this post?")
    else:
        visitor.page.get_by_role("button", name="Delete").click()
    expect(visitor.page.get_by_role("status").get_by_text("Deleted.")).to_be_visible()
    expect(visitor.page.locator("[role=feed] article")).to_have_count(1)
    visitor.shows(["stays"])
    assert Item.objects.get(sender=reader).status == Status.DELETED


@pytest.mark.long
def test_a_declined_question_deletes_nothing(visit: Visit, reader: Any) -> None:
    say(reader, "stays")
    visitor = visit()
    visitor.log_in(reader)
    visitor.choose("Delete")
    visitor.confirm("Delete this post?", is_sure=False)
    expect(visitor.page.locator("article summary")).to_be_focused()
    visitor.goto("/")
    visitor.shows(["stays"])


@pytest.mark.long
def test_relations_on_the_profile(visit: Visit, reader: Any, author: Any, javascript: bool) -> None:
    say(author, "heard")
    visitor = visit(java_script_enabled=javascript)
    visitor.log_in(reader)
    visitor.goto("/@author")

    def choose(name: str) -> None:
        visitor.settle()
        visitor.page.locator("#standing summary").click()
        visitor.page.get_by_role("button", name=name).click()

    visitor.page.locator("#follow").click()
    expect(visitor.page.get_by_role("button", name="Follow", exact=True)).to_be_visible()
    visitor.settle()
    assert not Follow.objects.exists()
    if javascript:
        expect(visitor.page.locator("#follow")).to_be_focused()
    choose("Mute")
    expect(visitor.page.get_by_text("muted")).to_be_visible()
    assert Mute.objects.exists()
    choose("Unmute")
    expect(visitor.page.get_by_text("muted")).to_have_count(0)
    choose("Block")
    if javascript:
        visitor.confirm("Block @author? You won't see each other anymore.")
    else:
        visitor.page.get_by_role("main").get_by_role("button", name="Block").click()
    expect(visitor.page.get_by_role("button", name="Unblock")).to_be_visible()
    visitor.shows([])
    visitor.page.get_by_role("button", name="Unblock").click()
    expect(visitor.page.get_by_text("heard")).to_be_visible()
    assert not Block.objects.exists()
    assert not Mute.objects.exists()


@pytest.mark.long
def test_replying(visit: Visit, reader: Any, author: Any, javascript: bool) -> None:
    root = say(author, "a question")
    visitor = visit(java_script_enabled=javascript)
    visitor.log_in(reader)
    visitor.goto(f"/items/{root.pk}")
    visitor.page.get_by_label("Your reply").fill("an answer")
    visitor.page.get_by_role("button", name="Reply").click()
    if not javascript:
        visitor.page.wait_for_url(re.compile("#item-"))
    visitor.shows(["an answer"])
    visitor.goto("/")
    visitor.shows(["a question"])


@pytest.mark.long
def test_an_empty_home_leads_on(visit: Visit, author: Any, javascript: bool) -> None:
    say(author, "worth reading")
    visitor = visit(java_script_enabled=javascript)
    visitor.sign_up("newcomer")
    main = visitor.page.locator("#main")  # the side column proposes the author too
    main.get_by_role("button", name="Follow @author").click()
    expect(main.get_by_text("worth reading")).to_be_visible()
    if javascript:
        expect(main.get_by_role("button", name="Unfollow @author")).to_be_visible()


@pytest.mark.long
def test_settings_and_log_out(visit: Visit, reader: Any, javascript: bool) -> None:
    visitor = visit(java_script_enabled=javascript)
    visitor.log_in(reader)
    visitor.goto("/settings")
    visitor.page.get_by_label("Display name").fill("林美")
    visitor.page.get_by_role("button", name="Save").click()
    expect(visitor.page.get_by_role("status").get_by_text("Saved.")).to_be_visible()
    expect(visitor.page.get_by_role("banner").get_by_text("林美")).to_be_visible()
    visitor.page.get_by_role("banner").get_by_role("button", name="Log out").click()
    expect(visitor.page.get_by_role("heading", name="Log in")).to_be_visible()


def _overflow(visitor: Visitor) -> int:
    width: int = visitor.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(visit: Visit, reader: Any, author: Any, width: int) -> None:
    author.display_name, author.bio = "W" * 50, "长" * 250 + "x" * 250
    author.save()
    item = say(author, "x" * 3000 + " https://example.org/" + "y" * 500)
    say(reader, "中文" * 400)
    visitor = visit(viewport={"width": width, "height": 800})
    visitor.log_in(reader)
    for path in ("/", "/@author", f"/items/{item.pk}", "/@reader/following", "/settings", "/items/new"):
        visitor.goto(path)
        assert _overflow(visitor) <= 0, path


@pytest.mark.long
def test_keys_lead_through_the_page(visit: Visit, reader: Any, author: Any) -> None:
    for number in range(3):
        say(author, f"words {number}")
    visitor = visit()
    visitor.log_in(reader)
    visitor.goto("/")
    visitor.page.keyboard.press("Tab")
    expect(visitor.page.get_by_role("link", name="Skip to posts")).to_be_focused()
    visitor.page.keyboard.press("Enter")
    expect(visitor.page.locator("[role=feed] article").first).to_be_focused()
    visitor.goto("/")
    visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("Tab")
    expect(visitor.page.get_by_role("link", name="Skip to content")).to_be_focused()
    visitor.page.keyboard.press("Enter")
    expect(visitor.page.locator("#main")).to_be_focused()
    articles = visitor.page.locator("[role=feed] article")
    articles.first.focus()
    visitor.page.keyboard.press("PageDown")
    expect(articles.nth(1)).to_be_focused()
    expect(articles.nth(1)).to_have_attribute("aria-posinset", "2")
    visitor.page.keyboard.press("PageUp")
    expect(articles.first).to_be_focused()
