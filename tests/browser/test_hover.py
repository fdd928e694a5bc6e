"""A card of a person stands beside a name that the mouse points at."""

from typing import Any

import pytest
from playwright.sync_api import expect

from relations import actions as relations
from relations.models import Follow
from tests.support.browsers import Visit
from tests.support.factories import say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_a_card_shows_who_it_is(visit: Visit, reader: Any, author: Any) -> None:
    say(author, "words of mine, @reader")
    visitor = visit(viewport={"width": 1300, "height": 800})
    visitor.enter(reader)
    page = visitor.page
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if request.url.endswith("/card") else None)
    visitor.goto("/@author")
    card, name = page.locator(".hover-card"), page.locator("#feed .byline a[href='/@author']").first
    name.focus()
    name.hover()
    expect(card).to_contain_text("@author")
    expect(name).to_be_focused()
    card.get_by_role("button", name="Unfollow @author").click()
    expect(card.get_by_role("button", name="Follow @author")).to_be_visible()
    expect(page.locator(".underway")).to_have_count(0)
    assert not Follow.objects.filter(follower=reader, followee=author).exists()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.mouse.move(5, 5)
    name.hover()
    expect(card.get_by_role("button", name="Follow @author")).to_be_visible()
    page.keyboard.press("Tab")
    expect(card).to_be_hidden()
    assert len(requests) == 1


def test_there_is_none_by_touch_and_none_of_a_blocked_person(
    visit: Visit, reader: Any, author: Any, client: Any
) -> None:
    client.force_login(reader)
    assert client.get("/@author/card").status_code == 200
    assert client.get("/@nobody/card").status_code == 404
    relations.block(blocker=reader, blocked=author)
    assert client.get("/@author/card").status_code == 404
    relations.unblock(blocker=reader, blocked=author)
    relations.block(blocker=author, blocked=reader)
    assert client.get("/@author/card").status_code == 404
    relations.unblock(blocker=author, blocked=reader)
    say(author, "words")
    visitor = visit(viewport={"width": 1300, "height": 800}, has_touch=True, is_mobile=True)
    visitor.enter(reader)
    visitor.goto("/@author")
    visitor.page.locator("#feed .byline a[href='/@author']").first.hover()
    visitor.page.wait_for_timeout(800)
    expect(visitor.page.locator(".hover-card")).to_have_count(0)
