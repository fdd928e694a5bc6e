"""Notifications in the browser: the badge, the list, the way on."""

from typing import Any

import pytest
from playwright.sync_api import expect

from items import actions as items
from notifications.feed import unread_count
from tests.support.browsers import Visit
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_user_is_told_and_reads_it(visit: Visit, javascript: bool) -> None:
    ann: Any = UserFactory(username="ann")
    post = items.publish(sender=ann, content={"text": "my first words"})
    for name in ("bob", "cid", "eve"):
        items.like(user=UserFactory(username=name), item=post)
    for number in range(30):
        items.publish(sender=UserFactory(), content={"text": f"@ann number{number}."})
    visitor = visit(java_script_enabled=javascript)
    page = visitor.page
    visitor.log_in(ann)
    link = page.get_by_role("navigation", name="Main").get_by_role("link", name="Notifications")
    expect(link).to_have_accessible_name("Notifications 31 unread notifications")
    visitor.go(link)
    entries = page.get_by_role("feed").get_by_role("article")
    expect(entries.first).to_have_class("item notice unread")
    expect(page.get_by_text("eve, cid and 1 other liked your post")).to_have_count(0)  # on the next page
    expect(link).to_have_accessible_name("Notifications")
    if javascript:
        page.locator("#more").scroll_into_view_if_needed()
        expect(entries).to_have_count(31)
    else:
        page.get_by_role("link", name="Load more").click()
        expect(entries).to_have_count(11)
    expect(page.get_by_text("eve, cid and 1 other liked your post")).to_be_visible()
    assert unread_count(ann).unread == 0
    page.get_by_role("link", name="my first words").click()
    expect(page).to_have_url(f"{visitor.site}/items/{post.pk}")


def test_the_badge_grows_on_an_open_page(visit: Visit) -> None:
    ann: Any = UserFactory(username="ann")
    visitor = visit()
    visitor.log_in(ann)
    items.publish(sender=UserFactory(), content={"text": "hello @ann"})
    # What the stream's script does at the event of that name.
    visitor.page.evaluate("document.body.dispatchEvent(new CustomEvent('notification'))")
    expect(visitor.page.locator("#unread")).to_contain_text("1 unread notification")
    visitor.settle()
    with visitor.page.expect_response("**/unread"):
        visitor.page.evaluate("document.body.dispatchEvent(new CustomEvent('notification'))")
    visitor.settle()
    expect(visitor.page.locator("#unread")).to_have_count(1)
