"""The menu of a card, on a phone and on a desktop: copying its link, its edit history, muting and blocking."""

from typing import Any

import pytest
from playwright.sync_api import expect

from items.actions import edit, publish, repost
from items.models import Item
from relations.actions import follow
from relations.models import Block, Mute
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

QUESTION = "Block @author? Neither of you will see the other."


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


def test_edit_history(visitor: Visitor, author: Any) -> None:
    item = say(author, "the first words")
    Item.objects.filter(pk=item.pk).update(modified_at="2020-01-01T00:00:00Z")
    edit(item=item, content={"text": "the second words"})
    Item.objects.filter(pk=item.pk).update(modified_at="2099-01-01T00:00:00Z")  # edited some time later
    say(author, "never edited")
    visitor.goto("/")
    menus = visitor.page.locator("article .menu-items")
    expect(menus.nth(0).get_by_text("Edit history")).to_have_count(0)
    visitor.choose("Edit history", "the second words")
    expect(visitor.page.get_by_role("heading", name="Edit history")).to_be_visible()
    expect(visitor.page.locator(".version .text")).to_have_text(["the second words", "the first words"])
    visitor.page.get_by_role("link", name="Back to the post").click()
    expect(visitor.page).to_have_url(f"{visitor.site}/items/{item.pk}")


def test_a_card_mutes_its_sender(visitor: Visitor, author: Any, friend: Any, reader: Any) -> None:
    say(author, "a loud one")
    say(friend, "a quiet one")
    say(author, "the loudest")
    repost(sender=author, item=say(UserFactory.create(), "what the loud one repeats"))
    visitor.goto("/")
    visitor.choose("Mute @author", "the loudest")
    visitor.shows(["a quiet one"])
    expect(visitor.page.get_by_text("@author is muted.")).to_be_visible()
    assert Mute.objects.filter(muter=reader, muted=author).exists()
    visitor.goto("/")
    visitor.shows(["a quiet one"])


def test_a_card_blocks_its_sender(visitor: Visitor, author: Any, friend: Any, reader: Any, javascript: bool) -> None:
    say(author, "a bad one")
    say(friend, "a good one")
    visitor.goto("/")
    visitor.choose("Block @author", "a bad one")
    if javascript:
        visitor.confirm(QUESTION)
    visitor.shows(["a good one"])
    assert Block.objects.filter(blocker=reader, blocked=author).exists()


def test_blocking_on_the_page_of_a_post_leads_to_the_profile(visitor: Visitor, author: Any, javascript: bool) -> None:
    item = say(author, "a bad one")
    visitor.goto(f"/items/{item.pk}")
    visitor.choose("Block @author")
    if javascript:
        visitor.confirm(QUESTION)
    expect(visitor.page).to_have_url(f"{visitor.site}/@author")
    expect(visitor.page.get_by_text("You blocked @author.")).to_be_visible()


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


def test_every_entry_of_every_menu_has_an_icon(visit: Visit, reader: Any, author: Any, screen: dict[str, Any]) -> None:
    publish(sender=author, content={"text": "words"})
    publish(sender=reader, content={"text": "mine"})
    visitor = visit(**screen)
    visitor.enter(reader)
    for address in ("/", "/@author", "/@reader", "/discover"):
        visitor.goto(address)
        entries = visitor.page.locator("details.menu .menu-items :is(a, button)")
        expect(entries.filter(has_not=visitor.page.locator("svg.icon"))).to_have_count(0)
        expect(entries).not_to_have_count(0)
    visitor.goto("/@author")
    visitor.page.locator(".standing summary").click()
    visitor.page.get_by_role("button", name="Mute", exact=False).last.click()
    expect(visitor.page.locator(".standing .mark")).to_have_text("muted")
    expect(visitor.page.locator("#mute .icon")).to_have_count(1)
