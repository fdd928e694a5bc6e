# ruff: noqa: RUF001 - Chinese punctuation is meant
import re

import pytest
from playwright.sync_api import expect

from items import actions
from tests.support.browsers import Visit
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

LANGUAGES = {
    "en": ("Search posts and people", "Search"),
    "zh-CN": ("搜索帖子和用户", "搜索"),
}


@pytest.mark.long
@pytest.mark.parametrize("locale", LANGUAGES)
def test_people_and_posts_are_found(visit: Visit, javascript: bool, locale: str) -> None:
    field, button = LANGUAGES[locale]
    sender = UserFactory.create(username="xiaolin", display_name="小林")
    for number in range(25):
        actions.publish(sender=sender, content={"text": f"今天去海边游泳，number {number} #旅行# <b>"})
    visitor = visit(java_script_enabled=javascript, locale=locale)
    page = visitor.page
    visitor.goto("/search")
    page.get_by_label(field).fill("海边 number")
    visitor.go(page.get_by_role("main").get_by_role("button", name=button))
    expect(page.locator("article")).to_have_count(20)
    expect(page.locator("article").first.locator("mark")).to_have_text(["海边", "number"])
    expect(page).to_have_url(re.compile("q="))
    if javascript:
        page.locator("#more").scroll_into_view_if_needed()
        expect(page.locator("article")).to_have_count(25)
    else:
        page.locator("#more a").click()
        expect(page.locator("article")).to_have_count(5)
    expect(page.locator("article").last.locator("mark")).to_have_text(["海边", "number"])
    page.get_by_label(field).fill("小林")
    page.get_by_label(field).press("Enter")
    expect(page.locator(".people .name")).to_have_text(["小林"])


def test_from_the_field_beside_every_page_and_the_tab_of_a_phone(visit: Visit, javascript: bool) -> None:
    sender = UserFactory.create()
    actions.publish(sender=sender, content={"text": "apple pie"})
    wide = visit(java_script_enabled=javascript)
    wide.log_in(sender)
    wide.page.get_by_label("Search posts and people").fill("pie")
    wide.page.get_by_label("Search posts and people").press("Enter")
    expect(wide.page.locator("article mark")).to_have_text("pie")
    phone = visit(java_script_enabled=javascript, viewport={"width": 390, "height": 800})
    phone.log_in(sender)
    expect(phone.page.get_by_label("Search posts and people")).to_be_hidden()
    phone.page.get_by_role("link", name="Search").click()
    expect(phone.page.get_by_label("Search posts and people")).to_be_focused()
    phone.page.get_by_label("Search posts and people").fill("nothing of the kind")
    phone.page.get_by_label("Search posts and people").press("Enter")
    expect(phone.page.get_by_text("No results for “nothing of the kind”. Try other words.")).to_be_visible()


def test_a_hashtag_leads_to_its_page(visit: Visit, javascript: bool) -> None:
    sender = UserFactory.create(username="sender")
    actions.publish(sender=sender, content={"text": "看#小事#，还有@sender和https://example.com/a吧"})
    actions.publish(sender=sender, content={"text": "no tag"})
    visitor = visit(java_script_enabled=javascript)
    visitor.goto("/@sender")
    said = visitor.page.locator("article .text").last
    expect(said.get_by_role("link")).to_have_text(["#小事#", "@sender", "example.com/a"])
    said.get_by_role("link", name="#小事#").click()
    expect(visitor.page.get_by_role("heading", name="#小事")).to_be_visible()
    expect(visitor.page.locator("article")).to_have_count(1)
