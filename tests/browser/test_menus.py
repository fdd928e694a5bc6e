from typing import Any

import pytest
from playwright.sync_api import expect

from items.actions import delete, edit, repost
from items.models import Item
from relations.actions import follow
from relations.models import Block, Mute
from tests.support.browsers import MENU, OPENER, UNREACHABLE, Held, Visit, Visitor
from tests.support.factories import UserFactory, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

QUESTION = "Block @author? You won't see each other anymore."


@pytest.fixture
def friend() -> Any:
    return UserFactory.create(username="friend")


@pytest.fixture
def reader(author: Any, friend: Any) -> Any:
    reader = UserFactory.create(username="reader")
    for followee in (author, friend):
        follow(follower=reader, followee=followee)
    return reader


@pytest.fixture
def visitor(visit: Visit, screen: dict[str, Any], reader: Any, javascript: bool) -> Visitor:
    visitor = visit(java_script_enabled=javascript, **screen)
    visitor.enter(reader)
    return visitor


def test_a_link_is_copied(visitor: Visitor, author: Any, javascript: bool) -> None:
    item = say(author, "worth sending on")
    visitor.goto("/")
    if javascript:
        visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.choose("Copy link")
    address = f"{visitor.site}/items/{item.pk}"
    if javascript:
        expect(visitor.page.locator("#toast")).to_have_text("Link copied.")
        assert visitor.page.evaluate("navigator.clipboard.readText()") == address
        expect(visitor.page.locator("article summary")).to_be_focused()
    else:
        expect(visitor.page).to_have_url(address)


def test_no_menu_is_cut_off(visitor: Visitor, author: Any, javascript: bool) -> None:
    if not javascript:
        pytest.skip("a page replaces the menu")
    for number in range(12):
        say(author, f"words {number}")
    visitor.goto("/")
    card = visitor.page.locator("#feed > article").last
    card.evaluate("card => scrollTo(0, card.getBoundingClientRect().top + scrollY - innerHeight + 160)")
    card.locator(OPENER).click()
    items = card.locator(MENU)
    expect(items).to_be_visible()
    covered = "parseFloat(getComputedStyle(document.documentElement).scrollPaddingBottom) || 0"
    visitor.page.wait_for_function(
        f"items => items.getBoundingClientRect().bottom <= innerHeight - ({covered}) + 1",
        arg=items.element_handle(),
    )


def test_edit_history(visitor: Visitor, author: Any) -> None:
    item = say(author, "the first words")
    Item.objects.filter(pk=item.pk).update(modified_at="2020-01-01T00:00:00Z")
    edit(item=item, content={"text": "the second words"})
    Item.objects.filter(pk=item.pk).update(modified_at="2099-01-01T00:00:00Z")
    say(author, "never edited")
    visitor.goto("/")
    visitor.page.locator("article").filter(has_text="never edited").locator(OPENER).click()
    expect(visitor.page.locator(MENU).get_by_text("Copy link")).to_be_visible()
    expect(visitor.page.get_by_text("Edit history")).to_have_count(0)
    visitor.goto("/")
    visitor.choose("Edit history", "the second words")
    expect(visitor.page.get_by_role("heading", name="Edit history")).to_be_visible()
    expect(visitor.page.locator(".version .text")).to_have_text(["the second words", "the first words"])
    visitor.page.get_by_role("link", name="Back to post").click()
    expect(visitor.page).to_have_url(f"{visitor.site}/items/{item.pk}")


def test_a_card_mutes_its_sender(visitor: Visitor, author: Any, friend: Any, reader: Any) -> None:
    say(author, "a loud one")
    say(friend, "a quiet one")
    say(author, "the loudest")
    repost(sender=author, item=say(UserFactory.create(), "what the loud one repeats"))
    visitor.goto("/")
    visitor.choose("Mute @author", "the loudest")
    visitor.shows(["a quiet one"])
    expect(visitor.page.get_by_text("You muted @author.")).to_be_visible()
    assert Mute.objects.filter(muter=reader, muted=author).exists()
    visitor.go(visitor.page.get_by_role("button", name="Undo"))
    assert not Mute.objects.filter(muter=reader, muted=author).exists()
    expect(visitor.page).to_have_url(f"{visitor.site}/")
    expect(visitor.page.get_by_text("the loudest")).to_be_visible()


def agree(visitor: Visitor, javascript: bool) -> None:
    if javascript:
        visitor.confirm(QUESTION)
    else:
        expect(visitor.page.get_by_text(QUESTION)).to_be_visible()
        visitor.page.get_by_role("button", name="Block", exact=True).click()


def test_a_card_blocks_its_sender(visitor: Visitor, author: Any, friend: Any, reader: Any, javascript: bool) -> None:
    say(author, "a bad one")
    say(friend, "a good one")
    visitor.goto("/")
    visitor.choose("Block @author", "a bad one")
    agree(visitor, javascript)
    visitor.shows(["a good one"])
    assert Block.objects.filter(blocker=reader, blocked=author).exists()


