from typing import Any

import pytest
from playwright.sync_api import expect

from items import actions as items
from items.models import Item, Like
from notifications.feed import unread_count
from relations.actions import follow
from relations.models import Follow
from runtime.embedded import wait_for
from tests.support.browsers import Visit
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.long
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
    expect(page.get_by_text("eve and 2 others liked your post")).to_have_count(0)  # they are on the next page
    expect(link).to_have_accessible_name("Notifications")
    if javascript:
        page.locator("#more").scroll_into_view_if_needed()
        expect(entries).to_have_count(31)
    else:
        page.get_by_role("link", name="Load more").click()
        expect(entries).to_have_count(11)
    expect(page.get_by_text("eve and 2 others liked your post")).to_be_visible()
    assert unread_count(ann).unread == 0
    page.get_by_role("link", name="my first words").click()
    expect(page).to_have_url(f"{visitor.site}/items/{post.pk}")


@pytest.mark.slow
def test_the_badge_grows_on_an_open_page(visit: Visit) -> None:
    ann: Any = UserFactory(username="ann")
    visitor = visit()
    visitor.log_in(ann)
    items.publish(sender=UserFactory(), content={"text": "hello @ann"})
    # The stream's script sends the same event.
    visitor.page.evaluate("document.body.dispatchEvent(new CustomEvent('notification'))")
    expect(visitor.page.locator("#unread")).to_contain_text("1 unread notification")
    visitor.settle()
    with visitor.page.expect_response("**/unread"):
        visitor.page.evaluate("document.body.dispatchEvent(new CustomEvent('notification'))")
    visitor.settle()
    expect(visitor.page.locator("#unread")).to_have_count(1)


@pytest.mark.slow
def test_an_open_page_tells_of_new_entries(visit: Visit, screen: dict[str, Any]) -> None:
    ann: Any = UserFactory(username="ann")
    items.publish(sender=UserFactory(), content={"text": "hello @ann, first"})
    visitor = visit(**screen)
    visitor.enter(ann)
    visitor.goto("/notifications")
    page = visitor.page
    expect(page).to_have_title("Notifications · feedsite")
    expect(page.locator(".pill")).to_have_count(0)
    items.publish(sender=UserFactory(), content={"text": "hello @ann, second"})
    pill = page.get_by_role("link", name="1 new", exact=True)
    expect(pill).to_be_visible()
    expect(page).to_have_title("(1) Notifications · feedsite")
    items.publish(sender=UserFactory(), content={"text": "hello @ann, third"})
    pill = page.get_by_role("link", name="2 new", exact=True)
    expect(pill).to_be_visible()
    expect(page).to_have_title("(2) Notifications · feedsite")
    visitor.go(pill)
    expect(page.locator("[role=feed] .excerpt")).to_have_text(
        ["hello @ann, third", "hello @ann, second", "hello @ann, first"]
    )
    expect(page.locator(".pill")).to_have_count(0)
    expect(page).to_have_title("Notifications · feedsite")
    visitor.goto("/notifications/mentions")
    expect(page.locator(".pill")).to_have_count(0)


@pytest.mark.slow
def test_the_first_notification_is_told_to_an_empty_page(visit: Visit, screen: dict[str, Any]) -> None:
    ann: Any = UserFactory(username="ann")
    visitor = visit(**screen)
    visitor.enter(ann)
    for address in ("/notifications/mentions", "/notifications"):
        visitor.goto(address)
        with visitor.page.expect_response("**/notifications/news?**") as asked:
            pass
        assert asked.value.status == 204
    items.publish(sender=UserFactory(), content={"text": "hello @ann"})
    expect(visitor.page.get_by_role("link", name="1 new", exact=True)).to_be_visible()


@pytest.mark.slow
def test_a_row_quotes_what_was_answered_and_answers(visit: Visit, screen: dict[str, Any], javascript: bool) -> None:
    ann, bob = (UserFactory.create(username=name) for name in ("ann", "bob"))
    post = items.publish(sender=ann, content={"text": "what does it cost?"})
    answer = items.publish(sender=bob, content={"text": "nothing at all"}, reply_to=post)
    visitor = visit(java_script_enabled=javascript, **screen)
    visitor.enter(ann)
    visitor.goto("/notifications")
    row = visitor.page.get_by_role("feed").get_by_role("article")
    expect(row.locator(".quoted")).to_have_text("You: what does it cost?")
    expect(row.locator(".excerpt")).to_have_text("nothing at all")
    row.get_by_role("button", name="Like").click()
    expect(row.get_by_role("button", name="Like 1")).to_have_attribute("aria-pressed", "true")
    assert wait_for(Like.objects.filter(user=ann, item=answer).exists, 30)
    visitor.settle()
    row.get_by_role("link", name="Reply", exact=True).click()
    box = visitor.page.get_by_role("main").get_by_label("Your reply")
    box.fill("thank you")
    visitor.page.get_by_role("main").get_by_role("button", name="Reply", exact=True).click()
    expect(visitor.page.get_by_text("thank you")).to_be_visible()
    assert Item.objects.get(sender=ann, reply_to=answer).text == "thank you"


@pytest.mark.slow
def test_a_row_follows_back(visit: Visit, screen: dict[str, Any], javascript: bool) -> None:
    ann, bob, known = (UserFactory.create(username=name) for name in ("ann", "bob", "known"))
    follow(follower=ann, followee=known)
    for follower in (known, bob):
        follow(follower=follower, followee=ann)
    visitor = visit(java_script_enabled=javascript, **screen)
    visitor.enter(ann)
    visitor.goto("/notifications")
    row = visitor.page.get_by_role("feed").get_by_role("article")
    shown = "document.querySelector('.kind.follow use').checkVisibility()"
    assert visitor.page.evaluate(shown), "the icon of its kind"
    expect(row.get_by_role("button")).to_have_text(["Follow back"], use_inner_text=True)
    row.get_by_role("button", name="Follow back @bob").click()
    if javascript:
        expect(row.get_by_role("button", name="Unfollow @bob")).to_be_visible()
    else:
        expect(row.get_by_role("button", name="Follow back @bob")).to_have_count(0)
    assert wait_for(Follow.objects.filter(follower=ann, followee=bob).exists, 30)
