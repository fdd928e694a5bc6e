from typing import Any

import pytest
from playwright.sync_api import expect

from items.conversations.conversations import mark_read
from items.models import Item
from relations.models import Follow
from tests.support.browsers import Visit
from tests.support.factories import UserFactory, say
from tests.support.streams import StreamServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def people() -> tuple[Any, Any]:
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob")
    Follow.objects.create(follower=ann, followee=bob)
    Follow.objects.create(follower=bob, followee=ann)
    return ann, bob


def talk_of(ann: Any, bob: Any, count: int) -> tuple[Item, list[Item]]:
    first = say(ann, "first", addressed=["bob"])
    return first, [say(ann, f"message {number}\nof\nmany\nlines", reply_to=first) for number in range(count)]


def test_two_people_talk(visit: Visit, streams: StreamServer, people: tuple[Any, Any]) -> None:
    ann, bob = people
    first, _ = talk_of(ann, bob, 2)
    pages = []
    for user in people:
        visitor = visit()
        visitor.log_in(user)
        with visitor.page.expect_response(lambda answer: "?after=" in answer.url):  # the stream is open
            visitor.goto(f"/conversations/{first.pk}")
        pages.append(visitor.page)
    of_ann, of_bob = pages
    box = of_ann.get_by_label("Message", exact=True)
    box.fill("one line")
    box.press("Shift+Enter")
    box.press_sequentially("and another")
    box.press("Enter")
    for page in pages:
        expect(page.locator(".message")).to_have_count(4)
        expect(page.locator(".message").last).to_contain_text("one line\nand another")
        expect(page.locator(".day:visible")).to_have_count(1)
    expect(box).to_have_value("")
    expect(box).to_be_focused()
    expect(of_bob.locator("#unread-messages")).to_have_text("")
    expect(of_bob.locator("#unread")).to_have_text("")
    sent = Item.objects.get(content__text="one line\nand another")
    of_ann.locator(f"#item-{sent.pk}").hover()
    of_ann.locator(f"#item-{sent.pk} > .menu > :is(.opens, summary)").click()
    of_ann.get_by_role("link", name="Delete").click()
    of_ann.get_by_role("dialog").get_by_role("button", name="Delete").click()
    for page in pages:
        expect(page.locator(".message")).to_have_count(3)


def test_older_messages_come_above_without_a_jump(visit: Visit, people: tuple[Any, Any]) -> None:
    ann, bob = people
    first, sent = talk_of(ann, bob, 44)
    mark_read(reader=bob, item_id=first.pk)
    say(ann, "new one", reply_to=first)
    visitor = visit()
    visitor.log_in(bob)
    visitor.goto(f"/conversations/{first.pk}#new")
    page = visitor.page
    expect(page.locator("#new")).to_be_in_viewport()
    expect(page.locator(".message").first).to_have_id(f"item-{sent[25].pk}")
    place = f"document.getElementById('item-{sent[30].pk}').getBoundingClientRect().top"
    page.evaluate("scrollTo({ top: 200, behavior: 'instant' })")
    before = page.evaluate(place)
    expect(page.locator(".message").first).to_have_id(f"item-{sent[5].pk}")
    assert abs(page.evaluate(place) - before) <= 2
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    expect(page.locator(".message")).to_have_count(46)
    expect(page.get_by_role("link", name="Older messages")).to_have_count(0)


@pytest.mark.parametrize("address", ["/conversations/{}", "/items/{}"])
def test_what_decides_on_a_request_goes_with_the_answer(visit: Visit, address: str) -> None:
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob")
    first = say(ann, "hello", addressed=["bob"])
    visitor = visit()
    visitor.log_in(bob)
    visitor.goto(address.format(first.pk))
    page = visitor.page
    expect(page.get_by_role("button", name="Accept")).to_be_visible()
    expect(page.get_by_text("1 message request")).to_have_count(1)
    composer = page.locator("#message, #thread")
    composer.get_by_role("textbox").fill("hello, too")
    composer.locator(".send").click()
    expect(page.get_by_text("hello, too")).to_be_visible()
    expect(page.get_by_role("button", name="Accept")).to_have_count(0)
    expect(page.get_by_text("1 message request")).to_have_count(0)


def test_names_complete_in_a_new_message(visit: Visit, people: tuple[Any, Any]) -> None:
    visitor = visit()
    visitor.log_in(people[0])
    visitor.goto("/conversations/new")
    to = visitor.page.get_by_role("combobox", name="To")
    to.press_sequentially("bo")
    expect(visitor.page.locator("#completions > li")).to_have_count(1)
    to.press("Enter")
    expect(to).to_have_value("@bob, ")
    visitor.page.get_by_label("Message", exact=True).fill("hello")
    visitor.page.get_by_label("Message", exact=True).press("Enter")
    expect(visitor.page.locator(".message")).to_contain_text("hello")
    assert Item.objects.get().participants.count() == 2