def test_blocking_on_the_page_of_a_post_leads_to_the_profile(visitor: Visitor, author: Any, javascript: bool) -> None:
    item = say(author, "a bad one")
    visitor.goto(f"/items/{item.pk}")
    visitor.choose("Block @author")
    agree(visitor, javascript)
    expect(visitor.page).to_have_url(f"{visitor.site}/@author")
    expect(visitor.page.get_by_text("You blocked @author. You can't see each other's posts.")).to_be_visible()


def test_blocking_from_the_page_of_a_longer_name_stays_there(visit: Visit, reader: Any, author: Any) -> None:
    other = UserFactory.create(username="author-two")
    repost(sender=other, item=say(author, "a bad one"))
    say(other, "a good one")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/@author-two")
    visitor.choose("Block @author", "a bad one")
    visitor.confirm(QUESTION)
    visitor.shows(["a good one"])
    expect(visitor.page).to_have_url(f"{visitor.site}/@author-two")


def test_without_javascript_the_menu_is_a_page(visit: Visit, reader: Any, author: Any) -> None:
    item, mine = say(author, "words of another"), say(reader, "words of mine")
    visitor = visit(java_script_enabled=False)
    visitor.enter(reader)
    for one, acts in (
        (item, ["Quote", "Copy link", "Mute @authorHide their posts from your home", "Block @author", "Report"]),
        (
            mine,
            [
                "Quote",
                "Edit",
                "Pin to profile",
                "Copy link",
                "Mute threadYou won't get notifications from it",
                "Delete",
            ],
        ),
    ):
        visitor.goto("/")
        visitor.page.locator(f"#item-{one.pk} {OPENER}").click()
        expect(visitor.page).to_have_url(f"{visitor.site}/items/{one.pk}/menu")
        expect(visitor.page.locator(MENU).locator("a, button")).to_have_text(acts)
        expect(visitor.page.get_by_role("main").get_by_role("link", name=one.text)).to_be_visible()
        visitor.page.get_by_role("link", name="Back", exact=True).click()
        expect(visitor.page).to_have_url(f"{visitor.site}/")
    visitor.goto("/discover")
    visitor.choose("Not interested", "words of another")
    expect(visitor.page).to_have_url(f"{visitor.site}/discover")
    expect(visitor.page.get_by_text("words of another")).to_have_count(0)


def test_the_page_of_the_acts_in_a_tab_of_its_own(visit: Visit, reader: Any) -> None:
    item = say(reader, "words of mine")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto(f"/items/{item.pk}/menu")
    visitor.go(visitor.page.get_by_role("link", name="Edit"))
    expect(visitor.page).to_have_url(f"{visitor.site}/items/{item.pk}/edit")
    visitor.goto(f"/items/{item.pk}/menu")
    visitor.go(visitor.page.get_by_role("link", name="Delete"))
    expect(visitor.page).to_have_url(f"{visitor.site}/items/{item.pk}/delete")


def test_two_quick_presses_open_one_menu(visit: Visit, reader: Any, author: Any) -> None:
    say(author, "words")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/")
    held = Held(visitor.page, r"/items/\d+/menu$")
    opener = visitor.page.locator(f"article {OPENER}")
    opener.click()
    opener.click()
    expect(visitor.page.locator("article .menu-items")).to_have_count(0)
    held.let_go()
    expect(visitor.page.locator(MENU)).to_be_visible()
    expect(visitor.page.locator("article .menu-items")).to_have_count(1)
    assert len(held.asked) == 1


def test_of_two_menus_the_one_that_was_pressed_last_opens(visit: Visit, reader: Any, author: Any) -> None:
    first, second = say(author, "one"), say(author, "two")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/")
    held = Held(visitor.page, r"/items/\d+/menu$")
    for item in (first, second):
        visitor.page.locator(f"#item-{item.pk} {OPENER}").click()
    held.let_go()
    expect(visitor.page.locator(f"#item-{second.pk} .menu-items")).to_be_visible()
    visitor.settle()
    expect(visitor.page.locator(MENU)).to_have_count(1)


def test_a_menu_is_opened_and_closed_by_the_space_bar(visit: Visit, reader: Any, author: Any) -> None:
    say(author, "words")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/")
    opener, menu = visitor.page.locator(f"article {OPENER}"), visitor.page.locator(MENU)
    for _ in range(2):
        opener.press("Space")
        expect(menu).to_be_visible()
        expect(opener).to_be_focused()
        opener.press("Space")
        expect(menu).to_be_hidden()


def test_a_menu_that_does_not_come_says_why(visit: Visit, reader: Any, author: Any, tolerated: Any) -> None:
    tolerated(*UNREACHABLE, "404")
    item = say(author, "words")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/")
    opener, menu = visitor.page.locator(f"article {OPENER}"), visitor.page.locator(MENU)
    visitor.page.context.set_offline(True)
    opener.click()
    expect(visitor.page.locator("#toast")).to_have_text("No connection. Try again in a moment.")
    expect(menu).to_have_count(0)
    visitor.page.context.set_offline(False)
    opener.click()
    expect(menu).to_be_visible()
    opener.click()
    expect(menu).to_have_count(0)
    delete(item=item)
    opener.click()
    expect(visitor.page.locator("#toast")).to_have_text("This is no longer available.")
    expect(menu).to_have_count(0)
