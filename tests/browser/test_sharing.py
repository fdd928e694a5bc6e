"""Links of posts and profiles are copied, or shared where the browser can."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.browsers import OPENER, Visit
from tests.support.factories import say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

CAN_SHARE = "navigator.share = (what) => { window.shared = what; return Promise.resolve(); }"


@pytest.mark.parametrize("can_share", [True, False])
def test_posts_and_profiles_are_shared(visit: Visit, reader: Any, author: Any, can_share: bool) -> None:
    item = say(author, "words")
    visitor = visit()
    visitor.enter(reader)
    page = visitor.page
    if can_share:
        page.add_init_script(CAN_SHARE)
    visitor.goto("/@author")
    for menu, address in (
        ("#standing .menu > summary", "/@author"),
        (f"#item-{item.pk} {OPENER}", f"/items/{item.pk}"),
    ):
        page.locator(menu).click()
        share = page.locator("details.menu[open]").get_by_role("button", name="Share", exact=True)
        if not can_share:
            expect(page.locator("details.menu[open]").get_by_text("Copy link")).to_be_visible()
            expect(share).to_have_count(0)
            page.keyboard.press("Escape")
            continue
        share.click()
        assert page.evaluate("window.shared.url") == visitor.site + address
    visitor.goto("/@reader")
    page.locator("#standing .menu > summary").click()
    expect(page.get_by_role("link", name="Copy link")).to_be_visible()
