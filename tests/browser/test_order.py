from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from live import actions as live
from relations.actions import follow
from relations.models import List, ListMember
from tests.support.browsers import Visit, is_live
from tests.support.factories import UserFactory, say
from tests.support.streams import StreamServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_a_list_is_made_filled_and_told_of_news(visit: Visit, streams: StreamServer, reader: Any, author: Any) -> None:
    say(author, "old words")
    visitor = visit(viewport={"width": 390, "height": 844})
    visitor.log_in(reader)
    page = visitor.page
    visitor.go(page.get_by_role("link", name="Lists", exact=True))
    page.get_by_label("Title").fill("Friends")
    page.get_by_label("Hide its members' posts from home").check()
    visitor.go(page.get_by_role("button", name="Create list"))
    expect(page.get_by_text("This list is empty.")).to_be_visible()
    page.goto(f"{visitor.site}/@author")
    page.locator("#standing summary").click()
    visitor.go(page.get_by_role("link", name="Add to lists"))
    page.get_by_label("Friends").check()
    visitor.go(page.get_by_role("button", name="Save"))
    assert ListMember.objects.get().member == author

    page.goto(f"{visitor.site}/")
    expect(page.get_by_text("old words")).to_have_count(0)
    page.goto(f"{visitor.site}/lists/{List.objects.get().pk}")
    is_live(page)
    expect(page.get_by_text("old words")).to_be_visible()
    say(author, "fresh words")
    page.get_by_role("link", name="1 new post", exact=True).click()
    expect(page.get_by_text("fresh words")).to_be_visible()
    expect(page.locator(".pill")).to_have_count(0)


def test_filtered_posts_are_folded_and_unfolded_by_keys(visit: Visit, reader: Any, author: Any) -> None:
    visitor = visit()
    visitor.log_in(reader)
    page = visitor.page
    page.goto(f"{visitor.site}/settings/filters")
    page.get_by_label("Words or phrases").fill("zebra")
    visitor.go(page.get_by_role("button", name="Mute", exact=True))
    say(author, "a Zebra of mine")
    page.goto(f"{visitor.site}/")
    words = page.get_by_text("a Zebra of mine")
    expect(page.get_by_text("Muted word: zebra")).to_be_visible()
    expect(words).to_be_hidden()
    page.locator("details.filtered summary").focus()
    page.keyboard.press("Enter")
    expect(words).to_be_visible()


def test_whom_one_follows_in_the_column_leaves_it_with_the_next_page(visit: Visit, reader: Any) -> None:
    """The browser caches the column for a minute."""
    UserFactory.create(username="newcomer")
    visitor = visit(viewport={"width": 1280, "height": 844})
    visitor.log_in(reader)
    page = visitor.page
    page.goto(f"{visitor.site}/bookmarks")
    page.locator("#beside").get_by_role("button", name="Follow @newcomer").click()
    expect(page.locator("#beside").get_by_role("button", name="Unfollow @newcomer")).to_be_visible()
    expect(page.locator(".standing.underway")).to_have_count(0)
    with page.expect_response(f"{visitor.site}/beside") as answer:
        page.goto(f"{visitor.site}/likes")
    assert "newcomer" not in answer.value.text()


@pytest.mark.parametrize("height", [600, 768, 900, 1080])
def test_nothing_in_the_column_is_cut(visit: Visit, reader: Any, author: Any, height: int) -> None:
    for _ in range(6):
        follow(follower=author, followee=UserFactory.create())
    follow(follower=reader, followee=author)
    for number in range(3):
        host = UserFactory.create()
        begun = live.create(host=host, title=f"session {number}", starts_at=timezone.now(), now=timezone.now())
        live.start(session=begun, now=timezone.now())
    visitor = visit(viewport={"width": 1366, "height": height})
    visitor.enter(reader)
    visitor.goto("/bookmarks")
    column = visitor.page.locator("#beside")
    expect(column.get_by_role("heading", name="Live now")).to_be_visible()
    visitor.holds(
        "(({ scrollHeight, clientHeight }) => scrollHeight <= clientHeight)(document.getElementById('beside'))"
    )
    assert column.locator("li:visible").count() >= 2
    visitor.page.set_viewport_size({"width": 1366, "height": 1600})
    expect(column.locator("#beside-live ~ ul li:visible")).to_have_count(3)
    expect(column.locator("#beside-people ~ ul li:visible")).to_have_count(3)
